use std::io::Write as _;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type};
use trifid_archive_engine::limits::CHUNK_ROWS;
use trifid_archive_engine::table::Table;

use super::*;

mod attached;

struct Quiet;

impl Progress for Quiet {
    fn rows(&self, _: u64) {}
    fn step(&self, _: &str) {}
}

fn target(table: &str) -> Target {
    Target { schema: "s".into(), table: table.into(), description: None }
}

fn store(folder: &Path) -> Store {
    Store::new(folder.join("tables"), Arc::new(ColumnCache::new(64 << 20)))
}

/// A catalogue whose positions jump about the sky.
fn csv(folder: &Path, name: &str, rows: usize) -> PathBuf {
    let mut text = "id,ra,dec,mag,name\n".to_owned();
    for row in 0..rows {
        let (ra, dec) = ((row * 7919) % 360_000, (row * 104_729) % 180_000);
        let mag = if row % 10 == 3 { String::new() } else { format!("{}", row % 17) };
        text += &format!("{row},{},{},{mag},star {row}\n", ra as f64 / 1e3, dec as f64 / 1e3 - 90.0);
    }
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

fn load(store: &Store, files: &[PathBuf], target: &Target) -> Result<Loaded, StoreError> {
    store.load(&mut files.iter().map(|path| open_input(path)), target, &Quiet)
}

/// All values of the column `id`, chunk by chunk.
fn ids(table: &Table) -> Vec<i64> {
    let read = |chunk: usize| {
        let column = table.column(chunk, 0).unwrap();
        let wide = datafusion::arrow::compute::cast(&column, &arrow_schema::DataType::Int64).unwrap();
        wide.as_primitive::<Int64Type>().values().to_vec()
    };
    (0..table.chunks.len()).flat_map(read).collect()
}

#[test]
fn a_catalogue_is_loaded_in_the_order_of_the_sky() {
    let folder = tempfile::tempdir().unwrap();
    let rows = CHUNK_ROWS + 1_000;
    let store = store(folder.path());
    let loaded = load(&store, &[csv(folder.path(), "a.csv", rows)], &target("stars")).unwrap();
    assert_eq!((loaded.rows, loaded.has_position), (rows as u64, true));
    let stored = store.open("s", "stars").unwrap();
    let table = &stored.published.table;
    assert_eq!(table.chunks.iter().map(|chunk| chunk.rows as usize).collect::<Vec<_>>(), [CHUNK_ROWS, 1_000]);
    let spatial = table.indexes.spatial.as_ref().unwrap();
    let mut last = i64::MIN;
    for chunk in 0..2 {
        let cells = table.column(chunk, spatial.column).unwrap();
        let cells = cells.as_primitive::<Int64Type>().values().clone();
        assert!(cells.is_sorted() && cells[0] >= last);
        assert_eq!(spatial.chunks[chunk], (cells[0], cells[cells.len() - 1]));
        last = cells[cells.len() - 1];
    }
    let mut found = ids(table);
    found.sort_unstable();
    assert!(found.iter().copied().eq(0..rows as i64));
    // The identifier has an index, which survived.
    let sorted = table.indexes.sorted(0).unwrap();
    assert_eq!(sorted.rows.len(), rows);
    let magnitudes = table.column(0, 3).unwrap();
    assert!(magnitudes.null_count() > 0);
    assert!(table.chunks[0].ranges[3].as_ref().unwrap().nulls);
}

#[test]
fn a_new_load_takes_the_place_of_the_old_and_a_failed_one_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    load(&store, &[csv(folder.path(), "a.csv", 10)], &target("stars")).unwrap();
    let before = store.state().unwrap();
    let served = store.open("s", "stars").unwrap();
    let broken = folder.path().join("broken.csv");
    let mut file = fs::File::create(&broken).unwrap();
    file.write_all(b"id,ra,dec,mag,name\n1,2,3,4,\"never closed\n").unwrap();
    drop(file);
    assert!(matches!(load(&store, &[broken], &target("stars")), Err(StoreError::Input { .. })));
    assert_eq!(store.state().unwrap(), before);
    assert_eq!(store.open("s", "stars").unwrap().published.table.rows(), 10);
    load(&store, &[csv(folder.path(), "b.csv", 20)], &target("stars")).unwrap();
    assert_ne!(store.state().unwrap(), before);
    assert_eq!(store.open("s", "stars").unwrap().published.table.rows(), 20);
    // A server that still has the old version open reads it.
    assert_eq!(ids(&served.published.table).len(), 10);
}

