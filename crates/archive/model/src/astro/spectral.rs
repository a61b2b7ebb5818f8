//! Spectral coordinates in vacuum: wavelength, frequency, energy, wave number.
//!
//! Each is a factor, or a factor by the inverse, of the photon's energy. Units are those of VOUnits that
//! occur for spectra: metre, Angstrom, Hz, J, eV, erg, Ry, with SI prefixes; and the inverse of a length.

/// The speed of light in m/s.
const C: f64 = 299_792_458.0;
/// The Planck constant in J s.
const H: f64 = 6.626_070_15e-34;
/// The charge of the electron in C.
const E: f64 = 1.602_176_634e-19;
/// The Rydberg energy in eV (CODATA 2018).
const RYDBERG: f64 = 13.605_693_122_994;

/// A unit of a spectral coordinate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spectral {
    /// Joules of one unit, or joules times the unit where the coordinate is a wavelength.
    factor: f64,
    wavelength: bool,
}

impl Spectral {
    /// The unit of a text in VOUnits (`nm`, `Angstrom`, `MHz`, `keV`, `cm**-1`, `1/m`); `None` if it is not
    /// spectral.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_ascii();
        let inverse = text
            .strip_suffix("**-1")
            .or_else(|| text.strip_suffix("^-1"))
            .or_else(|| text.strip_prefix("1/"))
            .or_else(|| text.strip_prefix('/'))
            .or_else(|| text.strip_suffix("-1"));
        if let Some(length) = inverse {
            let metres = length_unit(length.trim_ascii())?;
            return Some(Self { factor: H * C / metres, wavelength: false });
        }
        if let Some(metres) = length_unit(text) {
            return Some(Self { factor: H * C / metres, wavelength: true });
        }
        let energies = [("Hz", H), ("J", 1.0), ("eV", E), ("erg", 1e-7), ("Ry", RYDBERG * E)];
        energies
            .into_iter()
            .find_map(|(unit, joules)| prefixed(text, unit).map(|factor| factor * joules))
            .map(|factor| Self { factor, wavelength: false })
    }
}

/// A value in one unit as a value in another (`gavo_specconv`). The inverse of zero is infinite.
pub fn convert(value: f64, from: Spectral, to: Spectral) -> f64 {
    match (from.wavelength, to.wavelength) {
        (false, false) => value * (from.factor / to.factor),
        (true, true) => value * (to.factor / from.factor),
        (false, true) => to.factor / from.factor / value,
        (true, false) => from.factor / to.factor / value,
    }
}

fn length_unit(text: &str) -> Option<f64> {
    match text {
        "Angstrom" | "angstrom" | "A" | "AA" => Some(1e-10),
        "micron" | "um" => Some(1e-6),
        _ => prefixed(text, "m"),
    }
}

/// The factor of an SI prefix before a unit.
fn prefixed(text: &str, unit: &str) -> Option<f64> {
    let exponent = match text.strip_suffix(unit)? {
        "" => 0,
        "da" => 1,
        "h" => 2,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        "Z" => 21,
        "Y" => 24,
        "d" => -1,
        "c" => -2,
        "m" => -3,
        "u" | "µ" | "μ" => -6,
        "n" => -9,
        "p" => -12,
        "f" => -15,
        "a" => -18,
        "z" => -21,
        "y" => -24,
        _ => return None,
    };
    Some(10_f64.powi(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: f64, from: &str, to: &str, expected: f64) {
        let found = convert(value, Spectral::parse(from).unwrap(), Spectral::parse(to).unwrap());
        assert!((found / expected - 1.0).abs() < 1e-12, "{value} {from} is {found} {to}");
    }

    #[test]
    fn known_conversions() {
        check(1.0, "m", "Hz", 299_792_458.0);
        check(1.0, "keV", "Angstrom", 12.398_419_843_320_026);
        check(500.0, "nm", "Angstrom", 5000.0);
        check(500.0, "nm", "micron", 0.5);
        check(21.106_114_054_160, "cm", "MHz", 1_420.405_751_768);
        check(1.0, "eV", "J", 1.602_176_634e-19);
        check(1.0, "J", "erg", 1e7);
        check(1.0, "cm**-1", "GHz", 29.979_245_8);
        check(100.0, "1/m", "cm-1", 1.0);
        check(1.0, "Ry", "eV", 13.605_693_122_994);
        check(3.0, "THz", "PHz", 0.003);
        check(2.0, "/m", "m", 0.5);
    }

    #[test]
    fn what_is_not_spectral() {
        for text in ["", "s", "deg", "Jy", "xm", "mm mm", "km/s", "Hzz", "m**-2", "e", "kg", "é"] {
            assert_eq!(Spectral::parse(text), None, "{text}");
        }
    }
}
