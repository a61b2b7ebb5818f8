//! Evaluation of a compiled query against one record (4.9).
//!
//! A term holds when *some* instance of the target element satisfies it (an attribute may have several, by
//! `datasetId`). For one instance, `!=` is exactly "exists, and not `==`": it holds on a mismatch of data
//! types, and over an array or a language map it means that no element is equal. Ordering and patterns hold
//! on single values of their own data type only, and never on relationships.

use std::cell::Cell;
use std::cmp::Ordering;

use super::compile::{Bound, BoundHop, Compiled, First, Node, Target};
use super::{Operand, Test};
use crate::query::dataset::DatasetIds;
use crate::query::limits::{MAX_LINKED, MAX_WORK};
use crate::query::literal::{self, Literal};
use crate::query::names::Member;
use crate::query::raw::{self, Raw, Shape, Text};
use crate::record::{Instance, Kind, Record, Slot};
use crate::symbol::Symbols;
use crate::time::{self, Instant};

/// Bytes that count as one unit of work when they are passed over, and when they are compared.
const BYTES_PASSED: usize = 64;
const BYTES_TESTED: usize = 16;

/// Finds a linked entity by its identifier.
pub type Resolve<'a> = dyn Fn(&str) -> Option<Record> + 'a;

/// Access to linked entities, with a bound on how many one evaluation may visit: relationships fan out, so
/// a short query could otherwise walk a whole store.
pub struct Links<'a> {
    resolve: Option<&'a Resolve<'a>>,
    left: Cell<u32>,
    exhausted: Cell<bool>,
}

impl std::fmt::Debug for Links<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Links").field("exhausted", &self.exhausted).finish_non_exhaustive()
    }
}

impl<'a> Links<'a> {
    /// No linked entity is ever found.
    pub fn none() -> Self {
        Links { resolve: None, left: Cell::new(0), exhausted: Cell::new(false) }
    }

    /// Linked entities are found by `resolve`.
    pub fn new(resolve: &'a Resolve<'a>) -> Self {
        Links { resolve: Some(resolve), left: Cell::new(MAX_LINKED), exhausted: Cell::new(false) }
    }

    fn get(&self, id: &str) -> Option<Record> {
        let resolve = self.resolve?;
        let left = self.left.get().checked_sub(1);
        self.exhausted.set(self.exhausted.get() || left.is_none());
        self.left.set(left?);
        resolve(id)
    }
}

/// The bound that made an evaluation give up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GaveUp {
    /// More than [`MAX_LINKED`] linked entities.
    Links,
    /// More than [`MAX_WORK`].
    Work,
}

/// What evaluation needs beside the record.
#[derive(Debug)]
pub struct Env<'a> {
    /// The table that the records' symbols come from.
    pub symbols: &'a Symbols,
    /// Access to linked entities.
    links: Links<'a>,
    /// Work done by the present evaluation; beyond [`MAX_WORK`] it answers "no match".
    work: Cell<u32>,
}

impl<'a> Env<'a> {
    /// Without linked entities.
    pub fn new(symbols: &'a Symbols) -> Self {
        Env { symbols, links: Links::none(), work: Cell::new(0) }
    }

    /// With linked entities found by `resolve`.
    pub fn linked(symbols: &'a Symbols, resolve: &'a Resolve<'a>) -> Self {
        Env { symbols, links: Links::new(resolve), work: Cell::new(0) }
    }

    /// Whether an evaluation gave up; its answer was "no match", which proves nothing.
    pub fn gave_up(&self) -> Option<GaveUp> {
        if self.links.exhausted.get() {
            return Some(GaveUp::Links);
        }
        (self.work() > MAX_WORK).then_some(GaveUp::Work)
    }

    /// Work done by the last evaluation, in the unit of [`MAX_WORK`].
    pub fn work(&self) -> u32 {
        self.work.get()
    }

    /// Grants a new evaluation all that one may use; what made one give up is remembered.
    fn restart(&self) {
        self.links.left.set(MAX_LINKED);
        if self.work() <= MAX_WORK {
            self.work.set(0);
        }
    }