#[test]
fn files_of_one_table_must_agree() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let other = folder.path().join("other.csv");
    fs::write(&other, "id,ra,dec,mag,nam\n1,2.5,3.5,4,x\n").unwrap();
    let files = [csv(folder.path(), "a.csv", 10), other];
    let error = load(&store, &files, &target("stars")).unwrap_err().to_string();
    assert!(
        error.ends_with("other.csv has the column nam VARCHAR where the first file has name VARCHAR"),
        "{error}"
    );
    assert!(store.list().unwrap().is_empty());
    let both = [csv(folder.path(), "a.csv", 10), csv(folder.path(), "b.csv", 5)];
    assert_eq!(load(&store, &both, &target("stars")).unwrap().rows, 15);
}

#[test]
fn what_is_said_of_a_table_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let text = "[table]\ndescription = 'Stars'\n[column.mag]\nindexed = true\nunit = 'mag'\n";
    let said = Target { description: Some(text.into()), ..target("stars") };
    load(&store, &[csv(folder.path(), "a.csv", 10)], &said).unwrap();
    let stored = store.open("s", "stars").unwrap();
    assert_eq!(stored.published.info.description.as_deref(), Some("Stars"));
    assert_eq!(stored.published.table.head.fields[3].unit.as_deref(), Some("mag"));
    assert!(stored.published.table.indexes.sorted(3).is_some());
    // A load that says nothing keeps it; a mistake in it is refused before anything is written.
    load(&store, &[csv(folder.path(), "a.csv", 10)], &target("stars")).unwrap();
    assert_eq!(store.open("s", "stars").unwrap().published.info.description.as_deref(), Some("Stars"));
    let wrong = Target { description: Some("[column.magg]\nunit = 'mag'".into()), ..target("stars") };
    let error = load(&store, &[csv(folder.path(), "a.csv", 10)], &wrong).unwrap_err().to_string();
    assert!(error.contains("magg") && error.contains("did you mean mag?"), "{error}");
    assert_eq!(store.open("s", "stars").unwrap().published.table.rows(), 10);
}

#[test]
fn a_description_may_change_what_a_position_is() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    load(&store, &[csv(folder.path(), "a.csv", 50)], &target("stars")).unwrap();
    assert!(store.open("s", "stars").unwrap().published.table.indexes.spatial.is_some());
    let file = store.folder_of("s", "stars").join("table.toml");
    let moved = "[column.ra]\nucd = 'pos.eq.dec;meta.main'\n[column.dec]\nucd = 'pos.eq.ra;meta.main'\n";
    fs::write(&file, moved).unwrap();
    let stored = store.open("s", "stars").unwrap();
    assert_eq!(
        stored.published.table.head.position.map(|position| (position.lon, position.lat)),
        Some((2, 1))
    );
    assert!(stored.published.table.indexes.spatial.is_none(), "the rows are in the order of other columns");
    // What does not fit the table is not in the way of serving it.
    fs::write(&file, "[column.gone]\nunit = 'm'\n").unwrap();
    assert_eq!(store.open("s", "stars").unwrap().published.table.rows(), 50);
}

