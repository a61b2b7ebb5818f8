//! Against the definition of the cells, written another way, and against positions.

use std::f64::consts::{PI, TAU};

use proptest::prelude::*;

use super::*;
use crate::sphere::{Circle, Geometry, Polygon, Prepared, Range, Region, Shape, Vec3, distance, offset};

/// The examples of the IVOA catalogue of user-defined functions.
#[test]
fn examples_of_the_udf_catalogue() {
    assert_eq!(hash(0, 1.0, 1.0), Some(4));
    assert_eq!(hash(17, 1.0, 1.0), Some(81_609_757_711));
    assert_eq!(hash(17, 359.0, -1.0), Some(73_009_064_944));
    let middle = center(0, 6).unwrap();
    assert!((middle.lon() - 180.0).abs() < 1e-12 && middle.lat().abs() < 1e-12);
    let center = center(17, hash(17, 23.4, 56.7).unwrap()).unwrap();
    assert!((center.lon() - 23.399_843_462_947_466).abs() < 1e-12);
    assert!((center.lat() - 56.700_162_143_631_92).abs() < 1e-12);
}

#[test]
fn what_has_no_cell() {
    for (lon, lat) in [(f64::NAN, 0.0), (0.0, f64::NAN), (f64::INFINITY, 0.0), (0.0, 90.000_1), (0.0, -91.0)]
    {
        assert_eq!(hash29(lon, lat), None, "{lon} {lat}");
    }
    assert_eq!(hash(30, 0.0, 0.0), None);
    assert_eq!(center(3, cell_count(3)), None);
    assert_eq!(center(30, 0), None);
    let mut out = Vec::new();
    hash29_many(&[1.0, f64::NAN], &[1.0, 1.0], u64::MAX, &mut out);
    assert_eq!(out, [hash29(1.0, 1.0).unwrap(), u64::MAX]);
}

/// Numbers that the reference implementation of the CDS gives at order 29.
#[test]
fn numbers_of_the_reference_implementation() {
    for (lon, lat, expected) in REFERENCE {
        assert_eq!(hash29(lon, lat), Some(expected), "{lon} {lat}");
    }
}

const REFERENCE: [(f64, f64, u64); 10] = [
    (1.0, 1.0, 1_369_184_532_832_835_341),
    (83.633, 22.0145, 1_701_909_093_118_121_710),
    (266.41683, -29.00781, 2_028_740_913_184_699_884),
    (0.0, 89.9999, 288_230_376_150_657_722),
    (123.456, -89.5, 2_594_088_959_996_330_380),
    (359.999999, 41.81, 1_441_151_880_754_610_784),
    (45.0, -60.25, 2_363_265_002_966_627_279),
    (200.5, 0.001, 1_843_549_411_278_889_764),
    (10.68479, 41.26906, 190_633_880_096_651_924),
    (299.901, -41.9, 3_343_469_110_153_490_390),
];

/// Poles, corners of base cells, longitude 0 from both sides: a cell that touches the place.
#[test]
fn places_where_cells_meet() {
    let corner = (2.0_f64 / 3.0).asin().to_degrees();
    for lat in [
        90.0,
        -90.0,
        corner,
        -corner,
        0.0,
        corner.next_up(),
        corner.next_down(),
        1e-300,
        89.999_999_999_999_9,
    ] {
        for lon in [
            0.0,
            45.0,
            90.0,
            135.0,
            180.0,
            270.0,
            315.0,
            360.0,
            359.999_999_999_999_94,
            -1e-14,
            1e-300,
            -1e-300,
        ] {
            let number = hash29(lon, lat).unwrap();
            assert!(number < cell_count(29), "{lon} {lat}");
            let cell = Cell::new(29, number).unwrap();
            let apart = cell.center().angle(Vec3::from_degrees(lon, lat));
            assert!(apart <= cell.radius() + MARGIN, "{lon} {lat}: {apart}");
        }
    }
}

