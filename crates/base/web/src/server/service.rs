//! One request, from its head to its answer.
//!
//! ```text
//! head -> mount -> preflight? -> caller -> tenant -> admission -> body -> face -> sealed answer
//! ```
//!
//! What the shell adds to a request that is answered without waiting: one boxed future (the face's), a handful
//! of plain cells of this core, no lock, no spawn, no timer, no clock (one request in sixteen is timed), and no
//! write to memory that another core writes. A body that arrived in one piece is not copied.

use std::any::Any;
use std::convert::Infallible;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::connection::Connection;
use super::core::{Core, REQUEST_ID};
use super::operations;
use super::stats::CoreStats;
use super::watch::Deadline;
use crate::admission::Place;
use crate::auth::Principal;
use crate::body::{Body, BodyError};
use crate::face::{Access, Answer, Face, Response};
use crate::limits::{BODY_BYTES_FIRST, DURATION_SAMPLE, RETRY_AFTER_S};
use crate::problem::ShellProblem;
use crate::request::{Framing, Request, RequestId};

/// A request in flight: what it holds, it gives back when its answer has been handed over or given up.
pub(crate) struct Flight {
    connection: Rc<Connection>,
    place: Option<Place>,
    body_bytes: u64,
    is_body_read: bool,
}

impl Flight {
    fn begin(connection: Rc<Connection>) -> Self {
        connection.link.begin();
        connection.core.begin_request();
        Self { connection, place: None, body_bytes: 0, is_body_read: false }
    }

    fn core(&self) -> &Core {
        &self.connection.core
    }

    /// Holds one of the places for requests of `tenant`.
    fn admit(&mut self, tenant: &str) -> Result<(), ShellProblem> {
        let saturated = |_| ShellProblem::Saturated { retry_after_s: RETRY_AFTER_S };
        self.place = Some(self.core().admit(tenant).map_err(saturated)?);
        Ok(())
    }

    /// Holds memory for more of a body of at most `largest` bytes.
    fn reserve(&mut self, bytes: u64, largest: u64) -> Result<(), ShellProblem> {
        if !self.core().reserve_body(bytes, largest) {
            return Err(ShellProblem::BodyMemoryFull { retry_after_s: RETRY_AFTER_S });
        }
        self.body_bytes += bytes;
        Ok(())
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let core = &self.connection.core;
        if let Some(place) = self.place.take() {
            core.release(place);
        }
        if self.body_bytes > 0 {
            core.release_body(self.body_bytes);
        }
        core.end_request();
        self.connection.link.end(core.watch.now());
    }
}

/// A door's body, and the request that it ends.
pub(crate) struct Outgoing {
    body: Body,
    _flight: Flight,
}

impl http_body::Body for Outgoing {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Answers one request.
///
/// hyper moves this future into its place for every request, so it is kept small: what is decided from the
/// head is decided before the first await, and a body that comes in many pieces is collected in a box.
pub(crate) async fn respond(
    connection: Rc<Connection>,
    request: hyper::Request<Incoming>,
) -> Result<http::Response<Outgoing>, Infallible> {
    let mut flight = Flight::begin(Rc::clone(&connection));
    let core = &*connection.core;
    let (head, body) = request.into_parts();
    let seal = Seal::new(core, &head);
    let has_body = !body.is_end_stream();
    let mut response = match admit(&mut flight, core, &head) {
        Err(response) => *response,
        Ok((face, principal)) => {
            let received = if has_body {
                receive(&mut flight, &connection, face, &head, body).await
            } else {
                Ok((Bytes::new(), framing_without_body(&head)))
            };
            let begun = received.and_then(|(body, body_framing)| {
                let Parts { method, uri, version, headers, .. } = head;
                let id = seal.id.clone();
                let core = core.index;
                begin(
                    face,
                    Request { method, uri, version, headers, body, body_framing, principal, id, core },
                )
            });
            let answered = match begun {
                Ok(answer) => finish(&connection, &seal.id, answer).await,
                Err(problem) => Err(problem),
            };
            answered.unwrap_or_else(|problem| refuse(core.stats(), Some(face), problem))
        }
    };
    if has_body && !flight.is_body_read && !connection.link.is_multiplexed() {
        connection.link.leave_unread();
    }
    seal.apply(core, &mut response);
    Ok(response.map(|body| Outgoing { body, _flight: flight }))
}

/// Everything that the head alone decides: the face and the caller, or the answer.
fn admit<'c>(
    flight: &mut Flight,
    core: &'c Core,
    head: &Parts,
) -> Result<(&'c dyn Face, Principal), Box<Response>> {
    let shared = &*core.shared;
    let Some(mount) = shared.mount(head.uri.path()) else {
        return Err(Box::new(answer_unmounted(core, head)));
    };
    let face = &*mount.face;
    if let Some(preflight) = shared.resolved.cors.as_ref().and_then(|cors| cors.preflight(head)) {
        return Err(Box::new(preflight));
    }
    let admitted = check_host(head).and_then(|()| authorize(core, face, head)).and_then(|principal| {
        let tenant = face.tenant(head);
        if !principal.tenant.covers(tenant) {
            return Err(ShellProblem::TenantForbidden);
        }
        flight.admit(tenant)?;
        Ok(principal)
    });
    match admitted {
        Ok(principal) => Ok((face, principal)),
        Err(problem) => Err(Box::new(refuse(core.stats(), Some(face), problem))),
    }
}

