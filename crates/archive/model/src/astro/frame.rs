//! Between celestial frames, by rotation.
//!
//! The IVOA catalogue of user-defined functions (`ivo_geom_transform`) asks for rotations and nothing else,
//! so that results are the same everywhere. What that means for each frame, beside a full treatment:
//!
//! - `ICRS`, `FK5` (J2000): the frame bias of the ICRS; exact but for the slow spin of FK5 (0.7 mas a year).
//! - `GALACTIC`: the pole and the node in FK5 J2000, 23 mas from the constants of the Hipparcos catalogue.
//! - `FK4` (B1950): by the galactic system's own definition in B1950; the elliptic aberration that FK4
//!   positions contain is left in (up to 0.35 arc-seconds), as is FK4's spin.
//! - `ECLIPTIC` (J2000): the mean equator, equinox and obliquity of 2000, IAU 2006.
//!
//! The tests have what astropy gives, FK4 without elliptic aberration: equal to a micro-arcsecond.

use crate::sphere::{Circle, Error, Geometry, Point, Polygon, Region, Shape, Vec3, sin_cos};

/// A celestial frame of the IVOA vocabulary `refframe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// The international celestial reference system.
    Icrs,
    /// FK5, equinox J2000.
    Fk5,
    /// FK4, equinox B1950.
    Fk4,
    /// Galactic coordinates of 1958.
    Galactic,
    /// The mean ecliptic and equinox of J2000.
    Ecliptic,
}

impl Frame {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Icrs, Self::Fk5, Self::Fk4, Self::Galactic, Self::Ecliptic];

    /// The frame with an identifier of the vocabulary; case counts.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|frame| frame.name() == name)
    }

    /// The identifier of the vocabulary.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Icrs => "ICRS",
            Self::Fk5 => "FK5",
            Self::Fk4 => "FK4",
            Self::Galactic => "GALACTIC",
            Self::Ecliptic => "ECLIPTIC",
        }
    }

    /// The axes of the frame in FK5 J2000.
    fn axes(self) -> Matrix {
        const MAS: f64 = 1.0 / 3.6e6;
        match self {
            Self::Fk5 => Matrix::IDENTITY,
            // Mignard & Froeschle 2000: the bias of FK5 to the ICRS.
            Self::Icrs => {
                let bias = Matrix::about_x(19.9 * MAS).times(&Matrix::about_y(9.1 * MAS));
                bias.times(&Matrix::about_z(-22.9 * MAS)).transposed()
            }
            Self::Galactic => galactic(192.859_481_206_534_8, 27.128_251_180_856_22, 122.931_918_568_002_6),
            // From B1950 to galactic coordinates by their definition (Blaauw et al. 1960), and on from there.
            Self::Fk4 => galactic(192.25, 27.4, 123.0).transposed().times(&Self::Galactic.axes()),
            // IAU 2006: the obliquity, and the bias of the mean equator and equinox to the ICRS.
            Self::Ecliptic => {
                let bias = Matrix::about_x(6.819_2 * MAS).times(&Matrix::about_y(-16.617 * MAS));
                let equator = bias.times(&Matrix::about_z(-14.6 * MAS)).times(&Self::Icrs.axes());
                Matrix::about_x(84_381.406 / 3600.0).times(&equator)
            }
        }
    }
}

/// The galactic axes in a frame, from the pole and the longitude there of the frame's own pole.
fn galactic(lon: f64, lat: f64, longitude_of_pole: f64) -> Matrix {
    Matrix::about_z(-longitude_of_pole)
        .times(&Matrix::about_z(180.0))
        .times(&Matrix::about_y(90.0 - lat))
        .times(&Matrix::about_z(lon))
}

/// Three axes of a frame as seen from another.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Matrix([Vec3; 3]);

impl Matrix {
    const IDENTITY: Self = Self([
        Vec3 { x: 1.0, y: 0.0, z: 0.0 },
        Vec3 { x: 0.0, y: 1.0, z: 0.0 },
        Vec3 { x: 0.0, y: 0.0, z: 1.0 },
    ]);

