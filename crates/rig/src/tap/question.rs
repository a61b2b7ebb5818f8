//! What the archive is asked, and what it must answer.
//!
//! A question is a query in ADQL with a known answer, found by looking at every star. The peer is asked the same
//! in SQL and must answer the same.

use super::answer::{Format, Row};
use super::archive::TABLE;
use super::stars::{self, Column, Dice, GROUP_ORDER, Group, Star, Stars};

/// The columns of a cone.
const CONE: [Column; 4] = [Column::Hip, Column::Ra, Column::Dec, Column::HpMag];
/// The columns of a lookup.
const LOOKUP: [Column; 5] = [Column::Hip, Column::Ra, Column::Dec, Column::Plx, Column::HpMag];
/// The columns of a filter and of many rows.
const COLOUR: [Column; 5] = [Column::Hip, Column::Ra, Column::Dec, Column::HpMag, Column::BV];
/// Rows of a long result.
const ROWS: usize = 10_000;
/// The radius of the measured cones in degrees.
const RADIUS: f64 = 0.5;
/// How far from the poles the centres of the measured cones stay, so that the peer's index needs one range.
const DEC_MAX: f64 = 80.0;
/// The width of a range of magnitudes, and the least colour beside it.
const RANGE: f64 = 0.05;
const RED: f64 = 1.2;

/// A query with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Question {
    /// All tables.
    Tables,
    /// One star by its number.
    Lookup { hip: i32 },
    /// Stars around a place, all in degrees.
    Cone { ra: f64, dec: f64, radius: f64 },
    /// Red stars of a range of magnitudes.
    Filter { low: f64, high: f64, red: f64 },
    /// Any ten thousand stars.
    Rows,
    /// All stars by cell.
    Group,
    /// Every column of every star.
    Whole,
}