/// What lies under no door: the operations of the shell, the server as a whole (RFC 9110 9.3.7), nothing.
fn answer_unmounted(core: &Core, head: &Parts) -> Response {
    let answered = if operations::covers(head.uri.path()) {
        operations::answer(core, head)
    } else if head.method == Method::OPTIONS && head.uri.path() == "*" {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        Ok(response)
    } else {
        Err(ShellProblem::NoSuchPath)
    };
    answered.unwrap_or_else(|problem| refuse(core.stats(), None, problem))
}

/// Words a refusal and counts it.
fn refuse(stats: &CoreStats, face: Option<&dyn Face>, problem: ShellProblem) -> Response {
    count(stats, &problem);
    let mut response = match face {
        Some(face) => face.problem(problem),
        None => problem.to_response(),
    };
    problem.decorate(&mut response);
    response
}

fn count(stats: &CoreStats, problem: &ShellProblem) {
    match problem {
        ShellProblem::Unauthenticated { .. } => stats.unauthenticated.bump(),
        ShellProblem::RoleForbidden { .. } | ShellProblem::TenantForbidden => stats.forbidden.bump(),
        ShellProblem::BodyTooLarge { .. } => stats.too_large.bump(),
        ShellProblem::BodyTimeout | ShellProblem::RequestTimeout { .. } => stats.timed_out.bump(),
        ShellProblem::Saturated { .. } | ShellProblem::BodyMemoryFull { .. } => stats.saturated.bump(),
        ShellProblem::Internal => stats.panics.bump(),
        ShellProblem::BadBody
        | ShellProblem::BadHost
        | ShellProblem::NoSuchPath
        | ShellProblem::MethodNotAllowed { .. } => {}
    }
}

/// RFC 9112 3.2: HTTP/1.1 names its host once; a proxy in front may have been routed by another one.
fn check_host(head: &Parts) -> Result<(), ShellProblem> {
    let mut hosts = head.headers.get_all(HOST).iter();
    let once = hosts.next().is_some() && hosts.next().is_none();
    if once || head.version != Version::HTTP_11 { Ok(()) } else { Err(ShellProblem::BadHost) }
}

/// Who calls, if they may.
fn authorize(core: &Core, face: &dyn Face, head: &Parts) -> Result<Principal, ShellProblem> {
    // Nobody to tell apart: the door need not say what it takes.
    if core.shared.resolved.tokens.is_none() {
        return Ok(Principal::local());
    }
    match (face.access(head), core.principal(&head.headers)) {
        (Access::Public, Ok(principal)) => Ok(principal),
        (Access::Public, Err(_)) => Ok(Principal::anonymous()),
        (Access::Needs(needed), Ok(principal)) if principal.role < needed => {
            Err(ShellProblem::RoleForbidden { needed })
        }
        (Access::Needs(_), principal) => principal,
    }
}

