//! A result on its way to a client, who may be slow, or leave.
//!
//! ```text
//! direct:   pieces ----------------------> channel (4 pieces) --> connection
//! spooled:  pieces --> tape --reads-----> channel             --> connection
//! ```
//!
//! A client may keep its query waiting for so long in all; then the pieces go to a tape of the spool and the query runs
//! on to its end. When the tape has been read through, the next piece goes directly again. A client that leaves
//! is noticed at the next piece, or while the query has none: then everything is dropped, which ends the query.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use tokio::time::{Instant, timeout};
use trifid_base_web::{BodySender, Gone};

use crate::encode::{Lost, Sink};
use crate::spool::{Spool, Tape, Wrote};

impl From<Gone> for Lost {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

/// The way to one client.
pub(crate) struct Outlet {
    sender: BodySender,
    spool: Arc<Spool>,
    /// How long the client may still let its query wait.
    patience: Duration,
    tape: Option<Tape>,
}

impl Outlet {
    /// The way through `sender`, with a detour over `spool` for whoever takes longer than `patience`.
    pub(crate) fn new(sender: BodySender, spool: Arc<Spool>, patience: Duration) -> Self {
        Self { sender, spool, patience, tape: None }
    }

    /// The tape, while something on it waits.
    fn waiting(&mut self) -> Option<&mut Tape> {
        self.tape.as_mut().filter(|tape| !tape.is_empty())
    }

    /// Sends a piece, or tells that the client is out of patience.
    async fn send(&mut self, piece: Vec<u8>) -> Result<Option<Vec<u8>>, Lost> {
        let begun = Instant::now();
        match timeout(self.patience, self.sender.slot()).await {
            Ok(slot) => slot?.put(piece.into()),
            Err(_) => {
                self.patience = Duration::ZERO;
                return Ok(Some(piece));
            }
        }
        self.patience = self.patience.saturating_sub(begun.elapsed());
        Ok(None)
    }

    /// Puts a piece on the tape. With the quota used up there is only waiting.
    async fn lay(&mut self, piece: Vec<u8>) -> Result<(), Lost> {
        let tape = match &mut self.tape {
            Some(tape) => tape,
            None => self.tape.insert(self.spool.open()?),
        };
        match tape.write(&piece)? {
            Wrote::Whole => Ok(()),
            Wrote::Full => {
                self.drain().await?;
                Ok(self.sender.send(piece.into()).await?)
            }
        }
    }

    /// Hands over everything that waits.
    async fn drain(&mut self) -> Result<(), Lost> {
        while let Some(tape) = self.tape.as_mut().filter(|tape| !tape.is_empty()) {
            let slot = self.sender.slot().await?;
            slot.put(tape.read()?);
        }
        Ok(())
    }

    /// Ends the message well, once everything has been handed over.
    pub(crate) async fn finish(mut self, trailers: Option<HeaderMap>) -> Result<(), Lost> {
        self.drain().await?;
        match trailers {
            Some(trailers) => Ok(self.sender.finish_with(trailers).await?),
            None => Ok(self.sender.finish().await?),
        }
    }

    /// Hands over everything and then tears the message: its format has no way to say that it is not whole.
    pub(crate) async fn tear(mut self) -> Result<(), Lost> {
        self.drain().await
    }
}

impl Sink for Outlet {
    async fn push(&mut self, piece: Vec<u8>) -> Result<(), Lost> {
        if piece.is_empty() {
            return Ok(());
        }
        if self.waiting().is_some() {
            return self.lay(piece).await;
        }
        match self.send(piece).await? {
            None => Ok(()),
            Some(piece) => self.lay(piece).await,
        }
    }

