//! Attached files by pages, and what is known of them before they are read.

use arrow_array::{Array as _, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};
use parquet::file::properties::WriterProperties;
use trifid_archive_adql::types::Type;
use trifid_archive_engine::catalogue::{Snapshot, Tables};
use trifid_archive_model::{healpix, sphere};

use super::*;
use crate::limits::PAGE_CHUNK_ROWS;
use crate::query::tests::{backend, compare, resolved, tables};

/// Rows along the sky, or in disorder.
fn rows(count: i64, seed: i64, ordered: bool) -> RecordBatch {
    let place = |row: i64| ((row * 7919 + seed) % 3600) as f64 / 10.0;
    let mut stars: Vec<(i64, f64, f64)> = (0..count)
        .map(|row| {
            let (ra, dec) = (place(row), ((row * 104_729 + seed) % 1790) as f64 / 10.0 - 89.5);
            (healpix::hash29(ra, dec).unwrap() as i64, ra, dec)
        })
        .collect();
    if ordered {
        stars.sort_by_key(|star| star.0);
    }
    let column = |value: fn(&(i64, f64, f64)) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(stars.iter().map(value)))
    };
    let cells = Int64Array::from_iter_values(stars.iter().map(|star| star.0));
    let names = StringArray::from_iter_values((0..count).map(|row| format!("star {}", row % 700)));
    RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from_iter_values(0..count)) as ArrayRef),
        ("ra", column(|star| star.1)),
        ("dec", column(|star| star.2)),
        ("_healpix_29", Arc::new(cells)),
        ("name", Arc::new(names)),
    ])
    .unwrap()
}

/// Pages of about a thousand rows in row groups of fifty thousand.
fn write(path: &Path, rows: &RecordBatch) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let properties = WriterProperties::builder()
        .set_data_page_row_count_limit(1_000)
        .set_write_batch_size(500)
        .set_max_row_group_row_count(Some(50_000))
        .build();
    let mut writer =
        ArrowWriter::try_new(fs::File::create(path).unwrap(), rows.schema(), Some(properties)).unwrap();
    writer.write(rows).unwrap();
    writer.close().unwrap();
}

/// The values of a column, over all chunks.
fn all(table: &Table, column: usize) -> ArrayRef {
    let chunks: Vec<ArrayRef> =
        (0..table.chunks.len()).map(|chunk| table.column(chunk, column).unwrap()).collect();
    for (chunk, values) in table.chunks.iter().zip(&chunks) {
        assert_eq!(chunk.rows as usize, values.len());
    }
    let chunks: Vec<&dyn arrow_array::Array> = chunks.iter().map(AsRef::as_ref).collect();
    arrow_select::concat::concat(&chunks).unwrap()
}

/// Overwrites every data page of a file without any of these rows of its only row group; says how many were spared.
fn spoil(path: &Path, spared: &std::ops::Range<i64>) -> (usize, usize) {
    let bytes = bytes::Bytes::from(fs::read(path).unwrap());
    let mut reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
    reader.try_parse(&bytes).unwrap();
    let footer = reader.finish().unwrap();
    assert_eq!(footer.num_row_groups(), 1);
    let mut spoiled = bytes.to_vec();
    let (mut kept, mut pages) = (0, 0);
    for column in &footer.offset_index().unwrap()[0] {
        let places = column.page_locations();
        for (at, place) in places.iter().enumerate() {
            let end = places.get(at + 1).map_or(footer.row_group(0).num_rows(), |next| next.first_row_index);
            pages += 1;
            if place.first_row_index < spared.end && end > spared.start {
                kept += 1;
                continue;
            }
            let from = place.offset as usize;
            spoiled[from..from + place.compressed_page_size as usize].fill(0xff);
        }
    }
    fs::write(path, spoiled).unwrap();
    (kept, pages)
}

#[test]
fn pages_are_pruned_over_the_sky() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("catalogue/dataset/Norder=0/Dir=0/Npix=0.parquet");
    let stars = rows(40_000, 0, true);
    write(&file, &stars);
    let store = store(folder.path());
    let attached = store.attach(&folder.path().join("catalogue"), &target("hats")).unwrap();
    let table = &attached.published.table;
    assert_eq!(table.rows(), 40_000);
    let least = PAGE_CHUNK_ROWS..PAGE_CHUNK_ROWS + 2_000;
    assert!(table.chunks.len() > 3, "{} chunks", table.chunks.len());
    assert!(table.chunks[..table.chunks.len() - 1].iter().all(|chunk| least.contains(&chunk.rows)));
    // The rows of a cone, by way of the pages and by looking at all of them.
    let (ra, dec, radius) = (stars.column(1).as_primitive::<Float64Type>(), stars.column(2), 1.5);
    let dec = dec.as_primitive::<Float64Type>();
    let near = rows_near(table, 150.0, 2.0, radius);
    let inside =
        |row: &u32| sphere::distance(ra.value(*row as usize), dec.value(*row as usize), 150.0, 2.0) <= radius;
    let expected: Vec<u32> = (0..40_000).filter(inside).collect();
    let found: Vec<u32> = near.iter().copied().filter(inside).collect();
    assert!(!expected.is_empty());
    assert_eq!(found, expected);
    let touched: std::collections::BTreeSet<usize> = near.iter().map(|row| table.chunk_of(*row)).collect();
    assert_eq!(touched.len(), 1, "all of them are in the pages of one chunk");
    // What is read is what was written, whatever pages it came by.
    for column in 0..5 {
        assert_eq!(&all(table, column), stars.column(column));
    }
}