/// The framing of a request that has no body. A safe method need not say that it has none, and mostly does not.
fn framing_without_body(head: &Parts) -> Framing {
    if head.method.is_safe() {
        return Framing::None;
    }
    content_length(&head.headers).map_or(Framing::None, Framing::ContentLength)
}

/// The whole body, within its limits, and how it was framed.
async fn receive(
    flight: &mut Flight,
    connection: &Connection,
    face: &dyn Face,
    head: &Parts,
    mut body: Incoming,
) -> Result<(Bytes, Framing), ShellProblem> {
    let core = &*connection.core;
    let framing = match content_length(&head.headers) {
        Some(length) if !head.headers.contains_key(TRANSFER_ENCODING) => Framing::ContentLength(length),
        _ => Framing::Chunked,
    };
    let limit_bytes = face.body_limit(head).unwrap_or(core.limits().body_bytes);
    if matches!(framing, Framing::ContentLength(length) if length > limit_bytes) {
        return Err(ShellProblem::BodyTooLarge { limit_bytes });
    }
    let mut deadline = Deadline::new(&core.watch, &connection.link, core.body_ticks);
    let first = {
        let mut next = pin!(next_data(&mut body));
        deadline.bound(next.as_mut()).await.ok_or(ShellProblem::BodyTimeout)??
    };
    let bytes = match first {
        // One piece stays what it is.
        Some(first) if body.is_end_stream() && first.len() as u64 <= limit_bytes => first,
        Some(first) => {
            let mut rest = Box::pin(join(flight, first, body, framing, limit_bytes));
            deadline.bound(rest.as_mut()).await.ok_or(ShellProblem::BodyTimeout)??
        }
        None => Bytes::new(),
    };
    flight.is_body_read = true;
    core.stats().body_bytes.add(bytes.len() as u64);
    Ok((bytes, framing))
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

/// Joins the pieces of a body in one buffer, whose memory is accounted for; a piece that turns out to be the
/// only one stays what it is.
async fn join(
    flight: &mut Flight,
    first: Bytes,
    mut body: Incoming,
    framing: Framing,
    limit_bytes: u64,
) -> Result<Bytes, ShellProblem> {
    if first.len() as u64 > limit_bytes {
        return Err(ShellProblem::BodyTooLarge { limit_bytes });
    }
    let Some(second) = next_data(&mut body).await? else { return Ok(first) };
    let mut buffer = Joined::new(flight, framing, limit_bytes)?;
    buffer.push(flight, &first)?;
    buffer.push(flight, &second)?;
    while let Some(data) = next_data(&mut body).await? {
        buffer.push(flight, &data)?;
    }
    Ok(buffer.bytes.freeze())
}

/// The next data of a body, which ends with its trailers if there are any.
async fn next_data(body: &mut Incoming) -> Result<Option<Bytes>, ShellProblem> {
    match body.frame().await {
        Some(Ok(frame)) => Ok(frame.into_data().ok()),
        Some(Err(_)) => Err(ShellProblem::BadBody),
        None => Ok(None),
    }
}

/// A body of many frames in the making.
struct Joined {
    bytes: BytesMut,
    reserved_bytes: u64,
    limit_bytes: u64,
}

impl Joined {
    fn new(flight: &mut Flight, framing: Framing, limit_bytes: u64) -> Result<Self, ShellProblem> {
        let expected = match framing {
            Framing::ContentLength(length) => length,
            Framing::None | Framing::Chunked => BODY_BYTES_FIRST as u64,
        };
        flight.reserve(expected, limit_bytes)?;
        let capacity = usize::try_from(expected).unwrap_or(BODY_BYTES_FIRST);
        Ok(Self { bytes: BytesMut::with_capacity(capacity), reserved_bytes: expected, limit_bytes })
    }

    fn push(&mut self, flight: &mut Flight, data: &[u8]) -> Result<(), ShellProblem> {
        let length = (self.bytes.len() + data.len()) as u64;
        if length > self.limit_bytes {
            return Err(ShellProblem::BodyTooLarge { limit_bytes: self.limit_bytes });
        }
        if length > self.reserved_bytes {
            // The buffer doubles when it grows, and so does what is set aside for it.
            flight.reserve(self.reserved_bytes.max(length - self.reserved_bytes), self.limit_bytes)?;
            self.reserved_bytes = (2 * self.reserved_bytes).max(length);
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }
}

/// Hands the request to its face.
fn begin(face: &dyn Face, request: Request) -> Result<Answer<'_>, ShellProblem> {
    let id = request.id.clone();
    catch(&id, || face.call(request))
}

/// The face's answer, within its time. A panic costs this request alone.
async fn finish(
    connection: &Connection,
    id: &RequestId,
    mut answer: Answer<'_>,
) -> Result<Response, ShellProblem> {
    let core = &*connection.core;
    let caught = pin!(poll_fn(|cx| match catch(id, || answer.as_mut().poll(cx)) {
        Ok(poll) => poll.map(Ok),
        Err(problem) => Poll::Ready(Err(problem)),
    }));
    let late = ShellProblem::RequestTimeout { retry_after_s: RETRY_AFTER_S };
    Deadline::new(&core.watch, &connection.link, core.request_ticks).bound(caught).await.ok_or(late)?
}

/// Runs a step of a face. The future that panicked is dropped and never polled again, so nothing can see the
/// state in which it was left, save what it shares with others, which is its author's care.
fn catch<T>(id: &RequestId, step: impl FnOnce() -> T) -> Result<T, ShellProblem> {
    catch_unwind(AssertUnwindSafe(step)).map_err(|panic| {
        tracing::error!(request = %id, panic = message(&*panic), "a request panicked");
        ShellProblem::Internal
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// What the head decides about the answer's envelope.
struct Seal {
    id: RequestId,
    marks: Option<crate::cors::Marks>,
    version: Version,
    /// Set for the requests that are timed.
    started: Option<Instant>,
    is_sampled: bool,
    /// Set when the access log is on.
    line: Option<(Method, String)>,
}

/// The target of the access log, one line a request at level DEBUG.
const ACCESS_LOG: &str = "trifid::access";

impl Seal {
    fn new(core: &Core, head: &Parts) -> Self {
        let is_sampled = core.sequence().is_multiple_of(DURATION_SAMPLE);
        let is_logged = tracing::enabled!(target: ACCESS_LOG, tracing::Level::DEBUG);
        Self {
            id: core.request_id(&head.headers),
            marks: core.shared.resolved.cors.as_ref().map(|cors| cors.mark(&head.headers)),
            version: head.version,
            started: (is_sampled || is_logged).then(Instant::now),
            is_sampled,
            // The path alone: a query may hold what does not belong into a log.
            line: is_logged.then(|| (head.method.clone(), head.uri.path().to_owned())),
        }
    }

    fn apply(self, core: &Core, response: &mut Response) {
        let status = response.status();
        core.stats().answered(status);
        self.record(core, response);
        let headers = response.headers_mut();
        // Whoever names a request hears the name again; whoever has trouble hears ours.
        if self.id.is_given() || status.is_client_error() || status.is_server_error() {
            headers.insert(REQUEST_ID, self.id.header_value());
        }
        if let Some(marks) = self.marks {
            marks.apply(headers);
        }
        // RFC 9112 9.6; HTTP/2 says it with GOAWAY.
        if core.is_closing() && self.version <= Version::HTTP_11 {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }

    fn record(&self, core: &Core, response: &Response) {
        let Some(started) = self.started else { return };
        let elapsed = started.elapsed();
        if self.is_sampled {
            core.shared.stats.duration(core.index, elapsed);
        }
        if let Some((method, path)) = &self.line {
            tracing::debug!(
                target: ACCESS_LOG,
                request = %self.id,
                %method,
                path,
                status = response.status().as_u16(),
                bytes = response.body().bytes().map(<[u8]>::len),
                micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
                core = core.index,
                "answered"
            );
        }
    }
}
