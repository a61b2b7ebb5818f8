//! The entity ordering language (4.23): `orderBy`, `orderFrom`, `orderGeometry`, `collation`.
//!
//! A [`SortKey`] is taken from each record once; comparing keys looks at no record and runs no collation.
//! Values of different data types follow each other as 4.23.2 says. Descending order turns that around,
//! except that null values and missing attributes come last either way. The order among records with equal
//! keys is the caller's (who wants it stable for paging).

mod collate;

use std::cmp::Ordering as Order;

use smallvec::SmallVec;

pub use collate::Collation;

use super::error::{Error, Reason};
use super::geo::Reference;
use super::limits::{MAX_ORDER_TERMS, MAX_SORT_TEXT};
use super::literal::time_of_day;
use super::names::Expand;
use super::q::{Found, Path, Target, attribute_path};
use super::raw::{Raw, Shape, Text};
use super::scan::Scanner;
use crate::record::{Instance, Kind, Record, Slot};
use crate::symbol::Symbols;
use crate::time::{self, Instant};

/// One key of `orderBy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderTerm {
    /// What to sort by.
    pub path: Path,
    /// In which direction.
    pub direction: Direction,
}

/// `directionOp` of 4.23.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// `asc`.
    Ascending,
    /// `desc`.
    Descending,
    /// `dist-asc`: nearest first.
    DistanceAscending,
    /// `dist-desc`: farthest first.
    DistanceDescending,
}

impl Direction {
    const ALL: [Direction; 4] = [
        Direction::DistanceAscending,
        Direction::DistanceDescending,
        Direction::Ascending,
        Direction::Descending,
    ];

    fn name(self) -> &'static str {
        match self {
            Direction::Ascending => "asc",
            Direction::Descending => "desc",
            Direction::DistanceAscending => "dist-asc",
            Direction::DistanceDescending => "dist-desc",
        }
    }

    fn is_by_distance(self) -> bool {
        matches!(self, Direction::DistanceAscending | Direction::DistanceDescending)
    }

    fn is_descending(self) -> bool {
        matches!(self, Direction::Descending | Direction::DistanceDescending)
    }
}

/// Reads `orderBy`. Never panics; an entry point for fuzzing.
pub fn parse(text: &str) -> Result<Vec<OrderTerm>, Error> {
    let mut scan = Scanner::new("orderBy", text)?;
    let mut terms = Vec::new();
    loop {
        if terms.len() == MAX_ORDER_TERMS {
            return Err(scan.fail(Reason::TooMany("keys", MAX_ORDER_TERMS)));
        }
        terms.push(term(&mut scan)?);
        if scan.at_end() {
            return Ok(terms);
        }
        scan.expect(",", "\";\", \",\" or the end")?;
    }
}

fn term(scan: &mut Scanner<'_>) -> Result<OrderTerm, Error> {
    scan.skip_spaces();
    let path = attribute_path(scan)?;
    scan.skip_spaces();
    let mut direction = Direction::Ascending;
    if scan.eat(";") {
        scan.skip_spaces();
        let named = Direction::ALL.into_iter().find(|own| scan.eat(own.name()));
        direction = named.ok_or_else(|| scan.expected("asc, desc, dist-asc or dist-desc"))?;
        scan.skip_spaces();
    }
    Ok(OrderTerm { path, direction })
}

impl std::fmt::Display for OrderTerm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{};{}", self.path, self.direction.name())
    }
}

/// An order, ready for use.
#[derive(Debug)]
pub struct Ordering {
    terms: Vec<(By, Direction)>,
    reference: Option<Reference>,
    collation: Collation,
}

#[derive(Debug)]
enum By {
    Id,
    Type,
    Value(Target),
}

/// The value of one key in one record.
#[derive(Debug, Clone, PartialEq)]
enum SortValue {
    Distance(f64),
    Number(f64),
    Text(Box<[u8]>),
    Object(Box<[u8]>),
    Array(Box<[u8]>),
    Boolean(bool),
    Time(i64),
    Date(i64),
    DateTime(i64),
    Null,
    Missing,
}

