//! Configuration: one list of keys, three layers, and the origin of every value.
//!
//! A [`Schema`] is the list of every [`Key`] that the program understands; each part of the program
//! contributes the keys of its own section, usually by the macro [`section!`](crate::section). Everything else
//! derives from that list: the names of the environment variables, the nearest known name in an error, the
//! defaults, and what `trifid config show` prints.
//!
//! Resolution lays the layers over each other, later ones winning:
//!
//! ```text
//! defaults  <  trifid.toml  <  TRIFID_* variables  <  flags (--set key=value, and the named ones)
//! ```
//!
//! Each value is checked against the kind of its key in the layer where it was written, so that a refusal
//! names the line, the variable or the flag. The result is read once, section by section, into plain
//! structures ([`Config::section`]); nothing looks a key up by name while the program runs.

mod environment;
mod file;
mod key;
mod nearest;
mod section;
mod show;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use toml::Value;

pub use key::{Key, Kind, Kinded, Secret};
pub use section::section_defaults;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The key's default.
    Default,
    /// A line of the configuration file.
    File {
        /// The file as it was named.
        path: PathBuf,
        /// The line, counted from one.
        line: usize,
    },
    /// The named environment variable.
    Environment(String),
    /// The flag, as it is written on the command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// Why a configuration was refused. Every variant names the place where it was written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read the configuration file {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{} is not valid TOML", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: Box<toml::de::Error>,
    },
    /// A key that nobody knows.
    #[error("{origin}: unknown key `{name}`; the nearest known key is `{nearest}`")]
    UnknownKey {
        /// Where it was written.
        origin: Origin,
        /// The key as written.
        name: String,
        /// The known key most like it.
        nearest: String,
    },
    /// A variable that belongs to no key.
    #[error("unknown variable `{name}`; the nearest known one is `{nearest}`")]
    UnknownVariable {
        /// The variable.
        name: String,
        /// The known variable most like it.
        nearest: String,
    },
    /// A value that its key does not take.
    #[error("{origin}: `{name}` {reason}")]
    Refused {
        /// Where it was written.
        origin: Origin,
        /// The key.
        name: &'static str,
        /// What the key takes instead.
        reason: String,
    },
    /// A `--set` without `=`.
    #[error("`--set {0}` is not of the form key=value")]
    NoAssignment(String),
    /// A section's structure does not fit its keys: a mistake of ours, not of the user.
    #[error("section `{section}` does not fit its keys")]
    Section {
        /// The section.
        section: String,
        /// What serde said.
        source: Box<toml::de::Error>,
    },
}

/// What the three layers hold before they are resolved.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// The configuration file, if there is one.
    pub file: Option<PathBuf>,
    /// The process's environment; only `TRIFID_*` is looked at.
    pub environment: Vec<(String, String)>,
    /// Assignments from the command line, in order: the flag as written, the key, the value.
    pub flags: Vec<Flag>,
}

/// One assignment from the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The flag as the user wrote it, for messages.
    pub flag: String,
    /// The key that it sets.
    pub key: String,
    /// The value.
    pub value: String,
}

impl Flag {
    /// A named flag that stands for a key, such as `--listen` for `http.listen`.
    pub fn named(flag: &str, key: &str, value: impl Into<String>) -> Self {
        Self { flag: flag.to_owned(), key: key.to_owned(), value: value.into() }
    }

    /// The argument of `--set`.
    pub fn set(argument: &str) -> Result<Self, Error> {
        let (key, value) =
            argument.split_once('=').ok_or_else(|| Error::NoAssignment(argument.to_owned()))?;
        let key = key.trim().to_owned();
        Ok(Self { flag: format!("--set {key}"), key, value: value.trim().to_owned() })
    }
}

