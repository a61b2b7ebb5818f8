use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;
use proptest::prelude::*;
use trifid_archive_adql::functions::Function;
use trifid_archive_adql::tree::{Comparison, Expr};
use trifid_archive_adql::types::Type;
use trifid_archive_model::sphere;

use super::*;

const NAN: f64 = f64::NAN;

fn point(lon: Expr, lat: Expr) -> Expr {
    call(Function::Point, vec![lon, lat], Type::Point)
}

fn circle(lon: f64, lat: f64, radius: f64) -> Expr {
    call(Function::Circle, vec![real(lon), real(lat), real(radius)], Type::Circle)
}

fn within(inner: Expr, outer: Expr) -> Expr {
    call(Function::Contains, vec![inner, outer], Type::Boolean)
}

fn position() -> Expr {
    point(column(0, Type::Double), column(1, Type::Double))
}

#[test]
fn positions_in_a_circle() {
    let columns = [
        doubles(&[Some(10.0), Some(370.0), Some(-350.0), Some(12.0), None, Some(NAN), Some(10.0)]),
        doubles(&[Some(20.0), Some(20.9), Some(19.1), Some(20.0), Some(20.0), Some(20.0), Some(91.0)]),
    ];
    let expected = truths(&[Some(true), Some(true), Some(true), Some(false), None, None, None]);
    check(&within(position(), circle(10.0, 20.0, 1.0)), &columns, &expected);
    let meets = call(Function::Intersects, vec![circle(10.0, 20.0, 1.0), position()], Type::Boolean);
    check(&meets, &columns, &expected);
    // The same by way of values of type Point.
    let built = run(&position(), &columns).unwrap();
    check(&within(column(0, Type::Point), circle(10.0, 20.0, 1.0)), &[built], &expected);
    check(&within(position(), null(Type::Circle)), &columns, &truths(&[None; 7]));
    check_one(&within(point(real(1.0), real(1.0)), circle(1.0, 1.0, 0.0)), &truths(&[Some(true)]));
}

#[test]
fn a_constant_that_is_no_shape() {
    let columns = [doubles(&[Some(1.0)]), doubles(&[Some(1.0)])];
    let beyond = within(position(), circle(0.0, 91.0, 1.0));
    assert_eq!(refused(&beyond, &columns), "the latitude 91 is not between -90 and 90 degrees");
    let negative = call(
        Function::Circle,
        vec![column(0, Type::Double), column(1, Type::Double), real(-1.0)],
        Type::Circle,
    );
    assert_eq!(refused(&negative, &columns), "the radius -1 is negative");
    let flat = call(Function::Polygon, vec![real(0.0), real(0.0), real(1.0), real(1.0)], Type::Polygon);
    assert_eq!(refused(&flat, &[]), "a polygon has at least three vertices; this one has 2");
}

#[test]
fn circles_of_columns() {
    let columns = [
        doubles(&[Some(10.0), Some(10.0), Some(10.0), None]),
        doubles(&[Some(20.0), Some(99.0), Some(20.0), Some(20.0)]),
        doubles(&[Some(1.0), Some(1.0), Some(-1.0), Some(1.0)]),
    ];
    let places = (0..3).map(|place| column(place, Type::Double)).collect();
    let circles = call(Function::Circle, places, Type::Circle);
    let found = run(&circles, &columns).unwrap();
    assert_eq!((0..4).map(|row| found.is_null(row)).collect::<Vec<_>>(), [false, true, true, true]);
    let inside = within(point(real(10.0), real(20.5)), circles);
    check(&inside, &columns, &truths(&[Some(true), None, None, None]));
}

#[test]
fn polygons_and_boxes() {
    let square = [-1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0];
    let polygon = call(Function::Polygon, square.iter().map(|n| real(*n)).collect(), Type::Polygon);
    let columns =
        [doubles(&[Some(0.0), Some(2.0), Some(360.0)]), doubles(&[Some(0.0), Some(0.0), Some(0.9)])];
    check(&within(position(), polygon.clone()), &columns, &truths(&[Some(true), Some(false), Some(true)]));
    let covers = call(Function::Intersects, vec![circle(5.0, 0.0, 4.5), polygon.clone()], Type::Boolean);
    check_one(&covers, &truths(&[Some(true)]));
    check_one(&within(polygon.clone(), circle(0.0, 0.0, 2.0)), &truths(&[Some(true)]));
    check_one(&within(polygon.clone(), circle(0.0, 0.0, 1.0)), &truths(&[Some(false)]));
    let sides = [real(0.0), real(0.0), real(2.0), real(2.0)];
    let boxed = call(Function::Box, sides.to_vec(), Type::Polygon);
    check(&within(position(), boxed), &columns, &truths(&[Some(true), Some(false), Some(true)]));
    let shapes = run(&polygon, &[]).unwrap();
    let area = call(Function::Area, vec![column(0, Type::Polygon)], Type::Double);
    let area = run(&area, &[shapes]).unwrap().as_primitive::<Float64Type>().value(0);
    assert!((area - 4.0).abs() < 0.01, "{area}");
}

#[test]
fn parts_of_points() {
    let columns = [doubles(&[Some(10.0), None]), doubles(&[Some(-20.0), Some(1.0)])];
    let of = |function, ty| call(function, vec![position()], ty);
    check(&of(Function::Coord1, Type::Double), &columns, &doubles(&[Some(10.0), None]));
    check(&of(Function::Coord2, Type::Double), &columns, &doubles(&[Some(-20.0), None]));
    check(&of(Function::CoordSys, Type::Text), &columns, &texts(&[Some("ICRS"), None]));
    let center = call(Function::Centroid, vec![circle(33.0, 44.0, 1.0)], Type::Point);
    check_one(&call(Function::Coord1, vec![center.clone()], Type::Double), &doubles(&[Some(33.0)]));
    check_one(&call(Function::Coord2, vec![center], Type::Double), &doubles(&[Some(44.0)]));
}

