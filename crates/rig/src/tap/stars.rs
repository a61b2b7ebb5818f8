//! The catalogue that is measured: as many stars as Hipparcos has, with its columns, from a seed.
//!
//! Every value is a whole number of its column's last decimal, so the text in the file and the number in memory
//! are the same value, and answers can be compared exactly. What a query must answer is found by looking at every
//! star.

use super::healpix;
use std::io::{self, Write};

/// Stars of the Hipparcos catalogue in the reduction of 2007.
pub(super) const HIPPARCOS: usize = 117_955;
/// Every number divisible by this is not given to a star: the catalogue has gaps.
const GAP: u32 = 322;
const SEED: u64 = 0x5eed_0f57_a125;
/// Of a hundred stars so many have no colour.
const COLOURLESS_PERCENT: u64 = 1;
/// How near to the edge of a cone, relative to the square of its radius, nobody can say whether a star is in it.
const EDGE: f64 = 1e-9;
/// The order of the cells by which stars are grouped.
pub(super) const GROUP_ORDER: u32 = 4;
/// The height of a zone in degrees, for the index of the peer.
const ZONE: f64 = 0.5;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Hip,
    Ra,
    Dec,
    Plx,
    EPlx,
    PmRa,
    PmDec,
    HpMag,
    BV,
}

impl Column {
    /// In the order of the file.
    pub(super) const ALL: [Column; 9] = [
        Column::Hip,
        Column::Ra,
        Column::Dec,
        Column::Plx,
        Column::EPlx,
        Column::PmRa,
        Column::PmDec,
        Column::HpMag,
        Column::BV,
    ];

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        ["hip", "ra", "dec", "plx", "e_plx", "pmra", "pmdec", "hpmag", "b_v"][self as usize]
    }

    /// How many decimals its values have.
    fn decimals(self) -> u32 {
        [0, 8, 8, 2, 2, 2, 2, 4, 3][self as usize]
    }

    fn scale(self) -> i64 {
        10_i64.pow(self.decimals())
    }
}

/// The names of columns as a query lists them.
pub(super) fn list(columns: &[Column]) -> String {
    columns.iter().map(|column| column.name()).collect::<Vec<_>>().join(", ")
}

/// A star: by column, in units of the last decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Star([Option<i64>; 9]);

impl Star {
    fn random(hip: u32, dice: &mut Dice) -> Star {
        let ra = dice.scaled(Column::Ra, |dice| dice.unit() * 360.0).min(360 * Column::Ra.scale() - 1);
        let dec = dice.scaled(Column::Dec, |dice| (2.0 * dice.unit() - 1.0).asin().to_degrees());
        let plx = dice.scaled(Column::Plx, |dice| 7.0 + 4.0 * dice.normal());
        let e_plx = dice.scaled(Column::EPlx, |dice| 0.3 + 1.5 * dice.unit());
        let (pmra, pmdec) = (dice.motion(Column::PmRa), dice.motion(Column::PmDec));
        let hpmag = dice.scaled(Column::HpMag, |dice| 8.5 + 1.3 * dice.normal());
        let b_v = dice.scaled(Column::BV, |dice| 0.7 + 0.45 * dice.normal());
        let b_v = (dice.next() % 100 >= COLOURLESS_PERCENT).then_some(b_v);
        let given = [ra, dec, plx, e_plx, pmra, pmdec, hpmag].map(Some);
        let mut values = [None; 9];
        values[0] = Some(i64::from(hip));
        values[1..8].copy_from_slice(&given);
        values[8] = b_v;
        Star(values)
    }

    /// The value of a column, exactly that of its text.
    pub(super) fn value(&self, column: Column) -> Option<f64> {
        self.0[column as usize].map(|value| value as f64 / column.scale() as f64)
    }

    /// A value that every star has.
    fn known(&self, column: Column) -> f64 {
        self.value(column).expect("only colours are missing")
    }