#[test]
fn results_in_parquet_are_tables_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    load(&store, &[csv(folder.path(), "a.csv", 100)], &target("stars")).unwrap();
    let stored = store.open("s", "stars").unwrap();
    let table = &stored.published.table;
    let fields = Arc::clone(&table.head.fields);
    let columns = (0..fields.len()).map(|column| table.column(0, column).unwrap()).collect();
    let rows = trifid_archive_model::batch::batch(&fields, columns, 100).unwrap();
    let bytes = written(&fields, &rows);
    let file = folder.path().join("result.parquet");
    fs::write(&file, &bytes).unwrap();
    let mut input = open_input(&file).unwrap();
    assert_eq!(input.reader.fields(), &fields, "the header in the file says what the columns are");
    assert_eq!(input.reader.next_batch(1000).unwrap().unwrap(), rows);
    // Attached as it lies, and loaded, it is the same table.
    let attached = store.attach(&file, &target("attached")).unwrap().published.table.clone();
    assert_eq!(attached.head.position, table.head.position);
    assert_eq!(ids(&attached), ids(table));
    load(&store, &[file], &target("again")).unwrap();
    assert_eq!(ids(&store.open("s", "again").unwrap().published.table), ids(table));
    assert_eq!(store.list().unwrap().len(), 3);
    store.drop_table("s", "attached").unwrap();
    assert_eq!(store.list().unwrap().len(), 2);
    assert!(matches!(store.drop_table("s", "attached"), Err(StoreError::Missing(_))));
}

fn written(fields: &Arc<[trifid_archive_adql::types::Field]>, rows: &arrow_array::RecordBatch) -> Vec<u8> {
    use trifid_archive_model::write::{End, Head, TableWriter};

    let mut out = Vec::new();
    let mut writer: Box<dyn TableWriter> = Box::new(ParquetResult::new(Head::new(Arc::clone(fields))));
    writer.begin(&mut out);
    writer.rows(rows, 0..rows.num_rows(), &mut out).unwrap();
    writer.finish(&End::Overflow, &mut out);
    out
}

/// A HATS catalogue of two partitions whose rows are in no order.
fn hats(folder: &Path) -> PathBuf {
    let root = folder.join("catalogue");
    let rows = |first: i64, ra: f64| {
        let ids = arrow_array::Int64Array::from_iter_values(first..first + 50);
        let ras = arrow_array::Float64Array::from_iter_values(
            (0..50).map(|row| ra + f64::from((row * 37) % 50) / 100.0),
        );
        let decs = arrow_array::Float64Array::from_iter_values((0..50).map(|row| f64::from(row) / 100.0));
        let cells = ras
            .values()
            .iter()
            .zip(decs.values())
            .map(|(ra, dec)| trifid_archive_model::healpix::hash29(*ra, *dec).unwrap() as i64);
        let cells = arrow_array::Int64Array::from_iter_values(cells);
        arrow_array::RecordBatch::try_from_iter([
            ("_healpix_29", Arc::new(cells) as arrow_array::ArrayRef),
            ("id", Arc::new(ids) as arrow_array::ArrayRef),
            ("ra", Arc::new(ras) as arrow_array::ArrayRef),
            ("dec", Arc::new(decs) as arrow_array::ArrayRef),
        ])
        .unwrap()
    };
    for (pixel, batch) in [(10, rows(0, 10.0)), (300, rows(50, 200.0))] {
        let dir = root.join("dataset/Norder=2/Dir=0");
        fs::create_dir_all(&dir).unwrap();
        let file = fs::File::create(dir.join(format!("Npix={pixel}.parquet"))).unwrap();
        let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }
    fs::write(root.join("hats.properties"), "hats_nrows=100\n").unwrap();
    fs::write(root.join("partition_info.csv"), "Norder,Npix\n2,10\n2,300\n").unwrap();
    root
}

#[test]
fn a_hats_catalogue_is_pruned_over_the_sky() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let attached = store.attach(&hats(folder.path()), &target("hats")).unwrap();
    let table = &attached.published.table;
    assert_eq!((table.rows(), table.chunks.len()), (100, 2));
    let spatial = table.indexes.spatial.as_ref().unwrap();
    assert_eq!((spatial.column, spatial.ordered), (0, false));
    // Ask through the index path, as a query does.
    let near = rows_near(table, 10.2, 0.2, 0.05);
    let expected: Vec<u32> = (0..100)
        .filter(|row| {
            let (chunk, row) = (row / 50, row % 50);
            let value = |column| {
                table
                    .column(chunk as usize, column)
                    .unwrap()
                    .as_primitive::<Float64Type>()
                    .value(row as usize)
            };
            trifid_archive_model::sphere::distance(value(2), value(3), 10.2, 0.2) <= 0.05
        })
        .collect();
    assert!(
        !expected.is_empty() && expected.iter().all(|row| near.contains(row)),
        "{near:?} lacks some of {expected:?}"
    );
    assert!(near.iter().all(|row| *row < 50), "the other partition is not looked at");
}

