//! Shapes made ready for a scan over many positions.

use arrow_buffer::BooleanBuffer;

use super::Vec3;
use super::cap::Cap;
use super::geometry::{Geometry, Region, Shape};
use super::point::Range;
use super::polygon::Polygon;

/// A geometry for many tests: a chord or a few multiplications an edge each, and for columns of degrees first
/// a comparison of the latitude, which spares most rows their sines.
#[derive(Clone, Debug)]
pub struct Prepared {
    shapes: Box<[Ready]>,
    cap: Cap,
    /// The latitudes that occur in it, in degrees.
    band: (f64, f64),
}

#[derive(Clone, Debug)]
enum Ready {
    Cap(Cap),
    Polygon(Polygon),
    Range(Range),
}

impl Ready {
    #[inline]
    fn contains(&self, p: Vec3) -> bool {
        match self {
            Self::Cap(cap) => cap.contains(p),
            Self::Polygon(polygon) => polygon.contains(p),
            Self::Range(range) => range.contains(p),
        }
    }
}

impl From<&Shape> for Ready {
    fn from(shape: &Shape) -> Self {
        match shape {
            Shape::Circle(circle) => Self::Cap(circle.cap()),
            Shape::Polygon(polygon) => Self::Polygon(polygon.clone()),
            Shape::Range(range) => Self::Range(*range),
        }
    }
}

impl Prepared {
    /// The geometry, ready.
    pub fn new(geometry: &Geometry) -> Self {
        let shapes: Box<[Ready]> = match geometry {
            Geometry::Point(point) => Box::new([Ready::Cap(Cap::new(point.vector(), 0.0))]),
            Geometry::Circle(circle) => Box::new([Ready::Cap(circle.cap())]),
            Geometry::Polygon(polygon) => Box::new([Ready::Polygon(polygon.clone())]),
            Geometry::Region(region) => region.shapes().iter().map(Ready::from).collect(),
        };
        Self::with(shapes, geometry.cap())
    }

    /// A region, ready.
    pub fn from_region(region: &Region) -> Self {
        Self::with(region.shapes().iter().map(Ready::from).collect(), region.cap())
    }

    fn with(shapes: Box<[Ready]>, cap: Cap) -> Self {
        const SLACK: f64 = 1e-12;
        let lat = cap.center().to_degrees().1;
        let radius = cap.radius_degrees() + SLACK;
        Self { shapes, cap, band: (lat - radius, lat + radius) }
    }

    /// A cap that holds it.
    pub fn cap(&self) -> Cap {
        self.cap
    }

    /// Whether a position is in it. NaN is not.
    #[inline]
    pub fn contains(&self, p: Vec3) -> bool {
        match &*self.shapes {
            [one] => one.contains(p),
            shapes => self.cap.contains(p) && shapes.iter().any(|shape| shape.contains(p)),
        }
    }

    /// Whether a position in degrees is in it. NaN and a latitude beyond a pole are not.
    #[inline]
    pub fn contains_degrees(&self, lon: f64, lat: f64) -> bool {
        lat >= self.band.0 && lat <= self.band.1 && self.contains(Vec3::from_degrees(lon, lat))
    }

    /// Which of these positions in degrees are in it. The columns have one length.
    pub fn contains_many(&self, lon: &[f64], lat: &[f64]) -> BooleanBuffer {
        let rows = lon.len().min(lat.len());
        let (lon, lat) = (&lon[..rows], &lat[..rows]);
        let (low, high) = self.band;
        if let [Ready::Cap(cap)] = &*self.shapes {
            return BooleanBuffer::collect_bool(rows, |row| {
                let lat = lat[row];
                lat >= low && lat <= high && cap.contains(Vec3::from_degrees(lon[row], lat))
            });
        }
        BooleanBuffer::collect_bool(rows, |row| self.contains_degrees(lon[row], lat[row]))
    }
}

/// Which of these positions in degrees are in a geometry.
pub fn contains_many(geometry: &Geometry, lon: &[f64], lat: &[f64]) -> BooleanBuffer {
    Prepared::new(geometry).contains_many(lon, lat)
}

/// The unit vectors of columns of degrees.
pub fn unit_vectors(lon: &[f64], lat: &[f64]) -> Vec<Vec3> {
    lon.iter().zip(lat).map(|(lon, lat)| Vec3::from_degrees(*lon, *lat)).collect()
}