#[test]
fn cells() {
    let index = |order, ty| {
        call(
            Function::HealpixIndex,
            vec![whole(order, Type::Long), column(0, Type::Double), column(1, Type::Double)],
            ty,
        )
    };
    let columns = [doubles(&[Some(0.0), None, Some(0.0)]), doubles(&[Some(0.1), Some(0.0), Some(95.0)])];
    // Base cell 4 is around longitude 0 on the equator.
    check(&index(0, Type::Long), &columns, &longs(&[Some(4), None, None]));
    assert_eq!(
        refused(&index(30, Type::Long), &columns),
        "a HEALPix order is from 0 to 29; 30 was asked for"
    );
    let center = call(Function::HealpixCenter, vec![whole(0, Type::Long), whole(4, Type::Long)], Type::Point);
    check_one(&call(Function::Coord2, vec![center], Type::Double), &doubles(&[Some(0.0)]));
    let none = call(Function::HealpixCenter, vec![whole(0, Type::Long), whole(12, Type::Long)], Type::Point);
    assert_eq!(refused(&none, &[]), "HEALPix order 0 has no cell 12");
    let gaia = |order| {
        call(Function::GaiaHealpixIndex, vec![whole(order, Type::Long), column(0, Type::Long)], Type::Long)
    };
    let source = 5_853_498_713_190_525_696;
    check(&gaia(12), &[longs(&[Some(source), None])], &longs(&[Some(source / 34_359_738_368), None]));
    check(&gaia(6), &[longs(&[Some(source)])], &longs(&[Some(source / 34_359_738_368 / 4096)]));
    assert!(refused(&gaia(13), &[longs(&[Some(source)])]).starts_with("a HEALPix order is from 0 to 12"));
}

fn distance() -> Expr {
    call(Function::Distance, (0..4).map(|place| column(place, Type::Double)).collect(), Type::Double)
}

#[test]
fn distances() {
    let columns = [
        doubles(&[Some(0.0), Some(0.0), Some(10.0), None, Some(0.0)]),
        doubles(&[Some(0.0), Some(90.0), Some(20.0), Some(0.0), Some(91.0)]),
        doubles(&[Some(180.0), Some(50.0), Some(10.0), Some(0.0), Some(0.0)]),
        doubles(&[Some(0.0), Some(-90.0), Some(20.0), Some(0.0), Some(0.0)]),
    ];
    check(&distance(), &columns, &doubles(&[Some(180.0), Some(180.0), Some(0.0), None, None]));
    let near = compare(Comparison::Less, distance(), real(1.0));
    check(&near, &columns, &truths(&[Some(false), Some(false), Some(true), None, None]));
    let far = compare(Comparison::Less, real(1.0), distance());
    check(&far, &columns, &truths(&[Some(true), Some(true), Some(false), None, None]));
    let nothing = compare(Comparison::Less, distance(), null(Type::Double));
    check(&nothing, &columns, &truths(&[None; 5]));
}

/// Degrees around a place where something special is, at several scales.
fn angle(most: f64) -> impl Strategy<Value = f64> {
    let special = prop::sample::select(vec![0.0, 45.0, 90.0, 180.0, 270.0, 359.999_999, -90.0, 10.0]);
    let offset = (-1.0f64..1.0, -12i32..2).prop_map(|(x, scale)| x * 10f64.powi(scale));
    let exact = special.clone();
    prop_oneof![
        3 => (special, offset).prop_map(move |(a, b)| (a + b).clamp(-most, most)),
        1 => exact.prop_map(move |a| a.clamp(-most, most)),
        1 => -most..most,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Deciding by latitudes and chords is measuring and comparing.
    #[test]
    fn short_cuts_are_exact(
        lon1 in angle(360.0), lat1 in angle(90.0), lon2 in angle(360.0), lat2 in angle(90.0),
        bound in prop_oneof![
            Just(None),
            prop::sample::select(vec![0.0, 1e-9, 180.0, -1.0, 200.0, NAN, f64::INFINITY]).prop_map(Some),
        ],
        nudge in -2i64..3,
    ) {
        let measured = sphere::distance(lon1, lat1, lon2, lat2);
        // Where nothing is said, as close to the bound as it can be.
        let bound = bound.unwrap_or_else(|| f64::from_bits((measured.to_bits() as i64 + nudge).max(0) as u64));
        let columns = [lon1, lat1, lon2, lat2].map(|x| doubles(&[Some(x)]));
        let places = vec![column(0, Type::Double), column(1, Type::Double), real(lon2), real(lat2)];
        let constant = call(Function::Distance, places, Type::Double);
        for comparison in [Comparison::Less, Comparison::LessOrEqual, Comparison::Greater, Comparison::GreaterOrEqual] {
            let expected = run(&compare(comparison, real(measured), real(bound)), &[]).unwrap();
            for expr in [distance(), constant.clone()] {
                let found = run(&compare(comparison, expr, real(bound)), &columns).unwrap();
                prop_assert_eq!(&found, &expected, "{} {:?} {}", measured, comparison, bound);
            }
        }
    }

    #[test]
    fn a_circle_is_a_distance(lon in angle(360.0), lat in angle(90.0), radius in 1e-6f64..170.0) {
        let columns = [doubles(&[Some(lon)]), doubles(&[Some(lat)])];
        let found = run(&within(position(), circle(10.0, 20.0, radius)), &columns).unwrap();
        let measured = sphere::distance(lon, lat, 10.0, 20.0);
        if (measured - radius).abs() > 1e-9 {
            prop_assert_eq!(found.as_boolean().value(0), measured < radius);
        }
    }
}
