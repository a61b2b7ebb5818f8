//! Every section of the configuration, as far as this binary was built with the parts that read them.

use std::path::PathBuf;

use trifid_base_runtime::config::Schema;
use trifid_base_runtime::{section, telemetry};
use trifid_base_web::{self as web, auth, egress};

/// The doors that this binary was built with.
const DOORS: &[&str] = &[
    #[cfg(feature = "context")]
    "context",
    #[cfg(feature = "stream")]
    "stream",
    #[cfg(feature = "archive")]
    "archive",
];

section! {
    /// The keys without a section.
    pub(crate) struct Root {
        /// The folder that holds everything durable; one process at a time works in it.
        data_dir: PathBuf = "trifid-data",
        /// The doors that open; `all` stands for every door that this binary was built with.
        doors: Vec<String> = "all",
    }
}

impl Root {
    /// The doors that open; an error if the list names one that is not there.
    pub(crate) fn open_doors(&self) -> anyhow::Result<Vec<&'static str>> {
        let known = |name: &str| name == "all" || DOORS.contains(&name);
        if let Some(strange) = self.doors.iter().find(|name| !known(name)) {
            anyhow::bail!("`doors` names `{strange}`; this binary has the doors: {}", DOORS.join(", "));
        }
        let named = |door: &&&str| self.doors.iter().any(|name| name == "all" || name == **door);
        Ok(DOORS.iter().filter(named).copied().collect())
    }
}

/// The keys of this binary, in the order in which they are shown.
pub(crate) fn schema() -> Schema {
    let sections = [
        Root::KEYS,
        web::Options::KEYS,
        auth::Options::KEYS,
        egress::Options::KEYS,
        #[cfg(feature = "context")]
        crate::context::Options::KEYS,
        #[cfg(feature = "context")]
        trifid_context_face::Options::KEYS,
        #[cfg(feature = "stream")]
        crate::stream::Options::KEYS,
        #[cfg(feature = "stream")]
        trifid_stream_face::Options::KEYS,
        #[cfg(feature = "stream")]
        trifid_stream_kafka::Options::KEYS,
        #[cfg(feature = "archive")]
        crate::archive::Options::KEYS,
        #[cfg(feature = "archive")]
        trifid_archive_face::Options::KEYS,
        telemetry::Options::KEYS,
    ];
    Schema::new(&sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(doors: &[&str]) -> Root {
        Root { doors: doors.iter().map(|door| (*door).to_owned()).collect(), ..Root::default() }
    }

    #[test]
    fn every_default_makes_a_configuration() {
        let config = schema().resolve(&Default::default()).unwrap();
        assert_eq!(config.section::<Root>("").unwrap().doors, ["all"]);
    }

    #[test]
    fn the_doors_that_open() {
        assert_eq!(root(&["all"]).open_doors().unwrap(), DOORS);
        assert!(root(&[]).open_doors().unwrap().is_empty());
        let message = root(&["contxt"]).open_doors().unwrap_err().to_string();
        assert!(message.starts_with("`doors` names `contxt`"), "{message}");
    }

    /// The table of docs/operations.md.
    #[cfg(all(feature = "context", feature = "stream", feature = "archive", feature = "rig"))]
    fn table() -> String {
        let mut text = "| key | values | default | meaning |\n|---|---|---|---|\n".to_owned();
        for key in schema().keys() {
            let default =
                if key.default.is_empty() { "none".to_owned() } else { format!("`{}`", key.default) };
            text += &format!("| `{}` | {} | {default} | {} |\n", key.name, key.unit(), key.doc.trim());
        }
        text
    }

    #[test]
    #[cfg(all(feature = "context", feature = "stream", feature = "archive", feature = "rig"))]
    fn the_operations_chapter_lists_every_key() {
        let chapter = include_str!("../../../docs/operations.md");
        let begin = chapter.find("program) -->\n").unwrap() + "program) -->\n".len();
        let end = chapter.find("<!-- keys: end").unwrap();
        assert!(chapter[begin..end] == table(), "the table in docs/operations.md should be:\n{}", table());
    }
}
