//! Speed of the formats over a table like Hipparcos: `cargo run --release -p trifid-archive-model --example
//! format_speed [FILE.csv]`. Each line is the best of several runs on one core.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray};
use trifid_archive_adql::types::{Field, Type};
use trifid_archive_model::read::TableReader;
use trifid_archive_model::write::{End, Head, TableWriter, WriteError};
use trifid_archive_model::{batch, csv, fits, html, ipc, json, text};

const ROWS: usize = 100_000;
const RUNS: usize = 7;

/// Makes a fresh writer.
type Make<'a> = Box<dyn Fn() -> Box<dyn TableWriter> + 'a>;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let (fields, batches) = table();
    let head = Head::new(fields.clone());
    let writers: [(&str, Make<'_>); 5] = [
        ("csv", Box::new(|| Box::new(csv::Writer::new(fields.clone(), csv::Delimiter::Comma)))),
        ("json", Box::new(|| Box::new(json::Writer::new(head.clone())))),
        ("text", Box::new(|| Box::new(text::Writer::new(head.clone())))),
        ("arrow", Box::new(|| Box::new(ipc::Writer::new(head.clone())))),
        ("html", Box::new(|| Box::new(html::Writer::fragment(head.clone())))),
    ];
    for (name, make) in &writers {
        let (bytes, seconds) = best(|| write(make(), &batches));
        report(&mut out, &format!("write {name}"), bytes, seconds)?;
    }
    let (bytes, seconds) = best(|| fits(&head, &batches).len());
    report(&mut out, "write fits", bytes, seconds)?;

    let options = csv::Options::default();
    let csv_of = |text: &[u8]| csv::Reader::new(text, &options).map_or(0, drain);
    let written = whole(Box::new(csv::Writer::new(fields.clone(), csv::Delimiter::Comma)), &batches);
    let given = std::env::args().nth(1).map(std::fs::read).transpose()?;
    for (name, text) in [("read csv", Some(written)), ("read the given csv", given)] {
        let Some(text) = text else { continue };
        let (bytes, seconds) = best(|| csv_of(&text));
        report(&mut out, name, bytes.min(1) * text.len(), seconds)?;
    }
    let written = fits(&head, &batches);
    let (rows, seconds) =
        best(|| fits::Reader::new(written.as_slice(), &fits::Wanted::FirstTable).map_or(0, drain));
    report(&mut out, "read fits", rows.min(1) * written.len(), seconds)?;
    let written = whole(Box::new(ipc::Writer::new(head.clone())), &batches);
    let (rows, seconds) = best(|| ipc::Reader::new(written.as_slice()).map_or(0, drain));
    report(&mut out, "read arrow", rows.min(1) * written.len(), seconds)
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

fn whole(mut writer: Box<dyn TableWriter>, batches: &[RecordBatch]) -> Vec<u8> {
    let mut out = Vec::new();
    writer.begin(&mut out);
    for batch in batches {
        if writer.rows(batch, 0..batch.num_rows(), &mut out).is_err() {
            return Vec::new();
        }
    }
    writer.finish(&End::Complete, &mut out);
    out
}

/// Survey, header, rows.
fn fits(head: &Head, batches: &[RecordBatch]) -> Vec<u8> {
    try_fits(head, batches).unwrap_or_default()
}

fn try_fits(head: &Head, batches: &[RecordBatch]) -> Result<Vec<u8>, WriteError> {
    let mut survey = fits::Survey::new(head.fields.clone());
    batches.iter().try_for_each(|batch| survey.add(batch, 0..batch.num_rows()))?;
    let mut encoder = fits::Encoder::new(head.clone(), &survey)?;
    let mut out = Vec::with_capacity(16 << 20);
    encoder.header(&End::Complete, &mut out)?;
    batches.iter().try_for_each(|batch| encoder.rows(batch, 0..batch.num_rows(), &mut out))?;
    encoder.finish(&mut out);
    Ok(out)
}

/// Rows of all batches.
fn drain(mut reader: impl TableReader) -> usize {
    let mut rows = 0;
    while let Ok(Some(batch)) = reader.next_batch(8192) {
        rows += batch.num_rows();
    }
    rows
}

/// An identifier, two positions to the tenth of a milliarcsecond, eleven measurements with two to four
/// digits, a name.
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
