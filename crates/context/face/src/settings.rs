//! What can be configured of the binding, and what it runs on.

use trifid_base_runtime::section;

section! {
    /// The HTTP binding of the context door.
    pub struct Options in "context" {
        /// Identifies this broker among others, in `info/sourceIdentity` and in loops of brokers.
        alias: String = "trifid",
    }
}

/// Why the options cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// The alias.
    #[error("context.alias: `{0}` is not a token of letters, digits and !#$%&'*+-.^_`|~")]
    Alias(String),
}

/// Options that hold together.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub(crate) alias: String,
}

impl Options {
    /// Checks the options.
    pub fn resolve(self) -> Result<Resolved, OptionsError> {
        // It stands in `Via` as a pseudonym (6.3.18, RFC 9110 7.6.3).
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if self.alias.is_empty() || !self.alias.bytes().all(is_token) {
            return Err(OptionsError::Alias(self.alias));
        }
        Ok(Resolved { alias: self.alias })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alias_is_a_token() {
        assert!(Options::default().resolve().is_ok());
        for alias in ["", "two words", "a,b", "é"] {
            assert!(Options { alias: alias.into() }.resolve().is_err(), "{alias}");
        }
    }
}
