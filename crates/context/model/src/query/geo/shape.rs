//! GeoJSON geometries (RFC 7946, without GeometryCollection: 4.7.1), read in place from JSON text.
//!
//! Accepted are positions within the ranges of WGS 84, closed rings, at most a bounded number of positions.
//! Not judged is what RFC 7946 only recommends: self-intersection, winding, altitude.

use geo_types::{
    Coord, Geometry, Line, LineString, MultiLineString, MultiPoint, MultiPolygon, Point, Polygon,
};

use crate::name::shown;
use crate::query::raw::Raw;

/// Why a geometry is not acceptable.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GeoError {
    /// Neither an object nor a string that holds one (4.7.2).
    #[error("a geometry must be a JSON object with the members \"type\" and \"coordinates\"")]
    NotGeometry,
    /// `type` is not a geometry type that NGSI-LD allows (4.7.1).
    #[error(
        "\"{}\" is not a geometry type: use Point, MultiPoint, LineString, MultiLineString, Polygon or MultiPolygon",
        shown(.0)
    )]
    Type(String),
    /// Something else stands where the type wants an array or a number.
    #[error("{0} must be {1}")]
    Expected(String, &'static str),
    /// A line or ring with too few positions.
    #[error("{0} needs at least {1} positions")]
    TooFew(String, usize),
    /// The first and the last position of a ring differ (RFC 7946 section 3.1.6).
    #[error("{0} is not closed: its first and last position differ")]
    Unclosed(String),
    /// A longitude or latitude that does not exist.
    #[error("{0} has the {1} {2}, which is not within -{3} and {3} (positions are longitude, latitude)")]
    Range(String, &'static str, f64, f64),
    /// More positions than allowed.
    #[error("more than {0} positions")]
    TooMany(usize),
}

impl Eq for GeoError {}

/// The geometry types of 4.7.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of RFC 7946")]
pub enum GeometryType {
    Point,
    MultiPoint,
    LineString,
    MultiLineString,
    Polygon,
    MultiPolygon,
}

impl GeometryType {
    const ALL: [GeometryType; 6] = [
        GeometryType::Point,
        GeometryType::MultiPoint,
        GeometryType::LineString,
        GeometryType::MultiLineString,
        GeometryType::Polygon,
        GeometryType::MultiPolygon,
    ];

    /// The type named `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|own| own.name() == name)
    }

    /// The name of RFC 7946.
    pub fn name(self) -> &'static str {
        match self {
            GeometryType::Point => "Point",
            GeometryType::MultiPoint => "MultiPoint",
            GeometryType::LineString => "LineString",
            GeometryType::MultiLineString => "MultiLineString",
            GeometryType::Polygon => "Polygon",
            GeometryType::MultiPolygon => "MultiPolygon",
        }
    }
}

/// Reads `coordinates` of a geometry of `kind`, with at most `limit` positions.
pub(crate) fn read(kind: GeometryType, coordinates: Raw<'_>, limit: usize) -> Result<Geometry, GeoError> {
    let mut reader = Reader { left: limit, limit, path: Vec::new() };
    Ok(match kind {
        GeometryType::Point => Geometry::Point(Point(reader.position(coordinates)?)),
        GeometryType::MultiPoint => Geometry::MultiPoint(MultiPoint(
            reader.each(coordinates, |own, item| own.position(item).map(Point))?,
        )),
        GeometryType::LineString => Geometry::LineString(reader.line(coordinates)?),
        GeometryType::MultiLineString => {
            Geometry::MultiLineString(MultiLineString(reader.each(coordinates, Reader::line)?))
        }
        GeometryType::Polygon => Geometry::Polygon(reader.polygon(coordinates)?),
        GeometryType::MultiPolygon => {
            Geometry::MultiPolygon(MultiPolygon(reader.each(coordinates, Reader::polygon)?))
        }
    })
}

struct Reader {
    left: usize,
    limit: usize,
    /// Indexes that lead to the value being read, for messages.
    path: Vec<usize>,
}

impl Reader {
    fn place(&self) -> String {
        let indexes: Vec<String> = self.path.iter().map(|index| format!("[{index}]")).collect();
        format!("coordinates{}", indexes.concat())
    }

