use arrow_array::cast::AsArray as _;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Int32Array};
use trifid_archive_model::batch;

use super::*;
use crate::catalogue::{Published, SchemaInfo};
use crate::compute::Size;
use crate::limits::SMALL_SCAN_ROWS;
use crate::metadata::{Description, describe};
use crate::reference::Interpreter;
use crate::tap_schema::with_tap_schema;

/// One table `s.numbers` of a column `n` with so many rows, 0 and up.
fn archive(rows: usize) -> Archive {
    let fields = [Field::new("n", Type::Int)];
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..rows as i32));
    let (head, info) = describe("s", "numbers", &fields, &Description::default()).unwrap();
    let rows = batch::batch(&fields, vec![numbers], rows).unwrap();
    let table = Arc::new(Table::in_memory(head, &[rows], &[]).unwrap());
    let schemas = vec![SchemaInfo { name: "s".into(), ..SchemaInfo::default() }];
    let snapshot = with_tap_schema(1, schemas, vec![Arc::new(Published { table, info })]).unwrap();
    let compute = Compute::start(Size { threads: 1, running: 1, waiting: 1 }).unwrap();
    Archive::new(snapshot, Arc::new(Interpreter::default()), Arc::new(compute), 10)
}

async fn rows(archive: &Archive, text: &str, limit: Option<u64>) -> (Vec<i32>, bool) {
    let prepared = archive.prepare(text, Language::V2_1, Vec::new()).unwrap();
    let mut answer = archive.start(&prepared, limit, None).unwrap();
    let mut found = Vec::new();
    while let Some(batch) = answer.next().await.unwrap() {
        found.extend_from_slice(batch.column(0).as_primitive::<Int32Type>().values());
    }
    (found, answer.overflow())
}

#[tokio::test]
async fn overflow_is_exact() {
    let many = SMALL_SCAN_ROWS + 5_000;
    for (count, limit, given, overflow) in [
        (5, 4, 4, true),
        (5, 5, 5, false),
        (5, 6, 5, false),
        (5, 0, 0, true),
        (many, many - 1, many - 1, true),
        (many, many, many, false),
        (many, 9_000, 9_000, true),
    ] {
        let archive = archive(count);
        for text in [
            "SELECT n FROM s.numbers",
            "SELECT n FROM s.numbers ORDER BY n",
            "SELECT DISTINCT n FROM s.numbers",
        ] {
            let (found, withheld) = rows(&archive, text, Some(limit as u64)).await;
            assert_eq!((found.len(), withheld), (given, overflow), "{text}: {count} rows, limit {limit}");
        }
    }
    let (found, withheld) = rows(&archive(5), "SELECT TOP 3 n FROM s.numbers", Some(3)).await;
    assert_eq!((found.len(), withheld), (3, false), "TOP withholds nothing");
}

#[tokio::test]
async fn a_plan_serves_queries_that_differ_in_literals() {
    let archive = archive(100);
    for n in [3, 7, 99] {
        assert_eq!(rows(&archive, &format!("SELECT n FROM s.numbers WHERE n = {n}"), None).await.0, [n]);
    }
    assert_eq!(archive.plans(), 1);
    // Literals that shape the tree do not mix.
    assert_eq!(rows(&archive, "SELECT TOP 1 n, -n FROM s.numbers ORDER BY 1", None).await.0, [0]);
    assert_eq!(rows(&archive, "SELECT TOP 1 n, -n FROM s.numbers ORDER BY 2", None).await.0, [99]);
    // A literal that does not fit the place of the one before.
    assert_eq!(rows(&archive, "SELECT n FROM s.numbers WHERE n = 9999999999", None).await.0, [0; 0]);
    assert_eq!(rows(&archive, "SELECT n FROM s.numbers WHERE n = 8", None).await.0, [8]);
    // Through the backend too.
    for n in [2, 5] {
        let text = format!("SELECT MAX(n) FROM s.numbers WHERE n < {n} GROUP BY n / 1000");
        assert_eq!(rows(&archive, &text, None).await.0, [n - 1]);
    }
}

#[tokio::test]
async fn tap_schema_describes_itself() {
    let archive = archive(1);
    let count = |text: &'static str| {
        let prepared = archive.prepare(text, Language::V2_1, Vec::new()).unwrap();
        let answer = archive.start(&prepared, None, None).unwrap();
        answer.ready_rows().unwrap().iter().map(arrow_array::RecordBatch::num_rows).sum::<usize>()
    };
    assert_eq!(count("SELECT * FROM TAP_SCHEMA.tables"), 6);
    assert_eq!(count("SELECT * FROM tap_schema.columns WHERE table_name = 'TAP_SCHEMA.columns'"), 14);
    assert_eq!(count("SELECT \"size\" FROM TAP_SCHEMA.columns WHERE column_name = '\"size\"'"), 1);
    assert_eq!(count("SELECT schema_name FROM TAP_SCHEMA.schemas"), 2);
}

#[test]
fn mistakes_point_at_their_place() {
    let archive = archive(1);
    let say = |text: &str| archive.prepare(text, Language::V2_1, Vec::new()).err().unwrap().to_string();
    let unknown = say("SELECT n, m FROM s.numbers");
    assert!(unknown.starts_with("line 1, column 11:") && unknown.contains('^'), "{unknown}");
    assert!(say("SELECT n FROM s.nmbers").contains("s.numbers"));
    assert!(say("SELECT n FRM s.numbers").starts_with("line 1, column"));
}

#[tokio::test]
async fn an_answer_that_is_dropped_frees_its_turn() {
    let archive = archive(SMALL_SCAN_ROWS * 20);
    let prepared = archive.prepare("SELECT n FROM s.numbers", Language::V2_1, Vec::new()).unwrap();
    for _ in 0..20 {
        let mut answer = archive.start(&prepared, None, None).unwrap();
        assert!(answer.next().await.unwrap().is_some());
    }
    // Aborted tasks go when the pool gets to them; a new query waits for its turn and gets it.
    assert_eq!(rows(&archive, "SELECT DISTINCT TOP 1 n / 10000000 FROM s.numbers", None).await.0, [0]);
}

#[tokio::test]
async fn more_work_than_fits_is_refused() {
    let archive = archive(SMALL_SCAN_ROWS * 20);
    let prepared = archive.prepare("SELECT n FROM s.numbers", Language::V2_1, Vec::new()).unwrap();
    let kept: Vec<Result<Answer, QueryError>> =
        (0..5).map(|_| archive.start(&prepared, None, None)).collect();
    let busy = kept.iter().filter(|one| matches!(one, Err(QueryError::Busy))).count();
    // One runs, one waits.
    assert!(busy >= 3, "{busy}");
    drop(kept);
    // The pool takes a moment to notice.
    while let Err(QueryError::Busy) = archive.start(&prepared, None, None) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