    /// Its position in degrees.
    fn position(&self) -> (f64, f64) {
        (self.known(Column::Ra), self.known(Column::Dec))
    }

    fn line(&self) -> String {
        let cells =
            Column::ALL.map(|column| self.0[column as usize].map_or_else(String::new, |v| text(v, column)));
        cells.join(",")
    }
}

fn text(value: i64, column: Column) -> String {
    let (sign, value, scale) =
        (if value < 0 { "-" } else { "" }, value.unsigned_abs(), column.scale().unsigned_abs());
    let width = column.decimals() as usize;
    if width == 0 {
        format!("{sign}{value}")
    } else {
        format!("{sign}{}.{:0width$}", value / scale, value % scale)
    }
}

/// A small generator (splitmix64), the same everywhere.
pub(super) struct Dice(u64);

impl Dice {
    /// One that begins here.
    pub(super) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// The next number.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// From 0 to below 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A whole number below this one.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((self.unit() * bound as f64) as usize).min(bound.saturating_sub(1))
    }

    /// Normal enough: twelve throws.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    fn scaled(&mut self, column: Column, value: impl FnOnce(&mut Dice) -> f64) -> i64 {
        (value(self) * column.scale() as f64).round() as i64
    }

    fn motion(&mut self, column: Column) -> i64 {
        self.scaled(column, |dice| 60.0 * dice.normal() * dice.unit())
    }
}

/// A cell of a grouping: its number, its stars, the least magnitude, the largest parallax.
pub(super) type Group = [f64; 4];

/// The catalogue, by ascending number.
pub(super) struct Stars {
    list: Vec<Star>,
    units: Vec<[f64; 3]>,
}

impl Stars {
    /// So many stars, always the same.
    pub(super) fn generate(count: usize) -> Stars {
        let mut dice = Dice::new(SEED);
        let numbers = (1..).filter(|hip| hip % GAP != 0).take(count);
        let list: Vec<Star> = numbers.map(|hip| Star::random(hip, &mut dice)).collect();
        let units = list.iter().map(|star| unit(star.position())).collect();
        Stars { list, units }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// One of them.
    pub(super) fn star(&self, at: usize) -> &Star {
        &self.list[at]
    }

    /// The number of one of them.
    pub(super) fn hip(&self, at: usize) -> i32 {
        self.list[at].known(Column::Hip) as i32
    }

    /// The one with this number.
    pub(super) fn find(&self, hip: f64) -> Option<&Star> {
        let at = self.list.binary_search_by(|star| star.known(Column::Hip).total_cmp(&hip)).ok()?;
        Some(&self.list[at])
    }

    /// Those within a radius of a position, all in degrees, by looking at each; nothing if one lies so near to the
    /// edge that rounding decides.
    pub(super) fn within(&self, ra: f64, dec: f64, radius: f64) -> Option<Vec<usize>> {
        let centre = unit((ra, dec));
        let bound = 4.0 * (radius.to_radians() / 2.0).sin().powi(2);
        let mut found = Vec::new();
        for (at, star) in self.units.iter().enumerate() {
            let distance: f64 = star.iter().zip(&centre).map(|(s, c)| (s - c) * (s - c)).sum();
            if (distance - bound).abs() <= bound * EDGE {
                return None;
            }
            if distance < bound {
                found.push(at);
            }
        }
        Some(found)
    }

    /// Those of which something holds.
    pub(super) fn filter(&self, holds: impl Fn(&Star) -> bool) -> Vec<usize> {
        (0..self.list.len()).filter(|at| holds(&self.list[*at])).collect()
    }

    /// All of them by cell of [`GROUP_ORDER`], ascending.
    pub(super) fn groups(&self) -> Vec<Group> {
        let mut groups = std::collections::BTreeMap::<u64, Group>::new();
        for star in &self.list {
            let (ra, dec) = star.position();
            let (magnitude, parallax) = (star.known(Column::HpMag), star.known(Column::Plx));
            let cell = healpix::nested(GROUP_ORDER, ra, dec);
            let [_, count, least, largest] =
                groups.entry(cell).or_insert([cell as f64, 0.0, f64::INFINITY, f64::NEG_INFINITY]);
            *count += 1.0;
            *least = least.min(magnitude);
            *largest = largest.max(parallax);
        }
        groups.into_values().collect()
    }

    /// The sum of all numbers.
    pub(super) fn hip_sum(&self) -> u64 {
        (0..self.count()).map(|at| u64::from(self.hip(at).unsigned_abs())).sum()
    }

    /// Writes the catalogue as CSV.
    pub(super) fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}", Column::ALL.map(Column::name).join(","))?;
        self.list.iter().try_for_each(|star| writeln!(out, "{}", star.line()))
    }

    /// Writes the same with what the peer's indexes need: zone, direction and cell of the deepest order.
    pub(super) fn write_peer_csv(&self, out: &mut impl Write) -> io::Result<()> {
        for (star, [x, y, z]) in self.list.iter().zip(&self.units) {
            let (ra, dec) = star.position();
            let cell = healpix::nested(healpix::DEEPEST, ra, dec);
            writeln!(out, "{},{},{x},{y},{z},{cell}", star.line(), zone(dec))?;
        }
        Ok(())
    }
}

