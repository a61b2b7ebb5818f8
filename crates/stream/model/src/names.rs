//! What things are called: tenants, namespaces, streams, caches, groups.
//!
//! A stream belongs to a namespace of a tenant. Its full name is `namespace.stream`, split at the first dot; a name
//! without a dot lies in the namespace `default`. Because `default.orders` would be a second name for `orders`, it is
//! refused: a stream has one name, and a Kafka topic is called like it. Letters, digits, `.`, `_` and `-` are allowed
//! (Kafka, "topic names"), 249 bytes at most. Caches are named the same way, in a space of their own.
//!
//! A name is one shared text: cloning it counts a reference.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::limits::{GROUP_NAME_BYTES_MAX, SCOPE_NAME_BYTES_MAX, STREAM_NAME_BYTES_MAX};

/// The tenant and the namespace of who names none.
pub const DEFAULT: &str = "default";

/// Why a text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing between the dots.
    #[error("a name, or the part before or after its first dot, is empty")]
    Empty,
    /// More bytes than a name of this kind may have.
    #[error("a name of {len} bytes is longer than the {max} allowed")]
    TooLong {
        /// What it has.
        len: usize,
        /// What is allowed.
        max: usize,
    },
    /// A character outside the set.
    #[error("the character {0:?} may not stand in this name")]
    Character(char),
    /// `.` and `..`.
    #[error("a name may not be \".\" or \"..\"")]
    Dots,
    /// `default.x`, whose name is `x`.
    #[error("a name in the namespace \"default\" is written without it")]
    DefaultNamespace,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the text and takes it.
            pub fn new(text: &str) -> Result<Self, NameError> {
                let check: fn(&str) -> Result<(), NameError> = $check;
                check(text)?;
                Ok(Self(text.into()))
            }

            /// The name as it is written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = NameError;
            fn try_from(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        /// A map by name can be asked with a text.
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

name! {
    /// Who owns namespaces. Letters, digits, `_` and `-`; 64 bytes at most.
    Tenant, check_scope
}

name! {
    /// A space of streams and caches within a tenant. Written like a tenant: a dot would split it.
    Namespace, check_scope
}

name! {
    /// The full name of a stream: `namespace.stream`, or `stream` in the namespace `default`.
    StreamName, check_full
}

name! {
    /// The full name of a cache, written like that of a stream.
    CacheName, check_full
}

name! {
    /// A consumer group. Kafka's clients call it what they like: 255 bytes at most, without control characters.
    GroupName, check_group
}

impl Default for Tenant {
    fn default() -> Self {
        Self(DEFAULT.into())
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self(DEFAULT.into())
    }
}

macro_rules! full_name {
    ($name:ident) => {
        impl $name {
            /// The full name of something within a namespace.
            pub fn within(namespace: &Namespace, local: &str) -> Result<Self, NameError> {
                if namespace.as_str() == DEFAULT {
                    return if local.contains('.') {
                        Err(NameError::Character('.'))
                    } else {
                        Self::new(local)
                    };
                }
                Self::new(&format!("{namespace}.{local}"))
            }

            /// The namespace that it lies in.
            pub fn namespace(&self) -> &str {
                self.0.split_once('.').map_or(DEFAULT, |(namespace, _)| namespace)
            }

            /// Its name within the namespace.
            pub fn local(&self) -> &str {
                self.0.split_once('.').map_or(&*self.0, |(_, local)| local)
            }

            /// Whether its namespace begins with an underscore: those are the broker's own, and no client creates,
            /// writes or deletes there.
            pub fn is_internal(&self) -> bool {
                self.0.starts_with('_') && self.0.contains('.')
            }
        }
    };
}

full_name!(StreamName);
full_name!(CacheName);

fn check_len(text: &str, max: usize) -> Result<(), NameError> {
    match text.len() {
        0 => Err(NameError::Empty),
        len if len > max => Err(NameError::TooLong { len, max }),
        _ => Ok(()),
    }
}

fn check_chars(text: &str, allowed: fn(char) -> bool) -> Result<(), NameError> {
    text.chars().find(|&c| !allowed(c)).map_or(Ok(()), |c| Err(NameError::Character(c)))
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn check_scope(text: &str) -> Result<(), NameError> {
    check_len(text, SCOPE_NAME_BYTES_MAX)?;
    check_chars(text, is_plain)
}

fn check_full(text: &str) -> Result<(), NameError> {
    check_len(text, STREAM_NAME_BYTES_MAX)?;
    check_chars(text, |c| is_plain(c) || c == '.')?;
    if text == "." || text == ".." {
        return Err(NameError::Dots);
    }
    match text.split_once('.') {
        None => Ok(()),
        Some((DEFAULT, _)) => Err(NameError::DefaultNamespace),
        Some((_, "")) => Err(NameError::Empty),
        Some((namespace, _)) => check_len(namespace, SCOPE_NAME_BYTES_MAX),
    }
}

fn check_group(text: &str) -> Result<(), NameError> {
    check_len(text, GROUP_NAME_BYTES_MAX)?;
    check_chars(text, |c| !c.is_control())
}

#[cfg(test)]
mod tests;