    /// Notes work to be done; false when it is too much.
    fn affords(&self, work: usize) -> bool {
        let work = u32::try_from(work).unwrap_or(u32::MAX);
        self.work.set(self.work().saturating_add(work));
        self.work() <= MAX_WORK
    }
}

impl Compiled {
    /// True when `record` satisfies the query; `datasets` limits the instances that are looked at (4.5.5).
    pub fn matches(&self, record: &Record, env: &Env<'_>, datasets: Option<&DatasetIds>) -> bool {
        env.restart();
        self.root.matches(record, env, datasets)
    }
}

impl Node {
    fn matches(&self, record: &Record, env: &Env<'_>, datasets: Option<&DatasetIds>) -> bool {
        match self {
            Node::Any(parts) => parts.iter().any(|part| part.matches(record, env, datasets)),
            Node::All(parts) => parts.iter().all(|part| part.matches(record, env, datasets)),
            Node::Term(term) => term.matches(record, env, datasets),
        }
    }
}

impl Bound {
    fn matches(&self, record: &Record, env: &Env<'_>, datasets: Option<&DatasetIds>) -> bool {
        let found = self.found(&self.hops, record, env, datasets);
        found != (self.test == Test::Absent)
    }

    /// Follows `hops`, then asks the test of each target; for absence, whether there is one.
    fn found(
        &self,
        hops: &[BoundHop],
        record: &Record,
        env: &Env<'_>,
        datasets: Option<&DatasetIds>,
    ) -> bool {
        // The way to the target leads over the record's bytes in the worst case.
        if !env.affords(1 + record.size() / BYTES_PASSED) {
            return false;
        }
        let Some((hop, rest)) = hops.split_first() else {
            let test = &self.test;
            let mut visit = |found: Found<'_>| env.affords(found.cost(test)) && found.satisfies(test);
            return self.target.any(record, env.symbols, datasets, &mut visit);
        };
        let Some(relationship) = hop.relationship.symbol(env.symbols) else { return false };
        let instances = record.attribute(relationship).filter(|own| selected(own, datasets));
        let mut related = instances.filter(|own| own.kind().is_relationship());
        related.any(|own| {
            each_object(Raw::new(own.value()), &mut |object| {
                let linked = env.links.get(&object.decoded());
                // The linked entity is another view: the request's datasetIds are about the first one.
                linked.is_some_and(|linked| hop.admits(&linked, env) && self.found(rest, &linked, env, None))
            })
        })
    }
}

impl BoundHop {
    fn admits(&self, linked: &Record, env: &Env<'_>) -> bool {
        let wanted = |name: &crate::query::names::Name| {
            name.symbol(env.symbols).is_some_and(|symbol| linked.types().any(|own| own == symbol))
        };
        self.types.is_empty() || self.types.iter().any(wanted)
    }
}

fn selected(instance: &Instance<'_>, datasets: Option<&DatasetIds>) -> bool {
    datasets.is_none_or(|datasets| datasets.selects(instance.dataset()))
}

/// Visits the identifiers in the value of a Relationship or ListRelationship until `visit` says true.
fn each_object(value: Raw<'_>, visit: &mut dyn FnMut(Text<'_>) -> bool) -> bool {
    match value.shape() {
        Shape::Text(text) => visit(text),
        Shape::Array => value.items().any(|item| object_of(item).string().is_some_and(&mut *visit)),
        _ => object_of(value).string().is_some_and(visit),
    }
}

