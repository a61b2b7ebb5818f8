//! A query that is answered at once (TAP 1.1 2.1).
//!
//! ```text
//! small             -> encoded where it stands, one buffer with its length
//! anything else     -> a task of the compute pool encodes while the client reads; see `stream`
//! ```
//!
//! The status is decided by the first rows: until they are there, a failure is a refusal with a fitting status. After
//! that it can only be told in the tail. If the first rows take long the head goes out without them.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, TRAILER,
    VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use trifid_archive_engine::answer::Answer;
use trifid_archive_model::write::{End, Head, TableWriter};
use trifid_base_web::{Body, Request, Response};

use crate::coding::Coding;
use crate::encode::{self, Begun, Lost, Pieces, Rows, Sink as _};
use crate::fault::Fault;
use crate::fits::Surveyed;
use crate::form::Form;
use crate::format::{Chosen, Format, Target};
use crate::limits::{CODED_BYTES_MIN, FIRST_ROWS_WAIT, INLINE_CELLS_MAX, MORE_ROWS_WAIT, PIECES_WAITING};
use crate::params::{self, Operation, Params};
use crate::query::Checked;
use crate::stats::Counters;
use crate::stream::Outlet;
use crate::{ArchiveFace, fits};

/// Tells how a result ended where its format cannot: a header if it is known early, a trailer otherwise. The value is
/// that of DALI's QUERY_STATUS.
pub(crate) const QUERY_STATUS: HeaderName = HeaderName::from_static("tap-query-status");

/// What a result may do that a browser shows as a page: look as it does, nothing else.
const PAGE_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";

impl ArchiveFace {
    /// Answers a synchronous query; faults in the family of the format that was asked for.
    pub(crate) async fn sync(&self, request: &Request) -> Result<Response, Fault> {
        let form = Form::read(request)?;
        let answered = self.sync_form(request, &form).await;
        Ok(answered.unwrap_or_else(|fault| {
            fault.into_response(&self.formats.error_form(params::asked_format(&form)))
        }))
    }

    async fn sync_form(&self, request: &Request, form: &Form<'_>) -> Result<Response, Fault> {
        let params = Params::read(form)?;
        if params.operation == Operation::Capabilities {
            return self.capabilities(request);
        }
        if let Some(run_id) = params.run_id {
            tracing::info!(request = %request.id, run_id, "query");
        }
        let checked = self.check(&params, &form.files).await?;
        self.deliver(request, checked).await
    }

    /// Runs a query and answers with its result.
    pub(crate) async fn deliver(&self, request: &Request, checked: Checked) -> Result<Response, Fault> {
        let coding = self.coding(request, &checked.chosen.format);
        if request.method == Method::HEAD {
            // What would be answered is known without running anything.
            return Ok(head(&checked.chosen, coding, Body::empty()));
        }
        let answer = checked.start(&self.archive, self.settings.sync_timeout)?;
        match gather(&checked, answer).await? {
            Gathered::Whole(batches, overflow) => {
                let end = if overflow { End::Overflow } else { End::Complete };
                let body = match checked.target() {
                    Target::Stream(writer) => {
                        let capacity = capacity(checked.cells(rows(&batches)));
                        encode::whole(writer, &batches, &end, capacity).map_err(Fault::invalid)?
                    }
                    Target::Fits(head) => fits::whole(&head, &batches, &end)?,
                };
                self.counters.whole.add(request.core, 1);
                self.counters.ended(request.core, &end);
                whole(&checked.chosen, coding, body, &end)
            }
            Gathered::Begun(rows) => {
                self.counters.streamed.add(request.core, 1);
                match checked.target() {
                    Target::Stream(writer) => self.stream(&checked.chosen, coding, rows, writer),
                    Target::Fits(head) => Box::pin(self.hold(&checked.chosen, coding, rows, head)).await,
                }
            }
        }
    }

    /// The content coding of a result in this format.
    fn coding(&self, request: &Request, format: &Format) -> Option<Coding> {
        let may = self.settings.compression && format.is_compressible();
        Coding::accepted(&request.headers).filter(|_| may)
    }

    /// Sends a result while it is made.
    fn stream(
        &self,
        chosen: &Chosen,
        coding: Option<Coding>,
        rows: Begun<Answer>,
        writer: Box<dyn TableWriter>,
    ) -> Result<Response, Fault> {
        let pieces = Pieces::new(writer, coding).map_err(Fault::internal)?;
        let (outlet, body) = self.outlet();
        let tells_end = chosen.format.tells_end();
        let sent = stream(rows, pieces, outlet, tells_end);
        self.archive.compute().spawn(noted(Arc::clone(&self.counters), sent));
        let mut response = head(chosen, coding, body);
        if !tells_end {
            response.headers_mut().insert(TRAILER, HeaderValue::from_static("tap-query-status"));
        }
        Ok(response)
    }

    /// Waits until a result is whole, for so long that its failure can still be a refusal, and sends it then.
    async fn hold(
        &self,
        chosen: &Chosen,
        coding: Option<Coding>,
        rows: Begun<Answer>,
        about: Head,
    ) -> Result<Response, Fault> {
        let survey = fits::survey(rows, about, Arc::clone(&self.spool));
        let mut survey = AbortOnDrop(self.archive.compute().spawn(survey));
        let first = timeout(FIRST_ROWS_WAIT, &mut survey.0).await;
        let (outlet, body) = self.outlet();
        let counters = Arc::clone(&self.counters);
        match first {
            Ok(surveyed) => {
                let surveyed = surveyed.map_err(Fault::internal)??;
                let sent = held(async { Ok(surveyed) }, coding, outlet);
                self.archive.compute().spawn(noted(counters, sent));
            }
            Err(_) => {
                let surveyed = async move { (&mut survey.0).await.map_err(Fault::internal)? };
                self.archive.compute().spawn(noted(counters, held(surveyed, coding, outlet)));
            }
        }
        Ok(head(chosen, coding, body))
    }

