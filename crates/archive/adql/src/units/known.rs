//! The symbols and prefixes of VOUnits 1.1 (tables 3 and 4), and what they measure.

/// A quantity that is not made of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Base {
    /// Length, in metres.
    Length,
    /// Mass, in grams.
    Mass,
    /// Time, in seconds.
    Time,
    /// Electric current, in amperes.
    Current,
    /// Temperature, in kelvins.
    Temperature,
    /// Amount of substance, in moles.
    Amount,
    /// Luminous intensity, in candelas.
    Light,
    /// Angle, in degrees. SI has it without a dimension; then a radian would convert into nothing.
    Angle,
    /// Magnitudes.
    Magnitude,
    /// Decibels.
    Level,
    /// Counts.
    Count,
    /// Photons.
    Photon,
    /// Pixels.
    Pixel,
    /// Voxels.
    Voxel,
    /// Bins of a distribution.
    Bin,
    /// Beams.
    Beam,
    /// Channels of a detector.
    Channel,
    /// Analogue-to-digital units.
    Adu,
    /// Bits.
    Bit,
    /// What the Sun has of something.
    Sun,
}

/// A symbol of VOUnits' list.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// How it is written.
    pub symbol: &'static str,
    /// Which quantities it measures, and to which powers.
    pub(super) bases: &'static [(Base, i8)],
    /// How many of the base units it has: so many times ...
    pub(super) numerator: f64,
    /// ... divided by so many.
    pub(super) denominator: f64,
    /// Whether it takes the prefixes of powers of ten. Others are understood with one all the same (VOUnits 1.3).
    pub prefixed: bool,
    /// Whether it takes the prefixes of powers of two.
    pub binary: bool,
    /// Whether VOUnits would rather see another.
    pub deprecated: bool,
}

impl PartialEq for Known {
    /// Two symbols of one unit are equal: `pix` is `pixel`.
    fn eq(&self, other: &Self) -> bool {
        self.bases == other.bases
            && self.numerator == other.numerator
            && self.denominator == other.denominator
    }
}

const fn unit(symbol: &'static str, over: (f64, f64), bases: &'static [(Base, i8)]) -> Known {
    let (numerator, denominator) = over;
    Known { symbol, bases, numerator, denominator, prefixed: true, binary: false, deprecated: false }
}

const fn bare(known: Known) -> Known {
    Known { prefixed: false, ..known }
}

const fn binary(known: Known) -> Known {
    Known { binary: true, ..known }
}

const fn deprecated(known: Known) -> Known {
    Known { deprecated: true, ..known }
}

/// One.
const ONE: (f64, f64) = (1.0, 1.0);
/// Grams in a kilogram: SI's derived units are made of that.
const KILO: (f64, f64) = (1000.0, 1.0);
/// Days of a Julian year times seconds of a day.
const JULIAN_YEAR: f64 = 365.25 * 86_400.0;
/// Metres of an astronomical unit (IAU 2012 B2).
const AU: f64 = 149_597_870_700.0;
/// Arc seconds of a radian: with [`AU`] the parsec (IAU 2015 B2).
const ARCSEC: f64 = 180.0 * 3600.0 / std::f64::consts::PI;
/// Degrees of a radian.
const RADIAN: (f64, f64) = (180.0, std::f64::consts::PI);
/// Square degrees of a steradian.
const STERADIAN: (f64, f64) = (180.0 * 180.0, std::f64::consts::PI * std::f64::consts::PI);
/// Metres that light goes in a second.
pub(super) const LIGHT: f64 = 299_792_458.0;
/// Joules of a hertz (SI 2019).
pub(super) const PLANCK: f64 = 6.626_070_15e-34;

const ENERGY: &[(Base, i8)] = &[(Base::Length, 2), (Base::Mass, 1), (Base::Time, -2)];
const POWER: &[(Base, i8)] = &[(Base::Length, 2), (Base::Mass, 1), (Base::Time, -3)];

