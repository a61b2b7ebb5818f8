//! The query string: which parameters a resource takes, and their values as typed by the client.
//!
//! Each resource names its parameters as a [`Set`]; any other one is refused with `InvalidRequest`
//! (6.3.20), naming the nearest that is known. Values are percent-decoded once and borrowed where nothing was
//! encoded. A list may come as one value with commas or as repeated parameters; anything else that
//! comes twice is refused. Parsing is one pass without allocation for up to eight parameters.

pub(crate) mod body;
mod names;
mod values;

use std::borrow::Cow;

use smallvec::SmallVec;

pub(crate) use names::{Param, Set};
pub(crate) use values::{Form, OptionsOf, Paging};

use crate::limits::QUERY_PAIRS_MAX;
use crate::percent::{self, Plus};
use crate::problem::{Refusal, bad_data, invalid};

/// The parameters of one request.
#[derive(Debug, Default)]
pub(crate) struct Params<'q>(SmallVec<[(Param, Cow<'q, str>); 8]>);

impl<'q> Params<'q> {
    /// Parses a raw query string against the parameters that the resource takes.
    pub(crate) fn parse(raw: Option<&'q str>, allowed: Set) -> Result<Self, Refusal> {
        let mut params = Params::default();
        let pairs = raw.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        for (count, pair) in pairs.enumerate() {
            if count >= QUERY_PAIRS_MAX {
                return Err(invalid(format!("more than {QUERY_PAIRS_MAX} query parameters")));
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let param = known(name, allowed)?;
            let value = percent::decode(value, param.plus())
                .map_err(|error| bad_data(format!("parameter `{}`: {error}", param.name())))?;
            params.add(param, value)?;
        }
        Ok(params)
    }

    fn add(&mut self, param: Param, value: Cow<'q, str>) -> Result<(), Refusal> {
        match self.0.iter_mut().find(|(known, _)| *known == param) {
            None => self.0.push((param, value)),
            Some((_, before)) if param.is_list() => {
                let list = before.to_mut();
                list.push(',');
                list.push_str(&value);
            }
            Some(_) => return Err(invalid(format!("parameter `{}` is there twice", param.name()))),
        }
        Ok(())
    }

    /// The value of `param`.
    pub(crate) fn get(&self, param: Param) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == param).map(|(_, value)| value.as_ref())
    }

    /// True when the request has `param`.
    pub(crate) fn has(&self, param: Param) -> bool {
        self.get(param).is_some()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// All parameters with their decoded values, in the client's order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Param, &str)> + Clone {
        self.0.iter().map(|(param, value)| (*param, value.as_ref()))
    }
}

/// The parameter `raw`, if the resource takes it.
fn known(raw: &str, allowed: Set) -> Result<Param, Refusal> {
    let name = percent::decode(raw, Plus::Space).unwrap_or(Cow::Borrowed(raw));
    match Param::from_name(&name) {
        Some(param) if allowed.has(param) => Ok(param),
        Some(param) => {
            Err(invalid(format!("parameter `{}` has no meaning for this operation", param.name())))
        }
        None => Err(unknown(&name, allowed)),
    }
}

fn unknown(name: &str, allowed: Set) -> Refusal {
    let shown: String = name.chars().take(64).collect();
    match allowed.iter().find(|param| is_near(param.name(), name)) {
        Some(near) => invalid(format!("unknown parameter `{shown}`; did you mean `{}`?", near.name())),
        None => invalid(format!("unknown parameter `{shown}`")),
    }
}

/// Equal but for case, or one character missing or added at an end: the slips that people make.
fn is_near(known: &str, name: &str) -> bool {
    let (known, name) = (known.to_ascii_lowercase(), name.to_ascii_lowercase());
    known == name
        || (name.len() > 2 && known.len().abs_diff(name.len()) <= 1 && {
            known.starts_with(&name) || name.starts_with(&known)
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::problem::Kind;

    const SOME: Set = Set::of(&[Param::Type, Param::Id, Param::Q, Param::ScopeQ, Param::Limit]);

    fn shown(raw: &str) -> String {
        match Params::parse(Some(raw), SOME) {
            Ok(params) => params.iter().map(|(param, value)| format!("{}={value};", param.name())).collect(),
            Err(Refusal::Problem(problem)) => format!("{:?}: {}", problem.kind, problem.detail),
            Err(other) => format!("{other:?}"),
        }
    }

    #[test]
    fn values_are_decoded_as_their_grammar_needs() {
        for (raw, expected) in [
            ("", ""),
            ("&&", ""),
            ("type=A,B&limit=5", "type=A,B;limit=5;"),
            ("q=name%3D%3D%22a+b%22", "q=name==\"a b\";"),
            ("scopeQ=/a/+/b", "scopeQ=/a/+/b;"),
            ("id=urn:a+b", "id=urn:a+b;"),
            ("id=urn:a&id=urn:b", "id=urn:a,urn:b;"),
            ("q", "q=;"),
            ("q=a=b", "q=a=b;"),
            ("%71=a", "q=a;"),
        ] {
            assert_eq!(shown(raw), expected, "{raw}");
        }
    }

    #[test]
    fn what_the_resource_does_not_take_is_refused() {
        for (raw, expected) in [
            ("limit=1&limit=2", "InvalidRequest: parameter `limit` is there twice"),
            ("count=true", "InvalidRequest: parameter `count` has no meaning for this operation"),
            ("Limit=1", "InvalidRequest: unknown parameter `Limit`; did you mean `limit`?"),
            ("limits=1", "InvalidRequest: unknown parameter `limits`; did you mean `limit`?"),
            ("invalidParams=x", "InvalidRequest: unknown parameter `invalidParams`"),
            ("q=%zz", "BadRequestData: parameter `q`: `%` is not followed by two hexadecimal digits"),
        ] {
            assert_eq!(shown(raw), expected, "{raw}");
        }
        let many = "limit=1&".repeat(QUERY_PAIRS_MAX + 1);
        assert!(shown(&many).starts_with("InvalidRequest"));
    }

    #[test]
    fn names_are_unique_and_found() {
        for param in Set::ALL.iter() {
            assert_eq!(Param::from_name(param.name()), Some(param));
            assert!(Set::of(&[param]).has(param));
        }
        assert_eq!(Param::from_name("TYPE"), None);
    }

    proptest! {
        #[test]
        fn any_query_is_answered(raw in "[ -~]{0,120}") {
            if let Err(Refusal::Problem(problem)) = Params::parse(Some(&raw), Set::ALL) {
                prop_assert!(matches!(problem.kind, Kind::InvalidRequest | Kind::BadRequestData));
            }
        }
    }
}
