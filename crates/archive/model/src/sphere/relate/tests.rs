//! CONTAINS and INTERSECTS against positions: what is contained has no position outside, what does not
//! intersect has none in common, and the other way round as far as positions can tell.

use proptest::prelude::*;

use super::super::tests::{Lot, centers, circle, point, polygon, range, sizes, union};
use super::super::{Region, offset};
use super::*;

#[test]
fn contained_or_not() {
    let square = polygon(&[0.0, 0.0, 10.0, 0.0, 10.0, 10.0, 0.0, 10.0]);
    let left = polygon(&[0.0, 0.0, 5.0, 0.0, 5.0, 10.0, 0.0, 10.0]);
    let right = polygon(&[5.0, 0.0, 10.0, 0.0, 10.0, 10.0, 5.0, 10.0]);
    let halves = union(&[left.clone(), right.clone()]);
    let frame: Geometry = {
        let outer = Polygon::new(&[0.0, 0.0, 10.0, 0.0, 10.0, 10.0, 0.0, 10.0]).unwrap().complement();
        Region::from(Shape::Polygon(outer)).into()
    };
    let ell = polygon(&[0.0, 0.0, 10.0, 0.0, 10.0, 3.0, 3.0, 3.0, 3.0, 10.0, 0.0, 10.0]);
    let sky = circle(0.0, 0.0, 180.0);
    let cases = [
        (point(5.0, 5.0), &square, true),
        (point(0.0, 10.0), &square, true),
        (point(0.0, 10.1), &square, false),
        (square.clone(), &square, true),
        (left.clone(), &square, true),
        (square.clone(), &left, false),
        (halves.clone(), &halves, true),
        (circle(5.0, 5.0, 4.9), &square, true),
        (circle(5.0, 5.0, 5.1), &square, false),
        (circle(5.0, 5.0, 4.9), &halves, true),
        (circle(5.0, 5.0, 4.9), &left, false),
        (circle(20.0, 5.0, 1.0), &square, false),
        (square.clone(), &circle(5.0, 5.0, 7.2), true),
        (square.clone(), &circle(5.0, 5.0, 7.0), false),
        (circle(20.0, 20.0, 1.0), &frame, true),
        (circle(9.5, 5.0, 1.0), &frame, false),
        (circle(5.0, 5.0, 20.0), &frame, false),
        (circle(185.0, -5.0, 150.0), &frame, true),
        (sky.clone(), &frame, false),
        (sky.clone(), &sky, true),
        (frame.clone(), &sky, true),
        (sky.clone(), &circle(0.0, 0.0, 179.0), false),
        (circle(0.0, 0.0, 179.0), &circle(180.0, 0.0, 179.0), false),
        (circle(0.0, 0.0, 100.0), &circle(10.0, 0.0, 110.0), true),
        (polygon(&[1.0, 1.0, 9.0, 1.0, 1.0, 9.0]), &ell, false),
        (polygon(&[1.0, 1.0, 9.0, 1.0, 9.0, 2.0, 1.0, 2.0]), &ell, true),
        // Its vertices are in the L, its longest side is not.
        (polygon(&[0.5, 9.0, 0.5, 0.5, 9.0, 0.5]), &ell, false),
        (circle(0.0, 90.0, 5.0), &polygon(&[0.0, 80.0, 90.0, 80.0, 180.0, 80.0, 270.0, 80.0]), true),
        (circle(0.0, 0.0, 1.0), &polygon(&[358.0, -2.0, 2.0, -2.0, 2.0, 2.0, 358.0, 2.0]), true),
        (range(350.0, 10.0, -5.0, 5.0), &circle(0.0, 0.0, 11.5), true),
        (range(350.0, 10.0, -5.0, 5.0), &circle(0.0, 0.0, 11.0), false),
        (range(0.0, 360.0, 80.0, 90.0), &circle(0.0, 90.0, 10.0), true),
        (circle(0.0, 90.0, 10.0), &range(0.0, 360.0, 80.0, 90.0), true),
        (circle(0.0, 90.0, 10.1), &range(0.0, 360.0, 80.0, 90.0), false),
        (circle(5.0, 5.0, 0.0), &square, true),
        (square.clone(), &circle(5.0, 5.0, 0.0), false),
        (point(5.0, 5.0), &point(365.0, 5.0), true),
        (circle(5.0, 5.0, 0.0), &point(5.0, 5.0), true),
        (circle(5.0, 5.0, 0.1), &point(5.0, 5.0), false),
        // A hole that no edge of the inner shape cuts.
        (circle(5.0, 5.0, 20.0), &union(&[frame.clone().first(), circle(5.0, 5.0, 2.0)]), false),
        (circle(5.0, 5.0, 20.0), &union(&[frame.clone().first(), circle(5.0, 5.0, 7.2)]), true),
        (sky.clone(), &union(&[frame.first(), square.clone()]), true),
    ];
    for (inner, outer, expected) in cases {
        assert_eq!(contains(&inner, outer), expected, "{inner:?} in {outer:?}");
        assert!(!expected || intersects(&inner, outer), "{inner:?} meets {outer:?}");
    }
}

