//! Speed of the formats over a table like Hipparcos: `cargo run --release -p trifid-archive-model --example
//! format_speed [FILE.csv]`. Each line is the best of several runs on one core.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray};
use trifid_archive_adql::types::{Field, Type};
use trifid_archive_model::read::TableReader;
use trifid_archive_model::write::{End, Head, TableWriter};
use trifid_archive_model::{batch, csv, html, json, text};

const ROWS: usize = 100_000;
const RUNS: usize = 7;

/// Makes a fresh writer.
type Make<'a> = Box<dyn Fn() -> Box<dyn TableWriter> + 'a>;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let (fields, batches) = table();
    let head = Head::new(fields.clone());
    let writers: [(&str, Make<'_>); 4] = [
        ("csv", Box::new(|| Box::new(csv::Writer::new(fields.clone(), csv::Delimiter::Comma)))),
        ("json", Box::new(|| Box::new(json::Writer::new(head.clone())))),
        ("text", Box::new(|| Box::new(text::Writer::new(head.clone())))),
        ("html", Box::new(|| Box::new(html::Writer::fragment(head.clone())))),
    ];
    for (name, make) in &writers {
        let (bytes, seconds) = best(|| write(make(), &batches));
        report(&mut out, &format!("write {name}"), bytes, seconds)?;
    }
    let mut written = Vec::new();
    write_to(Box::new(csv::Writer::new(fields.clone(), csv::Delimiter::Comma)), &batches, &mut written);
    let given = std::env::args().nth(1).map(std::fs::read).transpose()?;
    for (name, text) in [("read csv", Some(written)), ("read the given csv", given)] {
        let Some(text) = text else { continue };
        let (bytes, seconds) = best(|| read(&text));
        report(&mut out, name, bytes, seconds)?;
    }
    Ok(())
}

fn report(out: &mut impl std::io::Write, name: &str, bytes: usize, seconds: f64) -> std::io::Result<()> {
    writeln!(
        out,
        "{name:20} {:8.1} MB/s  {bytes:>10} bytes  {:6.1} ms",
        bytes as f64 / seconds / 1e6,
        seconds * 1e3
    )
}

/// Bytes of one run and the seconds of the fastest.
fn best(run: impl Fn() -> usize) -> (usize, f64) {
    let mut fastest = f64::INFINITY;
    let mut bytes = 0;
    for _ in 0..RUNS {
        let start = Instant::now();
        bytes = run();
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    (bytes, fastest)
}

/// Writes as a service does: into one buffer that is sent and used again after every batch.
fn write(mut writer: Box<dyn TableWriter>, batches: &[RecordBatch]) -> usize {
    let mut out = Vec::with_capacity(1 << 20);
    writer.begin(&mut out);
    let mut bytes = 0;
    for batch in batches {
        if writer.rows(batch, 0..batch.num_rows(), &mut out).is_err() {
            return 0;
        }
        bytes += out.len();
        out.clear();
    }
    writer.finish(&End::Complete, &mut out);
    bytes + out.len()
}

fn write_to(mut writer: Box<dyn TableWriter>, batches: &[RecordBatch], out: &mut Vec<u8>) {
    writer.begin(out);
    for batch in batches {
        if writer.rows(batch, 0..batch.num_rows(), out).is_err() {
            return;
        }
    }
    writer.finish(&End::Complete, out);
}

fn read(text: &[u8]) -> usize {
    let Ok(mut reader) = csv::Reader::new(text, &csv::Options::default()) else { return 0 };
    let mut rows = 0;
    while let Ok(Some(batch)) = reader.next_batch(8192) {
        rows += batch.num_rows();
    }
    if rows == 0 { 0 } else { text.len() }
}

/// An identifier, two positions to the tenth of a milliarcsecond, eleven measurements with two to four digits, a name.
fn table() -> (Arc<[Field]>, Vec<RecordBatch>) {
    let mut fields = vec![Field::new("id", Type::Int)];
    fields.extend((0..13).map(|at| Field::new(format!("x{at}"), Type::Double)));
    fields.push(Field::new("name", Type::Text));
    let mut seed = 1_u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as f64 / 2_f64.powi(31)
    };
    let mut columns: Vec<ArrayRef> = vec![Arc::new(Int32Array::from_iter_values(0..ROWS as i32))];
    for at in 0..13 {
        let digits = if at < 2 { 1e8 } else { 1e2 };
        let values = (0..ROWS).map(|_| (random() * 360.0 * digits).round() / digits);
        columns.push(Arc::new(Float64Array::from_iter_values(values)));
    }
    columns.push(Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| format!("HIP {row}")))));
    let fields: Arc<[Field]> = fields.into();
    let Ok(whole) = batch::batch(&fields, columns, ROWS) else { return (fields, Vec::new()) };
    let batches = (0..ROWS).step_by(8192).map(|at| whole.slice(at, 8192.min(ROWS - at))).collect();
    (fields, batches)
}
