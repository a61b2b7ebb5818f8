//! The server: sockets bound, a thread a worker, and the way out.

mod connection;
mod outbox;
mod shared;
mod stats;
mod watch;
mod worker;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::net::TcpListener as TokioListener;
use trifid_base_runtime::Shutdown;
use trifid_base_web::workers::{self, Panicked, Workers};
use trifid_base_web::{Tokens, bind};
use trifid_stream_engine::Broker;

use crate::limits::BLOCKING_THREADS_MAX;
use crate::options::Resolved;

pub(crate) use self::connection::End;
pub(crate) use self::outbox::Outbox;
pub(crate) use self::shared::Shared;
pub(crate) use self::stats::Counts;
pub use self::stats::Stats;
pub(crate) use self::worker::Worker;

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address} for clients of Kafka")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says; `AddrInUse` when another process listens there.
        source: io::Error,
    },
    /// A worker's thread or runtime cannot be made.
    #[error("cannot start worker {worker} for clients of Kafka")]
    Worker {
        /// The worker.
        worker: usize,
        /// What the system says.
        source: io::Error,
    },
}

/// A worker ended by a panic of the listener's own.
#[derive(Debug, thiserror::Error)]
#[error("worker {worker} for clients of Kafka panicked: {message}")]
pub struct WorkerPanic {
    /// The worker.
    pub worker: usize,
    /// The panic's message.
    pub message: String,
}

/// A running server. It stops when its shutdown token is triggered, not when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

/// What the listener counts, from wherever it is asked. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Counters(Arc<Shared>);

impl Counters {
    /// What has been counted.
    pub fn read(&self) -> Stats {
        self.0.stats()
    }
}

/// Listens, and serves clients of Kafka on every worker until `shutdown`; then drains.
///
/// With `tokens`, a client says who it is by SASL before it asks for anything, and works in the tenant that it names;
/// without, everybody works in the default tenant. The drain: listeners close, requests in flight finish and their
/// connections end; whatever is left after the drain's time is cut. [`Server::join`] returns at the end.
pub fn serve(
    resolved: Resolved,
    broker: Broker,
    tokens: Option<Arc<Tokens>>,
    shutdown: &Shutdown,
) -> Result<Server, ServeError> {
    let wanted = resolved.listen;
    let (address, listeners) =
        bind(wanted, resolved.workers).map_err(|source| ServeError::Listen { address: wanted, source })?;
    let shared = Shared::new(resolved, broker, tokens);
    let workers = listeners
        .into_iter()
        .enumerate()
        .map(|(index, listener)| start(index, listener, Arc::clone(&shared), shutdown.clone()))
        .collect::<Result<_, _>>()
        // The workers before the one that failed must not go on listening for nobody.
        .inspect_err(|_| shared.close())?;
    tracing::info!(%address, workers = shared.resolved.workers, tls = shared.resolved.tls.is_some(),
        "listening for clients of Kafka");
    Ok(Server { address, shared, workers })
}

impl Server {
    /// The address that the server listens on, its port known.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// What the listener counts.
    pub fn counters(&self) -> Counters {
        Counters(Arc::clone(&self.shared))
    }

    /// Blocks until the server has drained.
    pub fn join(self) -> Result<(), WorkerPanic> {
        let joined = workers::join(self.workers);
        joined.map_err(|Panicked { index, message }| WorkerPanic { worker: index, message })
    }
}

/// Pages of the disk are read beside the workers; one that is under way is waited for.
const WORKERS: Workers = Workers {
    name: "kafka",
    task: "kafka",
    blocking_threads: Some(BLOCKING_THREADS_MAX),
    leaves_blocking: false,
};

/// Starts a worker's thread, and returns when it listens.
fn start(
    worker: usize,
    listener: TcpListener,
    shared: Arc<Shared>,
    shutdown: Shutdown,
) -> Result<JoinHandle<()>, ServeError> {
    let until = shutdown.clone();
    let begin = move || Ok(Worker::new(worker, shared).run(TokioListener::from_std(listener)?, until));
    WORKERS.start(worker, shutdown, begin).map_err(|source| ServeError::Worker { worker, source })
}
