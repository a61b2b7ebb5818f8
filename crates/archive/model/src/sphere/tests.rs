//! The shapes against slow answers found another way, over the places where spheres hurt.

use std::f64::consts::{PI, TAU};

use proptest::prelude::*;

use super::*;

pub(super) fn circle(lon: f64, lat: f64, radius: f64) -> Geometry {
    Circle::new(lon, lat, radius).unwrap().into()
}

pub(super) fn polygon(coordinates: &[f64]) -> Geometry {
    Polygon::new(coordinates).unwrap().into()
}

pub(super) fn point(lon: f64, lat: f64) -> Geometry {
    Point::new(lon, lat).unwrap().into()
}

pub(super) fn union(geometries: &[Geometry]) -> Geometry {
    let shapes = geometries.iter().map(|geometry| match geometry {
        Geometry::Circle(circle) => Shape::Circle(*circle),
        Geometry::Polygon(polygon) => Shape::Polygon(polygon.clone()),
        Geometry::Region(region) => region.shapes()[0].clone(),
        other => panic!("no shape: {other:?}"),
    });
    Region::new(shapes.collect()).unwrap().into()
}

pub(super) fn range(lon1: f64, lon2: f64, lat1: f64, lat2: f64) -> Geometry {
    Region::from(Shape::Range(Range::new(lon1, lon2, lat1, lat2).unwrap())).into()
}

/// Numbers from a seed, for tests that choose many positions.
pub(super) struct Lot(pub(super) u64);

impl Lot {
    /// From 0 to 1.
    pub(super) fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Within a cap, evenly.
    pub(super) fn within(&mut self, cap: &Cap) -> Vec3 {
        let u = cap.center().perpendicular();
        let v = cap.center().cross(u);
        let height = 2.0 * (cap.radius() / 2.0).sin().powi(2) * self.draw();
        let (sine, cosine) = (self.draw() * TAU).sin_cos();
        let across = (height * (2.0 - height)).sqrt();
        cap.center() * (1.0 - height) + (u * cosine + v * sine) * across
    }
}

// ---- circles

#[test]
fn circles_at_the_edges_of_everything() {
    // Circle, position, whether it is in it.
    let cases = [
        ((10.0, 20.0, 0.0), (10.0, 20.0), true),
        ((10.0, 20.0, 0.0), (370.0, 20.0), true),
        ((350.0, 20.0, 0.0), (-10.0, 20.0), true),
        ((10.0, 20.0, 0.0), (10.0, 20.000_000_000_1), false),
        ((0.0, 90.0, 0.0), (77.0, 90.0), true),
        ((10.0, 0.0, 1.0), (11.0, 0.0), true),
        ((10.0, 0.0, 1.0), (10.0, -1.0), true),
        ((10.0, 0.0, 1.0), (11.000_000_000_01, 0.0), false),
        ((359.9, 0.0, 0.2), (0.1, 0.0), true),
        ((0.0, 89.5, 1.0), (180.0, 89.5), true),
        ((0.0, 89.5, 1.0), (180.0, 89.49), false),
        ((0.0, 0.0, 90.0), (90.0, 0.0), true),
        ((0.0, 0.0, 90.0), (33.0, 90.0), true),
        ((0.0, 0.0, 90.0), (90.000_000_000_01, 0.0), false),
        ((0.0, 0.0, 170.0), (170.0, 0.0), true),
        ((0.0, 0.0, 170.0), (180.0, 9.9), false),
        // A milli-arcsecond short of everything: the opposite pole is out.
        ((0.0, 0.0, 180.0 - 1e-3 / 3600.0), (180.0, 0.0), false),
        ((0.0, 0.0, 180.0 - 1e-3 / 3600.0), (180.0, 1.1e-3 / 3600.0), true),
        ((0.0, 0.0, 180.0), (180.0, 0.0), true),
        ((12.0, 34.0, 400.0), (192.0, -34.0), true),
        // A milli-arcsecond.
        ((83.6, 22.0, 1e-3 / 3600.0), (83.6, 22.0 + 0.999e-3 / 3600.0), true),
        ((83.6, 22.0, 1e-3 / 3600.0), (83.6, 22.0 + 1.001e-3 / 3600.0), false),
        ((0.0, 0.0, 180.0), (f64::NAN, 0.0), false),
        ((0.0, 0.0, 170.0), (0.0, f64::NAN), false),
        ((0.0, 0.0, 180.0), (0.0, 90.5), false),
        ((0.0, 0.0, 180.0), (f64::INFINITY, 0.0), false),
    ];
    for ((lon, lat, radius), (x, y), expected) in cases {
        let circle = circle(lon, lat, radius);
        assert_eq!(
            circle.contains_vector(Vec3::from_degrees(x, y)),
            expected,
            "{radius} around {lon} {lat}: {x} {y}"
        );
        let prepared = Prepared::new(&circle);
        assert_eq!(
            prepared.contains_degrees(x, y),
            expected,
            "prepared {radius} around {lon} {lat}: {x} {y}"
        );
        assert_eq!(prepared.contains_many(&[x], &[y]).value(0), expected);
    }
}