/// Every key that the program understands, in the order in which `config show` prints them.
#[derive(Clone, Debug)]
pub struct Schema(Vec<&'static Key>);

impl Schema {
    /// Joins the sections.
    ///
    /// # Panics
    /// If two keys share a name or an environment variable, which no input can cause.
    pub fn new(sections: &[&'static [Key]]) -> Self {
        let keys: Vec<_> = sections.iter().copied().flatten().collect();
        let mut variables = BTreeMap::new();
        for key in &keys {
            if let Some(other) = variables.insert(environment::variable(key.name), key.name) {
                panic!("the keys {other} and {} share one environment variable", key.name);
            }
        }
        Self(keys)
    }

    /// The keys.
    pub fn keys(&self) -> &[&'static Key] {
        &self.0
    }

    /// Lays the layers over the defaults.
    pub fn resolve(&self, layers: &Layers) -> Result<Config, Error> {
        let mut settings = self.defaults();
        if let Some(path) = &layers.file {
            for entry in file::read(path, |name| self.find(name).is_some())? {
                let index = self.index(&entry.name, &entry.origin)?;
                settings[index].take(entry.origin, Written::Value(entry.value))?;
            }
        }
        for (variable, text) in environment::relevant(&layers.environment) {
            let index = self.index_of_variable(variable)?;
            let origin = Origin::Environment(variable.to_owned());
            settings[index].take(origin, Written::Text(text))?;
        }
        for flag in &layers.flags {
            let origin = Origin::Flag(flag.flag.clone());
            let index = self.index(&flag.key, &origin)?;
            settings[index].take(origin, Written::Text(&flag.value))?;
        }
        Ok(Config { settings })
    }

    fn defaults(&self) -> Vec<Setting> {
        let setting =
            |key: &&'static Key| Setting { key, value: key.default_value(), origin: Origin::Default };
        self.0.iter().map(setting).collect()
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|key| key.name == name)
    }

    fn index(&self, name: &str, origin: &Origin) -> Result<usize, Error> {
        self.find(name).ok_or_else(|| Error::UnknownKey {
            origin: origin.clone(),
            name: name.to_owned(),
            nearest: nearest::nearest(name, self.0.iter().map(|key| key.name)).to_owned(),
        })
    }

    /// The underscores of a variable are ambiguous (`a.b_c` and `a_b.c` read alike), so a variable is not
    /// taken apart: it is compared with the variable of every known key.
    fn index_of_variable(&self, variable: &str) -> Result<usize, Error> {
        let names: Vec<String> = self.0.iter().map(|key| environment::variable(key.name)).collect();
        names.iter().position(|name| name == variable).ok_or_else(|| Error::UnknownVariable {
            name: variable.to_owned(),
            nearest: nearest::nearest(variable, names.iter().map(String::as_str)).to_owned(),
        })
    }
}

/// One key with the value that won.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The key.
    pub key: &'static Key,
    /// Its value; absent for an optional key that nobody set.
    pub value: Option<Value>,
    /// Where the value was written.
    pub origin: Origin,
}

impl Setting {
    fn take(&mut self, origin: Origin, written: Written<'_>) -> Result<(), Error> {
        self.value = match written {
            // An empty text takes an optional value away again: the only way to say so in a variable.
            Written::Text("") if self.key.optional => None,
            Written::Text(text) => Some(self.checked(self.key.kind.read(text), &origin)?),
            Written::Value(value) => Some(self.checked(self.key.kind.accept(value), &origin)?),
        };
        self.origin = origin;
        Ok(())
    }

    fn checked(&self, value: Result<Value, String>, origin: &Origin) -> Result<Value, Error> {
        value.map_err(|reason| Error::Refused { origin: origin.clone(), name: self.key.name, reason })
    }
}

/// A value as a layer holds it: typed in the file, text in variables and flags.
enum Written<'a> {
    Text(&'a str),
    Value(Value),
}

/// The resolved configuration: a value and an origin for every key.
#[derive(Clone, Debug)]
pub struct Config {
    settings: Vec<Setting>,
}

impl Config {
    /// Every setting, in the schema's order.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// One setting by the name of its key.
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.key.name == name)
    }

    /// Reads the keys below `section.` into a plain structure; the empty name stands for the keys without one.
    pub fn section<T: DeserializeOwned>(&self, section: &str) -> Result<T, Error> {
        let values = self.settings.iter().filter_map(|s| Some((s.key.name, s.value.clone()?)));
        section::read(section, values)
    }

    /// The configuration as TOML, each value with its origin in a comment; `explain` adds each key's meaning.
    pub fn show(&self, explain: bool) -> impl fmt::Display + '_ {
        show::Show { config: self, explain }
    }
}

#[cfg(test)]
mod tests;