impl Geometry {
    /// The first shape of a region as a geometry.
    fn first(&self) -> Self {
        match self {
            Self::Region(region) => match &region.shapes()[0] {
                Shape::Circle(circle) => (*circle).into(),
                Shape::Polygon(polygon) => polygon.clone().into(),
                Shape::Range(range) => Region::from(Shape::Range(*range)).into(),
            },
            other => other.clone(),
        }
    }
}

#[test]
fn in_common_or_not() {
    let square = polygon(&[0.0, 0.0, 10.0, 0.0, 10.0, 10.0, 0.0, 10.0]);
    let cases = [
        (circle(5.0, 5.0, 1.0), &square, true),
        (circle(5.0, 5.0, 50.0), &square, true),
        (circle(12.0, 5.0, 1.9), &square, false),
        (circle(12.0, 5.0, 2.1), &square, true),
        // A cross: no vertex of one is in the other.
        (polygon(&[-5.0, 4.0, 15.0, 4.0, 15.0, 6.0, -5.0, 6.0]), &square, true),
        // A common corner and a common side.
        (polygon(&[10.0, 10.0, 12.0, 10.0, 12.0, 12.0]), &square, true),
        (polygon(&[10.0, 2.0, 15.0, 2.0, 15.0, 8.0, 10.0, 8.0]), &square, true),
        (polygon(&[10.1, 2.0, 15.0, 2.0, 15.0, 8.0, 10.1, 8.0]), &square, false),
        // The example of ADQL 2.1 4.2.17.
        (circle(25.4, -20.0, 1.0), &polygon(&[20.0, -15.0, 20.0, -5.0, 10.0, -5.0, 10.0, -15.0]), false),
        (circle(185.0, -5.0, 172.0), &square, false),
        (circle(185.0, -5.0, 174.0), &square, true),
        (circle(185.0, -5.0, 172.0), &circle(5.0, 5.0, 7.9), false),
        (circle(185.0, -5.0, 172.0), &circle(5.0, 5.0, 8.1), true),
        (range(355.0, 5.0, -5.0, 5.0), &square, true),
        (range(355.0, 359.0, -5.0, 5.0), &square, false),
        (range(0.0, 360.0, 9.0, 9.5), &square, true),
        (range(0.0, 360.0, 10.1, 90.0), &square, false),
        (point(3.0, 3.0), &square, true),
        (point(3.0, -3.0), &square, false),
    ];
    for (a, b, expected) in cases {
        assert_eq!(intersects(&a, b), expected, "{a:?} and {b:?}");
        assert_eq!(intersects(b, &a), expected, "{b:?} and {a:?}");
    }
}

