//! A key and the kinds of value that keys take.

use std::fmt;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use serde::Deserialize;
use toml::Value;

use crate::units::{Size, Span};

/// One thing that can be configured.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The full name, such as `http.listen`.
    pub name: &'static str,
    /// What its values look like.
    pub kind: Kind,
    /// Whether it may stay without a value.
    pub optional: bool,
    /// The default, in the form in which a user would write it in a variable.
    pub default: &'static str,
    /// What a number counts; empty where the kind says it.
    pub unit: &'static str,
    /// What it does, in a sentence.
    pub doc: &'static str,
}

impl Key {
    /// The default as a value; none for an optional key without one.
    ///
    /// # Panics
    /// If the default does not fit the kind, which a test in each crate that declares keys rules out.
    pub fn default_value(&self) -> Option<Value> {
        if self.optional && self.default.is_empty() {
            return None;
        }
        match self.kind.read(self.default) {
            Ok(value) => Some(value),
            Err(reason) => panic!("the default of {} {reason}", self.name),
        }
    }

    /// What its values are, for a person.
    pub fn unit(&self) -> String {
        if self.unit.is_empty() { self.kind.to_string() } else { self.unit.to_owned() }
    }
}

/// What the values of a key look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A text that is never shown.
    Secret,
    /// A path of the file system.
    Path,
    /// `true` or `false`.
    Flag,
    /// A whole number between two bounds, both included.
    Integer {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// A duration with its unit: `250ms`.
    Duration,
    /// A size with its unit: `64MiB`.
    Size,
    /// An address and a port: `127.0.0.1:9090`.
    Address,
    /// A list of texts; in a variable or a flag, separated by commas.
    List,
    /// One of some words.
    Choice(&'static [&'static str]),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text | Self::Secret => f.write_str("text"),
            Self::Path => f.write_str("path"),
            Self::Flag => f.write_str("true or false"),
            Self::Integer { min, max: i64::MAX } => write!(f, "whole number from {min}"),
            Self::Integer { min, max } => write!(f, "whole number from {min} to {max}"),
            Self::Duration => f.write_str("duration such as 250ms"),
            Self::Size => f.write_str("size such as 64MiB"),
            Self::Address => f.write_str("address and port such as 127.0.0.1:9090"),
            Self::List => f.write_str("list"),
            Self::Choice(words) => write!(f, "one of {}", words.join(", ")),
        }
    }
}

impl Kind {
    /// Reads the text of a variable or a flag; the error completes a sentence that begins with the key.
    pub(super) fn read(self, text: &str) -> Result<Value, String> {
        match self {
            Self::Flag => self.or_refuse(text.parse().ok().map(Value::Boolean), text),
            Self::Integer { .. } => {
                let number = text.parse().ok().filter(|number| self.holds(*number));
                self.or_refuse(number.map(Value::Integer), text)
            }
            Self::List => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                Ok(Value::Array(items.map(|item| Value::String(item.to_owned())).collect()))
            }
            _ => self.accept(Value::String(text.to_owned())),
        }
    }

    /// Takes a value of the file.
    pub(super) fn accept(self, value: Value) -> Result<Value, String> {
        match (self, &value) {
            (Self::Text | Self::Secret | Self::Path, Value::String(_)) | (Self::Flag, Value::Boolean(_)) => {
                Ok(value)
            }
            (Self::Integer { .. }, Value::Integer(number)) if self.holds(*number) => Ok(value),
            (Self::Duration, Value::String(text)) => self.checked(text.parse::<Span>().is_ok(), value),
            (Self::Size, Value::String(text)) => self.checked(text.parse::<Size>().is_ok(), value),
            (Self::Size, Value::Integer(bytes)) => self.checked(*bytes >= 0, value),
            (Self::Address, Value::String(text)) => self.checked(text.parse::<SocketAddr>().is_ok(), value),
            (Self::Choice(words), Value::String(text)) => self.checked(words.contains(&text.as_str()), value),
            (Self::List, Value::String(text)) => self.read(&text.clone()),
            (Self::List, Value::Array(items)) => self.checked(items.iter().all(Value::is_str), value),
            _ => Err(self.refusal(&value)),
        }
    }

    fn holds(self, number: i64) -> bool {
        matches!(self, Self::Integer { min, max } if (min..=max).contains(&number))
    }

    fn checked(self, fits: bool, value: Value) -> Result<Value, String> {
        if fits { Ok(value) } else { Err(self.refusal(&value)) }
    }

    fn or_refuse(self, value: Option<Value>, text: &str) -> Result<Value, String> {
        value.ok_or_else(|| self.refusal(&Value::String(text.to_owned())))
    }

    fn with_article(self) -> String {
        match self {
            Self::Flag | Self::Choice(_) => self.to_string(),
            Self::Address => format!("an {self}"),
            _ => format!("a {self}"),
        }
    }

    /// A secret is not repeated even in a refusal.
    fn refusal(self, value: &Value) -> String {
        match self {
            Self::Secret => format!("takes {}", self.with_article()),
            _ => format!("takes {}, not {value}", self.with_article()),
        }
    }
}

/// A type that a key's values are read into, and the kind that goes with it.
pub trait Kinded {
    /// The kind.
    const KIND: Kind;
    /// Whether the key may stay without a value.
    const OPTIONAL: bool = false;
}

impl<T: Kinded> Kinded for Option<T> {
    const KIND: Kind = T::KIND;
    const OPTIONAL: bool = true;
}

macro_rules! kinded {
    ($($type:ty => $kind:expr;)*) => { $(impl Kinded for $type { const KIND: Kind = $kind; })* };
}

kinded! {
    bool => Kind::Flag;
    String => Kind::Text;
    PathBuf => Kind::Path;
    SocketAddr => Kind::Address;
    Span => Kind::Duration;
    Size => Kind::Size;
    Vec<String> => Kind::List;
    Secret => Kind::Secret;
    u16 => Kind::Integer { min: 0, max: 65_535 };
    u32 => Kind::Integer { min: 0, max: 4_294_967_295 };
    u64 => Kind::Integer { min: 0, max: i64::MAX };
    usize => Kind::Integer { min: 0, max: i64::MAX };
    NonZeroU32 => Kind::Integer { min: 1, max: 4_294_967_295 };
    NonZeroU64 => Kind::Integer { min: 1, max: i64::MAX };
    NonZeroUsize => Kind::Integer { min: 1, max: i64::MAX };
}

/// A text that neither `config show` nor a debug line repeats.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The text, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