/// What a record is sorted by.
#[derive(Debug, Clone, PartialEq)]
pub struct SortKey(SmallVec<[SortValue; 2]>);

impl Ordering {
    /// Binds the keys to the names of a context. `reference` is the geometry of `orderFrom`, without which
    /// there is no order by distance (5.7.2.4).
    pub fn new(
        terms: &[OrderTerm],
        reference: Option<Reference>,
        collation: Collation,
        expand: &Expand<'_>,
    ) -> Result<Self, Error> {
        let by_distance = terms.iter().any(|term| term.direction.is_by_distance());
        if by_distance && reference.is_none() {
            return Err(Error::invalid("orderFrom", "required by dist-asc and dist-desc"));
        }
        let bind = |term: &OrderTerm| Ok((By::new(&term.path, expand)?, term.direction));
        Ok(Ordering { terms: terms.iter().map(bind).collect::<Result<_, _>>()?, reference, collation })
    }

    /// Reads the reference geometry: `orderFrom`, and `orderGeometry`, which is a Point unless given.
    pub fn reference(
        order_geometry: Option<&str>,
        order_from: Option<&str>,
    ) -> Result<Option<Reference>, Error> {
        let parse =
            |from| Reference::parse(("orderGeometry", "orderFrom"), order_geometry.unwrap_or("Point"), from);
        order_from.map(parse).transpose()
    }

    /// True when the keys are the identifier alone: all that a temporal query may be ordered by.
    pub fn is_by_id(&self) -> bool {
        self.terms.iter().all(|(by, direction)| matches!(by, By::Id) && !direction.is_by_distance())
    }

    /// The key of `record`.
    pub fn key(&self, record: &Record, symbols: &Symbols) -> SortKey {
        let value = |(by, direction): &(By, Direction)| match (by, &self.reference) {
            (By::Value(target), Some(reference)) if direction.is_by_distance() => {
                let distance = target.instance(record, symbols).and_then(|own| distance(own, reference));
                distance.unwrap_or_else(|| self.value(target, record, symbols))
            }
            (By::Value(target), _) => self.value(target, record, symbols),
            (By::Id, _) => SortValue::Text(record.id().as_bytes().into()),
            (By::Type, _) => {
                record.types().next().map_or(SortValue::Missing, |kind| self.text(symbols.name(kind)))
            }
        };
        SortKey(self.terms.iter().map(value).collect())
    }

    /// Compares the keys of two records.
    pub fn compare(&self, a: &SortKey, b: &SortKey) -> Order {
        let pairs = a.0.iter().zip(&b.0).zip(&self.terms);
        pairs.fold(Order::Equal, |so_far, ((a, b), (_, direction))| {
            so_far.then_with(|| directed(a, b, direction.is_descending()))
        })
    }

    fn text(&self, text: &str) -> SortValue {
        SortValue::Text(self.collation.key(text))
    }

    fn value(&self, target: &Target, record: &Record, symbols: &Symbols) -> SortValue {
        let typed = target.instance(record, symbols).and_then(|own| value_type(own, symbols));
        let mut value = SortValue::Missing;
        target.first(record, symbols, &mut |found| {
            value = self.found(found, typed);
            true
        });
        value
    }

    fn found(&self, found: Found<'_>, typed: Option<&str>) -> SortValue {
        match found {
            Found::Value(raw) | Found::Objects(raw) => self.json(raw, typed),
            Found::Languages(map) => {
                let none = map.get("@none").or_else(|| map.members().next().map(|(_, value)| value));
                none.map_or(SortValue::Missing, |value| self.json(value, None))
            }
            Found::Instant(instant) => SortValue::DateTime(instant.0),
            Found::Plain(text) => self.text(text),
            Found::Scopes(record) => {
                record.scopes().next().map_or(SortValue::Missing, |scope| self.text(scope))
            }
            Found::Types(instance, slot, symbols) => {
                let first = instance.slots().find(|(tag, _)| *tag == slot);
                first.map_or(SortValue::Missing, |(_, symbol)| self.text(symbols.name(symbol)))
            }
        }
    }