/// The longest arc from the centre of a cell to its corners, and to other places of its edge.
#[test]
fn no_cell_is_larger_than_its_bound() {
    let mut most = [0.0_f64; 3];
    for order in 0..8 {
        let side = f64::from(1_u32 << order);
        for number in 0..cell_count(order) {
            let cell = Cell::new(order, number).unwrap();
            let center = cell.center();
            for step in 0..4 {
                let part = f64::from(step) / 4.0;
                for (x, y) in [(0.0, part), (1.0, 1.0 - part), (1.0 - part, 0.0), (part, 1.0)] {
                    let far = center.angle(cell.place_at(x, y));
                    assert!(far <= cell.radius(), "{order} {number}: {} of a base cell", far * side);
                    most[cell.kind() as usize] = most[cell.kind() as usize].max(far * side);
                }
            }
        }
    }
    // The bounds are near what occurs.
    for (most, kind) in most.iter().zip(cell::Kind::ALL) {
        assert!(*most > 0.98 * kind.radius(0), "{kind:?}: {most}");
    }
}

/// The ring and the place in it of a nested cell say where its centre is (Gorski et al. 2005, equations 2 to
/// 9).
#[test]
fn centres_are_those_of_the_rings() {
    for order in [0_u8, 1, 3, 5] {
        let side = 1_i64 << order;
        for number in 0..cell_count(order) {
            let (face, x, y) = plain(order, number);
            // Rings count from the north; the northern corners of base cells lie on rings 0, side and 2 side.
            let ring = (face / 4) * side + (side - 1 - x) + (side - 1 - y) + 1;
            let whole = side as f64;
            let (z, in_quarter) = if ring < side {
                (1.0 - (ring * ring) as f64 / (3.0 * whole * whole), ring)
            } else if ring <= 3 * side {
                (4.0 / 3.0 - 2.0 * ring as f64 / (3.0 * whole), side)
            } else {
                let south = 4 * side - ring;
                (-1.0 + (south * south) as f64 / (3.0 * whole * whole), south)
            };
            // From the middle of the base cell eastward in steps of a cell.
            let middle = if face / 4 == 1 { 2 * (face % 4) } else { 2 * (face % 4) + 1 };
            let lon = 45.0 * middle as f64 + 45.0 * (x - y) as f64 / in_quarter as f64;
            let center = center(order, number).unwrap();
            let apart = distance(center.lon(), center.lat(), lon, z.asin().to_degrees());
            assert!(apart < 1e-6, "{order} {number}: {center:?}, ring {ring} at {lon}");
        }
    }
}

/// Base cell and coordinates of a nested number, a bit at a time.
fn plain(order: u8, number: u64) -> (i64, i64, i64) {
    let bit = |place: u8| (number >> place & 1) as i64;
    let gather = |from: u8| (0..order).map(|index| bit(2 * index + from) << index).sum();
    ((number >> (2 * order)) as i64, gather(0), gather(1))
}

#[test]
fn children_and_ranges_are_parts() {
    for order in [0_u8, 4, 28] {
        for number in [0, 1, cell_count(order) / 2, cell_count(order) - 1] {
            let cell = Cell::new(order, number).unwrap();
            assert_eq!(cell.number(), number);
            let children = cell.children().unwrap();
            assert_eq!(children.map(|child| child.number()), [0, 1, 2, 3].map(|part| 4 * number + part));
            assert_eq!((children[0].range29().0, children[3].range29().1), cell.range29());
        }
    }
    assert_eq!(Cell::new(29, 7).unwrap().children(), None);
    assert_eq!(Cell::new(29, 7).unwrap().range29(), (7, 7));
}

