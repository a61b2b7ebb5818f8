//! Areas and centroids against formulas, sums and counted positions.

use proptest::prelude::*;

use super::super::tests::{Lot, centers, circle, point, polygon, range, sizes, union};
use super::super::{Polygon, distance, offset};
use super::*;

fn close(found: f64, expected: f64, relative: f64) -> bool {
    (found - expected).abs() <= relative * expected.abs().max(1e-300)
}

#[test]
fn areas_of_plain_shapes() {
    let sphere = 4.0 * PI * SQUARE_DEGREES;
    let tiny = 1e-3 / 3600.0;
    let cases = [
        (point(1.0, 2.0), 0.0),
        (circle(1.0, 2.0, 0.0), 0.0),
        (circle(1.0, 2.0, 90.0), sphere / 2.0),
        (circle(1.0, 2.0, 180.0), sphere),
        (circle(1.0, 2.0, tiny), PI * tiny * tiny),
        (polygon(&[0.0, 0.0, 90.0, 0.0, 0.0, 90.0]), sphere / 8.0),
        (polygon(&[0.0, 90.0, 90.0, 0.0, 0.0, 0.0]), sphere / 8.0),
        // A lune of thirty degrees.
        (polygon(&[0.0, -90.0, 30.0, 0.0, 0.0, 90.0, 0.0, 0.0]), sphere / 12.0),
        (polygon(&[10.0, 0.0, 10.0 + tiny, 0.0, 10.0 + tiny, tiny, 10.0, tiny]), tiny * tiny),
        (range(0.0, 360.0, -90.0, 90.0), sphere),
        (range(350.0, 10.0, 0.0, 90.0), sphere / 36.0),
        (range(10.0, 10.0 + tiny, 0.0, tiny), tiny * tiny),
        (union(&[circle(0.0, 0.0, 90.0), circle(180.0, 0.0, 90.0)]), sphere),
        (union(&[circle(0.0, 0.0, 1.0), circle(0.0, 0.0, 1.0)]), circle(0.0, 0.0, 1.0).area()),
        (union(&[circle(0.0, 0.0, 1.0), circle(0.0, 0.0, 0.5)]), circle(0.0, 0.0, 1.0).area()),
        (union(&[circle(0.0, 0.0, 1.0), circle(180.0, 0.0, 1.0)]), 2.0 * circle(0.0, 0.0, 1.0).area()),
        (
            union(&[
                polygon(&[0.0, 0.0, 5.0, 0.0, 5.0, 10.0, 0.0, 10.0]),
                polygon(&[5.0, 0.0, 10.0, 0.0, 10.0, 10.0, 5.0, 10.0]),
            ]),
            2.0 * polygon(&[0.0, 0.0, 5.0, 0.0, 5.0, 10.0, 0.0, 10.0]).area(),
        ),
    ];
    for (geometry, expected) in cases {
        let found = geometry.area();
        assert!(close(found, expected, 2e-9), "{geometry:?}: {found} for {expected}");
    }
}

/// Both loops of a bow count.
#[test]
fn the_area_of_a_bow() {
    let bow = polygon(&[0.0, -5.0, 10.0, 5.0, 10.0, -5.0, 0.0, 5.0]);
    let half = polygon(&[0.0, -5.0, 5.0, 0.0, 0.0, 5.0]);
    assert!(close(bow.area(), 2.0 * half.area(), 1e-3), "{} {}", bow.area(), half.area());
    let middle = bow.centroid();
    assert!(distance(middle.lon(), middle.lat(), 5.0, 0.0) < 1e-9, "{middle:?}");
}

/// Two circles of one radius overlap in two segments, each a sector without its triangle.
#[test]
fn the_area_of_two_circles() {
    for (radius, apart) in [(1.0, 0.5), (30.0, 50.0), (80.0, 100.0), (1e-4, 1.5e-4)] {
        let pair = union(&[circle(40.0, 0.0, radius), circle(40.0 + apart, 0.0, radius)]);
        let (r, half) = (f64::to_radians(radius), f64::to_radians(apart) / 2.0);
        // Right triangle with hypotenuse r: the angle at the centre, and the one at the crossing.
        let at_center = (half.tan() / r.tan()).acos();
        let at_crossing = (half.sin() / r.sin()).asin();
        let sector = at_center * 4.0 * (r / 2.0).sin().powi(2);
        let excess = 2.0 * (at_center + at_crossing - PI / 2.0);
        let lens = 2.0 * (sector - excess) * SQUARE_DEGREES;
        let expected = 2.0 * circle(0.0, 0.0, radius).area() - lens;
        // The oracle's own excess has lost digits for the small ones.
        assert!(close(pair.area(), expected, 1e-3), "{radius}: {} for {expected}", pair.area());
        if radius > 0.5 {
            assert!(close(pair.area(), expected, 1e-9), "{radius}: {} for {expected}", pair.area());
        }
        let middle = pair.centroid();
        assert!(distance(middle.lon(), middle.lat(), 40.0 + apart / 2.0, 0.0) < 1e-6 * radius, "{middle:?}");
    }
}

