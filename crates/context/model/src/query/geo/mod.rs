//! The geo-query language (4.10) and the GeoJSON geometries it is about (4.7).
//!
//! The six topological relations are those of OGC Simple Features on the plane of longitude and latitude;
//! `near` measures metres on the sphere between the nearest points. A stored geometry is read from its JSON
//! text: its bounds first, which costs no allocation and settles most answers, then the whole.
//! A shape that crosses itself is accepted and answered, though no standard says what it contains (the
//! library of relations is built without its debug assertions for that reason).

mod distance;
mod shape;

use std::borrow::Cow;

use ::geo::{CoordinatePosition, Intersects, Relate, coordinate_position::CoordPos};
use geo_types::{Coord, Geometry};

use self::distance::Lines;

pub use shape::{Bounds, GeoError, GeometryType};

use super::error::{Error, Reason};
use super::limits::{MAX_COORDINATES, MAX_QUERY_VERTICES, MAX_VERTICES};
use super::literal::json_number;
use super::names::{Expand, Name};
use super::raw::Raw;
use crate::json;
use crate::record::{Kind, Record};
use crate::symbol::{Symbol, Symbols};

/// The GeoProperty that a query is about when it names none (4.10).
const DEFAULT_PROPERTY: &str = "location";

/// Checks the value of a GeoProperty on input (4.7.1): a geometry, or a string that holds one (4.7.2).
pub fn validate(value: json::Value<'_>) -> Result<(), GeoError> {
    match value.as_str() {
        Some(text) => {
            let doc = json::Doc::parse(text.as_bytes()).map_err(|_| GeoError::NotGeometry)?;
            validate_object(doc.root())
        }
        None => validate_object(value),
    }
}

fn validate_object(value: json::Value<'_>) -> Result<(), GeoError> {
    if !value.is_object() {
        return Err(GeoError::NotGeometry);
    }
    let (kind, coordinates) = shape::parts(Raw::new(value.raw()))?;
    shape::read(kind, coordinates, MAX_VERTICES).map(drop)
}

/// The bounds of an accepted GeoProperty value, for an index; `value` is its JSON text.
pub fn bounds(value: &str) -> Option<Bounds> {
    with_geometry(Raw::new(value), |geometry| {
        let (_, coordinates) = shape::parts(geometry).ok()?;
        Some(Bounds::of_coordinates(coordinates))
    })
}

/// Calls `read` with the geometry object, whether it stands as such or in a string (4.7.2).
fn with_geometry<T>(value: Raw<'_>, read: impl Fn(Raw<'_>) -> Option<T>) -> Option<T> {
    match value.string() {
        Some(text) => {
            let text = text.decoded();
            json::Doc::parse(text.as_bytes()).ok()?;
            read(Raw::new(&text))
        }
        None => read(value),
    }
}

/// A spatial relation (`georel`).
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the names are the standard's")]
pub enum Relation {
    /// Within so many metres.
    NearMax(f64),
    /// Farther than so many metres.
    NearMin(f64),
    Within,
    Contains,
    Intersects,
    Equals,
    Disjoint,
    Overlaps,
}

impl Relation {
    /// Reads `georel`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let expected = |at: usize, what: &'static str| Error {
            parameter: "georel",
            at: Some(at + 1),
            reason: Reason::Expected(what.into()),
        };
        Ok(match text {
            "within" => Relation::Within,
            "contains" => Relation::Contains,
            "intersects" => Relation::Intersects,
            "equals" => Relation::Equals,
            "disjoint" => Relation::Disjoint,
            "overlaps" => Relation::Overlaps,
            _ => {
                let Some(modifier) = text.strip_prefix("near") else {
                    return Err(expected(
                        0,
                        "near, within, contains, intersects, equals, disjoint or overlaps",
                    ));
                };
                let max = modifier.strip_prefix(";maxDistance==").map(|rest| (rest, true));
                let min = modifier.strip_prefix(";minDistance==").map(|rest| (rest, false));
                let modifier_missing = || expected(4, "\";maxDistance==\" or \";minDistance==\"");
                let (number, is_max) = max.or(min).ok_or_else(modifier_missing)?;
                let metres = json_number(number).filter(|metres| *metres > 0.0 && !number.starts_with('-'));
                let metres = metres.ok_or_else(|| expected(18, "a positive number of metres"))?;
                if is_max { Relation::NearMax(metres) } else { Relation::NearMin(metres) }
            }
        })
    }
}

impl std::fmt::Display for Relation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Relation::NearMax(metres) => write!(f, "near;maxDistance=={metres}"),
            Relation::NearMin(metres) => write!(f, "near;minDistance=={metres}"),
            Relation::Within => f.write_str("within"),
            Relation::Contains => f.write_str("contains"),
            Relation::Intersects => f.write_str("intersects"),
            Relation::Equals => f.write_str("equals"),
            Relation::Disjoint => f.write_str("disjoint"),
            Relation::Overlaps => f.write_str("overlaps"),
        }
    }
}