/// Two cells are beside each other if they have a corner in common.
#[test]
fn buckets_are_all_that_touch() {
    for order in 0..4 {
        let cells: Vec<Cell> =
            (0..cell_count(order)).map(|number| Cell::new(order, number).unwrap()).collect();
        for cell in &cells {
            let corners = cell.corners();
            let touches = |other: &Cell| {
                other.corners().iter().any(|a| corners.iter().any(|b| a.chord_squared(*b) < 1e-20))
            };
            let expected: Vec<u64> = cells.iter().filter(|other| touches(other)).map(Cell::number).collect();
            let buckets = buckets_around(&Point::from_vector(cell.center()), order);
            assert_eq!(buckets.as_slice(), expected, "{order} {}", cell.number());
        }
    }
}

#[test]
fn orders_of_buckets() {
    assert_eq!(bucket_order(0.0), Some(29));
    assert_eq!(bucket_order(-1.0), None);
    assert_eq!(bucket_order(f64::NAN), None);
    assert_eq!(bucket_order(40.0), None);
    assert_eq!(bucket_order(30.0), Some(0));
    // An arc-second: cells of three.
    assert_eq!(bucket_order(1.0 / 3600.0), Some(17));
}

/// Numbers from a seed.
struct Lot(u64);

impl Lot {
    fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A position in degrees at most so far from another.
    fn near(&mut self, lon: f64, lat: f64, far: f64) -> (f64, f64) {
        offset(lon, lat, 360.0 * self.draw(), far * self.draw().sqrt())
    }
}

/// Centres where cells are odd: poles, corners of base cells, their edges, longitude 0.
fn centers() -> impl Strategy<Value = (f64, f64)> {
    let corner = (2.0_f64 / 3.0).asin().to_degrees();
    let odd_lon =
        prop_oneof![Just(0.0), Just(45.0), Just(90.0), Just(315.0), -1e-3..1e-3_f64, 0.0..360.0_f64];
    let odd_lat = prop_oneof![
        Just(90.0),
        Just(-90.0),
        Just(0.0),
        corner - 1e-3..corner + 1e-3_f64,
        -corner - 1e-3..-corner + 1e-3_f64,
        89.99..90.0_f64
    ];
    prop_oneof![(0.0..360.0_f64, -90.0..90.0_f64), (odd_lon.clone(), odd_lat), (odd_lon, -90.0..90.0_f64)]
}

fn sizes(most: f64) -> impl Strategy<Value = f64> {
    (-6.5..most.log10()).prop_map(|exponent| 10_f64.powf(exponent))
}

fn shape(lot: &mut Lot, lon: f64, lat: f64, size: f64) -> Shape {
    match (lot.draw() * 4.0) as u8 {
        0 => Shape::Circle(Circle::new(lon, lat, size).unwrap()),
        1 if size < 40.0 => Shape::Range(
            Range::new(lon - size, lon + size, (lat - size).max(-90.0), (lat + size).min(90.0)).unwrap(),
        ),
        2 => Shape::Polygon(Polygon::from_box(lon, lat, size.min(170.0), (size * 1.5).min(170.0)).unwrap()),
        _ => {
            let count = 3 + (lot.draw() * 6.0) as usize;
            let vertices: Vec<f64> = (0..count)
                .flat_map(|_| {
                    let (lon, lat) = lot.near(lon, lat, size);
                    [lon, lat]
                })
                .collect();
            let polygon = Polygon::new(&vertices).unwrap();
            Shape::Polygon(if lot.draw() < 0.1 { polygon.complement() } else { polygon })
        }
    }
}