#[test]
fn what_is_no_shape() {
    assert_eq!(Circle::new(0.0, 0.0, -1.0), Err(Error::Radius(-1.0)));
    assert_eq!(Circle::new(0.0, 0.0, f64::NAN), Err(Error::NotFinite));
    assert_eq!(Point::new(0.0, 90.1), Err(Error::Latitude(90.1)));
    assert_eq!(Point::new(f64::INFINITY, 0.0), Err(Error::NotFinite));
    assert_eq!(Polygon::new(&[0.0, 0.0, 1.0, 1.0]).unwrap_err(), Error::TooFewVertices(2));
    assert_eq!(Polygon::new(&[0.0; 7]).unwrap_err(), Error::OddCoordinates(7));
    assert_eq!(Polygon::new(&[0.0, 0.0, 180.0, 0.0, 0.0, 90.0]).unwrap_err(), Error::Antipodal(1, 2));
    assert_eq!(Polygon::new(&[10.0, 5.0, 0.0, 90.0, 190.0, -5.0]).unwrap_err(), Error::Antipodal(3, 1));
    assert!(matches!(Polygon::new(&vec![1.0; 9000]), Err(Error::TooMany(4096, _))));
    assert_eq!(Range::new(0.0, 1.0, 2.0, 1.0), Err(Error::RangeOrder(2.0, 1.0)));
    assert!(Polygon::from_box(0.0, 0.0, -1.0, 1.0).is_err());
}

// ---- polygons