/// The list. Solar values are nominal (IAU 2015 B3), constants CODATA 2022.
pub(super) static KNOWN: [Known; 71] = [
    bare(unit("%", (1.0, 100.0), &[])),
    unit("A", ONE, &[(Base::Current, 1)]),
    unit("a", (JULIAN_YEAR, 1.0), &[(Base::Time, 1)]),
    unit("adu", ONE, &[(Base::Adu, 1)]),
    bare(deprecated(unit("Angstrom", (1.0, 1e10), &[(Base::Length, 1)]))),
    bare(deprecated(unit("angstrom", (1.0, 1e10), &[(Base::Length, 1)]))),
    unit("arcmin", (1.0, 60.0), &[(Base::Angle, 1)]),
    unit("arcsec", (1.0, 3600.0), &[(Base::Angle, 1)]),
    bare(unit("AU", (AU, 1.0), &[(Base::Length, 1)])),
    bare(unit("au", (AU, 1.0), &[(Base::Length, 1)])),
    bare(deprecated(unit("Ba", (365.242_198_781 * 86_400.0, 1.0), &[(Base::Time, 1)]))),
    deprecated(unit("barn", (1.0, 1e28), &[(Base::Length, 2)])),
    unit("beam", ONE, &[(Base::Beam, 1)]),
    unit("bin", ONE, &[(Base::Bin, 1)]),
    binary(unit("bit", ONE, &[(Base::Bit, 1)])),
    binary(unit("byte", (8.0, 1.0), &[(Base::Bit, 1)])),
    binary(unit("B", (8.0, 1.0), &[(Base::Bit, 1)])),
    unit("C", ONE, &[(Base::Time, 1), (Base::Current, 1)]),
    unit("cd", ONE, &[(Base::Light, 1)]),
    unit("chan", ONE, &[(Base::Channel, 1)]),
    unit("count", ONE, &[(Base::Count, 1)]),
    unit("ct", ONE, &[(Base::Count, 1)]),
    unit("d", (86_400.0, 1.0), &[(Base::Time, 1)]),
    bare(unit("dB", ONE, &[(Base::Level, 1)])),
    unit("D", (1e-21, LIGHT), &[(Base::Length, 1), (Base::Time, 1), (Base::Current, 1)]),
    unit("deg", ONE, &[(Base::Angle, 1)]),
    deprecated(unit("erg", (1.0, 1e4), ENERGY)),
    unit("eV", (1.602_176_634e-16, 1.0), ENERGY),
    unit("F", (1.0, 1000.0), &[(Base::Length, -2), (Base::Mass, -1), (Base::Time, 4), (Base::Current, 2)]),
    unit("g", ONE, &[(Base::Mass, 1)]),
    deprecated(unit("G", (1.0, 10.0), &[(Base::Mass, 1), (Base::Time, -2), (Base::Current, -1)])),
    unit("H", KILO, &[(Base::Length, 2), (Base::Mass, 1), (Base::Time, -2), (Base::Current, -2)]),
    unit("h", (3600.0, 1.0), &[(Base::Time, 1)]),
    unit("Hz", ONE, &[(Base::Time, -1)]),
    unit("J", KILO, ENERGY),
    unit("Jy", (1.0, 1e23), &[(Base::Mass, 1), (Base::Time, -2)]),
    unit("K", ONE, &[(Base::Temperature, 1)]),
    unit("lm", STERADIAN, &[(Base::Light, 1), (Base::Angle, 2)]),
    unit("lx", STERADIAN, &[(Base::Length, -2), (Base::Light, 1), (Base::Angle, 2)]),
    unit("lyr", (LIGHT * JULIAN_YEAR, 1.0), &[(Base::Length, 1)]),
    unit("m", ONE, &[(Base::Length, 1)]),
    unit("mag", ONE, &[(Base::Magnitude, 1)]),
    bare(unit("mas", (1.0, 3_600_000.0), &[(Base::Angle, 1)])),
    unit("min", (60.0, 1.0), &[(Base::Time, 1)]),
    unit("mol", ONE, &[(Base::Amount, 1)]),
    unit("N", KILO, &[(Base::Length, 1), (Base::Mass, 1), (Base::Time, -2)]),
    unit("Ohm", KILO, &[(Base::Length, 2), (Base::Mass, 1), (Base::Time, -3), (Base::Current, -2)]),
    unit("Pa", KILO, &[(Base::Length, -1), (Base::Mass, 1), (Base::Time, -2)]),
    unit("pc", (AU * ARCSEC, 1.0), &[(Base::Length, 1)]),
    unit("ph", ONE, &[(Base::Photon, 1)]),
    unit("photon", ONE, &[(Base::Photon, 1)]),
    unit("pix", ONE, &[(Base::Pixel, 1)]),
    unit("pixel", ONE, &[(Base::Pixel, 1)]),
    unit(
        "R",
        (1e10 * STERADIAN.1, 4.0 * std::f64::consts::PI * STERADIAN.0),
        &[(Base::Length, -2), (Base::Time, -1), (Base::Angle, -2), (Base::Photon, 1)],
    ),
    unit("rad", RADIAN, &[(Base::Angle, 1)]),
    unit("Ry", (2.179_872_361_103e-15, 1.0), ENERGY),
    unit("s", ONE, &[(Base::Time, 1)]),
    unit("S", (1.0, 1000.0), &[(Base::Length, -2), (Base::Mass, -1), (Base::Time, 3), (Base::Current, 2)]),
    unit("solLum", (3.828e29, 1.0), POWER),
    unit("solMass", (1.988_416e33, 1.0), &[(Base::Mass, 1)]),
    unit("solRad", (6.957e8, 1.0), &[(Base::Length, 1)]),
    unit("sr", STERADIAN, &[(Base::Angle, 2)]),
    unit("Sun", ONE, &[(Base::Sun, 1)]),
    unit("T", KILO, &[(Base::Mass, 1), (Base::Time, -2), (Base::Current, -1)]),
    bare(deprecated(unit("ta", (365.242_19 * 86_400.0, 1.0), &[(Base::Time, 1)]))),
    unit("u", (1.660_539_068_92e-24, 1.0), &[(Base::Mass, 1)]),
    unit("V", KILO, &[(Base::Length, 2), (Base::Mass, 1), (Base::Time, -3), (Base::Current, -1)]),
    unit("voxel", ONE, &[(Base::Voxel, 1)]),
    unit("W", KILO, POWER),
    unit("Wb", KILO, &[(Base::Length, 2), (Base::Mass, 1), (Base::Time, -2), (Base::Current, -1)]),
    unit("yr", (JULIAN_YEAR, 1.0), &[(Base::Time, 1)]),
];

