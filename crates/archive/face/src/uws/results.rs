//! A result on its way from its file to a client.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, ETAG};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use trifid_archive_engine::compute::Compute;
use trifid_archive_engine::jobs::{Job, JobResult};
use trifid_archive_model::write::End;
use trifid_base_web::{Body, BodySender, Response};

use super::{Desk, Wanted, wanted};
use crate::fault::{Fault, quoted};
use crate::limits::{PIECES_WAITING, SPOOL_READ_BYTES};
use crate::percent;
use crate::resources::sync;

type Source = Box<dyn Read + Send>;

impl Desk<'_> {
    /// A result of a job, whole or in part (UWS 1.1 2.2.2.3).
    pub(super) async fn result(&self, job: &Job, raw: &str) -> Result<Response, Fault> {
        let name = percent::segment(raw).unwrap_or_default();
        let result = job.results.iter().find(|result| result.name == *name);
        let result = result.ok_or_else(|| unknown(job, &name))?;
        // A result never changes, and no other job has this name.
        let tag =
            HeaderValue::try_from(format!("\"{}-{}\"", job.id, result.bytes)).map_err(Fault::internal)?;
        let part = match wanted(&self.request.headers, result.bytes, &tag) {
            Wanted::Whole => None,
            Wanted::Part(range) => Some(range),
            Wanted::Beyond => return Err(Fault::Beyond(result.bytes)),
        };
        let sent = part.clone().unwrap_or(0..result.bytes);
        let body = if self.request.method == Method::HEAD {
            Body::empty()
        } else {
            self.body(job, result, sent.clone()).await?
        };
        let mut response = self.head(result, body)?;
        let headers = response.headers_mut();
        headers.insert(ETAG, tag);
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(sent.end - sent.start));
        if let Some(range) = part {
            partial(headers, &range, result.bytes)?;
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        }
        Ok(response)
    }

    /// What is said of a result at its sending: the same as of one that was asked for at once.
    fn head(&self, result: &JobResult, body: Body) -> Result<Response, Fault> {
        let chosen = self.face.formats.choose(Some(&result.media_type))?;
        let mut response = sync::head(&chosen, None, body);
        if !chosen.format.tells_end() {
            let end = if result.overflow { End::Overflow } else { End::Complete };
            response.headers_mut().insert(sync::QUERY_STATUS, sync::status(&end));
        }
        Ok(response)
    }

    async fn body(&self, job: &Job, result: &JobResult, range: Range<u64>) -> Result<Body, Fault> {
        let (id, name) = (job.id.as_str(), result.name.as_str());
        let source = self.jobs.result_from(id, &self.owner, name, range.start).await?;
        let left = range.end - range.start;
        let compute = Arc::clone(self.jobs.compute());
        if left <= SPOOL_READ_BYTES as u64 {
            let (_, bytes) = piece(&compute, source, left).await.map_err(Fault::internal)?;
            return Ok(Body::full(bytes));
        }
        let (sender, body) = Body::channel(PIECES_WAITING);
        tokio::spawn(sent(compute, source, left, sender));
        Ok(body)
    }
}

fn unknown(job: &Job, name: &str) -> Fault {
    let phase = job.phase;
    Fault::not_found(format!("the job, which is {phase}, has no result {}", quoted(name)))
}

fn partial(headers: &mut HeaderMap, range: &Range<u64>, length: u64) -> Result<(), Fault> {
    let value = format!("bytes {}-{}/{length}", range.start, range.end - 1);
    headers.insert(CONTENT_RANGE, HeaderValue::try_from(value).map_err(Fault::internal)?);
    Ok(())
}

/// Sends `left` bytes. While the client is slow no thread is held, and no more memory than the pieces that wait.
async fn sent(compute: Arc<Compute>, mut source: Source, mut left: u64, sender: BodySender) {
    while left > 0 {
        let Ok(slot) = sender.slot().await else { return };
        match piece(&compute, source, left).await {
            Ok((rest, bytes)) => {
                left -= bytes.len() as u64;
                source = rest;
                slot.put(bytes);
            }
            Err(error) => {
                // The client sees the message torn.
                tracing::error!(%error, "a result of a job cannot be read");
                return;
            }
        }
    }
    // Whoever left does not miss it.
    let _ = sender.finish().await;
}

/// Reads the next piece where blocking is allowed.
async fn piece(compute: &Compute, mut source: Source, left: u64) -> io::Result<(Source, Bytes)> {
    let read = move || {
        let mut bytes = vec![0; usize::try_from(left).unwrap_or(usize::MAX).min(SPOOL_READ_BYTES)];
        source.read_exact(&mut bytes)?;
        Ok((source, Bytes::from(bytes)))
    };
    compute.blocking(read).await.map_err(io::Error::other)?
}
