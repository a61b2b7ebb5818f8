//! What `trifid config show` prints: valid TOML, so that it can be kept as a configuration file.

use std::fmt;

use super::{Config, Kind, Setting};

/// What stands for a secret.
const MASK: &str = "\"***\"";

pub(super) struct Show<'a> {
    pub(super) config: &'a Config,
    pub(super) explain: bool,
}

impl fmt::Display for Show<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for setting in &self.config.settings {
            if self.explain {
                writeln!(f, "\n# {} [{}]", setting.key.doc.trim(), setting.key.unit())?;
            }
            assignment(f, setting)?;
        }
        Ok(())
    }
}

/// A masked secret is commented out: kept as a file, the line would set the mask.
fn assignment(f: &mut fmt::Formatter<'_>, setting: &Setting) -> fmt::Result {
    let (name, origin) = (setting.key.name, &setting.origin);
    match &setting.value {
        None => writeln!(f, "# {name} =  # not set ({origin})"),
        Some(_) if setting.key.kind == Kind::Secret => writeln!(f, "# {name} = {MASK}  # {origin}"),
        Some(value) => writeln!(f, "{name} = {value}  # {origin}"),
    }
}