impl Known {
    /// The symbol of this spelling, case and all.
    pub fn find(symbol: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.symbol == symbol)
    }
}

/// A multiple, written before a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix(u8);

/// Text, and what it multiplies by as numerator and denominator.
const PREFIXES: [(&str, f64, f64); 32] = [
    ("da", 1e1, 1.0),
    ("h", 1e2, 1.0),
    ("k", 1e3, 1.0),
    ("M", 1e6, 1.0),
    ("G", 1e9, 1.0),
    ("T", 1e12, 1.0),
    ("P", 1e15, 1.0),
    ("E", 1e18, 1.0),
    ("Z", 1e21, 1.0),
    ("Y", 1e24, 1.0),
    ("R", 1e27, 1.0),
    ("Q", 1e30, 1.0),
    ("d", 1.0, 1e1),
    ("c", 1.0, 1e2),
    ("m", 1.0, 1e3),
    ("u", 1.0, 1e6),
    ("n", 1.0, 1e9),
    ("p", 1.0, 1e12),
    ("f", 1.0, 1e15),
    ("a", 1.0, 1e18),
    ("z", 1.0, 1e21),
    ("y", 1.0, 1e24),
    ("r", 1.0, 1e27),
    ("q", 1.0, 1e30),
    ("Ki", 1024.0, 1.0),
    ("Mi", 1_048_576.0, 1.0),
    ("Gi", 1_073_741_824.0, 1.0),
    ("Ti", 1_099_511_627_776.0, 1.0),
    ("Pi", 1_125_899_906_842_624.0, 1.0),
    ("Ei", 1_152_921_504_606_846_976.0, 1.0),
    ("Zi", 1_180_591_620_717_411_303_424.0, 1.0),
    ("Yi", 1_208_925_819_614_629_174_706_176.0, 1.0),
];

/// The first prefix of a power of two.
const BINARY: u8 = 24;

impl Prefix {
    /// Every prefix.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..PREFIXES.len() as u8).map(Self)
    }

    /// The prefix that `text` is.
    pub fn find(text: &str) -> Option<Self> {
        Self::all().find(|prefix| prefix.text() == text)
    }

    /// How it is written.
    pub const fn text(self) -> &'static str {
        PREFIXES[self.0 as usize].0
    }

    /// Whether it stands for a power of two.
    pub const fn is_binary(self) -> bool {
        self.0 >= BINARY
    }

    /// Numerator and denominator of what it multiplies by.
    pub(super) const fn factor(self) -> (f64, f64) {
        let (_, numerator, denominator) = PREFIXES[self.0 as usize];
        (numerator, denominator)
    }
}
