//! The attribute projection language (4.21): `pick` and `omit`, and the deprecated list `attrs`.

use super::error::{Error, Reason};
use super::limits::{MAX_HOPS, MAX_PROJECTION};
use super::names::{Expand, Member, Name};
use super::scan::{Colon, Scanner};
use crate::symbol::{Symbol, Symbols};

/// A projection as it was written: members, each perhaps with a projection of the entities it links to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projection(pub Vec<(String, Option<Projection>)>);

/// Reads `pick` or `omit`. Never panics; an entry point for fuzzing.
///
/// Nesting needs `join`, and must not be deeper than `joinLevel`: see [`Projection::hops`] (5.7.2.4). A
/// depth that no `joinLevel` allows is refused here.
pub fn parse(parameter: &'static str, text: &str) -> Result<Projection, Error> {
    let mut scan = Scanner::new(parameter, text)?;
    let mut count = 0;
    let projection = members(&mut scan, 0, &mut count)?;
    if scan.at_end() { Ok(projection) } else { Err(scan.expected("\",\", \"|\", \"{\" or the end")) }
}

fn members(scan: &mut Scanner<'_>, depth: usize, count: &mut usize) -> Result<Projection, Error> {
    let mut members = vec![member(scan, depth, count)?];
    while scan.eat(",") || scan.eat("|") {
        members.push(member(scan, depth, count)?);
    }
    Ok(Projection(members))
}

fn member(
    scan: &mut Scanner<'_>,
    depth: usize,
    count: &mut usize,
) -> Result<(String, Option<Projection>), Error> {
    if *count == MAX_PROJECTION {
        return Err(scan.fail(Reason::TooMany("members", MAX_PROJECTION)));
    }
    *count += 1;
    scan.skip_spaces();
    let name = scan.name("a member name", Colon::Name)?.to_owned();
    scan.skip_spaces();
    if !scan.rest().starts_with('{') {
        return Ok((name, None));
    }
    if depth == MAX_HOPS {
        return Err(scan.fail(Reason::TooManyHops(MAX_HOPS)));
    }
    scan.advance(1);
    let nested = members(scan, depth + 1, count)?;
    scan.expect("}", "\",\", \"|\" or \"}\"")?;
    scan.skip_spaces();
    Ok((name, Some(nested)))
}

/// Reads the comma separated list `attrs`.
pub fn parse_attrs(text: &str) -> Result<Vec<String>, Error> {
    let projection = parse("attrs", text)?;
    if projection.hops() > 0 {
        return Err(Error::invalid(
            "attrs",
            "linked entities cannot be selected here; use the parameter pick",
        ));
    }
    if let Some((name, _)) = projection.0.iter().find(|(name, _)| matches!(name.as_str(), "id" | "type")) {
        return Err(Error::invalid("attrs", format!("\"{name}\" is not an attribute")));
    }
    Ok(projection.0.into_iter().map(|(name, _)| name).collect())
}

/// True when some of `names` is an attribute that clients define: what 5.7.2.4 asks of `attrs` alone.
pub fn names_attribute(names: &[String]) -> bool {
    names.iter().any(|name| Member::from_term(name).is_none())
}

/// `pick` and `omit` must not name the same member, nor stand beside `attrs` (5.7.2.4, table 6.4.3.2-1).
pub fn check(pick: Option<&Projection>, omit: Option<&Projection>, attrs: bool) -> Result<(), Error> {
    for (parameter, given) in [("pick", pick.is_some()), ("omit", omit.is_some())] {
        if attrs && given {
            return Err(Error::invalid(parameter, "not allowed together with attrs"));
        }
    }
    let (Some(pick), Some(omit)) = (pick, omit) else { return Ok(()) };
    match pick.conflict(omit) {
        Some(name) => Err(Error::invalid("omit", format!("\"{name}\" is named by pick too"))),
        None => Ok(()),
    }
}

