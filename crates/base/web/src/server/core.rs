//! One core: a thread, a single-threaded runtime, a listener, and books that no other core touches.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::TcpListener as StdListener;
use std::rc::Rc;
use std::sync::Arc;

use http::HeaderMap;
use http::header::HeaderName;
use hyper::server::conn::{http1, http2};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch::Receiver;
use tokio::task::spawn_local;
use trifid_base_runtime::Shutdown;

use super::connection::{LocalExecutor, serve_connection, turn_away};
use super::link::{Link, LinkLimits, Order, Overdue};
use super::shared::{Shared, Stage};
use super::stats::CoreStats;
use super::watch::{Ticks, Watch, ticks};
use crate::admission::{Admission, Place, Saturated};
use crate::auth::{Principal, Table, bearer};
use crate::limits::{ACCEPT_PAUSE, LINGER, READ_BUFFER_BYTES_MAX, TURNED_AWAY_MAX};
use crate::options::Limits;
use crate::problem::ShellProblem;
use crate::request::RequestId;

/// The header that carries a request's id.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A core's own state.
pub(crate) struct Core {
    pub(crate) index: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) watch: Rc<Watch>,
    pub(crate) http1: http1::Builder,
    pub(crate) http2: http2::Builder<LocalExecutor>,
    pub(crate) body_ticks: Ticks,
    pub(crate) request_ticks: Ticks,
    link_limits: LinkLimits,
    admission: RefCell<Admission>,
    /// A copy of the tokens, and the generation that it is a copy of.
    tokens: RefCell<(u64, Table)>,
    /// Where small answers are joined.
    scratch: RefCell<Vec<u8>>,
    sequence: Cell<u64>,
    in_flight: Cell<u64>,
    body_memory_bytes: Cell<u64>,
    closing: Cell<bool>,
    turned_away: Cell<usize>,
}

impl Core {
    pub(crate) fn new(index: usize, shared: Arc<Shared>) -> Rc<Self> {
        let limits = &shared.resolved.limits;
        let in_flight = limits.in_flight.div_ceil(shared.resolved.cores);
        Rc::new(Self {
            index,
            watch: Watch::new(),
            http1: http1_builder(limits),
            http2: http2_builder(limits),
            body_ticks: ticks(limits.body_timeout),
            request_ticks: ticks(limits.request_timeout),
            link_limits: LinkLimits {
                head: ticks(limits.head_timeout),
                idle: ticks(limits.idle_timeout),
                write: ticks(limits.write_timeout),
                linger: ticks(LINGER),
            },
            admission: RefCell::new(Admission::new(in_flight, Arc::clone(&shared.resolved.weights))),
            tokens: RefCell::default(),
            scratch: RefCell::default(),
            sequence: Cell::new(0),
            in_flight: Cell::new(0),
            body_memory_bytes: Cell::new(0),
            closing: Cell::new(false),
            turned_away: Cell::new(0),
            shared,
        })
    }

    /// This core's counts.
    pub(crate) fn stats(&self) -> &CoreStats {
        self.shared.stats.core(self.index)
    }