#[test]
fn centroids_of_plain_shapes() {
    let cases = [
        (point(371.0, 2.0), (11.0, 2.0)),
        (circle(1.0, 2.0, 180.0), (1.0, 2.0)),
        (polygon(&[0.0, 0.0, 90.0, 0.0, 0.0, 90.0]), (45.0, (1.0_f64 / 2.0_f64.sqrt()).atan().to_degrees())),
        (polygon(&[359.0, -1.0, 1.0, -1.0, 1.0, 1.0, 359.0, 1.0]), (0.0, 0.0)),
        (polygon(&[0.0, 80.0, 90.0, 80.0, 180.0, 80.0, 270.0, 80.0]), (0.0, 90.0)),
        (range(350.0, 10.0, -5.0, 5.0), (0.0, 0.0)),
        (range(0.0, 360.0, 80.0, 90.0), (0.0, 90.0)),
        (range(0.0, 180.0, -90.0, 90.0), (90.0, 0.0)),
    ];
    for (geometry, (lon, lat)) in cases {
        let found = geometry.centroid();
        assert!(distance(found.lon(), found.lat(), lon, lat) < 1e-9, "{geometry:?}: {found:?}");
    }
}

#[test]
fn a_complement_has_the_rest() {
    let small = Polygon::new(&[0.0, 0.0, 10.0, 0.0, 10.0, 10.0, 0.0, 10.0]).unwrap();
    let (part, rest) = (Geometry::from(small.clone()), Geometry::from(small.complement()));
    assert!(close(part.area() + rest.area(), 4.0 * PI * SQUARE_DEGREES, 1e-14));
    let (a, b) = (part.centroid(), rest.centroid());
    assert!((a.distance(&b) - 180.0).abs() < 1e-9);
    let bow = Polygon::new(&[0.0, -5.0, 10.0, 5.0, 10.0, -5.0, 0.0, 5.0]).unwrap();
    let (part, rest) = (Geometry::from(bow.clone()), Geometry::from(bow.complement()));
    assert!(close(part.area() + rest.area(), 4.0 * PI * SQUARE_DEGREES, 1e-12));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Any loop, and the same with a circle: the part of the positions of a cap that is within.
    #[test]
    fn areas_are_what_positions_count(
        (lon, lat) in centers(),
        size in sizes(80.0),
        count in 3_usize..9,
        seed: u64,
        two: bool,
    ) {
        let mut lot = Lot(seed);
        let bounds = Cap::new(Vec3::from_degrees(lon, lat), size);
        let vertices: Vec<f64> = (0..count)
            .flat_map(|_| {
                let (lon, lat) = lot.within(&bounds).to_degrees();
                [lon, lat]
            })
            .collect();
        let mut geometry = polygon(&vertices);
        if two {
            let (x, y) = offset(lon, lat, 360.0 * lot.draw(), size * 0.3);
            geometry = union(&[geometry, circle(x, y, size * 0.4)]);
        }
        const DRAWN: usize = 4000;
        let hits: Vec<Vec3> =
            (0..DRAWN).map(|_| lot.within(&bounds)).filter(|p| geometry.contains_vector(*p)).collect();
        let part = hits.len() as f64 / DRAWN as f64;
        let area = geometry.area() / Geometry::from(Circle::new(lon, lat, size).unwrap()).area();
        prop_assert!((area - part).abs() < 0.045, "{} of positions, {} of the area", part, area);
        if part > 0.1 {
            let mean = hits.iter().fold(Vec3::default(), |sum, p| sum + *p).normalized().unwrap();
            let center = geometry.centroid().vector();
            let apart = mean.angle(center) / size.to_radians();
            prop_assert!(apart < 0.12, "{} of the size from the mean", apart);
        }
    }

    /// Loops over all of the sphere: the smaller side of one that does not cross itself, and of any what
    /// CONTAINS says.
    #[test]
    fn areas_of_wide_tangles(count in 3_usize..9, seed: u64) {
        let mut lot = Lot(seed);
        let vertices: Vec<f64> = (0..count)
            .flat_map(|_| [360.0 * lot.draw(), (2.0 * lot.draw() - 1.0).asin().to_degrees()])
            .collect();
        let polygon = Polygon::new(&vertices).unwrap();
        let simple = polygon.is_simple();
        let geometry = Geometry::from(polygon);
        const PLACES: usize = 6000;
        let hits = (0..PLACES).filter(|index| geometry.contains_vector(spread(*index, PLACES))).count();
        let (part, area) = (hits as f64 / PLACES as f64, geometry.area() / (4.0 * PI * SQUARE_DEGREES));
        prop_assert!((area - part).abs() < 0.015, "{} of positions, {} of the area", part, area);
        prop_assert!(!simple || area <= 0.5);
    }

    /// A polygon parted by a diagonal from a vertex: the parts make the whole.
    #[test]
    fn areas_add_up((lon, lat) in centers(), size in sizes(85.0), count in 4_usize..9, seed: u64) {
        let mut lot = Lot(seed);
        let vertices: Vec<f64> = (0..count)
            .flat_map(|index| {
                let direction = (index as f64 + 0.5 * lot.draw()) * 360.0 / count as f64;
                let (lon, lat) = offset(lon, lat, direction, size);
                [lon, lat]
            })
            .collect();
        let whole = polygon(&vertices).area();
        let cut = 2 * (2 + (lot.draw() * (count - 3) as f64) as usize);
        let one = polygon(&vertices[..cut + 2]).area();
        let other = polygon(&[&vertices[..2], &vertices[cut..]].concat()).area();
        // Degrees have 1e-13 of rounding themselves.
        prop_assert!(close(one + other, whole, 1e-11 + 2e-12 / size), "{} and {} for {}", one, other, whole);
    }
}