/// Polygon, positions within, positions without. Each is tried in both orders of its vertices.
#[test]
fn polygons_at_the_edges_of_everything() {
    type Case = (&'static [f64], &'static [(f64, f64)], &'static [(f64, f64)]);
    let cases: [Case; 9] = [
        // The example of ADQL 2.1 4.2.17, which runs clockwise as seen from the origin.
        (
            &[20.0, -15.0, 20.0, -5.0, 10.0, -5.0, 10.0, -15.0],
            &[(15.0, -10.0), (20.0, -15.0), (20.0, -10.0), (10.0, -7.0), (370.0, -10.0), (15.0, -15.0)],
            &[(21.0, -10.0), (15.0, 10.0), (195.0, 10.0), (0.0, 90.0), (0.0, -90.0), (f64::NAN, 0.0)],
        ),
        // Across longitude 0.
        (
            &[359.0, -1.0, 1.0, -1.0, 1.0, 1.0, 359.0, 1.0],
            &[(0.0, 0.0), (360.0, 1.0), (-1.0, 0.0)],
            &[(180.0, 0.0), (2.0, 0.0)],
        ),
        // Around a pole.
        (
            &[0.0, 80.0, 90.0, 80.0, 180.0, 80.0, 270.0, 80.0],
            &[(0.0, 90.0), (45.0, 86.0), (180.0, 80.0)],
            &[(0.0, 79.0), (45.0, 80.0), (0.0, -90.0)],
        ),
        // A corner at a pole.
        (
            &[0.0, -90.0, 10.0, -80.0, 50.0, -80.0],
            &[(123.0, -90.0), (30.0, -85.0), (10.0, -85.0)],
            &[(5.0, -85.0), (210.0, -85.0)],
        ),
        // An L: not convex.
        (
            &[0.0, 0.0, 10.0, 0.0, 10.0, 3.0, 3.0, 3.0, 3.0, 10.0, 0.0, 10.0],
            &[(1.0, 9.0), (9.0, 1.0), (1.0, 1.0), (3.0, 5.0), (2.0, 0.0)],
            &[(5.0, 5.0), (9.0, 9.0), (-1.0, 1.0)],
        ),
        // An eighth of the sphere.
        (
            &[0.0, 0.0, 90.0, 0.0, 0.0, 90.0],
            &[(45.0, 30.0), (45.0, 0.0), (90.0, 45.0), (17.0, 90.0)],
            &[(225.0, -30.0), (-45.0, 30.0), (45.0, -1e-9)],
        ),
        // A bow: both loops are within, what is between them is not.
        (&[0.0, 0.0, 10.0, 10.0, 10.0, 0.0, 0.0, 10.0], &[(1.0, 5.0), (9.0, 5.0)], &[(5.0, 1.0), (5.0, 9.0)]),
        // Repeated vertices, the first one again at the end, and a spur.
        (
            &[0.0, 0.0, 0.0, 0.0, 4.0, 0.0, 8.0, 0.0, 4.0, 0.0, 4.0, 4.0, 0.0, 4.0, 0.0, 0.0],
            &[(2.0, 2.0), (4.0, 2.0)],
            &[(6.0, 1.0), (5.0, 2.0), (-1.0, 2.0)],
        ),
        // A milli-arcsecond.
        (
            &[100.0, 40.0, 100.0 + 1.0e-6, 40.0, 100.0 + 1.0e-6, 40.0 + 1.0e-6, 100.0, 40.0 + 1.0e-6],
            &[(100.0 + 0.5e-6, 40.0 + 0.5e-6), (100.0, 40.0 + 0.3e-6)],
            &[(100.0 + 1.01e-6, 40.0 + 0.5e-6), (100.0 + 0.5e-6, 40.0 - 1e-8), (280.0, -40.0)],
        ),
    ];
    for (coordinates, within, without) in cases {
        let back: Vec<f64> = coordinates.chunks(2).rev().flatten().copied().collect();
        for coordinates in [coordinates, &back] {
            let shape = Polygon::new(coordinates).unwrap();
            let other = shape.clone().complement();
            let prepared = Prepared::new(&shape.clone().into());
            let rest = Prepared::new(&other.clone().into());
            for (lon, lat) in within {
                let at = Vec3::from_degrees(*lon, *lat);
                assert!(shape.contains(at), "{coordinates:?} has {lon} {lat}");
                assert!(prepared.contains_degrees(*lon, *lat), "{coordinates:?} has {lon} {lat}");
                assert!(other.contains(at) == shape.touches(at), "not {coordinates:?} has not {lon} {lat}");
            }
            for (lon, lat) in without {
                let at = Vec3::from_degrees(*lon, *lat);
                assert!(!shape.contains(at), "{coordinates:?} has not {lon} {lat}");
                assert!(!prepared.contains_degrees(*lon, *lat), "{coordinates:?} has not {lon} {lat}");
                assert_eq!(
                    rest.contains_degrees(*lon, *lat),
                    !lon.is_nan(),
                    "not {coordinates:?} has {lon} {lat}"
                );
            }
        }
    }
}

/// DALI 1.2 3.10 where nothing else decides: counter-clockwise as seen from the origin.
#[test]
fn of_two_hemispheres_the_winding_chooses() {
    let eastward = Polygon::new(&[0.0, 0.0, 120.0, 0.0, 240.0, 0.0]).unwrap();
    let westward = Polygon::new(&[0.0, 0.0, 240.0, 0.0, 120.0, 0.0]).unwrap();
    for (lon, lat) in [(0.0, 90.0), (10.0, 1.0), (200.0, 45.0)] {
        let (north, south) = (Vec3::from_degrees(lon, lat), Vec3::from_degrees(lon, -lat));
        assert!(eastward.contains(south) && !eastward.contains(north));
        assert!(westward.contains(north) && !westward.contains(south));
    }
    assert!(eastward.contains(Vec3::from_degrees(77.0, 0.0)));
    let half = Geometry::from(eastward).area();
    assert!((half - 2.0 * PI * (180.0 / PI) * (180.0 / PI)).abs() < 1e-8, "{half}");
}

#[test]
fn a_polygon_without_area_is_its_edges() {
    let line = Polygon::new(&[10.0, 0.0, 20.0, 0.0, 30.0, 0.0]).unwrap();
    assert!(line.contains(Vec3::from_degrees(25.0, 0.0)) && line.contains(Vec3::from_degrees(10.0, 0.0)));
    assert!(!line.contains(Vec3::from_degrees(25.0, 1e-9)) && !line.contains(Vec3::from_degrees(31.0, 0.0)));
    let geometry = Geometry::from(line);
    assert_eq!(geometry.area(), 0.0);
    assert!(contains(&geometry, &circle(20.0, 0.0, 11.0)) && !contains(&circle(20.0, 0.0, 1.0), &geometry));
    assert!(
        intersects(&geometry, &circle(20.0, 5.0, 5.1)) && !intersects(&geometry, &circle(20.0, 5.0, 4.9))
    );
    let dot = Polygon::new(&[10.0, 5.0, 10.0, 5.0, 10.0, 5.0]).unwrap();
    assert!(dot.contains(Vec3::from_degrees(10.0, 5.0)) && !dot.contains(Vec3::from_degrees(10.1, 5.0)));
    let dot = Geometry::from(dot);
    assert_eq!((dot.area(), dot.centroid().lat().round()), (0.0, 5.0));
    assert!(contains(&dot, &circle(11.0, 5.0, 1.0)) && intersects(&circle(11.0, 5.0, 1.0), &dot));
}

/// Whether the loop turns around a position: the sum of the angles under which it sees the edges.
fn turns(coordinates: &[f64], lon: f64, lat: f64) -> bool {
    let count = coordinates.len() / 2;
    let direction = |index: usize| {
        let at = 2 * (index % count);
        position_angle(lon, lat, coordinates[at], coordinates[at + 1])
    };
    let sum: f64 = (0..count)
        .map(|index| (direction(index + 1) - direction(index) + 180.0).rem_euclid(360.0) - 180.0)
        .sum();
    (sum / 360.0).round() as i64 % 2 != 0
}

/// Vertices around a centre in order of their direction, at distances from `least` to `most` degrees.
fn star(lot: &mut Lot, lon: f64, lat: f64, least: f64, most: f64, count: usize) -> Vec<(f64, f64)> {
    let start = lot.draw() * 360.0;
    (0..count)
        .map(|index| {
            let direction = start + (index as f64 + 0.8 * lot.draw()) * 360.0 / count as f64;
            (direction, least + (most - least) * lot.draw())
        })
        .inspect(|_| assert!(lon.is_finite() && lat.is_finite()))
        .collect()
}

fn star_coordinates(lon: f64, lat: f64, star: &[(f64, f64)]) -> Vec<f64> {
    star.iter()
        .flat_map(|(direction, far)| {
            let (lon, lat) = offset(lon, lat, *direction, *far);
            [lon, lat]
        })
        .collect()
}

/// How far the edge of a star is from its centre in a direction: a triangle with two sides and the angle
/// between them, parted by the direction (the four-part formula).
fn reach(star: &[(f64, f64)], direction: f64) -> f64 {
    let count = star.len();
    for index in 0..count {
        let ((from, a), (to, b)) = (star[index], star[(index + 1) % count]);
        let (step, turn) = ((direction - from).rem_euclid(360.0), (to - from).rem_euclid(360.0));
        if step <= turn {
            let cot = |degrees: f64| 1.0 / degrees.to_radians().tan();
            let sine = |degrees: f64| degrees.to_radians().sin();
            let cotangent = (cot(a) * sine(turn - step) + cot(b) * sine(step)) / sine(turn);
            return 1.0_f64.atan2(cotangent).to_degrees();
        }
    }
    unreachable!("the directions go round")
}

/// Centres where spheres hurt.
pub(super) fn centers() -> impl Strategy<Value = (f64, f64)> {
    prop_oneof![
        3 => (0.0..360.0_f64, -90.0..90.0_f64),
        1 => (-1.0..1.0_f64, -90.0..90.0_f64),
        1 => (0.0..360.0_f64, prop_oneof![Just(90.0), Just(-90.0), 89.0..90.0_f64, -90.0..-89.0_f64]),
        1 => prop_oneof![Just((0.0, 0.0)), Just((180.0, 0.0)), Just((90.0, 45.0)), Just((0.0, -90.0))],
    ]
}

/// Sizes from a milli-arcsecond up.
pub(super) fn sizes(most: f64) -> impl Strategy<Value = f64> {
    (-6.5..most.log10()).prop_map(|exponent| 10_f64.powf(exponent))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A star may be larger than a hemisphere: it then is the outside of what is meant.
    #[test]
    fn stars_have_what_is_nearer_than_their_edge(
        (lon, lat) in centers(),
        size in prop_oneof![3 => sizes(60.0), 1 => 60.0..160.0_f64],
        count in 5_usize..14,
        seed: u64,
        backwards: bool,
    ) {
        let mut lot = Lot(seed);
        let star = star(&mut lot, lon, lat, size * 0.4, size, count);
        let mut coordinates = star_coordinates(lon, lat, &star);
        if backwards {
            coordinates = coordinates.chunks(2).rev().flatten().copied().collect();
        }
        let polygon = Polygon::new(&coordinates).unwrap();
        let area = Geometry::from(polygon.clone()).area();
        let large = !polygon.contains(Vec3::from_degrees(lon, lat));
        prop_assert!(!large || size > 80.0, "the centre of a star");
        let prepared = Prepared::new(&polygon.clone().into());
        let mut inside = 0;
        for _ in 0..60 {
            let direction = lot.draw() * 360.0;
            let edge = reach(&star, direction);
            let far = match lot.draw() < 0.3 {
                true => edge * (1.0 + (lot.draw() - 0.5) * 1e-6),
                false => lot.draw() * size * 1.2,
            };
            if (far - edge).abs() < 1e-12 || far >= 180.0 {
                continue;
            }
            let (x, y) = offset(lon, lat, direction, far);
            let expected = (far < edge) != large;
            inside += usize::from(expected);
            prop_assert_eq!(prepared.contains_degrees(x, y), expected, "{} {} at {} of {}", x, y, far, edge);
        }
        prop_assert!(area <= 2.0 * PI * 3283.0 && (area > 0.0 || inside == 0));
    }

    /// Any loop, crossing itself or not, in a hemisphere: an odd number of turns is within.
    #[test]
    fn tangles_have_what_they_turn_around_oddly(
        (lon, lat) in centers(),
        size in sizes(55.0),
        count in 3_usize..12,
        seed: u64,
    ) {
        let mut lot = Lot(seed);
        let cap = Cap::new(Vec3::from_degrees(lon, lat), size);
        let coordinates: Vec<f64> = (0..count)
            .flat_map(|_| {
                let (lon, lat) = lot.within(&cap).to_degrees();
                [lon, lat]
            })
            .collect();
        let polygon = Polygon::new(&coordinates).unwrap();
        for _ in 0..40 {
            let p = lot.within(&cap);
            let chords = polygon.arcs().map(|(a, b, n)| polygon::great_arc_chord_squared(p, a, b, n));
            let near = chords.fold(9.0, f64::min);
            // The coordinates of a position in degrees have an error too.
            if near.sqrt() < 1e-13_f64.max(1e-7 * size.to_radians()) {
                continue;
            }
            let (x, y) = p.to_degrees();
            prop_assert_eq!(polygon.contains(p), turns(&coordinates, x, y), "{} {}", x, y);
        }
        for edge in 0..count {
            let (a, b, _) = polygon.arcs().nth(edge).unwrap();
            let between = (a * lot.draw() + b * lot.draw()).normalized().unwrap();
            prop_assert!(polygon.contains(a) && polygon.contains(between), "edges are inside");
        }
    }

    /// The chord test, and DISTANCE, against each other and across sizes.
    #[test]
    fn circles_have_what_is_near(
        (lon, lat) in centers(),
        size in sizes(179.9),
        direction in 0.0..360.0_f64,
        part in prop_oneof![0.0..2.0_f64, 0.999_999..1.000_001_f64],
    ) {
        let far = (size * part).min(180.0);
        let (x, y) = offset(lon, lat, direction, far);
        let far = distance(lon, lat, x, y);
        prop_assume!((far - size).abs() > 1e-13);
        let circle = Circle::new(lon, lat, size).unwrap();
        prop_assert_eq!(circle.cap().contains(Vec3::from_degrees(x, y)), far < size);
        prop_assert_eq!(circle.complement().cap().contains(Vec3::from_degrees(x, y)), far > size);
    }
}
