use proptest::prelude::*;

use super::*;

#[test]
fn texts_that_are_instants() {
    let cases = [
        ("1970-01-01", 0, "1970-01-01T00:00:00"),
        ("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00"),
        ("2000-01-02T15:20:30.456", 946_826_430_456_000, "2000-01-02T15:20:30.456"),
        ("2001-02-03T04:05:06", 981_173_106_000_000, "2001-02-03T04:05:06"),
        ("2002-03-04", 1_015_200_000_000_000, "2002-03-04T00:00:00"),
        ("2000-02-29 12:00", 951_825_600_000_000, "2000-02-29T12:00:00"),
        (" 1969-12-31T23:59:59.999999\n", -1, "1969-12-31T23:59:59.999999"),
        ("1969-12-31T23:59:59.9999999", -1, "1969-12-31T23:59:59.999999"),
        ("1970-01-01T00:00:00.", 0, "1970-01-01T00:00:00"),
        ("1970-01-01T00:00:00.1", 100_000, "1970-01-01T00:00:00.100"),
        ("0000-01-01T00:00:00", -62_167_219_200_000_000, "0000-01-01T00:00:00"),
        ("9999-12-31T23:59:59.999999", 253_402_300_799_999_999, "9999-12-31T23:59:59.999999"),
    ];
    for (text, micros, printed) in cases {
        assert_eq!(Timestamp::parse(text), Some(Timestamp(micros)), "{text}");
        assert_eq!(Timestamp(micros).to_string(), printed, "{text}");
    }
    assert_eq!(Timestamp::parse("0000-01-01"), Some(Timestamp::MIN));
    assert_eq!(Timestamp::parse("9999-12-31T23:59:59.999999"), Some(Timestamp::MAX));
}

#[test]
fn texts_that_are_none() {
    for text in [
        "",
        "2000",
        "2000-01",
        "2000-13-01",
        "2000-00-01",
        "2000-01-00",
        "2001-02-29",
        "1900-02-29",
        "2000-04-31",
        "2000-01-01T",
        "2000-01-01T24:00:00",
        "2000-01-01T12:60:00",
        "2016-12-31T23:59:60",
        "2000-01-01T12:00:00+01:00",
        "2000-01-01T12:00:00ZZ",
        "2000-01-01Z",
        "-2000-01-01",
        "02000-01-01",
        "2000-1-1",
        "2000-01-01T1:00:00",
        "２０００-01-01",
        "2000-01-01é",
    ] {
        assert_eq!(Timestamp::parse(text), None, "{text}");
    }
}

/// The examples of the IVOA catalogue of user-defined functions, and others that are exact.
#[test]
fn julian_dates() {
    let cases = [
        ("2000-01-02T12:00:00", 2_451_546.0, 51_545.5),
        ("1910-12-31T06:00:00", 2_419_036.75, 19_036.25),
        ("1858-11-17", 2_400_000.5, 0.0),
        ("2000-01-01T12:00:00", 2_451_545.0, 51_544.5),
        ("1970-01-01", 2_440_587.5, 40_587.0),
        ("0000-01-01", 1_721_059.5, -678_941.0),
    ];
    for (text, jd, mjd) in cases {
        let instant = Timestamp::parse(text).unwrap();
        assert_eq!((instant.to_jd(), instant.to_mjd()), (jd, mjd), "{text}");
        assert_eq!(Timestamp::from_jd(jd), Some(instant));
        assert_eq!(Timestamp::from_mjd(mjd), Some(instant));
    }
    for beyond in [f64::NAN, f64::INFINITY, -1e300, 1e8, -1e7] {
        assert_eq!((Timestamp::from_jd(beyond), Timestamp::from_mjd(beyond)), (None, None), "{beyond}");
    }
}

#[test]
fn what_has_no_text_is_clamped() {
    assert_eq!(Timestamp(i64::MIN).to_string(), "0000-01-01T00:00:00");
    assert_eq!(Timestamp(i64::MAX).to_string(), "9999-12-31T23:59:59.999999");
}

/// Every day of four centuries follows the one before it.
#[test]
fn days_follow_each_other() {
    let (mut year, mut month, mut day) = (1900, 1, 1);
    for count in days(1900, 1, 1)..days(2300, 1, 1) {
        assert_eq!((days(year, month, day), date(count)), (count, (year, month, day)));
        day += 1;
        if day > month_days(year, month) {
            (month, day) = (month + 1, 1);
        }
        if month > 12 {
            (year, month) = (year + 1, 1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_text_reads_back(micros in Timestamp::MIN.0..=Timestamp::MAX.0) {
        let instant = Timestamp(micros);
        prop_assert_eq!(Timestamp::parse(&instant.to_string()), Some(instant));
        let mut out = b"x".to_vec();
        instant.write(&mut out);
        prop_assert_eq!(String::from_utf8_lossy(&out[1..]), instant.to_string());
    }

    #[test]
    fn a_julian_date_comes_back(micros in days(1800, 1, 1) * DAY..days(2132, 1, 1) * DAY) {
        let instant = Timestamp(micros);
        prop_assert!((Timestamp::from_mjd(instant.to_mjd()).unwrap().0 - micros).abs() <= 1);
        prop_assert!((Timestamp::from_jd(instant.to_jd()).unwrap().0 - micros).abs() <= 21);
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in "[0-9TZ:. -]{0,30}|\\PC{0,12}") {
        if let Some(instant) = Timestamp::parse(&text) {
            prop_assert_eq!(Timestamp::parse(&instant.to_string()), Some(instant));
        }
    }
}
