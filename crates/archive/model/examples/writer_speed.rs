//! How fast VOTable is written and read, over a catalogue of 15 columns and 100,000 rows.
//!
//! `cargo run --release -p trifid-archive-model --example writer_speed`
//!
//! Prints megabytes of document a second of one core, the best of several runs, and the bytes of a row.

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use trifid_archive_adql::types::{Field, Size, Type};
use trifid_archive_model::batch;
use trifid_archive_model::read::TableReader;
use trifid_archive_model::votable::{Options, ReadOptions, Reader, Serialization, Version, Writer};
use trifid_archive_model::write::{End, Head, TableWriter};

const ROWS: usize = 100_000;
const RUNS: usize = 25;
/// Rows a call, as a server does it.
const STEP: usize = 1024;

/// A small generator of its own, so that the batch is the same everywhere.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn decimal(&mut self, least: f64, most: f64, digits: i32) -> f64 {
        let scale = 10_f64.powi(digits);
        ((least + self.unit() * (most - least)) * scale).round() / scale
    }

    fn is_null(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

fn doubles(dice: &mut Dice, least: f64, most: f64, digits: i32) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values((0..ROWS).map(|_| dice.decimal(least, most, digits))))
}

fn floats(dice: &mut Dice, least: f64, most: f64, digits: i32, nulls: u64) -> ArrayRef {
    let value = |_| {
        let value = dice.decimal(least, most, digits) as f32;
        if dice.is_null(nulls) { None } else { Some(value) }
    };
    Arc::new((0..ROWS).map(value).collect::<Float32Array>())
}

fn catalogue() -> (Arc<[Field]>, RecordBatch) {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let types = ["G2V", "K0III", "M5", "A0V", "B8Ib/II", "F5IV-V", "O9.5", "sdB"];
    let texts = |dice: &mut Dice| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..ROWS).map(|_| types[(dice.next() % 8) as usize])))
    };
    let columns: Vec<(&str, Type, ArrayRef)> = vec![
        ("source_id", Type::Long, {
            Arc::new(Int64Array::from_iter_values((0..ROWS).map(|_| (dice.next() >> 1) as i64)))
        }),
        ("name", Type::Text, {
            Arc::new(StringArray::from_iter_values(
                (0..ROWS).map(|row| format!("TYC {}-{}-1", row / 10, row)),
            ))
        }),
        ("ra", Type::Double, doubles(&mut dice, 0.0, 360.0, 13)),
        ("dec", Type::Double, doubles(&mut dice, -90.0, 90.0, 14)),
        ("parallax", Type::Double, doubles(&mut dice, -1.0, 50.0, 2)),
        ("pmra", Type::Double, doubles(&mut dice, -500.0, 500.0, 2)),
        ("pmdec", Type::Double, doubles(&mut dice, -500.0, 500.0, 2)),
        ("e_parallax", Type::Float, floats(&mut dice, 0.0, 2.0, 3, 0)),
        ("mag", Type::Float, floats(&mut dice, 2.0, 21.0, 4, 2)),
        ("bp_rp", Type::Float, floats(&mut dice, -0.5, 4.0, 5, 10)),
        ("nobs", Type::Int, {
            Arc::new((0..ROWS).map(|_| Some((dice.next() % 300) as i32)).collect::<Int32Array>())
        }),
        ("flags", Type::Short, {
            Arc::new(
                (0..ROWS)
                    .map(|_| (!dice.is_null(30)).then_some((dice.next() % 8) as i16))
                    .collect::<Int16Array>(),
            )
        }),
        ("variable", Type::Boolean, {
            Arc::new((0..ROWS).map(|_| Some(dice.is_null(5))).collect::<BooleanArray>())
        }),
        ("sptype", Type::Text, texts(&mut dice)),
        ("epoch", Type::Timestamp, {
            let base = 1_700_000_000_000_000_i64;
            Arc::new(TimestampMicrosecondArray::from_iter_values(
                (0..ROWS).map(|_| base + (dice.next() % 100_000_000) as i64 * 1000),
            ))
        }),
    ];
    let field = |&(name, ty, _): &(&str, Type, ArrayRef)| {
        let mut field = Field::new(name, ty);
        if ty == Type::Text {
            field.size = Size::Variable(None);
        }
        field
    };
    let fields: Arc<[Field]> = columns.iter().map(field).collect();
    let arrays = columns.into_iter().map(|(_, _, array)| array).collect();
    let batch = batch::batch(&fields, arrays, ROWS).expect("the columns are of their types");
    (fields, batch)
}

fn run(serialization: Serialization, fields: &Arc<[Field]>, batch: &RecordBatch, out: &mut Vec<u8>) -> usize {
    let options = Options { serialization, version: Version::default() };
    let mut writer = Box::new(Writer::new(options, Head::new(Arc::clone(fields))));
    let mut total = 0;
    writer.begin(out);
    for start in (0..ROWS).step_by(STEP) {
        writer.rows(batch, start..(start + STEP).min(ROWS), out).expect("every value can be written");
        total += out.len();
        out.clear();
    }
    writer.finish(&End::Complete, out);
    total += out.len();
    out.clear();
    total
}

/// The whole document, for the readers.
fn document(serialization: Serialization, fields: &Arc<[Field]>, batch: &RecordBatch) -> Vec<u8> {
    let options = Options { serialization, version: Version::default() };
    let mut writer = Box::new(Writer::new(options, Head::new(Arc::clone(fields))));
    let mut out = Vec::new();
    writer.begin(&mut out);
    writer.rows(batch, 0..ROWS, &mut out).expect("every value can be written");
    writer.finish(&End::Complete, &mut out);
    out
}

fn read(document: &[u8]) {
    let mut reader = Reader::new(document, ReadOptions::default()).expect("the document is right");
    let mut rows = 0;
    while let Some(batch) = reader.next_batch(8192).expect("the document is right") {
        rows += batch.num_rows();
    }
    assert_eq!(rows, ROWS);
}

fn best_of(mut run: impl FnMut()) -> f64 {
    let seconds = (0..RUNS).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    seconds.fold(f64::INFINITY, f64::min)
}

fn main() -> std::io::Result<()> {
    let (fields, batch) = catalogue();
    let mut out = Vec::with_capacity(1 << 20);
    let mut console = std::io::stdout().lock();
    for (name, serialization) in [
        ("TABLEDATA", Serialization::TableData),
        ("BINARY", Serialization::Binary),
        ("BINARY2", Serialization::Binary2),
    ] {
        let document = document(serialization, &fields, &batch);
        let megabytes = document.len() as f64 / 1e6;
        let written = best_of(|| assert_eq!(run(serialization, &fields, &batch, &mut out), document.len()));
        let read = best_of(|| read(&document));
        writeln!(
            console,
            "{name:10} written {:6.0} MB/s   read {:6.0} MB/s   {:4} B a row",
            megabytes / written,
            megabytes / read,
            document.len() / ROWS
        )?;
    }
    Ok(())
}