/// The range with a number.
fn find(ranges: &[CellRange], number: u64) -> Option<&CellRange> {
    ranges.iter().find(|range| range.first <= number && number <= range.last)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_position_is_in_its_cell((lon, lat) in centers(), order in 0_u8..=29) {
        let number = hash(order, lon, lat).unwrap();
        let cell = Cell::new(order, number).unwrap();
        let position = Vec3::from_degrees(lon, lat);
        prop_assert!(cell.center().angle(position) <= cell.radius() + MARGIN);
        if order > 0 {
            prop_assert_eq!(number >> 2, hash(order - 1, lon, lat).unwrap());
        }
    }

    /// The centre of a cell, and places well within it, have its number.
    #[test]
    fn a_cell_has_what_is_in_it(
        order in 0_u8..=29,
        part in 0.0..1.0_f64,
        x in 0.01..0.99_f64,
        y in 0.01..0.99_f64,
    ) {
        // Places of an order-29 cell are known to a thousandth of it only.
        let number = (part * cell_count(order) as f64) as u64;
        let cell = Cell::new(order, number).unwrap();
        for place in [cell.center(), cell.place_at(x, y)] {
            let (lon, lat) = place.to_degrees();
            prop_assert_eq!(hash(order, lon, lat), Some(number), "{} {}", lon, lat);
        }
    }

    /// What [`bucket_order`] promises.
    #[test]
    fn buckets_have_all_within_the_radius((lon, lat) in centers(), radius in sizes(37.0), seed: u64) {
        let mut lot = Lot(seed);
        let order = bucket_order(radius).unwrap();
        let buckets = buckets_around(&Point::new(lon, lat).unwrap(), order);
        prop_assert!(buckets.as_slice().is_sorted_by(|a, b| a < b));
        for _ in 0..40 {
            let far = if lot.draw() < 0.7 { radius } else { radius * lot.draw() };
            let (x, y) = offset(lon, lat, 360.0 * lot.draw(), far);
            if distance(lon, lat, x, y) <= radius {
                let number = hash(order, x, y).unwrap();
                prop_assert!(buckets.as_slice().contains(&number), "{} {} at order {}", x, y, order);
            }
        }
    }

    /// No position of a region is missed, and none outside is in a range that is inside.
    #[test]
    fn ranges_have_the_region(
        (lon, lat) in centers(),
        size in prop_oneof![4 => sizes(170.0), 1 => Just(0.0)],
        budget in 8_usize..40,
        shapes in 1_usize..4,
        seed: u64,
    ) {
        let mut lot = Lot(seed);
        let mut parts = vec![match size == 0.0 {
            true => Shape::Circle(Circle::new(lon, lat, size).unwrap()),
            false => shape(&mut lot, lon, lat, size),
        }];
        for _ in 1..shapes {
            let (lon, lat) = lot.near(lon, lat, 170.0);
            parts.push(shape(&mut lot, lon, lat, size.max(1e-6)));
        }
        let region = Region::new(parts.clone()).unwrap();
        let ranges = cover(&region, budget);
        prop_assert!(ranges.len() <= budget.max(12), "{} ranges", ranges.len());
        prop_assert!(ranges.is_sorted_by(|a, b| a.last < b.first));
        let prepared = Prepared::from_region(&region);
        for _ in 0..60 {
            let (x, y) = match (lot.draw() * 4.0) as u8 {
                0 => lot.near(lon, lat, size * 1.5 + 1e-9),
                1 => offset(lon, lat, 360.0 * lot.draw(), size),
                2 => edge(&mut lot, &parts),
                _ => lot.near(lon, lat, 180.0),
            };
            let found = find(&ranges, hash29(x, y).unwrap());
            let within = prepared.contains_degrees(x, y);
            prop_assert!(found.is_some() || !within, "{} {} is missed", x, y);
            prop_assert!(found.is_none_or(|range| !range.inside) || within, "{} {} is not within", x, y);
        }
        if let [one] = &*parts {
            let geometry = match one.clone() {
                Shape::Circle(circle) => Geometry::from(circle),
                Shape::Polygon(polygon) => polygon.into(),
                range @ Shape::Range(_) => Region::from(range).into(),
            };
            prop_assert_eq!(cover_geometry(&geometry, budget), ranges);
        }
    }

    /// The cells around a circle miss nothing of it, and are few.
    #[test]
    fn cells_around_a_circle((lon, lat) in centers(), size in prop_oneof![1e-9..50.0_f64, Just(0.0)], seed: u64) {
        let circle = Circle::new(lon, lat, size).unwrap();
        let Some(ranges) = cover_around(&circle) else {
            prop_assert!(bucket_order(size).is_none());
            return Ok(());
        };
        prop_assert!(ranges.len() <= 9, "{} ranges", ranges.len());
        prop_assert!(ranges.is_sorted_by(|a, b| a.last < b.first));
        let prepared = Prepared::new(&circle.into());
        let mut lot = Lot(seed);
        for draw in 0..60 {
            let (x, y) = match draw % 3 {
                0 => lot.near(lon, lat, size * 1.5 + 1e-9),
                1 => offset(lon, lat, 360.0 * lot.draw(), size),
                _ => offset(lon, lat, 360.0 * lot.draw(), size * lot.draw()),
            };
            let found = find(&ranges, hash29(x, y).unwrap());
            let within = prepared.contains_degrees(x, y);
            prop_assert!(found.is_some_and(|range| !range.inside) || !within, "{} {} is missed", x, y);
        }
    }

    /// The ranges of a cone are not much more than the cone.
    #[test]
    fn ranges_are_near_the_region((lon, lat) in centers(), size in 1e-5..50.0_f64) {
        let circle = Circle::new(lon, lat, size).unwrap();
        let ranges = cover_geometry(&circle.into(), 32);
        let covered: u64 = ranges.iter().map(|range| range.last - range.first + 1).sum();
        let part = covered as f64 / cell_count(29) as f64;
        let own = (size.to_radians() / 2.0).sin().powi(2);
        prop_assert!(part < 3.0 * own + 1e-17, "{} times the cone in {}", part / own, ranges.len());
    }
}

