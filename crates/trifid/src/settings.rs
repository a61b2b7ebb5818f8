//! Every section of the configuration, as far as this binary was built with the parts that read them.

use std::path::PathBuf;

use trifid_base_runtime::config::Schema;
use trifid_base_runtime::{section, telemetry};

/// The doors that this binary was built with.
#[cfg(test)]
const DOORS: &[&str] = &[
    #[cfg(feature = "context")]
    "context",
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

#[cfg(test)]
impl Root {
    /// Whether the door of this name opens; an error if the list names a door that is not there.
    pub(crate) fn opens(&self, door: &str) -> anyhow::Result<bool> {
        if let Some(strange) =
            self.doors.iter().find(|name| *name != "all" && !DOORS.contains(&name.as_str()))
        {
            anyhow::bail!("`doors` names `{strange}`; this binary has the doors: {}", DOORS.join(", "));
        }
        Ok(DOORS.contains(&door) && self.doors.iter().any(|name| name == "all" || name == door))
    }
}

/// The keys of this binary.
pub(crate) fn schema() -> Schema {
    Schema::new(&[Root::KEYS, telemetry::Options::KEYS])
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
        assert!(root(&["all"]).opens("context").unwrap() == cfg!(feature = "context"));
        assert!(!root(&[]).opens("context").unwrap());
        let message = root(&["contxt"]).opens("context").unwrap_err().to_string();
        assert!(message.starts_with("`doors` names `contxt`"), "{message}");
    }
}