/// A shape of some kind around a centre, and how large it is.
fn shape(lot: &mut Lot, lon: f64, lat: f64, size: f64) -> Geometry {
    match (lot.draw() * 4.0) as u8 {
        0 => circle(lon, lat, size),
        1 => Polygon::from_box(lon, lat, (size * 1.2).min(170.0), (size * 1.4).min(170.0)).unwrap().into(),
        2 if size < 40.0 => range(lon - size, lon + size, (lat - size).max(-90.0), (lat + size).min(90.0)),
        _ => {
            let count = 3 + (lot.draw() * 6.0) as usize;
            let vertices = (0..count).flat_map(|index| {
                let direction = (index as f64 + 0.7 * lot.draw()) * 360.0 / count as f64;
                let (lon, lat) = offset(lon, lat, direction, size * (0.3 + 0.7 * lot.draw()));
                [lon, lat]
            });
            polygon(&vertices.collect::<Vec<f64>>())
        }
    }
}

/// Positions of a geometry: of its edges, and within.
fn positions(lot: &mut Lot, geometry: &Geometry, count: usize) -> Vec<Vec3> {
    let parts = parts(geometry);
    let mut found = Vec::new();
    for part in &parts {
        for arc in &part.arcs {
            for (from, to) in arc.parts(Vec::new()) {
                found.extend((0..count).map(|_| arc.at(from + (to - from) * lot.draw())));
            }
        }
        let inside = (0..count * 4).map(|_| lot.within(&part.cap)).filter(|p| part.contains(*p));
        found.extend(inside.collect::<Vec<_>>());
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn positions_agree(
        (lon, lat) in centers(),
        size in sizes(85.0),
        apart in 0.0..2.2_f64,
        relation in 0.1..2.5_f64,
        direction in 0.0..360.0_f64,
        seed: u64,
    ) {
        let mut lot = Lot(seed);
        let a = shape(&mut lot, lon, lat, size);
        let (x, y) = offset(lon, lat, direction, size * apart);
        let mut b = shape(&mut lot, x, y, (size * relation).min(85.0));
        if lot.draw() < 0.3 {
            let (x, y) = offset(lon, lat, direction + 120.0, size * apart);
            let other = shape(&mut lot, x, y, (size * relation).min(85.0));
            b = union(&[b.first(), other.first()]);
        }
        let (of_a, of_b) = (positions(&mut lot, &a, 40), positions(&mut lot, &b, 40));
        let outside = of_a.iter().filter(|p| !b.contains_vector(**p)).count();
        let common = of_a.iter().any(|p| b.contains_vector(*p)) || of_b.iter().any(|p| a.contains_vector(*p));
        let contained = contains(&a, &b);
        let meeting = intersects(&a, &b);
        // A position drawn on an edge may be off it by rounding.
        let slack = |p: &Vec3, g: &Geometry| {
            parts(g).iter().flat_map(|part| part.arcs.clone()).any(|arc| arc.nearly(*p))
        };
        if contained {
            let bad = of_a.iter().find(|p| !b.contains_vector(**p) && !slack(p, &b));
            prop_assert!(bad.is_none(), "{:?} is in {:?} but for {:?}", a, b, bad);
            prop_assert!(meeting);
        } else if outside == 0 {
            // Few positions may all be within: but then an edge of B is near.
            let hidden = of_b.iter().any(|p| a.contains_vector(*p));
            prop_assert!(hidden, "{:?} is not in {:?}, but all its positions are", a, b);
        }
        if common {
            let sure = of_a.iter().any(|p| b.contains_vector(*p) && !slack(p, &b))
                || of_b.iter().any(|p| a.contains_vector(*p) && !slack(p, &a));
            prop_assert!(meeting || !sure, "{:?} meets {:?}", a, b);
        } else if meeting {
            let near = of_a.iter().any(|p| of_b.iter().any(|q| p.angle(*q) < 0.2 * size.to_radians()));
            prop_assert!(near, "{:?} does not meet {:?}", a, b);
        }
        prop_assert_eq!(meeting, intersects(&b, &a));
    }
}
