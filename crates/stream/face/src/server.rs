//! The server: sockets bound, a thread a worker, and the way out.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use tokio::sync::watch;
use trifid_base_runtime::Shutdown;
use trifid_base_web::metrics::Exposition;
use trifid_base_web::workers::{self, Panicked, Workers};
use trifid_base_web::{HealthSource, Tokens};
use trifid_stream_engine::Broker;

use crate::core::Core;
use crate::limits::BLOCKING_THREADS_MAX;
use crate::listen::{self, Sockets};
use crate::options::Resolved;
use crate::quic::Transports;
use crate::stats::Stats;
use crate::tls::TlsError;
use crate::worker::Worker;

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address} for UDP and TCP")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says; `AddrInUse` when another process listens there.
        source: io::Error,
    },
    /// A worker's thread or runtime cannot be made.
    #[error("cannot start stream worker {worker}")]
    Worker {
        /// The worker.
        worker: usize,
        /// What the system says.
        source: io::Error,
    },
}

/// A worker ended by a panic of the listener's own.
#[derive(Debug, thiserror::Error)]
#[error("stream worker {worker} panicked: {message}")]
pub struct WorkerPanic {
    /// The worker.
    pub worker: usize,
    /// The panic's message.
    pub message: String,
}

/// How far the server has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Running,
    /// Nothing new is taken; what is in flight finishes.
    Draining,
}

/// What all workers share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) resolved: Resolved,
    pub(crate) transports: Transports,
    pub(crate) core: Arc<Core>,
    pub(crate) stage: watch::Sender<Stage>,
    connections: AtomicUsize,
}

/// A place among the connections, given back when dropped.
#[derive(Debug)]
pub(crate) struct Ticket(Arc<Shared>);

impl Shared {
    /// A place for one more connection, if there is one.
    pub(crate) fn ticket(self: &Arc<Self>) -> Option<Ticket> {
        let taken = self.connections.fetch_add(1, Ordering::AcqRel);
        let ticket = Ticket(Arc::clone(self));
        (taken < self.resolved.limits.connections).then_some(ticket)
    }

    /// Connections open now.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Acquire)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A running server. It stops when its shutdown token is triggered, not when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

/// Listens for QUIC and for TLS on one port, and serves `broker` on every worker until `shutdown`; then
/// drains.
///
/// With `tokens` every connection needs one of them. The drain: listeners close and clients are told to go
/// away; requests in flight are finished and answered, pushes stop; whatever is left after
/// `stream.drain_timeout` is cut. [`Server::join`] returns at the end.
pub fn serve(
    resolved: Resolved,
    broker: Broker,
    tokens: Option<Arc<Tokens>>,
    shutdown: &Shutdown,
) -> Result<Server, ServeError> {
    let wanted = resolved.listen;
    let bound = listen::bind(wanted, resolved.workers);
    let (address, sockets) = bound.map_err(|source| ServeError::Listen { address: wanted, source })?;
    if let Some(first) = sockets.first() {
        listen::judge_buffers(&first.udp);
    }
    let shared = Arc::new(Shared {
        transports: Transports::new(&resolved),
        core: Arc::new(Core {
            broker,
            tokens,
            limits: resolved.limits.clone(),
            stats: Stats::new(resolved.workers),
        }),
        stage: watch::Sender::new(Stage::Running),
        connections: AtomicUsize::new(0),
        resolved,
    });
    let workers = sockets
        .into_iter()
        .enumerate()
        .map(|(index, sockets)| start(index, sockets, Arc::clone(&shared), shutdown.clone()))
        .collect::<Result<_, _>>()
        // The workers before the one that failed must not go on listening for nobody.
        .inspect_err(|_| {
            shared.stage.send_replace(Stage::Draining);
        })?;
    tracing::info!(
        %address,
        workers = shared.resolved.workers,
        certificate_sha256 = shared.resolved.fingerprint(),
        gso = shared.transports.is_segmented(),
        "listening for streams over QUIC and TLS"
    );
    Ok(Server { address, shared, workers })
}

impl Server {
    /// The address that the server listens on, for UDP and for TCP, its port known.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// SHA-256 of the certificate in hexadecimal: what a client can be told to trust.
    pub fn fingerprint(&self) -> String {
        self.shared.resolved.fingerprint()
    }

    /// A handle for reading the certificate again. The tokens are their owner's to read again.
    pub fn reload(&self) -> Reload {
        Reload(Arc::clone(&self.shared))
    }

    /// What the listener reports about itself.
    pub fn health(&self) -> Arc<dyn HealthSource> {
        Arc::new(Report(Arc::clone(&self.shared)))
    }

    /// Blocks until the server has drained.
    pub fn join(self) -> Result<(), WorkerPanic> {
        let joined = workers::join(self.workers);
        joined.map_err(|Panicked { index, message }| WorkerPanic { worker: index, message })
    }
}

/// Reads the certificate again, as SIGHUP asks. Cheap to clone.
#[derive(Clone)]
pub struct Reload(Arc<Shared>);

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reload")
    }
}

impl Reload {
    /// Reads certificate and key again. If they cannot be used, new connections get the old ones.
    pub fn run(&self) -> Result<(), TlsError> {
        self.0.resolved.tls.reload()
    }
}

/// The listener's section of the health document, and its metrics.
struct Report(Arc<Shared>);

impl HealthSource for Report {
    fn name(&self) -> &'static str {
        "streamListener"
    }

    fn section(&self) -> Value {
        let shared = &self.0;
        json!({
            "connections": shared.connections(),
            "workers": shared.resolved.workers,
            "draining": *shared.stage.borrow() == Stage::Draining,
            "certificateSha256": shared.resolved.fingerprint(),
            "segmentationOffload": shared.transports.is_segmented(),
            "limits": {
                "connections": shared.resolved.limits.connections,
                "subscriptionsPerConnection": shared.resolved.limits.subscriptions,
                "frameBytes": shared.resolved.limits.frame_bytes,
                "inflightBytesPerConnection": shared.resolved.limits.inflight_bytes,
                "sendBytesPerConnection": shared.resolved.limits.send_bytes,
            },
        })
    }

    fn metrics(&self, out: &mut Exposition) {
        let shared = &self.0;
        out.gauge("trifid_stream_connections", "Connections open now.", shared.connections());
        let is_segmented = u32::from(shared.transports.is_segmented());
        out.gauge("trifid_stream_quic_gso", "Whether the kernel cuts sends into packets.", is_segmented);
        shared.core.stats.expose(out);
    }
}

/// A page that is still being read from a slow disk must not hold up the end.
const WORKERS: Workers = Workers {
    name: "stream",
    task: "stream worker",
    blocking_threads: Some(BLOCKING_THREADS_MAX),
    leaves_blocking: true,
};

/// Starts a worker's thread, and returns when it listens.
fn start(
    worker: usize,
    sockets: Sockets,
    shared: Arc<Shared>,
    shutdown: Shutdown,
) -> Result<JoinHandle<()>, ServeError> {
    let until = shutdown.clone();
    let begin = move || {
        let (worker, listeners) = Worker::new(worker, sockets, shared)?;
        Ok(worker.run(listeners, until))
    };
    WORKERS.start(worker, shutdown, begin).map_err(|source| ServeError::Worker { worker, source })
}