    /// Reads every item of a non-empty array.
    fn each<T>(
        &mut self,
        raw: Raw<'_>,
        read: impl Fn(&mut Self, Raw<'_>) -> Result<T, GeoError>,
    ) -> Result<Vec<T>, GeoError> {
        if !raw.is_array() {
            return Err(GeoError::Expected(self.place(), "an array"));
        }
        let mut out = Vec::new();
        for (index, item) in raw.items().enumerate() {
            self.path.push(index);
            out.push(read(self, item)?);
            self.path.pop();
        }
        if out.is_empty() { Err(GeoError::Expected(self.place(), "a non-empty array")) } else { Ok(out) }
    }

    fn position(&mut self, raw: Raw<'_>) -> Result<Coord, GeoError> {
        self.left = self.left.checked_sub(1).ok_or(GeoError::TooMany(self.limit))?;
        let mut numbers = raw.items().map(Raw::number);
        let (Some(Some(x)), Some(Some(y))) = (numbers.next(), numbers.next()) else {
            return Err(GeoError::Expected(self.place(), "an array of two or more numbers"));
        };
        if !numbers.all(|number| number.is_some()) {
            return Err(GeoError::Expected(self.place(), "an array of numbers"));
        }
        for (name, value, limit) in [("longitude", x, 180.0), ("latitude", y, 90.0)] {
            if value.abs() > limit {
                return Err(GeoError::Range(self.place(), name, value, limit));
            }
        }
        Ok(Coord { x, y })
    }

    fn line(&mut self, raw: Raw<'_>) -> Result<LineString, GeoError> {
        let positions = self.each(raw, Self::position)?;
        if positions.len() < 2 { Err(GeoError::TooFew(self.place(), 2)) } else { Ok(LineString(positions)) }
    }

    fn ring(&mut self, raw: Raw<'_>) -> Result<LineString, GeoError> {
        let positions = self.each(raw, Self::position)?;
        if positions.len() < 4 {
            return Err(GeoError::TooFew(self.place(), 4));
        }
        if positions.first() != positions.last() {
            return Err(GeoError::Unclosed(self.place()));
        }
        Ok(LineString(positions))
    }

    fn polygon(&mut self, raw: Raw<'_>) -> Result<Polygon, GeoError> {
        let mut rings = self.each(raw, Self::ring)?.into_iter();
        let shell = rings.next().unwrap_or_else(|| LineString(Vec::new()));
        Ok(Polygon::new(shell, rings.collect()))
    }
}

/// The type and coordinates of a geometry that is an object.
pub(crate) fn parts(geometry: Raw<'_>) -> Result<(GeometryType, Raw<'_>), GeoError> {
    let name = geometry.get("type").and_then(Raw::string).ok_or(GeoError::NotGeometry)?.decoded();
    let kind = GeometryType::from_name(&name).ok_or_else(|| GeoError::Type(name.into_owned()))?;
    let coordinates = geometry.get("coordinates").ok_or(GeoError::NotGeometry)?;
    Ok((kind, coordinates))
}

/// A box of longitudes and latitudes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Least longitude and latitude.
    pub min: [f64; 2],
    /// Greatest longitude and latitude.
    pub max: [f64; 2],
}

impl Bounds {
    const EMPTY: Bounds = Bounds { min: [f64::INFINITY; 2], max: [f64::NEG_INFINITY; 2] };

    /// The bounds of accepted `coordinates`, found without building the geometry.
    pub(crate) fn of_coordinates(coordinates: Raw<'_>) -> Self {
        let mut bounds = Bounds::EMPTY;
        bounds.extend(coordinates);
        bounds
    }

    fn extend(&mut self, raw: Raw<'_>) {
        let mut items = raw.items();
        let Some(first) = items.clone().next() else { return };
        if first.is_array() {
            items.for_each(|item| self.extend(item));
        } else {
            let mut number = || items.next().and_then(Raw::number).unwrap_or(f64::NAN);
            self.include(Coord { x: number(), y: number() });
        }
    }

    fn include(&mut self, coord: Coord) {
        for (axis, value) in [coord.x, coord.y].into_iter().enumerate() {
            self.min[axis] = self.min[axis].min(value);
            self.max[axis] = self.max[axis].max(value);
        }
    }

    /// True when the boxes have a point in common.
    pub fn intersects(&self, other: &Bounds) -> bool {
        (0..2).all(|axis| self.min[axis] <= other.max[axis] && other.min[axis] <= self.max[axis])
    }

    /// True when `other` lies within this box.
    pub fn contains(&self, other: &Bounds) -> bool {
        (0..2).all(|axis| self.min[axis] <= other.min[axis] && other.max[axis] <= self.max[axis])
    }

    /// A box that holds every point within `metres` of a point of this one. Where the distance reaches over
    /// a pole or the antimeridian, all longitudes.
    pub(crate) fn widened(&self, metres: f64) -> Bounds {
        // A metre is at most this many degrees of latitude on the sphere, with a margin for rounding.
        let latitude = metres / 111_000.0 + 1e-9;
        let (south, north) = (self.min[1] - latitude, self.max[1] + latitude);
        let farthest = south.abs().max(north.abs());
        let longitude = latitude / farthest.min(90.0).to_radians().cos();
        let (west, east) = (self.min[0] - longitude, self.max[0] + longitude);
        if farthest >= 89.9 || west <= -180.0 || east >= 180.0 {
            return Bounds { min: [f64::NEG_INFINITY, south], max: [f64::INFINITY, north] };
        }
        Bounds { min: [west, south], max: [east, north] }
    }
}

/// The segments of a geometry; a point is a segment of no length.
pub(crate) fn segments(geometry: &Geometry) -> Vec<Line> {
    let mut out = Vec::new();
    let point = |point: &Point| Line::new(point.0, point.0);
    let ring = |polygon: &Polygon, out: &mut Vec<Line>| {
        out.extend(polygon.exterior().lines());
        polygon.interiors().iter().for_each(|own| out.extend(own.lines()));
    };
    match geometry {
        Geometry::Point(own) => out.push(point(own)),
        Geometry::MultiPoint(own) => out.extend(own.iter().map(point)),
        Geometry::LineString(own) => out.extend(own.lines()),
        Geometry::MultiLineString(own) => own.iter().for_each(|line| out.extend(line.lines())),
        Geometry::Polygon(own) => ring(own, &mut out),
        Geometry::MultiPolygon(own) => own.iter().for_each(|polygon| ring(polygon, &mut out)),
        _ => {}
    }
    out
}