    /// A frame turned about its first axis.
    fn about_x(degrees: f64) -> Self {
        let (s, c) = sin_cos(degrees);
        Self([Self::IDENTITY.0[0], Vec3 { x: 0.0, y: c, z: s }, Vec3 { x: 0.0, y: -s, z: c }])
    }

    /// A frame turned about its second axis.
    fn about_y(degrees: f64) -> Self {
        let (s, c) = sin_cos(degrees);
        Self([Vec3 { x: c, y: 0.0, z: -s }, Self::IDENTITY.0[1], Vec3 { x: s, y: 0.0, z: c }])
    }

    /// A frame turned about its third axis.
    fn about_z(degrees: f64) -> Self {
        let (s, c) = sin_cos(degrees);
        Self([Vec3 { x: c, y: s, z: 0.0 }, Vec3 { x: -s, y: c, z: 0.0 }, Self::IDENTITY.0[2]])
    }

    fn transposed(&self) -> Self {
        let [a, b, c] = self.0;
        Self([
            Vec3 { x: a.x, y: b.x, z: c.x },
            Vec3 { x: a.y, y: b.y, z: c.y },
            Vec3 { x: a.z, y: b.z, z: c.z },
        ])
    }

    fn apply(&self, p: Vec3) -> Vec3 {
        Vec3 { x: self.0[0].dot(p), y: self.0[1].dot(p), z: self.0[2].dot(p) }
    }

    fn times(&self, other: &Self) -> Self {
        let columns = other.transposed().0.map(|column| self.apply(column));
        Self(columns).transposed()
    }
}

/// A rotation from one frame to another.
#[derive(Clone, Copy, Debug)]
pub struct Transform {
    matrix: Matrix,
    same: bool,
}

impl Transform {
    /// From a frame to another.
    pub fn new(from: Frame, to: Frame) -> Self {
        Self { matrix: to.axes().times(&from.axes().transposed()), same: from == to }
    }

    /// A position.
    #[inline]
    pub fn vector(&self, p: Vec3) -> Vec3 {
        if self.same { p } else { self.matrix.apply(p) }
    }

    /// A position in degrees; NaN where it was none.
    #[inline]
    pub fn degrees(&self, lon: f64, lat: f64) -> (f64, f64) {
        if self.same { (lon, lat) } else { self.vector(Vec3::from_degrees(lon, lat)).to_degrees() }
    }

    /// A point.
    pub fn point(&self, point: &Point) -> Result<Point, Error> {
        let (lon, lat) = self.degrees(point.lon(), point.lat());
        Point::new(lon, lat)
    }

    /// A circle: its centre moves, its radius stays.
    pub fn circle(&self, circle: &Circle) -> Result<Circle, Error> {
        let center = self.point(&circle.center())?;
        Circle::new(center.lon(), center.lat(), circle.radius())
    }

    /// A polygon, vertex by vertex: rotations keep great circles.
    pub fn polygon(&self, polygon: &Polygon) -> Result<Polygon, Error> {
        let vertices = polygon.coordinates().chunks_exact(2).map(|pair| self.degrees(pair[0], pair[1]));
        let moved = Polygon::new(&vertices.flat_map(|(lon, lat)| [lon, lat]).collect::<Vec<f64>>())?;
        Ok(if polygon.is_complement() { moved.complement() } else { moved })
    }

    /// A region. A coordinate range is one in its own frame only: an error.
    pub fn region(&self, region: &Region) -> Result<Region, Error> {
        let moved = region.shapes().iter().map(|shape| match shape {
            Shape::Circle(circle) => self.circle(circle).map(Shape::Circle),
            Shape::Polygon(polygon) => self.polygon(polygon).map(Shape::Polygon),
            Shape::Range(_) if self.same => Ok(shape.clone()),
            Shape::Range(_) => Err(Error::Unsupported("a coordinate range in another frame")),
        });
        Region::new(moved.collect::<Result<_, _>>()?)
    }

