use arrow_array::{ArrayRef, Float64Array, Int64Array, ListArray, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;

use super::*;

const BOUNDS: Bounds = Bounds { rows: 1_000_000, bytes: 1 << 20 };

fn written(columns: Vec<(&str, ArrayRef)>) -> Bytes {
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).unwrap()))
        .set_dictionary_page_size_limit(64 << 20)
        .set_data_page_size_limit(64 << 20)
        .build();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, rows.schema(), Some(properties)).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    file.into()
}

fn numbers(count: i64) -> (&'static str, ArrayRef) {
    ("n", Arc::new(Int64Array::from_iter_values(0..count)))
}

/// Rows and batches of a file.
fn read(file: &Bytes, bounds: Bounds) -> Result<(usize, usize), ReadError> {
    let mut reader = read_parquet(file, bounds)?;
    let (mut rows, mut batches) = (0, 0);
    while let Some(batch) = reader.next_batch(8192)? {
        rows += batch.num_rows();
        batches += 1;
    }
    Ok((rows, batches))
}

fn limited(file: &Bytes, bounds: Bounds) -> &'static str {
    match read(file, bounds).unwrap_err().fault {
        Fault::Limit { what, .. } => what,
        other => panic!("{other}"),
    }
}

#[test]
fn what_is_written_is_read() {
    let names: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..20_000).map(|row| format!("{}", row % 7))));
    let reals: ArrayRef = Arc::new(Float64Array::from_iter_values((0..20_000).map(f64::from)));
    let file = written(vec![numbers(20_000), ("name", names), ("x", reals)]);
    let mut reader = read_parquet(&file, BOUNDS).unwrap();
    assert_eq!(reader.fields().iter().map(|field| &*field.name).collect::<Vec<_>>(), ["n", "name", "x"]);
    let mut plain = crate::store::open_parquet("file", file).unwrap().reader;
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    while let Some(batch) = reader.next_batch(8192).unwrap() {
        found.push(batch);
    }
    while let Some(batch) = plain.next_batch(8192).unwrap() {
        expected.push(batch);
    }
    let joined = |all: &[RecordBatch]| arrow_select::concat::concat_batches(&all[0].schema(), all).unwrap();
    assert_eq!(joined(&found), joined(&expected));
    assert_eq!(joined(&found).num_rows(), 20_000);
}

#[test]
fn rows_and_bytes_have_bounds() {
    let file = || written(vec![numbers(1000)]);
    assert_eq!(read(&file(), Bounds { rows: 1000, ..BOUNDS }).unwrap().0, 1000);
    assert_eq!(limited(&file(), Bounds { rows: 999, ..BOUNDS }), "the number of rows");
    // Ten kilobytes that unpack to megabytes.
    let noughts: ArrayRef = Arc::new(StringArray::from(vec!["0".repeat(4 << 20)]));
    let bomb = written(vec![("text", noughts)]);
    assert!(bomb.len() < 20_000, "{}", bomb.len());
    assert_eq!(limited(&bomb, BOUNDS), "the size of the unpacked pages");
}

#[test]
fn a_dictionary_does_not_repeat_a_text_without_end() {
    let long = "0".repeat(500_000);
    let texts: ArrayRef = Arc::new(StringArray::from(vec![long.as_str(); 200]));
    let bomb = written(vec![("text", texts)]);
    assert!(bomb.len() < 5_000, "{}", bomb.len());
    // A hundred megabytes in all, of which little is there at any time.
    assert_eq!(limited(&bomb, BOUNDS), "the size of the table in memory");
    let mut reader = read_parquet(&bomb, BOUNDS).unwrap();
    let batch = reader.next_batch(8192).unwrap().unwrap();
    assert!(batch.num_rows() * long.len() <= 4 << 20, "{} rows", batch.num_rows());
}

#[test]
fn a_list_does_not_grow_without_end() {
    let one = vec![Some(vec![Some(0i64); 3_000_000])];
    let lists: ArrayRef =
        Arc::new(ListArray::from_iter_primitive::<arrow_array::types::Int64Type, _, _>(one));
    let bomb = written(vec![("l", lists)]);
    assert!(bomb.len() < 20_000, "{}", bomb.len());
    assert_eq!(limited(&bomb, BOUNDS), "the number of values");
}

#[test]
fn values_of_a_fixed_size_take_their_room_where_they_are_null() {
    let item = Arc::new(arrow_schema::Field::new("item", DataType::Float64, true));
    let wide = arrow_schema::Field::new("wide", DataType::FixedSizeList(item, 1 << 28), true);
    assert!(padding(&Schema::new(vec![wide])) > UPLOAD_BATCH_BYTES);
}

#[test]
fn what_is_no_parquet_is_refused() {
    let whole = written(vec![numbers(100)]);
    for file in
        [Bytes::new(), Bytes::from_static(b"PAR1"), Bytes::from_static(b"PAR1PAR1"), whole.slice(..80)]
    {
        assert!(matches!(read(&file, BOUNDS).unwrap_err().fault, Fault::Malformed(_)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A changed byte is an error or another table, never a panic.
    #[test]
    fn damage_is_an_error(at in 0.0..1.0f64, to in any::<u8>()) {
        let names: ArrayRef = Arc::new(StringArray::from(vec!["a"; 50]));
        let mut file = written(vec![numbers(50), ("name", names)]).to_vec();
        let place = (file.len() as f64 * at) as usize;
        file[place] = to;
        let _ = read(&file.into(), BOUNDS);
    }
}
