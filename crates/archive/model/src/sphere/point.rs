//! Positions, circles and coordinate ranges.

use super::cap::Cap;
use super::polygon::great_arc_chord_squared;
use super::{Error, Vec3, angle};

/// A position in degrees. Any longitude is one (DALI 1.2 3.7: range reduction is the reader's task); a
/// latitude is from -90 to 90 (ADQL 2.1 4.2.4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    lon: f64,
    lat: f64,
}

impl Point {
    /// The position at a longitude and a latitude.
    pub fn new(lon: f64, lat: f64) -> Result<Self, Error> {
        if !lon.is_finite() || !lat.is_finite() {
            return Err(Error::NotFinite);
        }
        if lat.abs() > 90.0 {
            return Err(Error::Latitude(lat));
        }
        Ok(Self { lon, lat })
    }

    /// The position of a vector.
    pub(crate) fn from_vector(vector: Vec3) -> Self {
        let (lon, lat) = vector.to_degrees();
        Self { lon, lat: lat.clamp(-90.0, 90.0) }
    }

    /// The longitude as it was given.
    pub fn lon(&self) -> f64 {
        self.lon
    }

    /// The latitude.
    pub fn lat(&self) -> f64 {
        self.lat
    }

    /// The unit vector.
    pub fn vector(&self) -> Vec3 {
        Vec3::from_degrees(self.lon, self.lat)
    }

    /// The arc to another position in degrees.
    pub fn distance(&self, other: &Self) -> f64 {
        angle::distance(self.lon, self.lat, other.lon, other.lat)
    }
}

/// All positions within a radius of a centre, the edge included. Radius 0 is the centre alone, 180 and more
/// is the whole sphere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Circle {
    center: Point,
    radius: f64,
}

impl Circle {
    /// The circle with a centre and a radius in degrees.
    pub fn new(lon: f64, lat: f64, radius: f64) -> Result<Self, Error> {
        let center = Point::new(lon, lat)?;
        if radius.is_nan() || radius == f64::INFINITY {
            return Err(Error::NotFinite);
        }
        if radius < 0.0 {
            return Err(Error::Radius(radius));
        }
        Ok(Self { center, radius })
    }

    /// The centre.
    pub fn center(&self) -> Point {
        self.center
    }

    /// The radius in degrees as it was given.
    pub fn radius(&self) -> f64 {
        self.radius
    }

    /// The form for tests.
    pub fn cap(&self) -> Cap {
        Cap::new(self.center.vector(), self.radius)
    }

    /// All that is not within it, with the edge.
    pub(crate) fn complement(&self) -> Self {
        let center = Point { lon: self.center.lon + 180.0, lat: -self.center.lat };
        Self { center, radius: 180.0 - self.radius.min(180.0) }
    }
}

/// A box of coordinates, bounded by two meridians and two parallels (DALI 1.2 3.9). A first longitude above
/// the second spans longitude 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    lon: (f64, f64),
    lat: (f64, f64),
}

impl Range {
    /// From one longitude eastward to another, from one latitude to another.
    pub fn new(lon1: f64, lon2: f64, lat1: f64, lat2: f64) -> Result<Self, Error> {
        let (_, _) = (Point::new(lon1, lat1)?, Point::new(lon2, lat2)?);
        if lat1 > lat2 {
            return Err(Error::RangeOrder(lat1, lat2));
        }
        Ok(Self { lon: (lon1, lon2), lat: (lat1, lat2) })
    }

    /// Longitudes from and to, as they were given.
    pub fn lon(&self) -> (f64, f64) {
        self.lon
    }

    /// Latitudes from and to.
    pub fn lat(&self) -> (f64, f64) {
        self.lat
    }

    /// The first longitude in 0 to 360, and how many degrees it extends eastward, up to 360.
    pub(crate) fn span(&self) -> (f64, f64) {
        let (from, to) = self.lon;
        let whole = to - from >= 360.0;
        (angle::wrap_longitude(from), if whole { 360.0 } else { angle::wrap_longitude(to - from) })
    }

    /// A cap that holds it.
    pub fn cap(&self) -> Cap {
        let (from, extent) = self.span();
        let middle = from + extent / 2.0;
        let corner = |lat: f64| Vec3::from_degrees(from, lat);
        // Around the middle of the box if it is small, else around the nearer pole.
        let lat = if self.lat.0 + self.lat.1 >= 0.0 { 90.0 } else { -90.0 };
        let polar = (lat - self.lat.0).abs().max((lat - self.lat.1).abs());
        let mut best = (Vec3::from_degrees(0.0, lat), polar.to_radians());
        if extent <= 90.0 {
            let center = Vec3::from_degrees(middle, f64::midpoint(self.lat.0, self.lat.1));
            let radius = center.angle(corner(self.lat.0)).max(center.angle(corner(self.lat.1)));
            // A parallel bulges away from its corners where it is nearest to the equator.
            let bulge = if self.lat.0 * self.lat.1 < 0.0 { center.angle(corner(0.0)) } else { 0.0 };
            if radius.max(bulge) < best.1 {
                best = (center, radius.max(bulge));
            }
        }
        Cap::from_radians(best.0, best.1 + 1e-13)
    }

    /// A lower bound, in radians, of the arc to the nearest of its edges; infinite without edges.
    pub(crate) fn edge_distance(&self, p: Vec3) -> f64 {
        let (lon, lat) = p.to_degrees();
        let (from, extent) = self.span();
        let mut least = f64::INFINITY;
        if angle::wrap_longitude(lon - from) <= extent {
            for edge in [self.lat.0, self.lat.1] {
                least = least.min((lat - edge).abs().to_radians());
            }
        }
        if extent < 360.0 {
            for lon in [from, from + extent] {
                let (sine, cosine) = angle::sin_cos(lon);
                let normal = Vec3 { x: sine, y: -cosine, z: 0.0 };
                let (south, north) =
                    (Vec3::from_degrees(lon, self.lat.0), Vec3::from_degrees(lon, self.lat.1));
                let chord = great_arc_chord_squared(p, south, north, normal).sqrt();
                least = least.min(2.0 * (chord / 2.0).min(1.0).asin());
            }
        }
        least - 1e-13
    }

    /// Whether a position is in it, its edges included.
    pub fn contains(&self, p: Vec3) -> bool {
        const SLACK: f64 = 1e-13;
        let across = p.x.hypot(p.y);
        let (lon, lat) = p.to_degrees();
        if !(lat >= self.lat.0 - SLACK && lat <= self.lat.1 + SLACK) {
            return false;
        }
        let (from, extent) = self.span();
        let east = angle::wrap_longitude(lon - from);
        // A pole has every longitude; near it a longitude is worth little.
        let slack = SLACK / across.max(SLACK / 360.0);
        east <= extent + slack || east >= 360.0 - slack
    }
}
