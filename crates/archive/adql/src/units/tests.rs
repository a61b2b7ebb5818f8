use proptest::prelude::*;

use super::Unit;

fn unit(text: &str) -> Unit {
    Unit::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn units_are_printed_as_they_are_best_written() {
    for (text, printed) in [
        ("1", "1"),
        ("deg", "deg"),
        ("m/s", "m/s"),
        ("m.s**-1", "m/s"),
        ("mas.yr**-1", "mas/yr"),
        ("m.s**-2", "m/s**2"),
        ("erg/(s.cm**2)", "erg/(s.cm**2)"),
        ("erg.s**-1.cm**-2", "erg/(s.cm**2)"),
        ("s**-1", "s**-1"),
        ("m.m", "m**2"),
        ("km/m", "km/m"),
        ("m/m", "1"),
        ("m**(1/2)", "m**(1/2)"),
        ("m**(0.5)", "m**(1/2)"),
        ("m**(-0.5)", "m**(-1/2)"),
        ("m**+2", "m**2"),
        ("sqrt(m**2.s)", "m.s**(1/2)"),
        ("log(Hz)", "log(Hz)"),
        ("log(10**6Hz)", "log(1000000Hz)"),
        ("25.4mm", "25.4mm"),
        ("1.898E27kg", "1.898e27kg"),
        ("10**-3Jy", "0.001Jy"),
        ("'jupiterMass'", "'jupiterMass'"),
        ("k'jupiterMass'/s", "k'jupiterMass'/s"),
        ("furlong", "furlong"),
        ("furlong/fortnight", "furlong/fortnight"),
        ("%", "%"),
        ("(m.s)/kg", "m.s/kg"),
        ("unknown", "unknown"),
    ] {
        assert_eq!(unit(text).to_string(), printed, "{text}");
        assert_eq!(unit(printed), unit(text), "{printed}");
    }
}

#[test]
fn what_is_no_unit_is_refused_with_a_place() {
    for (text, message) in [
        ("", "here a unit is missing at character 1"),
        ("m s", "this does not belong to a unit at character 2"),
        ("m/s/kg", "this does not belong to a unit at character 4"),
        ("m/s.kg", "this does not belong to a unit at character 4"),
        ("m^2", "this does not belong to a unit at character 2"),
        ("m2", "this does not belong to a unit at character 2"),
        ("m*s", "this does not belong to a unit at character 2"),
        ("m**", "this is not a whole number at character 4"),
        ("m**(1", "here `)` is missing at character 6"),
        ("m**(1/0)", "the powers are out of range at character 8"),
        ("m**99999999999", "this is not a whole number at character 15"),
        ("m**9999", "the powers are out of range at character 8"),
        ("0m", "this is not a scale factor at character 1"),
        ("0.0m", "this is not a scale factor at character 1"),
        ("1.m", "here a unit is missing at character 2"),
        ("/s", "here a unit is missing at character 1"),
        ("m/", "here a unit is missing at character 3"),
        ("''", "quotes hold letters at character 2"),
        ("x'm'", "this is not a prefix at character 2"),
        ("(m", "here `)` is missing at character 3"),
        ("(m)**2", "parentheses have no power at character 7"),
        ("log(Hz).log(Hz)", "this cannot be written as a unit at character 16"),
        ("sqrt(log(Hz))", "this cannot be written as a unit at character 14"),
        ("deg°", "this does not belong to a unit at character 4"),
    ] {
        assert_eq!(Unit::parse(text).expect_err(text).to_string(), message, "{text}");
    }
    assert!(Unit::parse(&"(".repeat(100)).is_err());
    assert!(Unit::parse(&"m.".repeat(1000)).is_err());
}

#[test]
fn symbols_that_could_be_read_in_two_ways_are_read_in_one() {
    // VOUnits 1.1 table 5.
    for (one, other, factor) in [
        ("Pa", "N.m**-2", 1.0),
        ("ha", "yr", 100.0),
        ("cd", "mcd", 1000.0),
        ("B", "bit", 8.0),
        ("au", "AU", 1.0),
        ("Pyr", "yr", 1e15),
        ("mmas", "mas", 1e-3),
        ("dam", "m", 10.0),
        ("da", "yr", 0.1),
        ("Kibyte", "byte", 1024.0),
        ("kbyte", "byte", 1000.0),
        ("Mifurlong", "ifurlong", 1e6),
    ] {
        let found = unit(one).factor_to(&unit(other)).unwrap_or_else(|| panic!("{one} to {other}"));
        assert!((found / factor - 1.0).abs() < 1e-15, "{one} to {other}: {found}");
    }
    assert_eq!(unit("Kifurlong").factor_to(&unit("furlong")), None);
    assert_eq!(unit("dB").factor_to(&unit("byte")), None);
}

#[test]
fn conversions_are_exact_where_they_can_be() {
    for (one, other, factor) in [
        ("deg", "arcmin", 60.0),
        ("deg", "arcsec", 3600.0),
        ("deg", "mas", 3_600_000.0),
        ("arcsec", "uarcsec", 1e6),
        ("mas", "arcsec", 1e-3),
        ("d", "s", 86_400.0),
        ("yr", "d", 365.25),
        ("km/s", "m/s", 1000.0),
        ("Angstrom", "nm", 0.1),
        ("m", "Angstrom", 1e10),
        ("Jy", "mJy", 1e3),
        ("J", "erg", 1e7),
        ("W", "erg/s", 1e7),
        ("GHz", "s**-1", 1e9),
        ("pixel", "pix", 1.0),
        ("10**3m", "km", 1.0),
        ("m**(1/2)", "cm**(1/2)", 10.0),
    ] {
        assert_eq!(unit(one).factor_to(&unit(other)), Some(factor), "{one} to {other}");
    }
    for (one, other, factor) in [
        ("rad", "deg", 57.295_779_513_082_32),
        ("sr", "deg**2", 3_282.806_350_011_744),
        ("pc", "AU", 206_264.806_247_096_36),
        ("lyr", "pc", 0.306_601_393_785_550_6),
        ("Jy", "erg.s**-1.cm**-2.Hz**-1", 1e-23),
        ("eV", "J", 1.602_176_634e-19),
        ("Ry", "eV", 13.605_693_122_990),
        ("solLum", "W", 3.828e26),
        ("solMass", "kg", 1.988_416e30),
        ("R", "photon.s**-1.cm**-2.sr**-1", 79_577.471_545_947_67),
        ("G", "T", 1e-4),
        ("V", "Wb/s", 1.0),
        ("Ohm", "S**-1", 1.0),
        ("F", "C/V", 1.0),
        ("H", "Wb/A", 1.0),
        ("lx", "lm/m**2", 1.0),
        ("D", "C.m", 3.335_640_951_981_52e-30),
    ] {
        let found = unit(one).factor_to(&unit(other)).unwrap_or_else(|| panic!("{one} to {other}"));
        assert!((found / factor - 1.0).abs() < 1e-12, "{one} to {other}: {found}");
    }
}

#[test]
fn what_does_not_measure_the_same_does_not_convert() {
    for (one, other) in [
        ("deg", "kg"),
        ("deg", "1"),
        ("1", "deg"),
        ("mag", "dB"),
        ("count", "photon"),
        ("log(Hz)", "Hz"),
        ("log(Hz)", "log(kHz)"),
        ("foo", "bar"),
        ("s", "Hz"),
    ] {
        assert_eq!(unit(one).factor_to(&unit(other)), None, "{one} to {other}");
    }
    assert_eq!(unit("log(Hz)").factor_to(&unit("log(Hz)")), Some(1.0));
    assert_eq!(unit("'foo'").factor_to(&unit("k'foo'")), Some(1e-3));
}

#[test]
fn light_has_a_wavelength_a_frequency_an_energy_and_a_wavenumber() {
    for (one, other, factor, inverted) in [
        ("nm", "Angstrom", 10.0, false),
        ("m", "Hz", 299_792_458.0, true),
        ("Hz", "m", 299_792_458.0, true),
        ("Angstrom", "eV", 12_398.419_843_320_026, true),
        ("keV", "Angstrom", 12.398_419_843_320_026, true),
        ("GHz", "meV", 4.135_667_696_923_859e-3, false),
        ("cm**-1", "GHz", 29.979_245_8, false),
        ("m", "cm**-1", 1e-2, true),
    ] {
        let found = unit(one).spectral_to(&unit(other)).unwrap_or_else(|| panic!("{one} to {other}"));
        assert!((found.0 / factor - 1.0).abs() < 1e-12, "{one} to {other}: {found:?}");
        assert_eq!(found.1, inverted, "{one} to {other}");
    }
    assert_eq!(unit("deg").spectral_to(&unit("m")), None);
    assert_eq!(unit("deg").spectral_to(&unit("deg")), None);
}

#[test]
fn labels_of_older_syntaxes_are_understood() {
    for (label, printed) in [
        ("km s-1", "km/s"),
        ("km/s/Mpc", "km/(s.Mpc)"),
        ("erg/cm^2/s", "erg/(cm**2.s)"),
        ("erg cm**-2 s-1", "erg/(cm**2.s)"),
        ("10^-16 erg/s", "1e-16erg/s"),
        (" mas ", "mas"),
        ("1/s", "s**-1"),
        ("(km/s)**2", "km**2/s**2"),
        ("W*m**-2", "W/m**2"),
    ] {
        let found = Unit::parse_label(label).unwrap_or_else(|| panic!("{label}"));
        assert_eq!(found.to_string(), printed, "{label}");
        assert_eq!(Unit::parse(printed), Ok(found), "{printed}");
    }
    for label in ["", "-", "°", "mas yr^", "[mas]", "'a b'"] {
        assert_eq!(Unit::parse_label(label), None, "{label}");
    }
}

#[test]
fn products_powers_and_what_is_known() {
    assert_eq!(unit("mas").over(&unit("yr")), Some(unit("mas/yr")));
    assert_eq!(unit("mas").times(&unit("mas**-1")), Some(Unit::one()));
    assert_eq!(unit("m**2/s").power(1, 2), Some(unit("m.s**(-1/2)")));
    assert_eq!(unit("2m").power(2, 1), Some(unit("4m**2")));
    assert_eq!(unit("m**1000").times(&unit("m")), None);
    assert!(unit("m.s").is_known() && !unit("m.furlong").is_known() && !unit("log(foo)").is_known());
    assert_eq!(unit("m/'foo'").unknown_symbol().as_deref(), Some("'foo'"));
    assert!(!unit("%").has_dimension() && !Unit::one().has_dimension() && unit("foo").has_dimension());
}

/// Any unit, by its text.
fn any_unit() -> impl Strategy<Value = String> {
    let symbol = prop::sample::select(vec![
        "m", "km", "s", "deg", "mas", "yr", "Jy", "mag", "foo", "'bar'", "k'bar'", "eV", "%", "Mibyte",
    ]);
    let power = prop::sample::select(vec!["", "**2", "**-1", "**(1/2)", "**(-3/2)", "**3"]);
    let term = (symbol, power).prop_map(|(symbol, power)| format!("{symbol}{power}"));
    let product = prop::collection::vec(term, 1..4).prop_map(|terms| terms.join("."));
    let scale = prop::sample::select(vec!["", "", "", "10**3", "2.5", "0.001", "1e20"]);
    (scale, product.clone(), prop::option::of(product)).prop_map(|(scale, over, under)| match under {
        None => format!("{scale}{over}"),
        Some(under) => format!("{scale}{over}/({under})"),
    })
}

fn near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-9
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn printing_and_parsing_is_the_identity(text in any_unit()) {
        let unit = Unit::parse(&text).expect(&text);
        let printed = unit.to_string();
        // A number alone is no unit in VOUnits' grammar, unless it is 1.
        if printed.parse::<f64>().is_err() {
            let again = Unit::parse(&printed).expect(&printed);
            prop_assert_eq!(again.to_string(), printed.clone());
            prop_assert!(near(unit.factor_to(&again).expect("the same"), 1.0));
            let label = Unit::parse_label(&printed).expect(&printed);
            prop_assert_eq!(label, again);
        }
    }

    #[test]
    fn units_are_a_group(a in any_unit(), b in any_unit(), c in any_unit()) {
        let [a, b, c] = [a, b, c].map(|text| Unit::parse(&text).expect(&text));
        let times = |a: &Unit, b: &Unit| a.times(b).expect("small powers");
        let left = times(&times(&a, &b), &c);
        let right = times(&a, &times(&b, &c));
        prop_assert!(near(left.factor_to(&right).expect("associative"), 1.0));
        prop_assert!(near(times(&a, &b).factor_to(&times(&b, &a)).expect("commutative"), 1.0));
        let inverse = times(&a, &b).over(&b).expect("small powers");
        prop_assert!(near(inverse.factor_to(&a).expect("inverse"), 1.0));
        let root = times(&a, &a).power(1, 2).expect("small powers");
        prop_assert!(near(root.factor_to(&a).expect("a root"), 1.0));
    }

    #[test]
    fn there_and_back_is_one(a in any_unit(), b in any_unit()) {
        let [a, b] = [a, b].map(|text| Unit::parse(&text).expect(&text));
        prop_assert_eq!(a.factor_to(&b).is_some(), b.factor_to(&a).is_some());
        if let (Some(there), Some(back)) = (a.factor_to(&b), b.factor_to(&a)) {
            prop_assert!(near(there * back, 1.0));
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "[a-zA-Z0-9.*/()'+^ %é-]{0,40}") {
        let _ = Unit::parse(&text);
        let _ = Unit::parse_label(&text);
    }
}