/// The zone of a declination in degrees.
pub(super) fn zone(dec: f64) -> i16 {
    (dec / ZONE).floor() as i16
}

/// The direction of a position in degrees.
pub(super) fn unit((ra, dec): (f64, f64)) -> [f64; 3] {
    let ((sin_ra, cos_ra), (sin_dec, cos_dec)) = (ra.to_radians().sin_cos(), dec.to_radians().sin_cos());
    [cos_dec * cos_ra, cos_dec * sin_ra, sin_dec]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_and_the_number_are_one_value() {
        let stars = Stars::generate(500);
        let mut csv = Vec::new();
        stars.write_csv(&mut csv).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let mut lines = csv.lines();
        assert_eq!(lines.next(), Some("hip,ra,dec,plx,e_plx,pmra,pmdec,hpmag,b_v"));
        for (star, line) in stars.list.iter().zip(lines) {
            let cells: Vec<Option<f64>> = line.split(',').map(|cell| cell.parse().ok()).collect();
            assert_eq!(cells, Column::ALL.map(|column| star.value(column)), "{line}");
        }
    }

    #[test]
    fn the_catalogue_is_of_the_size_of_hipparcos_and_always_the_same() {
        let stars = Stars::generate(HIPPARCOS);
        assert_eq!(stars.hip(stars.count() - 1), 118_322);
        assert!(stars.list.iter().all(|star| (0.0..360.0).contains(&star.position().0)));
        assert!(stars.list.iter().all(|star| (-90.0..=90.0).contains(&star.position().1)));
        let colourless = stars.filter(|star| star.value(Column::BV).is_none()).len();
        assert!((HIPPARCOS / 200..HIPPARCOS / 50).contains(&colourless), "{colourless}");
        assert_eq!(Stars::generate(1000).list[..], stars.list[..1000]);
        assert_eq!(stars.groups().iter().map(|group| group[1]).sum::<f64>(), HIPPARCOS as f64);
    }

    #[test]
    fn a_star_is_found_by_number_and_by_place() {
        let stars = Stars::generate(3000);
        let star = stars.find(323.0).unwrap();
        let (ra, dec) = star.position();
        assert_eq!(stars.find(322.0), None);
        let within = stars.within(ra, dec, 1e-6).unwrap();
        assert_eq!(within.iter().map(|at| stars.hip(*at)).collect::<Vec<_>>(), [323]);
        assert_eq!(stars.within(ra, dec, 179.999).unwrap().len(), 3000);
    }
}