/// The rows that the index path would look at for a cone.
fn rows_near(table: &Arc<Table>, ra: f64, dec: f64, radius: f64) -> Vec<u32> {
    use trifid_archive_adql::functions::Function;
    use trifid_archive_adql::tree::{ColumnRef, Expr, Kind, Literal, Value};
    use trifid_archive_adql::types::Type;

    let real = |value: f64| Expr {
        kind: Kind::Literal(Literal { value: Value::Double(value), slot: None }),
        ty: Type::Double,
    };
    let column = |column: usize| Expr {
        kind: Kind::Column(ColumnRef { depth: 0, relation: 0, column: column as u32 }),
        ty: Type::Double,
    };
    let position = table.head.position.unwrap();
    let point = Expr {
        kind: Kind::Call(Function::Point, vec![column(position.lon), column(position.lat)]),
        ty: Type::Point,
    };
    let circle = Expr {
        kind: Kind::Call(Function::Circle, vec![real(ra), real(dec), real(radius)]),
        ty: Type::Circle,
    };
    let contains = Expr { kind: Kind::Call(Function::Contains, vec![point, circle]), ty: Type::Boolean };
    match trifid_archive_engine::access::select(table, &[contains]).unwrap() {
        trifid_archive_engine::access::Selection::Rows(rows) => rows,
        trifid_archive_engine::access::Selection::Runs(runs) => runs
            .into_iter()
            .flat_map(|run| run.rows.map(move |row| row + table.chunks[run.chunk].first).collect::<Vec<_>>())
            .collect(),
    }
}

#[test]
fn runs_on_disk_are_merged_in_order() {
    use arrow_array::{Int64Array, RecordBatch};

    let folder = tempfile::tempdir().unwrap();
    let schema: arrow_schema::SchemaRef = Arc::new(arrow_schema::Schema::new(vec![
        arrow_schema::Field::new("n", arrow_schema::DataType::Int64, true),
        arrow_schema::Field::new("cell", arrow_schema::DataType::Int64, false),
    ]));
    let run = |from: i64, step: i64, count: i64| {
        let cells = Int64Array::from_iter_values((0..count).map(|at| from + at * step));
        let numbers = Int64Array::from_iter_values((0..count).map(|at| -(from + at * step)));
        RecordBatch::try_new(schema.clone(), vec![Arc::new(numbers), Arc::new(cells)]).unwrap()
    };
    let runs = [run(0, 3, 20_000), run(1, 3, 9_000), run(2, 3, 1), run(5, 1, 0)];
    let spilled: Vec<merge::Run> = runs
        .iter()
        .enumerate()
        .map(|(at, run)| merge::spill(run, &folder.path().join(format!("run-{at}"))).unwrap())
        .collect();
    let (mut cells, mut numbers): (Vec<i64>, Vec<i64>) = Default::default();
    merge::merge(spilled, &schema, &mut |batch| {
        cells.extend_from_slice(batch.column(1).as_primitive::<Int64Type>().values());
        numbers.extend_from_slice(batch.column(0).as_primitive::<Int64Type>().values());
        Ok(())
    })
    .unwrap();
    assert_eq!(cells.len(), 29_001);
    assert!(cells.is_sorted() && cells.iter().zip(&numbers).all(|(cell, number)| *cell == -number));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "the runs are gone");
}

#[test]
fn one_loader_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    load(&store, &[csv(folder.path(), "a.csv", 3)], &target("stars")).unwrap();
    let _held = lock(&store.folder_of("s", "stars")).unwrap();
    let second = load(&store, &[csv(folder.path(), "a.csv", 3)], &target("stars"));
    assert!(matches!(second, Err(StoreError::Locked)));
}