    async fn during<T: Send>(&mut self, work: impl Future<Output = T> + Send) -> Result<T, Lost> {
        let mut work = pin!(work);
        loop {
            match self.tape.as_mut().filter(|tape| !tape.is_empty()) {
                Some(tape) => tokio::select! {
                    biased;
                    done = &mut work => return Ok(done),
                    slot = self.sender.slot() => slot?.put(tape.read()?),
                },
                None => tokio::select! {
                    biased;
                    done = &mut work => return Ok(done),
                    () = self.sender.gone() => return Err(Lost::Gone),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use tokio::sync::mpsc;
    use trifid_archive_model::write::End;
    use trifid_base_web::Body;

    use super::*;
    use crate::encode::testing::{Given, Lines, Sent, counting};
    use crate::encode::{Pieces, run};

    const LONG: Duration = Duration::from_secs(3600);

    struct Fixture {
        _folder: tempfile::TempDir,
        spool: Arc<Spool>,
    }

    fn fixture(limit_bytes: u64) -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::new(folder.path().to_owned(), limit_bytes);
        Fixture { _folder: folder, spool }
    }

    fn pieces() -> Pieces {
        Pieces::new(Lines::boxed(100), None).unwrap()
    }

    async fn read(body: Body) -> String {
        String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    fn is_whole(text: &str, rows: i64) {
        let numbers: Vec<i64> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
        assert!(numbers.into_iter().eq(0..rows), "every row once, in order");
        assert!(text.ends_with("Complete\n"));
    }

    #[tokio::test]
    async fn a_quick_client_never_touches_the_spool() {
        let fixture = fixture(1 << 30);
        let (sender, body) = Body::channel(1);
        let mut outlet = Outlet::new(sender, fixture.spool.clone(), LONG);
        let task = tokio::spawn(async move {
            run(Given::new([counting(0, 20_000)]), pieces(), &mut outlet).await.unwrap();
            outlet.finish(None).await.unwrap();
        });
        is_whole(&read(body).await, 20_000);
        task.await.unwrap();
        assert_eq!(fixture.spool.begun(), 0);
    }

    #[tokio::test]
    async fn a_query_ends_although_nobody_reads() {
        let fixture = fixture(1 << 30);
        let (sender, body) = Body::channel(1);
        let mut outlet = Outlet::new(sender, fixture.spool.clone(), Duration::ZERO);
        let end = run(Given::new([counting(0, 20_000)]), pieces(), &mut outlet).await.unwrap();
        assert_eq!(end, End::Complete, "all rows are taken while nothing was read");
        assert!(fixture.spool.used_bytes() > 1_000_000);
        let task = tokio::spawn(outlet.finish(None));
        is_whole(&read(body).await, 20_000);
        task.await.unwrap().unwrap();
        assert_eq!(fixture.spool.used_bytes(), 0);
    }

    #[tokio::test]
    async fn without_room_on_disk_the_query_waits() {
        let fixture = fixture(300_000);
        let (sender, body) = Body::channel(1);
        let mut outlet = Outlet::new(sender, fixture.spool.clone(), Duration::ZERO);
        let task = tokio::spawn(async move {
            run(Given::new([counting(0, 20_000)]), pieces(), &mut outlet).await.unwrap();
            outlet.finish(None).await.unwrap();
        });
        while fixture.spool.used_bytes() == 0 {
            tokio::task::yield_now().await;
        }
        is_whole(&read(body).await, 20_000);
        task.await.unwrap();
        assert_eq!(fixture.spool.begun(), 1);
    }

    #[tokio::test]
    async fn the_tape_is_read_while_the_query_has_nothing_new() {
        let fixture = fixture(1 << 30);
        let (rows, receiver) = mpsc::channel(8);
        let (sender, mut body) = Body::channel(1);
        let mut outlet = Outlet::new(sender, fixture.spool.clone(), Duration::ZERO);
        rows.send(counting(0, 20_000)).await.unwrap();
        let task = tokio::spawn(async move {
            run(Sent(receiver), pieces(), &mut outlet).await.unwrap();
            outlet.finish(None).await.unwrap();
        });
        let mut got = Vec::new();
        // The query is still running: its rows are read nevertheless.
        while got.len() < 20_000 * 101 + 5 {
            got.extend_from_slice(&body.frame().await.unwrap().unwrap().into_data().unwrap());
        }
        drop(rows);
        got.extend_from_slice(read(body).await.as_bytes());
        is_whole(std::str::from_utf8(&got).unwrap(), 20_000);
        task.await.unwrap();
    }

    #[tokio::test]
    async fn a_client_that_leaves_ends_its_query() {
        let fixture = fixture(1 << 30);
        for patience in [LONG, Duration::ZERO] {
            // While rows are awaited.
            let (rows, receiver) = mpsc::channel(1);
            let (sender, body) = Body::channel(1);
            let mut outlet = Outlet::new(sender, fixture.spool.clone(), patience);
            let task = tokio::spawn(async move { run(Sent(receiver), pieces(), &mut outlet).await });
            drop(body);
            assert!(matches!(task.await.unwrap(), Err(Lost::Gone)));
            rows.closed().await;
            // While a piece waits for its place.
            let (sender, body) = Body::channel(1);
            let mut outlet = Outlet::new(sender, fixture.spool.clone(), LONG);
            let task =
                tokio::spawn(
                    async move { run(Given::new([counting(0, 20_000)]), pieces(), &mut outlet).await },
                );
            drop(body);
            assert!(matches!(task.await.unwrap(), Err(Lost::Gone)));
        }
    }

    #[tokio::test]
    async fn a_torn_message_is_told_from_a_whole_one() {
        let fixture = fixture(1 << 30);
        let (sender, body) = Body::channel(4);
        let mut outlet = Outlet::new(sender, fixture.spool.clone(), LONG);
        outlet.push(b"rows".to_vec()).await.unwrap();
        outlet.tear().await.unwrap();
        assert!(body.collect().await.is_err());
    }
}
