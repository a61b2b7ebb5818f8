//! Small tables full of what is awkward: NULL, NaN, -0, ties, poles, the meridian of 0.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, StringArray,
    TimestampMicrosecondArray,
};
use trifid_archive_adql::types::{Field, Type};
use trifid_archive_engine::catalogue::{Published, SchemaInfo, Snapshot, TableInfo, Tables, UPLOAD_SCHEMA};
use trifid_archive_engine::table::{Position, Table, TableHead};
use trifid_archive_model::batch;

/// A table of columns.
pub(crate) fn table(
    schema: &str,
    name: &str,
    columns: Vec<(&str, Type, ArrayRef)>,
    indexed: &[usize],
) -> Table {
    let place = |wanted: &str| columns.iter().position(|(name, ..)| *name == wanted);
    let position = place("ra").zip(place("dec")).map(|(lon, lat)| Position { lon, lat });
    let fields: Arc<[Field]> = columns.iter().map(|(name, ty, _)| Field::new(*name, *ty)).collect();
    let rows = columns.first().map_or(0, |(.., column)| column.len());
    let arrays = columns.into_iter().map(|(.., column)| column).collect();
    let batch = batch::batch(&fields, arrays, rows).unwrap();
    let head = TableHead { schema: schema.into(), name: name.into(), fields, position };
    Table::in_memory(head, &[batch], indexed).unwrap()
}

/// Tables as a catalogue.
pub(crate) fn catalogue(published: Vec<Table>, uploads: Vec<Table>) -> Arc<Tables> {
    let publish = |table| Arc::new(Published { table: Arc::new(table), info: TableInfo::default() });
    let schemas = vec![SchemaInfo { name: "s".into(), ..SchemaInfo::default() }];
    let snapshot = Snapshot::new(1, schemas, published.into_iter().map(publish).collect());
    Arc::new(Tables { snapshot: Arc::new(snapshot), uploads: uploads.into_iter().map(Arc::new).collect() })
}

/// A little randomness that is always the same.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below `sides`.
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn maybe<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.roll(6) > 0).then(|| value(self))
    }

    fn real(&mut self) -> f64 {
        match self.roll(10) {
            0 => f64::NAN,
            1 => -0.0,
            2 => 0.0,
            3 => f64::INFINITY,
            _ => self.roll(9) as f64 / 2.0 - 2.0,
        }
    }

    /// A longitude, often near the meridian of 0.
    fn lon(&mut self) -> f64 {
        match self.roll(6) {
            0 => 359.9995 + self.roll(10) as f64 * 1e-4,
            1 => self.roll(10) as f64 * 1e-4,
            2 => 720.0 + self.roll(4) as f64,
            _ => self.roll(3600) as f64 / 10.0,
        }
    }

    /// A latitude, often near a pole, sometimes beyond it.
    fn lat(&mut self) -> f64 {
        match self.roll(8) {
            0 => 90.0 - self.roll(10) as f64 * 1e-4,
            1 => -90.0 + self.roll(10) as f64 * 1e-4,
            2 => 90.5,
            3 => self.roll(10) as f64 * 1e-4,
            _ => self.roll(1800) as f64 / 10.0 - 90.0,
        }
    }
}

const WORDS: [&str; 8] = ["vega", "Sirius", "", "altair", "Ä", "deneb_1", "50%", "vega"];

/// `id, s, i, l, f, d, name, flag, at, ra, dec`.
pub(crate) fn mixed(schema: &str, name: &str, rows: usize, seed: u64) -> Table {
    let mut dice = Dice(seed);
    let mut column = |make: &mut dyn FnMut(&mut Dice)| (0..rows).for_each(|_| make(&mut dice));
    let (mut s, mut i, mut l) = (Vec::new(), Vec::new(), Vec::new());
    let (mut f, mut d, mut text) = (Vec::new(), Vec::new(), Vec::new());
    let (mut flag, mut at, mut ra, mut dec) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    column(&mut |dice| s.push(dice.maybe(|dice| dice.roll(5) as i16 - 2)));
    column(&mut |dice| i.push(dice.maybe(|dice| dice.roll(7) as i32 - 3)));
    column(&mut |dice| l.push(dice.maybe(|dice| dice.roll(9) as i64 - 4)));
    column(&mut |dice| f.push(dice.maybe(|dice| dice.real() as f32)));
    column(&mut |dice| d.push(dice.maybe(Dice::real)));
    column(&mut |dice| text.push(dice.maybe(|dice| WORDS[dice.roll(8) as usize])));
    column(&mut |dice| flag.push(dice.maybe(|dice| dice.roll(2) == 0)));
    column(&mut |dice| at.push(dice.maybe(|dice| dice.roll(4) as i64 * 86_400_000_000)));
    column(&mut |dice| ra.push(dice.maybe(Dice::lon)));
    column(&mut |dice| dec.push(dice.maybe(Dice::lat)));
    let id: Vec<i32> = (0..rows as i32).collect();
    let columns: Vec<(&str, Type, ArrayRef)> = vec![
        ("id", Type::Int, Arc::new(Int32Array::from(id))),
        ("s", Type::Short, Arc::new(Int16Array::from(s))),
        ("i", Type::Int, Arc::new(Int32Array::from(i))),
        ("l", Type::Long, Arc::new(Int64Array::from(l))),
        ("f", Type::Float, Arc::new(Float32Array::from(f))),
        ("d", Type::Double, Arc::new(Float64Array::from(d))),
        ("name", Type::Text, Arc::new(StringArray::from(text))),
        ("flag", Type::Boolean, Arc::new(BooleanArray::from(flag))),
        ("at", Type::Timestamp, Arc::new(TimestampMicrosecondArray::from(at))),
        ("ra", Type::Double, Arc::new(Float64Array::from(ra))),
        ("dec", Type::Double, Arc::new(Float64Array::from(dec))),
    ];
    table(schema, name, columns, &[0, 6])
}

/// `s.a`, `s.b`, `s.c`, an empty `s.nothing` and the upload `mine`.
pub(crate) fn all(seed: u64, rows: usize) -> Arc<Tables> {
    let published = vec![
        mixed("s", "a", rows, seed),
        mixed("s", "b", rows / 2, seed + 1),
        mixed("s", "c", rows / 3, seed + 2),
        mixed("s", "nothing", 0, seed + 3),
    ];
    catalogue(published, vec![mixed(UPLOAD_SCHEMA, "mine", rows / 2, seed + 4)])
}