#[test]
fn other_pages_are_neither_read_nor_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stars.parquet");
    let stars = rows(40_000, 0, true);
    write(&file, &stars);
    // Nothing is kept of what was read, so that everything is read anew.
    let store = Store::new(folder.path().join("tables"), Arc::new(ColumnCache::new(0)));
    let table = store.attach(&file, &target("stars")).unwrap().published.table.clone();
    let chunk = &table.chunks[2];
    let from = i64::from(chunk.first);
    let (kept, pages) = spoil(&file, &(from..from + i64::from(chunk.rows)));
    assert!(kept > 0 && kept * 3 < pages, "{kept} of {pages} pages");
    for column in 0..5 {
        let expected = stars.column(column).slice(chunk.first as usize, chunk.rows as usize);
        assert_eq!(&table.column(2, column).unwrap(), &expected);
        assert!(table.column(0, column).is_err(), "its pages were overwritten");
    }
    // A cone that lies in the pages that are whole is found without the others.
    let (ra, dec) = (stars.column(1), stars.column(2));
    let row = chunk.first as usize + chunk.rows as usize / 2;
    let place = |column: &ArrayRef| column.as_primitive::<Float64Type>().value(row);
    assert!(rows_near(&table, place(ra), place(dec), 1e-6).contains(&(row as u32)));
}

#[test]
fn rows_in_disorder_are_found_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stars.parquet");
    write(&file, &rows(20_000, 3, false));
    let store = store(folder.path());
    let attached = store.attach(&file, &target("stars")).unwrap();
    let mine = tables::table(
        "TAP_UPLOAD",
        "mine",
        vec![
            ("ra", Type::Double, Arc::new(Float64Array::from(vec![12.3, 200.1, 355.0]))),
            ("dec", Type::Double, Arc::new(Float64Array::from(vec![-3.0, 45.2, 0.0]))),
        ],
        &[],
    );
    let schemas = vec![attached.schema];
    let snapshot = Snapshot::new(1, schemas, vec![attached.published]);
    let uploads = vec![Arc::new(mine)];
    let catalogue = Arc::new(Tables { snapshot: Arc::new(snapshot), uploads });
    // The join tells the scan of the stars where partners can be.
    let text =
        "SELECT s.id FROM TAP_UPLOAD.mine AS m JOIN s.stars AS s ON DISTANCE(m.ra, m.dec, s.ra, s.dec) < 2";
    let query = resolved(text, &catalogue);
    let found = compare(&backend(1), &query, &catalogue);
    assert!(matches!(found, Ok(1..)), "{found:?}");
}

#[test]
fn footers_are_read_when_they_are_needed() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("catalogue");
    let file = |number: usize| place.join(format!("{number}.parquet"));
    for number in 0..5 {
        write(&file(number), &rows(2_000 + number as i64, number as i64, true));
    }
    let before = store(folder.path()).attach(&place, &target("hats")).unwrap().published.table.clone();
    let again = store(folder.path());
    let opened = again.open("s", "hats").unwrap().published.table.clone();
    assert_eq!(again.footers.len(), 1, "the first says what the columns are");
    assert_eq!(opened.rows(), before.rows());
    assert_eq!(format!("{:?}", opened.chunks), format!("{:?}", before.chunks));
    assert_eq!(opened.indexes.spatial, before.indexes.spatial);
    assert_eq!(opened.column(3, 0).unwrap().len(), 2_003);
    assert_eq!(again.footers.len(), 2);
    for column in 0..5 {
        assert_eq!(&all(&opened, column), &all(&before, column));
    }
    assert_eq!(again.footers.len(), 5);
    // Other files are another table; one that changes under an open one is noticed.
    write(&file(4), &rows(3_000, 0, true));
    let changed = store(folder.path()).open("s", "hats").unwrap().published.table.clone();
    assert_eq!(changed.rows(), before.rows() - 2_004 + 3_000);
    assert_eq!(&all(&changed, 0).len(), &(changed.rows() as usize));
    let late = store(folder.path());
    let late = late.open("s", "hats").unwrap().published.table.clone();
    write(&file(2), &rows(10, 0, true));
    assert!(late.column(2, 0).unwrap_err().to_string().contains("has changed"));
    // What was kept is not believed when it is broken.
    let kept = again.folder_of("s", "hats").join(SURVEY);
    fs::write(&kept, "{\"layout\":1").unwrap();
    assert_eq!(
        store(folder.path()).open("s", "hats").unwrap().published.table.rows(),
        changed.rows() - 1_992
    );
    assert!(fs::metadata(&kept).unwrap().len() > 100, "it was learned anew");
}

#[test]
fn few_footers_are_held() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("catalogue");
    for number in 0..40 {
        write(&place.join(format!("{number:02}.parquet")), &rows(100, number, true));
    }
    let small = Store { footers: Arc::new(source::Footers::new(100_000)), ..store(folder.path()) };
    let table = small.attach(&place, &target("hats")).unwrap().published.table.clone();
    assert_eq!(all(&table, 4).len(), 4_000);
    assert!(small.footers.len() < 40, "{} are held", small.footers.len());
}