/// A geometry to compare others with, prepared once.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    kind: GeometryType,
    /// The coordinates as JSON text, for forwarding.
    coordinates: Box<str>,
    geometry: Geometry,
    lines: Lines,
    bounds: Bounds,
}

impl Reference {
    /// Reads a geometry from its type and coordinates. The two are parameters named `parameters.0` and
    /// `parameters.1`: `geometry` and `coordinates`, or `orderGeometry` and `orderFrom`.
    pub fn parse(
        parameters: (&'static str, &'static str),
        kind: &str,
        coordinates: &str,
    ) -> Result<Self, Error> {
        let unknown = || Error::whole(parameters.0, GeoError::Type(kind.to_owned()).into());
        let kind = GeometryType::from_name(kind).ok_or_else(unknown)?;
        if coordinates.len() > MAX_COORDINATES {
            return Err(Error::whole(parameters.1, Reason::TooLong(MAX_COORDINATES)));
        }
        let doc = json::Doc::parse(coordinates.as_bytes()).map_err(|error| Error {
            parameter: parameters.1,
            at: Some(characters_before(coordinates, error.offset) + 1),
            reason: Reason::Invalid(format!("not a JSON array of coordinates: {}", error.reason).into()),
        })?;
        let raw = Raw::new(doc.root().raw());
        let geometry = shape::read(kind, raw, MAX_QUERY_VERTICES)
            .map_err(|error| Error::whole(parameters.1, error.into()))?;
        Ok(Reference {
            kind,
            coordinates: doc.root().minified().into(),
            lines: Lines::new(shape::segments(&geometry)),
            bounds: Bounds::of_coordinates(raw),
            geometry,
        })
    }

    /// The geometry's type.
    pub fn kind(&self) -> GeometryType {
        self.kind
    }

    /// The coordinates as JSON text.
    pub fn coordinates(&self) -> &str {
        &self.coordinates
    }

    /// The least distance in metres to an accepted GeoProperty value; `None` when it is none.
    pub fn distance(&self, value: &str) -> Option<f64> {
        with_geometry(Raw::new(value), |geometry| {
            let (kind, coordinates) = shape::parts(geometry).ok()?;
            self.distance_to(kind, coordinates, 0.0)
        })
    }

    /// See [`distance::least`] for `enough`.
    fn distance_to(&self, kind: GeometryType, coordinates: Raw<'_>, enough: f64) -> Option<f64> {
        if kind == GeometryType::Point {
            let at = Bounds::of_coordinates(coordinates);
            let at = Coord { x: at.min[0], y: at.min[1] };
            return Some(distance::least_from(at, &self.geometry, &self.lines, enough));
        }
        let own = shape::read(kind, coordinates, MAX_VERTICES).ok()?;
        let lines = Lines::new(shape::segments(&own));
        Some(match &self.geometry {
            Geometry::Point(point) => distance::least_from(point.0, &own, &lines, enough),
            geometry => distance::least(&own, &lines, geometry, &self.lines, enough),
        })
    }
}

fn characters_before(text: &str, offset: usize) -> usize {
    text.char_indices().take_while(|(at, _)| *at < offset).count()
}

/// A geo-query without its property, which needs a context.
#[derive(Debug, Clone, PartialEq)]
pub struct Geo {
    relation: Relation,
    reference: Reference,
}

/// Reads the three parameters. Never panics; an entry point for fuzzing.
pub fn parse(georel: &str, geometry: &str, coordinates: &str) -> Result<Geo, Error> {
    Ok(Geo {
        relation: Relation::parse(georel)?,
        reference: Reference::parse(("geometry", "coordinates"), geometry, coordinates)?,
    })
}

/// The same of parameters that may be absent: all three or none (table 6.4.3.2-1).
pub fn parse_optional(
    georel: Option<&str>,
    geometry: Option<&str>,
    coordinates: Option<&str>,
) -> Result<Option<Geo>, Error> {
    let missing = |parameter| Error::invalid(parameter, "required by the other parameters of the geo-query");
    match (georel, geometry, coordinates) {
        (None, None, None) => Ok(None),
        (Some(georel), Some(geometry), Some(coordinates)) => parse(georel, geometry, coordinates).map(Some),
        (None, ..) => Err(missing("georel")),
        (_, None, _) => Err(missing("geometry")),
        (.., None) => Err(missing("coordinates")),
    }
}

/// The text of `coordinates` in the body of a query or subscription: an array, or a string that holds one.
pub fn coordinates_text<'d>(value: json::Value<'d>) -> Cow<'d, str> {
    value.as_str().unwrap_or(Cow::Borrowed(value.raw()))
}

impl Geo {
    /// The relation.
    pub fn relation(&self) -> Relation {
        self.relation
    }

    /// The reference geometry.
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// True when the accepted GeoProperty value `value` stands in the relation to the reference geometry.
    pub fn matches_value(&self, value: &str) -> bool {
        with_geometry(Raw::new(value), |geometry| {
            let (kind, coordinates) = shape::parts(geometry).ok()?;
            Some(self.matches_geometry(kind, coordinates))
        })
        .unwrap_or(false)
    }

