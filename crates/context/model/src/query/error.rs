//! Refusals: which parameter, where in it, and why.

use std::borrow::Cow;

use super::geo::GeoError;
use crate::name::shown;

/// The error type of clause 6.3.2 that a refusal becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// `BadRequestData`: what 5.7.2.4 and its siblings ask for a filter that is not valid.
    BadRequestData,
    /// `TooComplexQuery`: valid as far as it was read, but beyond a limit of this implementation.
    TooComplexQuery,
}

/// Why a parameter was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{parameter}: {reason}{}", Place(*.at))]
pub struct Error {
    /// The parameter, as it is spelled in a request.
    pub parameter: &'static str,
    /// The character at fault, counted from one; absent when the whole is at fault.
    pub at: Option<usize>,
    /// What is wrong.
    pub reason: Reason,
}

struct Place(Option<usize>);

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |at| write!(f, " at character {at}"))
    }
}

/// The kinds of refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The grammar wants something else here.
    #[error("expected {0}")]
    Expected(Cow<'static, str>),
    /// Understood, and not allowed.
    #[error("{0}")]
    Invalid(Cow<'static, str>),
    /// The text is longer than allowed.
    #[error("longer than {0} bytes")]
    TooLong(usize),
    /// Nesting beyond the limit.
    #[error("nested deeper than {0} levels")]
    TooDeep(usize),
    /// More linked entities in a row than may be followed (4.5.23, 5.7.2.4).
    #[error("more than {0} linked entities in a row")]
    TooManyHops(usize),
    /// More of something than allowed.
    #[error("more than {1} {0}")]
    TooMany(&'static str, usize),
    /// A name that the `@context` cannot expand (5.5.7).
    #[error("the name \"{}\" cannot be expanded: {why}", shown(.name))]
    Name {
        /// The name as it was written.
        name: String,
        /// What the context says.
        why: String,
    },
    /// A regular expression that is not accepted.
    #[error("regular expression not accepted: {0}")]
    Pattern(String),
    /// A geometry that is not accepted.
    #[error("{0}")]
    Geometry(#[from] GeoError),
}

impl Error {
    /// A refusal of a whole parameter.
    pub(crate) fn whole(parameter: &'static str, reason: Reason) -> Self {
        Error { parameter, at: None, reason }
    }

    /// A refusal of a whole parameter in words.
    pub(crate) fn invalid(parameter: &'static str, why: impl Into<Cow<'static, str>>) -> Self {
        Error::whole(parameter, Reason::Invalid(why.into()))
    }

    /// The error type that the refusal becomes (6.3.2).
    pub fn problem(&self) -> Problem {
        match self.reason {
            Reason::TooLong(_) | Reason::TooDeep(_) | Reason::TooMany(..) => Problem::TooComplexQuery,
            Reason::Expected(_)
            | Reason::Invalid(_)
            | Reason::TooManyHops(_)
            | Reason::Name { .. }
            | Reason::Pattern(_)
            | Reason::Geometry(_) => Problem::BadRequestData,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_parameter_and_the_character() {
        let error = Error { parameter: "q", at: Some(12), reason: Reason::Expected("a value".into()) };
        assert_eq!(error.to_string(), "q: expected a value at character 12");
        assert_eq!(error.problem(), Problem::BadRequestData);
        let error = Error::whole("type", Reason::TooMany("types", 3));
        assert_eq!(error.to_string(), "type: more than 3 types");
        assert_eq!(error.problem(), Problem::TooComplexQuery);
    }
}
