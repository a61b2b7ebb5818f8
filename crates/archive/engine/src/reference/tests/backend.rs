use std::future::poll_fn;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::RecordBatch;
use trifid_archive_adql::types::Type;

use super::{lines, longs, resolved, sky, table, tables};
use crate::backend::{BatchStream, QueryBackend, Run};
use crate::catalogue::Tables;
use crate::error::QueryError;
use crate::reference::{Cancel, Interpreter};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap()
}

fn run(text: &str, tables: &Arc<Tables>, limit: Option<u64>) -> Run {
    Run {
        query: resolved(text, tables),
        plan: None,
        tables: Arc::clone(tables),
        limit,
        cancel: Cancel::default(),
    }
}

async fn next(stream: &mut BatchStream) -> Option<Result<RecordBatch, QueryError>> {
    poll_fn(|context| stream.as_mut().poll_next(context)).await
}

async fn all(mut stream: BatchStream) -> Result<Vec<RecordBatch>, QueryError> {
    let mut batches = Vec::new();
    while let Some(batch) = next(&mut stream).await {
        batches.push(batch?);
    }
    Ok(batches)
}

/// A hundred rows, so that three of it are too many to be answered at once.
fn numbers() -> Arc<Tables> {
    let column: Vec<Option<i64>> = (0..100).map(Some).collect();
    tables(vec![table("n", vec![("x", Type::Long, longs(&column))])])
}

const LARGE: &str = "SELECT a.x FROM t.n AS a, t.n AS b, t.n AS c";

#[test]
fn small_queries_are_there_at_once() {
    let tables = sky();
    let (interpreter, run) = (Interpreter::default(), run("SELECT id FROM t.star", &tables, Some(3)));
    let fields = Arc::clone(&run.query.fields);
    let batches = runtime().block_on(async { all(interpreter.run(run).await.unwrap()).await.unwrap() });
    assert_eq!(lines(&fields, &batches), ["1", "2", "3"]);
    let failing = super::backend::run("SELECT 1 / (id - 1) AS x FROM t.star", &tables, None);
    let error = runtime().block_on(async { interpreter.run(failing).await.err().unwrap() });
    assert_eq!(error.to_string(), "division by zero in 1 / 0");
}

#[test]
fn large_ones_stream() {
    let tables = numbers();
    let interpreter = Interpreter::default();
    let count = |text: &str, limit| {
        let run = run(text, &tables, limit);
        let batches = runtime().block_on(async { all(interpreter.run(run).await.unwrap()).await });
        batches.map(|batches| batches.iter().map(RecordBatch::num_rows).sum::<usize>())
    };
    assert_eq!(count(LARGE, None).unwrap(), 1_000_000);
    assert_eq!(count(LARGE, Some(12_345)).unwrap(), 12_345);
    let failing = "SELECT 1 / (a.x - 99) AS x FROM t.n AS a, t.n AS b, t.n AS c";
    assert_eq!(count(failing, None).unwrap_err().to_string(), "division by zero in 1 / 0");
}

#[test]
fn a_reader_that_leaves_ends_the_query() {
    let tables = numbers();
    let endless = format!("SELECT COUNT(*) AS n FROM ({LARGE}) AS d, ({LARGE}) AS e");
    let runtime = runtime();
    let stream =
        runtime.block_on(async { Interpreter::default().run(run(&endless, &tables, None)).await.unwrap() });
    drop(stream);
    // Returns only when the query's thread has.
    drop(runtime);
}

#[test]
fn a_cancelled_query_is_aborted() {
    let tables = numbers();
    let query = resolved(LARGE, &tables);
    let cancel = Cancel::default();
    let mut batches = 0;
    let done = Interpreter::default().execute(&query, &tables, &cancel, &mut |_| {
        batches += 1;
        cancel.set();
        ControlFlow::Continue(())
    });
    assert!(matches!(done, Err(QueryError::Aborted)), "{done:?}");
    assert_eq!(batches, 1);
}

#[test]
fn a_query_ends_when_its_time_is_over() {
    let tables = numbers();
    let query = resolved(LARGE, &tables);
    let over = Cancel::after(Some(std::time::Duration::ZERO));
    let done = Interpreter::default().execute(&query, &tables, &over, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(done, Err(QueryError::TimedOut { seconds: 0 })), "{done:?}");
}

#[test]
fn a_reader_may_break_off() {
    let tables = numbers();
    let query = resolved(LARGE, &tables);
    let mut batches = 0;
    let done = Interpreter::default().execute(&query, &tables, &Cancel::default(), &mut |_| {
        batches += 1;
        if batches == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(done.is_ok());
    assert_eq!(batches, 2);
}