    /// Any geometry.
    pub fn geometry(&self, geometry: &Geometry) -> Result<Geometry, Error> {
        Ok(match geometry {
            Geometry::Point(point) => self.point(point)?.into(),
            Geometry::Circle(circle) => self.circle(circle)?.into(),
            Geometry::Polygon(polygon) => self.polygon(polygon)?.into(),
            Geometry::Region(region) => self.region(region)?.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sphere::distance;

    fn check(from: Frame, to: Frame, (lon, lat): (f64, f64), expected: (f64, f64), mas: f64) {
        let found = Transform::new(from, to).degrees(lon, lat);
        let apart = distance(found.0, found.1, expected.0, expected.1) * 3.6e6;
        assert!(apart < mas, "{from:?} to {to:?}: {found:?} is {apart} mas from {expected:?}");
    }

    /// The examples of the IVOA catalogue of user-defined functions. Those to FK5 have few digits.
    #[test]
    fn examples_of_the_udf_catalogue() {
        use Frame::{Fk4, Fk5, Galactic, Icrs};
        check(Icrs, Galactic, (120.0, -23.0), (241.121831182, 3.62785788087), 0.01);
        check(Fk4, Galactic, (189.70303055, 22.96240006), (275.00025405, 84.99996154), 0.02);
        check(Galactic, Fk5, (5.0, 3.0), (266.44721, -23.107310), 25.0);
        check(Galactic, Fk5, (4.0, 4.0), (264.95088, -23.434037), 40.0);
    }

    /// What astropy 8.0 gives, FK4 without the terms of elliptic aberration.
    #[test]
    fn as_astropy() {
        use Frame::{Ecliptic, Fk4, Fk5, Galactic, Icrs};
        check(Galactic, Fk5, (5.0, 3.0), (266.44721368539206, -23.10730452266084), 0.001);
        check(Icrs, Fk5, (200.0, -60.0), (200.0000168555431, -60.00000048472157), 0.001);
        check(Icrs, Galactic, (300.0, 80.0), (112.48321841582352, 23.797760429788028), 0.001);
        check(Icrs, Ecliptic, (10.0, 20.0), (17.160129300277287, 14.411817173969595), 0.001);
        check(Fk4, Icrs, (10.0, 20.0), (10.65896534202678, 20.273892221699327), 0.001);
        check(Fk4, Icrs, (200.0, -60.0), (200.80966451945238, -60.260936465902475), 0.001);
    }

    #[test]
    fn names_are_those_of_the_vocabulary() {
        for frame in Frame::ALL {
            assert_eq!(Frame::parse(frame.name()), Some(frame));
        }
        assert_eq!((Frame::parse("icrs"), Frame::parse("")), (None, None));
    }

    #[test]
    fn shapes_move_whole() {
        let transform = Transform::new(Frame::Icrs, Frame::Galactic);
        let circle = transform.circle(&Circle::new(120.0, -23.0, 3.0).unwrap()).unwrap();
        assert_eq!(circle.radius(), 3.0);
        let polygon = Polygon::new(&[0.0, 0.0, 10.0, 0.0, 10.0, 10.0]).unwrap();
        let area = |polygon: &Polygon| Geometry::from(polygon.clone()).area();
        assert!((area(&transform.polygon(&polygon).unwrap()) - area(&polygon)).abs() < 1e-10);
        let range = Region::from(Shape::Range(crate::sphere::Range::new(0.0, 1.0, 0.0, 1.0).unwrap()));
        assert!(transform.region(&range).is_err());
        assert_eq!(Transform::new(Frame::Fk5, Frame::Fk5).region(&range), Ok(range));
    }

    proptest! {
        #[test]
        fn rotations_come_back_and_keep_distances(
            (lon, lat) in (0.0..360.0_f64, -90.0..=90.0_f64),
            (lon2, lat2) in (0.0..360.0_f64, -90.0..=90.0_f64),
            from in 0_usize..5,
            to in 0_usize..5,
        ) {
            let there = Transform::new(Frame::ALL[from], Frame::ALL[to]);
            let back = Transform::new(Frame::ALL[to], Frame::ALL[from]);
            let (x, y) = there.degrees(lon, lat);
            let (again, again_lat) = back.degrees(x, y);
            prop_assert!(distance(lon, lat, again, again_lat) < 2e-13);
            let (x2, y2) = there.degrees(lon2, lat2);
            prop_assert!((distance(x, y, x2, y2) - distance(lon, lat, lon2, lat2)).abs() < 1e-12);
        }
    }
}