    fn matches_geometry(&self, kind: GeometryType, coordinates: Raw<'_>) -> bool {
        let bounds = Bounds::of_coordinates(coordinates);
        if let Some(answer) = self.by_bounds(&bounds) {
            return answer;
        }
        match self.relation {
            Relation::NearMax(metres) => {
                self.reference.distance_to(kind, coordinates, metres).is_some_and(|found| found <= metres)
            }
            Relation::NearMin(metres) => {
                self.reference.distance_to(kind, coordinates, metres).is_some_and(|found| found > metres)
            }
            _ if kind == GeometryType::Point => {
                self.matches_point(Coord { x: bounds.min[0], y: bounds.min[1] })
            }
            _ => shape::read(kind, coordinates, MAX_VERTICES).is_ok_and(|own| self.matches_shape(&own)),
        }
    }

    /// The answer, where bounds alone give it.
    fn by_bounds(&self, target: &Bounds) -> Option<bool> {
        let own = &self.reference.bounds;
        match self.relation {
            Relation::NearMax(metres) => (!own.widened(metres).intersects(target)).then_some(false),
            Relation::NearMin(metres) => (!own.widened(metres).intersects(target)).then_some(true),
            Relation::Disjoint => (!own.intersects(target)).then_some(true),
            Relation::Intersects | Relation::Overlaps => (!own.intersects(target)).then_some(false),
            Relation::Within => (!own.contains(target)).then_some(false),
            Relation::Contains => (!target.contains(own)).then_some(false),
            Relation::Equals => (own != target).then_some(false),
        }
    }

    /// A point against any geometry: one look suffices, the bounds having been compared.
    fn matches_point(&self, point: Coord) -> bool {
        let geometry = &self.reference.geometry;
        match self.relation {
            Relation::Intersects => geometry.intersects(&point),
            Relation::Disjoint => !geometry.intersects(&point),
            Relation::Within => geometry.coordinate_position(&point) == CoordPos::Inside,
            // The reference geometry has the bounds of the point, so it is the same point.
            Relation::Contains | Relation::Equals => true,
            // Shapes overlap when each has a part that the other has not.
            Relation::Overlaps | Relation::NearMax(_) | Relation::NearMin(_) => false,
        }
    }

    fn matches_shape(&self, target: &Geometry) -> bool {
        let geometry = &self.reference.geometry;
        match self.relation {
            Relation::Intersects => target.intersects(geometry),
            Relation::Disjoint => !target.intersects(geometry),
            Relation::Within => target.relate(geometry).is_within(),
            Relation::Contains => target.relate(geometry).is_contains(),
            // The graph of relations denies that a shape which crosses itself equals itself.
            Relation::Equals => target == geometry || target.relate(geometry).is_equal_topo(),
            Relation::Overlaps => target.relate(geometry).is_overlaps(),
            Relation::NearMax(_) | Relation::NearMin(_) => false,
        }
    }

    /// The area that every match has a point in common with; `None` when matches may lie anywhere.
    pub fn area(&self) -> Option<Bounds> {
        match self.relation {
            Relation::NearMax(metres) => Some(self.reference.bounds.widened(metres)),
            Relation::NearMin(_) | Relation::Disjoint => None,
            Relation::Within
            | Relation::Contains
            | Relation::Intersects
            | Relation::Equals
            | Relation::Overlaps => Some(self.reference.bounds),
        }
    }
}

/// A geo-query bound to a GeoProperty.
#[derive(Debug, Clone, PartialEq)]
pub struct GeoQuery {
    geo: Geo,
    property: Name,
}

impl GeoQuery {
    /// Binds `geo` to the property `geoproperty`, which is `location` unless given (4.10).
    pub fn new(geo: Geo, geoproperty: Option<&str>, expand: &Expand<'_>) -> Result<Self, Error> {
        let term = geoproperty.unwrap_or(DEFAULT_PROPERTY);
        let term = if term.is_empty() { DEFAULT_PROPERTY } else { term };
        Ok(GeoQuery { geo, property: Name::expand("geoproperty", term, expand)? })
    }

    /// The query without its property.
    pub fn geo(&self) -> &Geo {
        &self.geo
    }

    /// The symbol of the property, if any entity ever had it.
    pub fn property(&self, symbols: &Symbols) -> Option<Symbol> {
        self.property.symbol(symbols)
    }

    /// True when some instance of the GeoProperty stands in the relation (5.7.2.4); an entity without one
    /// does not match, whatever the relation (4.10).
    pub fn matches(&self, record: &Record, symbols: &Symbols) -> bool {
        self.property(symbols).is_some_and(|property| {
            let instances = record.attribute(property).filter(|own| own.kind() == Kind::GeoProperty);
            instances.into_iter().any(|own| self.geo.matches_value(own.value()))
        })
    }
}

#[cfg(test)]
mod tests;