impl Projection {
    /// The greatest number of linked entities in a row that are projected.
    pub fn hops(&self) -> usize {
        let nested = self.0.iter().filter_map(|(_, nested)| nested.as_ref());
        nested.map(|nested| nested.hops() + 1).max().unwrap_or(0)
    }

    /// A member that both name, as a whole, at the same place.
    fn conflict<'a>(&'a self, other: &'a Projection) -> Option<&'a str> {
        self.0.iter().find_map(|(name, own)| {
            let mut same = other.0.iter().filter(|(other, _)| other == name);
            same.find_map(|(_, other)| match (own, other) {
                (Some(own), Some(other)) => own.conflict(other),
                (None, None) => Some(name.as_str()),
                // `pick=a` with `omit=a{b}` keeps the relationship and drops a member of the linked entity.
                (None, Some(_)) | (Some(_), None) => None,
            })
        })
    }
}

impl std::fmt::Display for Projection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (n, (name, nested)) in self.0.iter().enumerate() {
            write!(f, "{}{name}", if n == 0 { "" } else { "," })?;
            if let Some(nested) = nested {
                write!(f, "{{{nested}}}")?;
            }
        }
        Ok(())
    }
}

/// A projection with expanded names: what it says of each member of an entity.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Members {
    id: bool,
    kind: bool,
    members: Vec<Member>,
    attributes: Vec<(Name, Option<Members>)>,
}

impl Members {
    /// Expands the names of `projection`.
    pub fn new(parameter: &'static str, projection: &Projection, expand: &Expand<'_>) -> Result<Self, Error> {
        let mut members = Members::default();
        for (term, nested) in &projection.0 {
            members.add(parameter, term, nested.as_ref(), expand)?;
        }
        Ok(members)
    }

    /// The attributes of the list `attrs`, as if picked together with the members an entity always shows.
    pub fn of_attrs(names: &[String], expand: &Expand<'_>) -> Result<Self, Error> {
        let mut members =
            Members { id: true, kind: true, members: vec![Member::Scope], attributes: Vec::new() };
        names.iter().try_for_each(|term| members.add("attrs", term, None, expand))?;
        Ok(members)
    }

    fn add(
        &mut self,
        parameter: &'static str,
        term: &str,
        nested: Option<&Projection>,
        expand: &Expand<'_>,
    ) -> Result<(), Error> {
        let entity_member = Member::from_term(term).filter(|member| member.is_of_entity());
        match (term, entity_member) {
            ("id" | "type", _) | (_, Some(_)) if nested.is_some() => {
                return Err(Error::invalid(parameter, format!("\"{term}\" does not link to entities")));
            }
            ("id", _) => self.id = true,
            ("type", _) => self.kind = true,
            (_, Some(member)) => self.members.push(member),
            (_, None) => {
                let nested = nested.map(|nested| Members::new(parameter, nested, expand)).transpose()?;
                self.attributes.push((Name::expand(parameter, term, expand)?, nested));
            }
        }
        Ok(())
    }

    /// True when `id` is named.
    pub fn has_id(&self) -> bool {
        self.id
    }

    /// True when `type` is named.
    pub fn has_type(&self) -> bool {
        self.kind
    }

    /// True when this member of the entity (`scope`, `createdAt` and so on) is named.
    pub fn has_member(&self, member: Member) -> bool {
        self.members.contains(&member)
    }

    /// What is said of the attribute: nothing, or that it is named and how its linked entities are projected.
    pub fn attribute(&self, attribute: Symbol, symbols: &Symbols) -> Option<Option<&Members>> {
        let mut named = self.attributes.iter().filter(|(name, _)| name.symbol(symbols) == Some(attribute));
        let first = named.next()?;
        Some(first.1.as_ref().or_else(|| named.find_map(|(_, nested)| nested.as_ref())))
    }