    /// The limits that the server runs on.
    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.resolved.limits
    }

    /// Whether connections are to end with their next answer.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.get()
    }

    /// How many requests this core has begun.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence.get()
    }

    /// A request begins.
    pub(crate) fn begin_request(&self) {
        self.sequence.set(self.sequence.get().wrapping_add(1));
        self.in_flight.set(self.in_flight.get() + 1);
        self.stats().in_flight.set(self.in_flight.get());
    }

    /// A request is over.
    pub(crate) fn end_request(&self) {
        self.in_flight.set(self.in_flight.get() - 1);
        self.stats().in_flight.set(self.in_flight.get());
    }

    /// The client's id for the request, or one of ours.
    pub(crate) fn request_id(&self, headers: &HeaderMap) -> RequestId {
        headers.get(REQUEST_ID).and_then(RequestId::given).unwrap_or_else(|| {
            let core = u16::try_from(self.index).unwrap_or(u16::MAX);
            RequestId::made(self.shared.boot, core, self.sequence.get())
        })
    }

    /// Admits a request of `tenant` or refuses it.
    pub(crate) fn admit(&self, tenant: &str) -> Result<Place, Saturated> {
        self.admission.borrow_mut().admit(tenant)
    }

    /// Takes an admitted request's place back.
    pub(crate) fn release(&self, place: Place) {
        self.admission.borrow_mut().release(place);
    }

    /// Sets memory aside for a body of at most `largest` bytes; whether there was enough.
    pub(crate) fn reserve_body(&self, bytes: u64, largest: u64) -> bool {
        let share = self.limits().body_memory_bytes / self.shared.resolved.cores as u64;
        let taken = self.body_memory_bytes.get().saturating_add(bytes);
        // One body of the largest size always fits into an empty core.
        let fits = taken <= share.max(largest);
        if fits {
            self.body_memory_bytes.set(taken);
        }
        fits
    }

    /// Gives a body's memory back.
    pub(crate) fn release_body(&self, bytes: u64) {
        self.body_memory_bytes.set(self.body_memory_bytes.get() - bytes);
    }

    /// Calls `write` with the slices in one piece.
    pub(crate) fn join<T>(&self, slices: &[io::IoSlice<'_>], write: impl FnOnce(&[u8]) -> T) -> T {
        let mut scratch = self.scratch.borrow_mut();
        scratch.clear();
        for slice in slices {
            scratch.extend_from_slice(slice);
        }
        write(&scratch)
    }

    /// Who calls, or why nobody may. Everybody is local where no tokens are asked for.
    pub(crate) fn principal(&self, headers: &HeaderMap) -> Result<Principal, ShellProblem> {
        let Some(tokens) = &self.shared.resolved.tokens else { return Ok(Principal::local()) };
        let token = bearer(headers).ok_or(ShellProblem::Unauthenticated { presented: false })?;
        let mut copy = self.tokens.borrow_mut();
        let generation = tokens.generation();
        if copy.0 != generation {
            *copy = (generation, tokens.copy());
        }
        copy.1.verify(token).cloned().ok_or(ShellProblem::Unauthenticated { presented: true })
    }

    /// Runs the core until it has drained.
    pub(crate) async fn run(self: Rc<Self>, listener: TcpListener, shutdown: Shutdown) {
        if self.index == 0 {
            spawn_local(announce(Arc::clone(&self.shared), shutdown));
        }
        // The watch is polled here rather than spawned: if it died alone, nobody would notice.
        tokio::select! {
            () = self.watch.run(|link, now| self.judge(link, now)) => {}
            () = self.serve(listener) => {}
        }
    }

    async fn serve(self: &Rc<Self>, listener: TcpListener) {
        let mut stage = self.shared.stage.subscribe();
        self.accept(&listener, &mut stage).await;
        self.closing.set(true);
        self.empty(&listener).await;
        drop(listener);
        self.finish().await;
    }

    /// Acts on a connection that is overdue.
    fn judge(&self, link: &Link, now: Ticks) {
        let Some(overdue) = link.overdue(now, &self.link_limits) else { return };
        let (count, order) = match overdue {
            Overdue::Head if link.is_wired() => (&self.stats().slow_heads, Order::AnswerTimeout),
            Overdue::Head => (&self.stats().slow_heads, Order::Cut),
            Overdue::Idle => (&self.stats().idle_closed, Order::Finish),
            Overdue::Stuck => (&self.stats().cut, Order::Cut),
        };
        count.bump();
        link.command(order, now);
    }

    async fn accept(self: &Rc<Self>, listener: &TcpListener, stage: &mut Receiver<Stage>) {
        loop {
            tokio::select! {
                biased;
                _ = stage.wait_for(|stage| *stage == Stage::Closing) => return,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => self.take(stream),
                    Err(error) => self.pause(&error).await,
                },
            }
        }
    }

    /// Takes what still waits in the accept queue: closing the listener would reset those connections.
    async fn empty(self: &Rc<Self>, listener: &TcpListener) {
        loop {
            tokio::select! {
                biased;
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => self.take(stream),
                    Err(_) => return,
                },
                () = std::future::ready(()) => return,
            }
        }
    }

    fn take(self: &Rc<Self>, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        match self.shared.take_connection() {
            Some(ticket) => {
                self.stats().accepted.bump();
                spawn_local(serve_connection(Rc::clone(self), stream, ticket));
            }
            None => {
                self.stats().turned_away.bump();
                self.refuse(stream);
            }
        }
    }

    /// Tells a connection over the limit to come back, unless even that would be too much.
    fn refuse(self: &Rc<Self>, stream: TcpStream) {
        let is_plain = self.shared.resolved.tls.is_none();
        if is_plain && self.turned_away.get() < TURNED_AWAY_MAX {
            self.turned_away.set(self.turned_away.get() + 1);
            let core = Rc::clone(self);
            spawn_local(async move {
                turn_away(&core, stream).await;
                core.turned_away.set(core.turned_away.get() - 1);
            });
        }
    }

    /// Out of descriptors or memory: trying again at once would only burn the core.
    async fn pause(&self, error: &io::Error) {
        self.stats().accept_errors.bump();
        // A connection that died in the queue is nobody's trouble.
        if error.kind() != io::ErrorKind::ConnectionAborted {
            tracing::warn!(%error, core = self.index, "no connection can be accepted for the moment");
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }

    /// Lets what is in flight finish, within bounds.
    async fn finish(&self) {
        self.watch.for_each(|link| link.drain(self.watch.now()));
        let limit = self.limits().drain_timeout;
        if tokio::time::timeout(limit, self.watch.all_gone()).await.is_err() {
            tracing::warn!(core = self.index, "the drain was cut short");
            self.watch.for_each(|link| link.command(Order::Cut, self.watch.now()));
            self.watch.all_gone().await;
        }
    }
}

/// From the shutdown to the end of listening: health says 503 first, and is believed for a while.
async fn announce(shared: Arc<Shared>, shutdown: Shutdown) {
    shutdown.triggered().await;
    shared.stage.send_replace(Stage::Leaving);
    tokio::time::sleep(shared.resolved.limits.drain_delay).await;
    shared.stage.send_replace(Stage::Closing);
}

/// A listener of the standard library, registered with this core's runtime.
pub(crate) fn register(listener: StdListener) -> io::Result<TcpListener> {
    TcpListener::from_std(listener)
}

fn http1_builder(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        // Holding answers back while more input is buffered would save system calls for clients that pipeline, but
        // hyper then holds back refusals of malformed input for ever, and answers whose successor's head is half
        // sent, and buffers without bound. Each answer is written when it is made.
        .pipeline_flush(false)
        // The watch guards heads; hyper's own timer would be made anew for every request.
        .header_read_timeout(None)
        .max_header_size(limits.head_bytes)
        .max_buf_size(limits.head_bytes.max(READ_BUFFER_BYTES_MAX));
    // The default of a hundred is parsed on the stack; any other number takes two heap blocks a request.
    if limits.headers != 100 {
        builder.max_headers(limits.headers);
    }
    builder
}

fn http2_builder(limits: &Limits) -> http2::Builder<LocalExecutor> {
    let mut builder = http2::Builder::new(LocalExecutor);
    builder
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX));
    builder
}
