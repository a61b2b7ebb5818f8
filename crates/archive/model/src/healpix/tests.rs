use super::*;

/// The examples of the IVOA catalogue of user-defined functions.
#[test]
fn examples_of_the_udf_catalogue() {
    assert_eq!(hash(0, 1.0, 1.0), Some(4));
    assert_eq!(hash(17, 1.0, 1.0), Some(81_609_757_711));
    assert_eq!(hash(17, 359.0, -1.0), Some(73_009_064_944));
    let middle = center(0, 6).unwrap();
    assert!((middle.lon() - 180.0).abs() < 1e-12 && middle.lat().abs() < 1e-12);
    let center = center(17, hash(17, 23.4, 56.7).unwrap()).unwrap();
    assert!((center.lon() - 23.399843462947466).abs() < 1e-12);
    assert!((center.lat() - 56.70016214363192).abs() < 1e-12);
}