/// An item of an objectList may stand in an object of its own (4.5.22).
fn object_of(item: Raw<'_>) -> Raw<'_> {
    item.get("object").unwrap_or(item)
}

/// A target value.
#[derive(Clone, Copy)]
pub(crate) enum Found<'a> {
    /// A JSON value.
    Value(Raw<'a>),
    /// The identifier or identifiers of a relationship.
    Objects(Raw<'a>),
    /// A whole language map, no language being named.
    Languages(Raw<'a>),
    /// A system attribute or other DateTime.
    Instant(Instant),
    /// A member that holds one plain text.
    Plain(&'a str),
    /// The scopes of an entity.
    Scopes(&'a Record),
    /// The type names in the slots of an instance.
    Types(Instance<'a>, Slot, &'a Symbols),
}

impl Target {
    /// Offers every target value in `record` to `visit` until it says true; false when none does.
    pub(crate) fn any(
        &self,
        record: &Record,
        symbols: &Symbols,
        datasets: Option<&DatasetIds>,
        visit: &mut dyn FnMut(Found<'_>) -> bool,
    ) -> bool {
        match &self.first {
            First::Entity(member) => self.member.is_empty() && entity_member(*member, record, visit),
            First::Attribute(name) => name.symbol(symbols).is_some_and(|symbol| {
                let mut instances = record.attribute(symbol).filter(|own| selected(own, datasets));
                instances.any(|own| self.descend(own, 0, symbols, visit))
            }),
        }
    }

    /// Offers the target values of the instance to sort by (4.23): the default one, else the first.
    pub(crate) fn first(
        &self,
        record: &Record,
        symbols: &Symbols,
        visit: &mut dyn FnMut(Found<'_>) -> bool,
    ) -> bool {
        match &self.first {
            First::Entity(member) => self.member.is_empty() && entity_member(*member, record, visit),
            First::Attribute(_) => {
                self.instance(record, symbols).is_some_and(|own| self.descend(own, 0, symbols, visit))
            }
        }
    }

    /// The instance to sort by of the path's attribute: the default one, else the first.
    pub(crate) fn instance<'r>(&self, record: &'r Record, symbols: &Symbols) -> Option<Instance<'r>> {
        let First::Attribute(name) = &self.first else { return None };
        let mut instances = record.attribute(name.symbol(symbols)?);
        let default = instances.clone().find(|own| own.dataset().is_none());
        default.or_else(|| instances.next())
    }

    /// Offers the target values of one instance of the path's attribute.
    pub(crate) fn descend(
        &self,
        instance: Instance<'_>,
        depth: usize,
        symbols: &Symbols,
        visit: &mut dyn FnMut(Found<'_>) -> bool,
    ) -> bool {
        let Some(name) = self.rest.get(depth) else {
            return match self.last {
                Some(member) => self.member.is_empty() && instance_member(member, instance, symbols, visit),
                None => self.value(instance).is_some_and(visit),
            };
        };
        let Some(symbol) = name.symbol(symbols) else { return false };
        let mut subs = instance.subs().filter(|sub| sub.name() == symbol);
        subs.any(|sub| self.descend(sub, depth + 1, symbols, visit))
    }

    /// The value of an instance, entered as the brackets say; `None` when that is undefined.
    fn value<'r>(&self, instance: Instance<'r>) -> Option<Found<'r>> {
        let value = Raw::new(instance.value());
        match (instance.kind(), &*self.member) {
            (Kind::LanguageProperty, []) => Some(Found::Languages(value)),
            (Kind::LanguageProperty, [one]) if &**one == "*" => Some(Found::Languages(value)),
            (Kind::LanguageProperty, [language]) => in_language(value, language).map(Found::Value),
            (Kind::LanguageProperty, _) => None,
            (kind, []) if kind.is_relationship() => Some(Found::Objects(value)),
            (_, path) => value.follow(path).map(Found::Value),
        }
    }
}

/// Language tags are compared without regard to case (RFC 5646 section 2.1.1).
fn in_language<'a>(map: Raw<'a>, language: &str) -> Option<Raw<'a>> {
    map.members().find(|(tag, _)| tag.decoded().eq_ignore_ascii_case(language)).map(|(_, value)| value)
}

fn entity_member(member: Member, record: &Record, visit: &mut dyn FnMut(Found<'_>) -> bool) -> bool {
    match member {
        Member::CreatedAt => visit(Found::Instant(record.created())),
        Member::ModifiedAt => visit(Found::Instant(record.modified())),
        Member::ExpiresAt => record.expires().is_some_and(|at| visit(Found::Instant(at))),
        Member::Scope => record.scopes().len() > 0 && visit(Found::Scopes(record)),
        // A record is an entity that lives: it has no deletedAt, and the others belong to attributes.
        Member::DeletedAt
        | Member::ObservedAt
        | Member::DatasetId
        | Member::UnitCode
        | Member::ValueType
        | Member::ObjectType => false,
    }
}

fn instance_member(
    member: Member,
    instance: Instance<'_>,
    symbols: &Symbols,
    visit: &mut dyn FnMut(Found<'_>) -> bool,
) -> bool {
    let mut types = |slot| {
        let some = instance.slots().any(|(tag, _)| tag == slot);
        some && visit(Found::Types(instance, slot, symbols))
    };
    match member {
        Member::ValueType => types(Slot::ValueType),
        Member::ObjectType => types(Slot::ObjectType),
        Member::CreatedAt => visit(Found::Instant(instance.created())),
        Member::ModifiedAt => visit(Found::Instant(instance.modified())),
        Member::ObservedAt => instance.observed().is_some_and(|at| visit(Found::Instant(at))),
        Member::ExpiresAt => instance.expires().is_some_and(|at| visit(Found::Instant(at))),
        Member::DatasetId => instance.dataset().is_some_and(|id| visit(Found::Plain(id))),
        Member::UnitCode => {
            let mut members = raw::loose_members(instance.members());
            members.any(|(key, value)| key.is("unitCode") && visit(Found::Value(value)))
        }
        Member::DeletedAt | Member::Scope => false,
    }
}

impl Found<'_> {
    /// What a test of this value costs at most, in the unit of [`MAX_WORK`].
    fn cost(self, test: &Test) -> usize {
        let bytes = match self {
            Found::Value(raw) | Found::Objects(raw) | Found::Languages(raw) => raw.as_text().len(),
            Found::Plain(text) => text.len(),
            Found::Scopes(record) => record.size(),
            Found::Instant(_) | Found::Types(..) => 0,
        };
        let times = match test {
            Test::Exists | Test::Absent => 0,
            Test::Equal { operand: Operand::List(values), .. } => values.len(),
            Test::Equal { .. } | Test::Order { .. } => 1,
            Test::Pattern { .. } => 2,
        };
        1 + (bytes / BYTES_TESTED).saturating_mul(times)
    }

    fn satisfies(self, test: &Test) -> bool {
        match test {
            // Asked only whether there is a target; the caller negates for absence.
            Test::Exists | Test::Absent => true,
            Test::Equal { negated, operand } => self.equals(operand) != *negated,
            Test::Order { operator, value } => {
                self.any_single(&|single| single.compare(value).is_some_and(|found| operator.admits(found)))
            }
            Test::Pattern { negated: false, pattern } => {
                self.any_single(&|single| single.text().is_some_and(|text| pattern.matches(&text)))
            }
            Test::Pattern { negated: true, pattern } => {
                let texts = self.any_single(&|single| single.text().is_some());
                texts && !self.any_single(&|single| single.text().is_some_and(|text| pattern.matches(&text)))
            }
        }
    }

    /// The Equal operator of 4.9: any element of an array, any value of the list, within the closed range.
    fn equals(self, operand: &Operand) -> bool {
        match self {
            Found::Value(raw) if raw.is_array() => {
                raw.items().any(|item| Single::Raw(item).is_one_of(operand))
            }
            Found::Value(raw) => Single::Raw(raw).is_one_of(operand),
            Found::Languages(map) => map.members().any(|(_, value)| Found::Value(value).equals(operand)),
            Found::Objects(raw) => each_object(raw, &mut |text| Single::Text(text).is_one_of(operand)),
            Found::Instant(instant) => Single::Instant(instant).is_one_of(operand),
            Found::Plain(text) => Single::Plain(text).is_one_of(operand),
            Found::Scopes(record) => record.scopes().any(|scope| Single::Plain(scope).is_one_of(operand)),
            Found::Types(instance, slot, symbols) => {
                slot_names(instance, slot, symbols).any(|name| Single::Plain(name).is_one_of(operand))
            }
        }
    }

    /// True when a value that ordering and patterns apply to satisfies `test`. An array is no such value,
    /// its data type being neither number nor string; values of a language map are taken one by one.
    fn any_single(self, test: &dyn Fn(Single<'_>) -> bool) -> bool {
        match self {
            Found::Objects(_) => false,
            Found::Value(raw) => !raw.is_array() && test(Single::Raw(raw)),
            Found::Languages(map) => map.members().any(|(_, value)| {
                if value.is_array() {
                    value.items().any(|item| test(Single::Raw(item)))
                } else {
                    test(Single::Raw(value))
                }
            }),
            Found::Instant(instant) => test(Single::Instant(instant)),
            Found::Plain(text) => test(Single::Plain(text)),
            Found::Scopes(record) => record.scopes().any(|scope| test(Single::Plain(scope))),
            Found::Types(instance, slot, symbols) => {
                slot_names(instance, slot, symbols).any(|name| test(Single::Plain(name)))
            }
        }
    }
}

fn slot_names<'a>(instance: Instance<'a>, slot: Slot, symbols: &'a Symbols) -> impl Iterator<Item = &'a str> {
    instance.slots().filter(move |(tag, _)| *tag == slot).map(|(_, symbol)| symbols.name(symbol))
}

/// A value that is not a collection.
#[derive(Clone, Copy)]
enum Single<'a> {
    Raw(Raw<'a>),
    Text(Text<'a>),
    Plain(&'a str),
    Instant(Instant),
}

impl<'a> Single<'a> {
    fn is_one_of(self, operand: &Operand) -> bool {
        match operand {
            Operand::One(value) => self.is(value),
            Operand::List(values) => values.iter().any(|value| self.is(value)),
            Operand::Range(low, high) => {
                self.compare(low).is_some_and(Ordering::is_ge)
                    && self.compare(high).is_some_and(Ordering::is_le)
            }
        }
    }

    fn is(self, value: &Literal) -> bool {
        self.compare(value) == Some(Ordering::Equal)
    }

    /// How this value compares with `literal`; `None` when their data types differ.
    fn compare(self, literal: &Literal) -> Option<Ordering> {
        match self {
            Single::Raw(raw) => match raw.untyped().shape() {
                Shape::Number(own) => matches_number(own, literal),
                Shape::Bool(own) => {
                    matches!(literal, Literal::Bool(other) if own == *other).then_some(Ordering::Equal)
                }
                Shape::Text(text) => compare_text(text, literal),
                Shape::Null | Shape::Array | Shape::Object => None,
            },
            Single::Text(text) => compare_text(text, literal),
            Single::Plain(text) => match literal {
                Literal::Text(other, _) | Literal::Uri(other) => Some(text.cmp(other)),
                _ => None,
            },
            Single::Instant(own) => match literal {
                Literal::DateTime(other) | Literal::Text(_, Some(other)) => Some(own.cmp(other)),
                _ => None,
            },
        }
    }

    fn text(self) -> Option<std::borrow::Cow<'a, str>> {
        match self {
            Single::Raw(raw) => raw.untyped().string().map(Text::decoded),
            Single::Text(text) => Some(text.decoded()),
            Single::Plain(text) => Some(text.into()),
            Single::Instant(_) => None,
        }
    }
}

fn matches_number(own: f64, literal: &Literal) -> Option<Ordering> {
    if let Literal::Number(other) = literal { own.partial_cmp(other) } else { None }
}

/// A string compares as a dateTime, date or time when the query's value is one and the string spells one
/// (4.6.3: they are strings in JSON), else by code point.
fn compare_text(text: Text<'_>, literal: &Literal) -> Option<Ordering> {
    let instant = |other: &Instant| Instant::parse(&text.decoded()).ok().map(|own| own.cmp(other));
    match literal {
        Literal::Text(other, Some(at)) => instant(at).or_else(|| Some(text.compare(other))),
        Literal::Text(other, None) | Literal::Uri(other) => Some(text.compare(other)),
        Literal::DateTime(other) => instant(other),
        Literal::Date(other) => time::days(&text.decoded()).map(|own| own.cmp(other)),
        Literal::Time(other) => literal::time_of_day(&text.decoded()).map(|own| own.cmp(other)),
        Literal::Number(_) | Literal::Bool(_) => None,
    }
}