    /// The expanded names of the attributes.
    pub fn attributes(&self) -> impl Iterator<Item = &Name> {
        self.attributes.iter().map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::names::testing;
    use super::*;
    use crate::query::error::Problem;
    use crate::symbol::Budget;
    use proptest::prelude::*;

    #[test]
    fn clause_4_21_projections_are_read() {
        for (text, printed, hops) in [
            ("temperature", "temperature", 0),
            ("temperature|humidity", "temperature,humidity", 0),
            ("observation{temperature,humidity}", "observation{temperature,humidity}", 1),
            ("id,locatedAt{id,name,isInCountry{id}}", "id,locatedAt{id,name,isInCountry{id}}", 2),
        ] {
            let projection = parse("pick", text).unwrap();
            assert_eq!((projection.to_string().as_str(), projection.hops()), (printed, hops));
        }
        for (text, error) in [
            ("name||b", "pick: expected a member name at character 6"),
            ("id;name", "pick: expected \",\", \"|\", \"{\" or the end at character 3"),
            ("id,locatedAt{name", "pick: expected \",\", \"|\" or \"}\" at character 18"),
            ("id,locatedAt{{name}", "pick: expected a member name at character 14"),
            ("id,locatedAt{,name}", "pick: expected a member name at character 14"),
            ("id,locatedAt{}", "pick: expected a member name at character 14"),
            ("", "pick: expected a member name at character 1"),
        ] {
            assert_eq!(parse("pick", text).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn clause_5_7_2_4_too_many_hops_are_bad_request_data() {
        let error = parse("pick", "a{a{a{a{a{a{a{a{a{a{a{name}}}}}}}}}}}").unwrap_err();
        assert_eq!(error.problem(), Problem::BadRequestData);
        assert_eq!(error.reason, Reason::TooManyHops(MAX_HOPS));
    }

    #[test]
    fn clause_5_7_2_4_pick_omit_and_attrs_exclude_each_other() {
        let parse = |text| parse("pick", text).unwrap();
        let (name, other, nested) = (parse("name"), parse("other"), parse("name{a,b}"));
        assert_eq!(check(Some(&name), Some(&other), false), Ok(()));
        assert_eq!(check(Some(&name), None, false), Ok(()));
        assert_eq!(check(None, None, true), Ok(()));
        assert!(check(Some(&name), Some(&name), false).is_err());
        assert!(check(Some(&name), None, true).is_err());
        assert!(check(None, Some(&name), true).is_err());
        assert!(check(Some(&nested), Some(&parse("name{c}")), false).is_ok());
        assert!(check(Some(&nested), Some(&parse("name{b}")), false).is_err());
    }

    #[test]
    fn attrs_are_plain_names() {
        assert_eq!(parse_attrs("a,b").unwrap(), ["a", "b"]);
        assert!(parse_attrs("a{b}").is_err());
        assert!(parse_attrs("id").is_err());
        assert!(!names_attribute(&["createdAt".into()]));
        assert!(names_attribute(&["createdAt".into(), "a".into()]));
    }

    #[test]
    fn clause_4_21_members_are_told_from_attributes() {
        let symbols = Symbols::new();
        let budget = Budget::new(5);
        let [a, b] = ["a", "b"].map(|name| symbols.intern(&testing::iri(name), &budget).unwrap());
        let projection = parse("pick", "id,scope,a{name},createdAt").unwrap();
        let members = Members::new("pick", &projection, &testing::expand()).unwrap();
        assert!(members.has_id() && !members.has_type());
        assert!(members.has_member(Member::Scope) && members.has_member(Member::CreatedAt));
        assert!(members.attribute(a, &symbols).is_some_and(|nested| nested.is_some()));
        assert_eq!(members.attribute(b, &symbols), None);
        let nested = parse("pick", "id{a}").unwrap();
        assert!(Members::new("pick", &nested, &testing::expand()).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_answered_and_printing_reads_back(text in "[ab{},|; :]{0,16}") {
            if let Ok(projection) = parse("pick", &text) {
                prop_assert_eq!(parse("pick", &projection.to_string()), Ok(projection));
            }
        }
    }
}
