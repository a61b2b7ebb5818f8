use proptest::prelude::*;

use super::*;
use crate::sphere::{Circle, Error, Geometry, Point, Polygon, Range, Region, Shape, Vec3};

fn printed(region: &Region) -> String {
    let mut out = Vec::new();
    write_region(region, &mut out);
    String::from_utf8(out).unwrap()
}

fn stc(region: &Region) -> String {
    let mut out = Vec::new();
    write_stc(region, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn regions_in_all_their_spellings() {
    // A text, and the same as DALI.
    let cases = [
        ("circle 12.3 45.6 0.5", "circle 12.3 45.6 0.5"),
        ("CIRCLE ICRS 1 2 3", "circle 1.0 2.0 3.0"),
        ("Circle ICRS GEOCENTER SPHERICAL2 1 2 3", "circle 1.0 2.0 3.0"),
        ("Circle J2000 1 2 3 unit deg", "circle 1.0 2.0 3.0"),
        ("circle fillfactor 0.9 ICRS 1 2 3", "circle 1.0 2.0 3.0"),
        ("POSITION ICRS 10 -20", "circle 10.0 -20.0 0.0"),
        ("range 10.0 11.0 20.0 21.0", "range 10.0 11.0 20.0 21.0"),
        ("PositionInterval ICRS 10 20 11 21", "range 10.0 11.0 20.0 21.0"),
        ("POLYGON J2000 10 10 10.2 10 10.2 10.2 10 10.2", "polygon 10.0 10.0 10.2 10.0 10.2 10.2 10.0 10.2"),
        ("polygon 0 0,1 0,1 1", "polygon 0.0 0.0 1.0 0.0 1.0 1.0"),
        (" polygon\n0 0 1 0 1 1\tcircle 1 1 .2 ", "polygon 0.0 0.0 1.0 0.0 1.0 1.0 circle 1.0 1.0 0.2"),
        (
            "UNION ICRS (CIRCLE 1 2 3 POLYGON 0 0 1 0 1 1)",
            "circle 1.0 2.0 3.0 polygon 0.0 0.0 1.0 0.0 1.0 1.0",
        ),
        ("Union ( Union(circle 1 2 3) position 4 5 )", "circle 1.0 2.0 3.0 circle 4.0 5.0 0.0"),
        ("Not Circle ICRS 10 20 30", "circle 190.0 -20.0 150.0"),
        ("NOT ( CIRCLE 10 20 30 )", "circle 190.0 -20.0 150.0"),
        ("Not (Polygon 0 0 1 0 1 1)", "Not (Polygon ICRS 0.0 0.0 1.0 0.0 1.0 1.0)"),
        ("allsky ICRS", "circle 0.0 0.0 180.0"),
        ("circle 1e2 -2.5E+1 1e-3", "circle 100.0 -25.0 0.001"),
    ];
    for (text, expected) in cases {
        let region = region(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(printed(&region), expected, "{text}");
        assert_eq!(super::region(&stc(&region)), Ok(region.clone()), "{}", stc(&region));
        assert_eq!(super::region(&printed(&region)), Ok(region));
    }
}

#[test]
fn boxes_are_polygons_and_frames_are_turned() {
    let area = |text: &str| Geometry::from(region(text).unwrap()).area();
    assert!((area("BOX ICRS 10 0 2 2") - 4.0).abs() < 1e-3);
    assert!((area("BOX GALACTIC 10 80 2 2") - area("BOX ICRS 10 80 2 2")).abs() < 1e-9);
    let center = Geometry::from(region("CIRCLE GALACTIC 0 0 1").unwrap()).centroid();
    assert!((center.lon() - 266.405).abs() < 1e-3 && (center.lat() + 28.936).abs() < 1e-3, "{center:?}");
    let center = Geometry::from(region("UNION FK4 (POSITION 0 0)").unwrap()).centroid();
    assert!((center.lon() - 0.6406).abs() < 1e-3 && (center.lat() - 0.2783).abs() < 1e-3, "{center:?}");
}

#[test]
fn what_is_no_region() {
    let cases = [
        ("", "a shape is expected at character 1 of the region"),
        ("  ", "a shape is expected at character 3 of the region"),
        ("1 2 3", "the name of a shape is expected at character 1 of the region"),
        ("é", "the name of a shape is expected at character 1 of the region"),
        (
            "sphere 1 2 3",
            "a shape is expected, like circle, polygon, box, range, position or union at character 1 of the region",
        ),
        ("circle 1 2", "a circle has a longitude, a latitude and a radius at character 11 of the region"),
        ("circle 1 2 3 4", "a circle has a longitude, a latitude and a radius at character 15 of the region"),
        (
            "circle 1 2 three",
            "a circle has a longitude, a latitude and a radius at character 12 of the region",
        ),
        ("circle 1 2 1e999", "a coordinate is not a finite number"),
        ("circle 1 2 NaN", "a circle has a longitude, a latitude and a radius at character 12 of the region"),
        ("circle 1 2 -3", "the radius -3 is negative"),
        ("circle 1 92 3", "the latitude 92 is not between -90 and 90 degrees"),
        ("circle 1 2 3-4", "a number is expected at character 12 of the region"),
        ("polygon 0 0 1 1", "a polygon has at least three vertices; this one has 2"),
        ("polygon 0 0 1 1 2", "coordinates come in pairs of longitude and latitude; 5 numbers are not pairs"),
        ("union circle 1 2 3", "( is expected at character 7 of the region"),
        ("union (circle 1 2 3", ") is expected at character 20 of the region"),
        ("union ()", "an empty union at character 9 of the region"),
        ("circle 1 2 3)", "the name of a shape is expected at character 13 of the region"),
        ("ellipse ICRS 1 2 3 4 5", "an ellipse is not supported"),
        ("intersection (circle 1 2 3 circle 2 2 3)", "an intersection of regions is not supported"),
        (
            "not (circle 1 2 3 circle 2 2 3)",
            "the complement of anything but one circle or polygon is not supported",
        ),
        ("circle CARTESIAN2 1 2 3", "Cartesian coordinates is not supported"),
        ("circle 1 2 3 unit rad", "a unit other than the degree is not supported"),
        ("range GALACTIC 1 2 3 4", "a coordinate range in another frame is not supported"),
    ];
    for (text, expected) in cases {
        assert_eq!(region(text).map_err(|error| error.to_string()), Err(expected.to_owned()), "{text}");
    }
    let deep = format!("{}circle 1 2 3{}", "union (".repeat(40), ")".repeat(40));
    assert_eq!(region(&deep), Err(Error::TooMany(16, "nested regions")));
    let many = "circle 1 2 3 ".repeat(1025);
    assert_eq!(region(&many), Err(Error::TooMany(1024, "shapes")));
    let long = format!("polygon {}", "1 2 ".repeat(5000));
    assert_eq!(region(&long), Err(Error::TooMany(4096, "vertices")));
    let wide = "polygon 0 0 1 0 1 1 ".repeat(1000) + &"polygon 0 0 1 0 1 1 0 1 0 0.5 ".repeat(20);
    assert!(region(&wide).is_ok());
    let wider = format!("polygon {} ", "0 0 1 0 1 1 ".repeat(100)).repeat(20);
    assert_eq!(region(&wider), Err(Error::TooMany(4096, "vertices")));
}

/// CAST of text to geometries (ADQL 2.1 4.7.1), and intervals.
#[test]
fn single_values() {
    assert_eq!(point("12.3 45.6"), Point::new(12.3, 45.6));
    assert_eq!(point("POSITION ICRS 12.3 45.6"), Point::new(12.3, 45.6));
    assert!(
        point("12.3").is_err()
            && point("1 2 3").is_err()
            && point("circle 1 2 3").is_err()
            && point("").is_err()
    );
    assert_eq!(circle("12.3 45.6 1.0"), Circle::new(12.3, 45.6, 1.0));
    assert_eq!(circle("circle 12.3 45.6 1.0"), Circle::new(12.3, 45.6, 1.0));
    assert!(
        circle("1 2").is_err() && circle("1 2 x").is_err() && circle("circle 1 2 3 circle 1 2 3").is_err()
    );
    assert_eq!(polygon("1.0 0.1 2.0 0.2 3.0 0.3"), Polygon::new(&[1.0, 0.1, 2.0, 0.2, 3.0, 0.3]));
    assert_eq!(polygon("polygon 1 0 2 0 3 3"), Polygon::new(&[1.0, 0.0, 2.0, 0.0, 3.0, 3.0]));
    assert!(polygon("1 2 3 4").is_err() && polygon("circle 1 2 3").is_err());
    let intervals = [
        ("0.5 1.0", Some((0.5, 1.0))),
        ("-Inf 0.0", Some((f64::NEG_INFINITY, 0.0))),
        ("0 +Inf", Some((0.0, f64::INFINITY))),
        ("-inf Infinity", Some((f64::NEG_INFINITY, f64::INFINITY))),
        ("1", None),
        ("1 2 3", None),
        ("NaN 1", None),
        ("1 1e999", None),
    ];
    for (text, expected) in intervals {
        assert_eq!(interval(text), expected, "{text}");
    }
    let mut out = Vec::new();
    write_interval((f64::NEG_INFINITY, 2.5), &mut out);
    assert_eq!(out, b"-Inf 2.5");
}

/// The examples of the IVOA catalogue of user-defined functions, and the limits of DALI 1.2 3.6.
#[test]
fn sixties() {
    let hours = [
        ("3:34:45.4", Some(53.689_166_666_666_67)),
        ("3h34m45.4s", Some(53.689_166_666_666_67)),
        ("3H34M45.4S", Some(53.689_166_666_666_67)),
        ("033445.4", Some(53.689_166_666_666_67)),
        ("03 34 45.4", Some(53.689_166_666_666_67)),
        ("03h 34m 45.4s", Some(53.689_166_666_666_67)),
        (" 24:00:00 ", Some(360.0)),
        ("24:00:01", None),
        ("12:34:60", None),
        ("12:60:00", None),
        ("-1:00:00", None),
        ("1:2", None),
        ("1:2:3:4", None),
        ("1:2:1e1", None),
        ("1:2:", None),
        ("1:2:inf", None),
        ("", None),
        ("é:é:é", None),
        ("12345é", None),
    ];
    for (text, expected) in hours {
        match (hms_to_degrees(text), expected) {
            (Some(found), Some(expected)) => assert!((found - expected).abs() < 1e-12, "{text}: {found}"),
            (found, expected) => assert_eq!(found, expected, "{text}"),
        }
    }
    let degrees = [
        ("42:9:6.768", Some(42.151_88)),
        ("42d9m6.768s", Some(42.151_88)),
        ("42D9M6.768S", Some(42.151_88)),
        ("-00:15:00", Some(-0.25)),
        ("+00:15:00", Some(0.25)),
        ("-0d15m0s", Some(-0.25)),
        ("+0d15m0s", Some(0.25)),
        ("-420906.768", Some(-42.151_88)),
        ("90:00:00", Some(90.0)),
        ("-90:00:00.1", None),
        ("--1:0:0", None),
        ("91:0:0", None),
    ];
    for (text, expected) in degrees {
        match (dms_to_degrees(text), expected) {
            (Some(found), Some(expected)) => assert!((found - expected).abs() < 1e-12, "{text}: {found}"),
            (found, expected) => assert_eq!(found, expected, "{text}"),
        }
    }
    let mut out = Vec::new();
    write_hms(359.999_999_99, 2, &mut out);
    out.push(b' ');
    write_dms(-0.25, 0, &mut out);
    out.push(b' ');
    write_dms(42.151_88, 3, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), "24:00:00.00 -00:15:00 +42:09:06.768");
}

fn shapes() -> impl Strategy<Value = Shape> {
    let lon = -400.0..800.0_f64;
    let lat = -90.0..=90.0_f64;
    prop_oneof![
        (lon.clone(), lat.clone(), 0.0..200.0_f64)
            .prop_map(|(lon, lat, radius)| Shape::Circle(Circle::new(lon, lat, radius).unwrap())),
        (lon.clone(), lat.clone(), lon.clone(), lat.clone()).prop_map(|(lon1, lat1, lon2, lat2)| {
            Shape::Range(Range::new(lon1, lon2, lat1.min(lat2), lat1.max(lat2)).unwrap())
        }),
        (proptest::collection::vec((lon, lat), 3..9), any::<bool>()).prop_filter_map(
            "antipodes",
            |(vertices, not)| {
                let flat: Vec<f64> = vertices.into_iter().flat_map(|(lon, lat)| [lon, lat]).collect();
                let polygon = Polygon::new(&flat).ok()?;
                Some(Shape::Polygon(if not { polygon.complement() } else { polygon }))
            }
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_region_reads_back(shapes in proptest::collection::vec(shapes(), 1..5)) {
        let original = Region::new(shapes).unwrap();
        prop_assert_eq!(region(&printed(&original)), Ok(original.clone()));
        prop_assert_eq!(region(&stc(&original)), Ok(original));
    }

    #[test]
    fn sixties_read_back(degrees in 0.0..360.0_f64) {
        let mut out = Vec::new();
        write_hms(degrees, 9, &mut out);
        let found = hms_to_degrees(std::str::from_utf8(&out).unwrap()).unwrap();
        prop_assert!((found - degrees).abs() < 1e-11, "{}", found);
        out.clear();
        let degrees = degrees / 2.0 - 90.0;
        write_dms(degrees, 9, &mut out);
        let found = dms_to_degrees(std::str::from_utf8(&out).unwrap()).unwrap();
        prop_assert!((found - degrees).abs() < 1e-11, "{}", found);
    }

    #[test]
    fn any_text_is_read_without_a_panic(
        text in "(circle|polygon|not|union|range|box|point|ICRS|FK4|\\(|\\)|[0-9.eE+-]{1,6}| |,|é){0,20}"
    ) {
        crate::fuzz::region(text.as_bytes());
    }
}

#[test]
fn positions_of_a_region_that_was_read() {
    let region = region("UNION ICRS (CIRCLE 359.9 0 0.2 NOT (POLYGON 10 -80 350 -80 350 80 10 80))").unwrap();
    for (lon, lat, expected) in [(0.0, 0.0, true), (5.0, 0.0, false), (180.0, 0.0, true), (0.0, 85.0, true)] {
        assert_eq!(region.contains(Vec3::from_degrees(lon, lat)), expected, "{lon} {lat}");
    }
}