    /// A way to the client, and the body at its end.
    fn outlet(&self) -> (Outlet, Body) {
        let (sender, body) = Body::channel(PIECES_WAITING);
        (Outlet::new(sender, Arc::clone(&self.spool), self.settings.spool_after), body)
    }
}

/// A task of the pool that ends when nobody waits for it any more.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What is there of a result before anything of it is sent.
enum Gathered {
    /// All of it, and little: its rows, and whether more were withheld.
    Whole(Vec<RecordBatch>, bool),
    /// Its beginning.
    Begun(Begun<Answer>),
}

fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

/// Takes the first rows, and those that follow at once as long as they are few: a small result goes out whole, and how
/// it ended is known before its head.
async fn gather(checked: &Checked, mut answer: Answer) -> Result<Gathered, Fault> {
    if let Some(batches) = answer.ready_rows() {
        let is_small = checked.cells(rows(batches)) <= INLINE_CELLS_MAX;
        return Ok(match is_small {
            true => Gathered::Whole(batches.to_vec(), answer.overflow()),
            false => Gathered::Begun(Begun::new(Vec::new(), answer)),
        });
    }
    let mut batches = Vec::new();
    let mut patience = FIRST_ROWS_WAIT;
    while checked.cells(rows(&batches)) <= INLINE_CELLS_MAX {
        match timeout(patience, Rows::next(&mut answer)).await {
            Ok(Ok(Some(batch))) => batches.push(batch),
            Ok(Ok(None)) => return Ok(Gathered::Whole(batches, answer.overflow())),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => break,
        }
        patience = MORE_ROWS_WAIT;
    }
    Ok(Gathered::Begun(Begun::new(batches, answer)))
}

/// Encodes a result and sees it to its client; how it ended.
async fn stream(rows: impl Rows, pieces: Pieces, mut outlet: Outlet, tells_end: bool) -> Result<End, Lost> {
    let end = encode::run(rows, pieces, &mut outlet).await?;
    match (&end, tells_end) {
        (End::Failed(_), false) => outlet.tear().await?,
        (_, true) => outlet.finish(None).await?,
        (_, false) => outlet.finish(Some(HeaderMap::from_iter([(QUERY_STATUS, status(&end))]))).await?,
    }
    Ok(end)
}

/// Sends a result that was held back until it is whole; one that fails now is torn.
async fn held(
    surveyed: impl Future<Output = Result<Surveyed, Fault>> + Send,
    coding: Option<Coding>,
    mut outlet: Outlet,
) -> Result<End, Lost> {
    match outlet.during(surveyed).await? {
        Ok(surveyed) => {
            let end = fits::deliver(surveyed, coding, &mut outlet).await?;
            outlet.finish(None).await?;
            Ok(end)
        }
        Err(fault) => {
            outlet.tear().await?;
            Ok(End::Failed(fault.message().into()))
        }
    }
}

/// Counts how the sending of a result ended.
async fn noted(counters: Arc<Counters>, sent: impl Future<Output = Result<End, Lost>> + Send) {
    match sent.await {
        Ok(end) => counters.ended(0, &end),
        Err(Lost::Gone) => counters.abandoned.add(0, 1),
        Err(error @ Lost::Io(_)) => {
            counters.failed.add(0, 1);
            tracing::error!(%error, "a result broke off");
        }
    }
}

pub(crate) fn status(end: &End) -> HeaderValue {
    HeaderValue::from_static(match end {
        End::Complete => "OK",
        End::Overflow => "OVERFLOW",
        End::Failed(_) => "ERROR",
    })
}

/// Room for a result of so many cells.
fn capacity(cells: usize) -> usize {
    1024 + cells * 24
}

/// The answer with a result that is whole.
fn whole(chosen: &Chosen, coding: Option<Coding>, body: Vec<u8>, end: &End) -> Result<Response, Fault> {
    let coding = coding.filter(|_| body.len() >= CODED_BYTES_MIN);
    let body = match coding {
        Some(coding) => coding.encode(&body).map_err(Fault::internal)?,
        None => body,
    };
    let mut response = head(chosen, coding, Body::from(body));
    if !chosen.format.tells_end() {
        response.headers_mut().insert(QUERY_STATUS, status(end));
    }
    Ok(response)
}

/// The head of a result. GET may be answered again with the same only after asking here (TAP 1.1 2.1: POST always
/// does).
pub(crate) fn head(chosen: &Chosen, coding: Option<Coding>, body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    // What comes here, from the shell and from hyper, in one allocation.
    *headers = HeaderMap::with_capacity(12);
    headers.insert(CONTENT_TYPE, chosen.media.clone());
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(CONTENT_DISPOSITION, chosen.format.disposition());
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if matches!(chosen.format, Format::Html) {
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
    }
    if let Some(coding) = coding {
        headers.insert(CONTENT_ENCODING, coding.header());
    }
    response
}

const _: () =
    assert!(FIRST_ROWS_WAIT.as_secs() < Duration::from_secs(60).as_secs(), "below http.request_timeout");
