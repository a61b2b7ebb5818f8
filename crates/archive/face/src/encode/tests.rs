use std::collections::VecDeque;

use proptest::prelude::*;
use tokio::sync::mpsc;

use super::testing::{Given, Kept, Lines, Sent, counting};
use super::*;

fn pieces(width: usize) -> Pieces {
    Pieces::new(Lines::boxed(width), None).unwrap()
}

async fn text(rows: impl Rows, pieces: Pieces) -> (String, End, usize) {
    let mut sink = Kept::default();
    let end = run(rows, pieces, &mut sink).await.unwrap();
    (sink.text(), end, sink.0.iter().map(Vec::len).max().unwrap_or_default())
}

fn numbers(text: &str) -> Vec<i64> {
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

#[tokio::test]
async fn a_small_result_is_one_piece() {
    let mut sink = Kept::default();
    let rows = Given::new([counting(0, 2), counting(2, 1)]);
    assert_eq!(run(rows, pieces(1), &mut sink).await.unwrap(), End::Complete);
    assert_eq!((sink.text().as_str(), sink.0.len()), ("head\n0\n1\n2\nComplete\n", 1));
}

#[tokio::test]
async fn withheld_rows_are_told_at_the_end() {
    let rows = Given { overflow: true, ..Given::new([counting(0, 1)]) };
    let (text, end, _) = text(rows, pieces(1)).await;
    assert_eq!((text.as_str(), end), ("head\n0\nOverflow\n", End::Overflow));
}

#[tokio::test]
async fn a_late_failure_is_told_at_the_end_without_the_engines_words() {
    let mut rows = Given::new([counting(0, 1)]);
    rows.batches.push_back(Err(QueryError::internal("page 7 torn")));
    let (told, end, _) = text(rows, pieces(1)).await;
    assert!(told.starts_with("head\n0\nFailed") && !told.contains("page 7"), "{told}");
    assert!(matches!(end, End::Failed(_)));
    let mut rows = Given::new([]);
    rows.batches.push_back(Err(QueryError::invalid("division by zero")));
    let (told, ..) = text(rows, pieces(1)).await;
    assert!(told.contains("division by zero"), "{told}");
}

#[tokio::test]
async fn a_row_that_cannot_be_written_ends_the_result() {
    let writer = Box::new(Lines { width: 1, bad: 40 });
    let rows = Given::new([counting(0, 100)]);
    let (told, end, _) = text(rows, Pieces::new(writer, None).unwrap()).await;
    assert!(told.contains("row 40 of column n: it is bad"), "{told}");
    assert!(matches!(end, End::Failed(_)));
}

#[tokio::test]
async fn pieces_stay_small_whatever_the_rows() {
    for (rows, width) in [(100_000, 1), (2_000, 1_000), (40, 60_000)] {
        let (text, _, largest) = text(Given::new([counting(0, rows)]), pieces(width)).await;
        assert_eq!(numbers(&text), (0..rows as i64).collect::<Vec<_>>());
        assert!(largest <= 2 * PIECE_BYTES + ROWS_FIRST * width, "{rows} rows of {width}: {largest}");
    }
}

#[tokio::test]
async fn what_is_encoded_goes_out_before_more_is_waited_for() {
    for coding in [None, Some(Coding::Gzip), Some(Coding::Zstd)] {
        let (sender, receiver) = mpsc::channel(1);
        let (out, mut pieces) = mpsc::unbounded_channel();
        let mut sink = Passed(out);
        let encoded = Pieces::new(Lines::boxed(1), coding).unwrap();
        let task = tokio::spawn(async move { run(Sent(receiver), encoded, &mut sink).await.unwrap() });
        let head = pieces.recv().await.unwrap();
        assert!(!head.is_empty(), "the head is there before any row");
        sender.send(counting(0, 3)).await.unwrap();
        let first = pieces.recv().await.unwrap();
        assert!(!first.is_empty());
        if coding.is_none() {
            assert_eq!((&*head, &*first), (&b"head\n"[..], &b"0\n1\n2\n"[..]));
        }
        drop(sender);
        assert_eq!(task.await.unwrap(), End::Complete);
    }
}

/// A sink whose pieces a test takes.
struct Passed(mpsc::UnboundedSender<Vec<u8>>);

impl Sink for Passed {
    async fn push(&mut self, piece: Vec<u8>) -> Result<(), Lost> {
        self.0.send(piece).map_err(|_| Lost::Gone)
    }

    async fn during<T: Send>(&mut self, work: impl Future<Output = T> + Send) -> Result<T, Lost> {
        Ok(work.await)
    }
}

#[test]
fn a_whole_result_is_the_same_document() {
    let out = whole(Lines::boxed(1), &[counting(0, 2), counting(2, 1)], &End::Overflow, 16);
    assert_eq!(out.unwrap(), b"head\n0\n1\n2\nOverflow\n");
    let out = whole(Box::new(Lines { width: 1, bad: 0 }), &[counting(0, 2)], &End::Complete, 16);
    assert!(out.unwrap_err().contains("it is bad"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_row_is_written_once(
        sizes in proptest::collection::vec(1_usize..3000, 0..6),
        width in prop_oneof![Just(1_usize), 1_usize..400],
        coded in any::<bool>(),
    ) {
        let mut first = 0;
        let batches: VecDeque<_> = sizes.iter().map(|size| {
            let batch = counting(first, *size);
            first += *size as i64;
            batch
        }).collect();
        let coding = coded.then_some(Coding::Gzip);
        let pieces = Pieces::new(Lines::boxed(width), coding).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut sink = Kept::default();
        runtime.block_on(run(Given::new(batches), pieces, &mut sink)).unwrap();
        let bytes = sink.0.concat();
        let text = if coded {
            let mut out = String::new();
            std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&*bytes), &mut out).unwrap();
            out
        } else {
            String::from_utf8(bytes).unwrap()
        };
        prop_assert_eq!(numbers(&text), (0..first).collect::<Vec<_>>());
    }
}