/// What comes back.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expected {
    /// A row for our table among those of the service.
    Tables,
    /// These columns of these stars, in any order.
    Stars(&'static [Column], Vec<usize>),
    /// These columns of so many different stars.
    Any(&'static [Column], usize),
    /// These groups, in any order.
    Groups(Vec<Group>),
}

impl Question {
    /// In ADQL.
    pub(super) fn adql(&self) -> String {
        match *self {
            Question::Tables => {
                "SELECT schema_name, table_name, table_type, description FROM TAP_SCHEMA.tables".to_owned()
            }
            Question::Lookup { hip } => {
                format!("SELECT {} FROM {TABLE} WHERE hip = {hip}", stars::list(&LOOKUP))
            }
            Question::Cone { ra, dec, radius } => format!(
                "SELECT {} FROM {TABLE} WHERE 1 = CONTAINS(POINT(ra, dec), CIRCLE({ra}, {dec}, {radius}))",
                stars::list(&CONE)
            ),
            Question::Filter { low, high, red } => format!(
                "SELECT {} FROM {TABLE} WHERE hpmag BETWEEN {low} AND {high} AND b_v > {red}",
                stars::list(&COLOUR)
            ),
            Question::Rows => format!("SELECT TOP {ROWS} {} FROM {TABLE}", stars::list(&COLOUR)),
            Question::Group => format!(
                "SELECT ivo_healpix_index({GROUP_ORDER}, ra, dec) AS cell, COUNT(*) AS stars, \
                 MIN(hpmag) AS brightest, MAX(plx) AS nearest FROM {TABLE} \
                 GROUP BY ivo_healpix_index({GROUP_ORDER}, ra, dec)"
            ),
            Question::Whole => format!("SELECT {} FROM {TABLE}", stars::list(&Column::ALL)),
        }
    }

    /// What the answer must be; nothing if rounding would decide it.
    pub(super) fn expected(&self, stars: &Stars) -> Option<Expected> {
        let value = |star: &Star, column| star.value(column).unwrap_or(f64::NAN);
        Some(match *self {
            Question::Tables => Expected::Tables,
            Question::Lookup { hip } => {
                let which = stars.filter(|star| value(star, Column::Hip) == f64::from(hip));
                Expected::Stars(&LOOKUP, which)
            }
            Question::Cone { ra, dec, radius } => Expected::Stars(&CONE, stars.within(ra, dec, radius)?),
            Question::Filter { low, high, red } => {
                let holds = |star: &Star| {
                    (low..=high).contains(&value(star, Column::HpMag)) && value(star, Column::BV) > red
                };
                Expected::Stars(&COLOUR, stars.filter(holds))
            }
            Question::Rows => Expected::Any(&COLOUR, ROWS.min(stars.count())),
            Question::Group => Expected::Groups(stars.groups()),
            Question::Whole => Expected::Stars(&Column::ALL, (0..stars.count()).collect()),
        })
    }

    /// Lookups of stars here and there.
    pub(super) fn lookups(stars: &Stars, count: usize, dice: &mut Dice) -> Vec<Question> {
        (0..count).map(|_| Question::Lookup { hip: stars.hip(dice.below(stars.count())) }).collect()
    }

    /// Cones all over the sky whose answers do not depend on rounding.
    pub(super) fn cones(stars: &Stars, count: usize, dice: &mut Dice) -> Vec<Question> {
        let centres = std::iter::repeat_with(|| {
            let (ra, sin_dec) = (dice.unit() * 360.0, 2.0 * dice.unit() - 1.0);
            Question::Cone {
                ra: rounded(ra, 1e5),
                dec: rounded(sin_dec.asin().to_degrees(), 1e5),
                radius: RADIUS,
            }
        });
        let plain = centres.filter(|cone| cone.is_plain() && cone.expected(stars).is_some());
        plain.take(count).collect()
    }

    /// Whether a cone keeps away from the poles and from the place where right ascension begins anew.
    fn is_plain(&self) -> bool {
        let Question::Cone { ra, dec, radius } = *self else { return true };
        let half = ra_half_width(dec, radius);
        dec.abs() < DEC_MAX && ra > half && ra + half < 360.0
    }

    /// Cones where others went wrong: poles, the seam of right ascension, small and large ones.
    pub(super) fn odd_cones(stars: &Stars) -> Vec<Question> {
        let centres = [
            (0.0, 90.0),
            (123.0, -90.0),
            (10.0, 89.8),
            (0.05, 5.0),
            (359.95, -5.0),
            (0.0, 0.0),
            (180.0, 41.8),
        ];
        let cones = centres
            .into_iter()
            .flat_map(|(ra, dec)| [0.01, 0.5, 7.0, 100.0].map(|radius| Question::Cone { ra, dec, radius }));
        cones.filter(|cone| cone.expected(stars).is_some()).collect()
    }

    /// Ranges of magnitudes of which few stars are red.
    pub(super) fn filters(count: usize, dice: &mut Dice) -> Vec<Question> {
        let range = |_| {
            let low = rounded(4.5 + 2.0 * dice.unit(), 1e3);
            Question::Filter { low, high: rounded(low + RANGE, 1e3), red: RED }
        };
        (0..count).map(range).collect()
    }
}

/// A number that is written with few decimals.
fn rounded(value: f64, scale: f64) -> f64 {
    (value * scale).round() / scale
}

/// How far a cone away from the poles reaches in right ascension, in degrees, and a little more.
pub(super) fn ra_half_width(dec: f64, radius: f64) -> f64 {
    let sine = radius.to_radians().sin() / dec.to_radians().cos().max(f64::MIN_POSITIVE);
    sine.min(1.0).asin().to_degrees() + 1e-7
}

impl Expected {
    /// Compares the body of an answer.
    pub(super) fn check(&self, stars: &Stars, format: Format, body: &[u8]) -> Result<(), String> {
        if *self == Expected::Tables {
            return check_tables(body);
        }
        self.check_rows(stars, format.rows(body)?)
    }

    /// How many rows there are, where that is known.
    pub(super) fn count(&self) -> Option<usize> {
        match self {
            Expected::Tables => None,
            Expected::Stars(_, which) => Some(which.len()),
            Expected::Any(_, count) => Some(*count),
            Expected::Groups(groups) => Some(groups.len()),
        }
    }

    /// Compares rows, whose first column tells them apart.
    pub(super) fn check_rows(&self, stars: &Stars, mut rows: Vec<Row>) -> Result<(), String> {
        if self.count().is_some_and(|count| count != rows.len()) {
            return Err(format!("{} rows instead of {:?}", rows.len(), self.count()));
        }
        let key = |row: &Row| row.first().copied().flatten().unwrap_or(f64::NAN);
        rows.sort_by(|left, right| key(left).total_cmp(&key(right)));
        let of =
            |star: &Star, columns: &[Column]| -> Row { columns.iter().map(|c| star.value(*c)).collect() };
        match self {
            Expected::Tables => Err("rows of numbers instead of tables".to_owned()),
            Expected::Stars(columns, which) => {
                let mut expected = which.iter().map(|at| of(stars.star(*at), columns));
                rows.iter().try_for_each(|row| same(row, expected.next()))
            }
            Expected::Any(columns, _) => {
                let twice = rows.windows(2).find(|pair| key(&pair[0]) == key(&pair[1]));
                if let Some(pair) = twice {
                    return Err(format!("the star {} twice", key(&pair[0])));
                }
                rows.iter().try_for_each(|row| same(row, stars.find(key(row)).map(|star| of(star, columns))))
            }
            Expected::Groups(groups) => {
                let mut expected = groups.iter().map(|group| group.map(Some).to_vec());
                rows.iter().try_for_each(|row| same(row, expected.next()))
            }
        }
    }
}

fn same(row: &Row, expected: Option<Row>) -> Result<(), String> {
    match expected {
        Some(expected) if expected == *row => Ok(()),
        expected => Err(format!("the row {row:?} instead of {expected:?}")),
    }
}

fn check_tables(body: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(body);
    let ours = text.lines().filter(|line| line.split(',').nth(1) == Some(TABLE)).count();
    let own = text.lines().filter(|line| line.contains("TAP_SCHEMA.columns")).count();
    if ours == 1 && own == 1 { Ok(()) } else { Err(format!("a list of tables without {TABLE}: {text:.300}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(stars: &Stars, columns: &[Column], which: &[usize]) -> Vec<Row> {
        which.iter().map(|at| columns.iter().map(|column| stars.star(*at).value(*column)).collect()).collect()
    }

    #[test]
    fn answers_are_compared_row_by_row() {
        let stars = Stars::generate(50);
        let expected = Expected::Stars(&CONE, vec![3, 7]);
        let mut answered = rows(&stars, &CONE, &[7, 3]);
        expected.check_rows(&stars, answered.clone()).unwrap();
        answered[0][2] = Some(answered[0][2].unwrap() + 1e-8);
        assert!(expected.check_rows(&stars, answered).unwrap_err().contains("instead of"));
        assert!(expected.check_rows(&stars, rows(&stars, &CONE, &[3, 7, 8])).unwrap_err().contains("3 rows"));
        assert!(expected.check_rows(&stars, rows(&stars, &CONE, &[3, 8])).is_err());
    }

    #[test]
    fn any_stars_must_be_different_and_ours() {
        let stars = Stars::generate(50);
        let expected = Expected::Any(&COLOUR, 3);
        expected.check_rows(&stars, rows(&stars, &COLOUR, &[9, 1, 4])).unwrap();
        let twice = expected.check_rows(&stars, rows(&stars, &COLOUR, &[9, 1, 9])).unwrap_err();
        assert!(twice.contains("the star 10 twice"), "{twice}");
        let mut foreign = rows(&stars, &COLOUR, &[9, 1, 4]);
        foreign[1][0] = Some(51.0);
        assert!(expected.check_rows(&stars, foreign).is_err());
    }

    #[test]
    fn tables_are_looked_for() {
        let good = "schema_name,table_name,table_type,description\nbench,bench.stars,table,\n\
            TAP_SCHEMA,TAP_SCHEMA.columns,table,The columns\n";
        let stars = Stars::generate(1);
        Expected::Tables.check(&stars, Format::Csv, good.as_bytes()).unwrap();
        assert!(Expected::Tables.check(&stars, Format::Csv, b"schema_name,table_name\n").is_err());
    }

    #[test]
    fn measured_cones_need_one_range_and_odd_ones_exist() {
        let stars = Stars::generate(2000);
        let cones = Question::cones(&stars, 50, &mut Dice::new(1));
        assert_eq!(cones.len(), 50);
        assert!(cones.iter().all(Question::is_plain));
        let odd = Question::odd_cones(&stars);
        assert!(odd.iter().any(|cone| !cone.is_plain()) && odd.len() > 20);
    }

    #[test]
    fn the_half_width_holds_every_star_of_a_cone() {
        let stars = Stars::generate(20_000);
        for cone in Question::cones(&stars, 30, &mut Dice::new(2)) {
            let (Question::Cone { ra, dec, radius }, Some(Expected::Stars(_, which))) =
                (cone, cone.expected(&stars))
            else {
                panic!("a cone of stars");
            };
            let half = ra_half_width(dec, radius);
            for at in which {
                let there = stars.star(at).value(Column::Ra).unwrap();
                assert!((there - ra).abs() <= half, "{there} {ra} {half}");
            }
        }
    }
}