/// A position on or near an edge of one of the shapes.
fn edge(lot: &mut Lot, shapes: &[Shape]) -> (f64, f64) {
    let (lon, lat) = match &shapes[(lot.draw() * shapes.len() as f64) as usize] {
        Shape::Circle(circle) => {
            let center = circle.center();
            offset(center.lon(), center.lat(), 360.0 * lot.draw(), circle.radius())
        }
        Shape::Polygon(polygon) => {
            let coordinates = polygon.coordinates();
            let at = |index: usize| {
                let index = 2 * index % coordinates.len();
                Vec3::from_degrees(coordinates[index], coordinates[index + 1])
            };
            let index = (lot.draw() * coordinates.len() as f64 / 2.0) as usize;
            let part = lot.draw();
            (at(index) * (1.0 - part) + at(index + 1) * part).to_degrees()
        }
        Shape::Range(range) => {
            let ((lon1, lon2), (lat1, lat2)) = (range.lon(), range.lat());
            let (lon, lat) = (lon1 + (lon2 - lon1) * lot.draw(), lat1 + (lat2 - lat1) * lot.draw());
            match (lot.draw() * 4.0) as u8 {
                0 => (lon1, lat),
                1 => (lon2, lat),
                2 => (lon, lat1),
                _ => (lon, lat2),
            }
        }
    };
    if lot.draw() < 0.5 { (lon, lat) } else { offset(lon, lat, 360.0 * lot.draw(), 1e-11 * lot.draw()) }
}

#[test]
fn the_whole_sky_is_one_range() {
    let sky = Circle::new(1.0, 2.0, 180.0).unwrap();
    let expected = [CellRange { first: 0, last: cell_count(29) - 1, inside: true }];
    assert_eq!(cover_geometry(&sky.into(), 16), expected);
    let halves = [Circle::new(0.0, 0.0, 120.0), Circle::new(180.0, 0.0, 120.0)]
        .map(|circle| Shape::Circle(circle.unwrap()));
    let area: f64 = cover(&Region::new(halves.to_vec()).unwrap(), 64)
        .iter()
        .filter(|range| range.inside)
        .map(|range| (range.last - range.first + 1) as f64 / cell_count(29) as f64 * 2.0 * TAU)
        .sum();
    assert!(area > 3.0 * PI, "{area}");
}