    fn json(&self, raw: Raw<'_>, typed: Option<&str>) -> SortValue {
        let ld_type = raw.get("@type").and_then(Raw::string).map(Text::decoded);
        let raw = raw.untyped();
        match raw.shape() {
            Shape::Null => SortValue::Null,
            Shape::Bool(value) => SortValue::Boolean(value),
            Shape::Number(number) => SortValue::Number(number),
            Shape::Object => SortValue::Object(prefix(raw)),
            Shape::Array => SortValue::Array(prefix(raw)),
            Shape::Text(text) => {
                let text = text.decoded();
                let temporal = ld_type.as_deref().or(typed).and_then(|name| temporal(name, &text));
                temporal.unwrap_or_else(|| self.text(&text))
            }
        }
    }
}

impl By {
    fn new(path: &Path, expand: &Expand<'_>) -> Result<Self, Error> {
        let alone = path.names.len() == 1 && path.member.is_empty();
        match path.names.first().map(String::as_str) {
            Some("id") if alone => Ok(By::Id),
            Some("type") if alone => Ok(By::Type),
            _ => Target::bind("orderBy", path, expand).map(By::Value),
        }
    }
}

fn prefix(raw: Raw<'_>) -> Box<[u8]> {
    collate::head(raw.as_text(), MAX_SORT_TEXT).as_bytes().into()
}

/// The `valueType` of an instance, expanded.
fn value_type<'a>(instance: Instance<'_>, symbols: &'a Symbols) -> Option<&'a str> {
    let (_, symbol) = instance.slots().find(|(tag, _)| *tag == Slot::ValueType)?;
    Some(symbols.name(symbol))
}

/// A string that is typed as DateTime, Date or Time (4.6.3), by the name of its type.
fn temporal(kind: &str, text: &str) -> Option<SortValue> {
    let name = kind.rsplit(['#', '/', ':']).next().unwrap_or(kind);
    match name {
        "DateTime" | "dateTime" => Instant::parse(text).ok().map(|instant| SortValue::DateTime(instant.0)),
        "Date" | "date" => time::days(text).map(SortValue::Date),
        "Time" | "time" => time_of_day(text).map(SortValue::Time),
        _ => None,
    }
}

fn distance(instance: Instance<'_>, reference: &Reference) -> Option<SortValue> {
    let is_geo = instance.kind() == Kind::GeoProperty;
    is_geo.then(|| reference.distance(instance.value())).flatten().map(SortValue::Distance)
}

impl SortValue {
    /// Place of the data type in 4.23.2; a distance precedes everything that has none.
    fn rank(&self) -> u8 {
        match self {
            SortValue::Distance(_) => 0,
            SortValue::Number(_) => 1,
            SortValue::Text(_) => 2,
            SortValue::Object(_) => 3,
            SortValue::Array(_) => 4,
            SortValue::Boolean(_) => 5,
            SortValue::Time(_) => 6,
            SortValue::Date(_) => 7,
            SortValue::DateTime(_) => 8,
            SortValue::Null => 9,
            SortValue::Missing => 10,
        }
    }

    fn is_last(&self) -> bool {
        matches!(self, SortValue::Null | SortValue::Missing)
    }

    fn compare(&self, other: &SortValue) -> Order {
        match (self, other) {
            (SortValue::Distance(a), SortValue::Distance(b))
            | (SortValue::Number(a), SortValue::Number(b)) => a.total_cmp(b),
            (SortValue::Text(a), SortValue::Text(b))
            | (SortValue::Object(a), SortValue::Object(b))
            | (SortValue::Array(a), SortValue::Array(b)) => a.cmp(b),
            (SortValue::Boolean(a), SortValue::Boolean(b)) => a.cmp(b),
            (SortValue::Time(a), SortValue::Time(b))
            | (SortValue::Date(a), SortValue::Date(b))
            | (SortValue::DateTime(a), SortValue::DateTime(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

fn directed(a: &SortValue, b: &SortValue, descending: bool) -> Order {
    let forward = a.compare(b);
    if descending && !a.is_last() && !b.is_last() { forward.reverse() } else { forward }
}

#[cfg(test)]
mod tests;
