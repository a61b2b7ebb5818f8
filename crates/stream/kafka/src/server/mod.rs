//! The server: sockets bound, a thread a worker, and the way out.

mod connection;
mod outbox;
mod shared;
mod stats;
mod watch;
mod worker;

use std::any::Any;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use tokio::net::TcpListener as TokioListener;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use trifid_base_runtime::Shutdown;
use trifid_base_runtime::shutdown::Reason;
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
        let ends = self.workers.into_iter().enumerate().map(|(worker, thread)| {
            thread.join().map_err(|panic| WorkerPanic { worker, message: message(&*panic) })
        });
        ends.collect::<Vec<_>>().into_iter().collect()
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Starts a worker's thread, and returns when it listens.
fn start(
    index: usize,
    listener: TcpListener,
    shared: Arc<Shared>,
    shutdown: Shutdown,
) -> Result<JoinHandle<()>, ServeError> {
    let failed = |source| ServeError::Worker { worker: index, source };
    let (ready, started) = mpsc::sync_channel(1);
    let thread = thread::Builder::new()
        .name(format!("kafka-{index}"))
        .spawn(move || run(index, listener, shared, shutdown, &ready))
        .map_err(failed)?;
    // The thread says how its start went, or dies before it can.
    started.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into())).map_err(failed)?;
    Ok(thread)
}

fn run(
    index: usize,
    listener: TcpListener,
    shared: Arc<Shared>,
    shutdown: Shutdown,
    ready: &mpsc::SyncSender<io::Result<()>>,
) {
    let _fall = Fall(shutdown.clone());
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return drop(ready.send(Err(error))),
    };
    runtime.block_on(async {
        match TokioListener::from_std(listener) {
            Ok(listener) => {
                let _ = ready.send(Ok(()));
                Worker::new(index, shared).run(listener, shutdown).await;
            }
            Err(error) => drop(ready.send(Err(error))),
        }
    });
}

/// A worker that falls takes the server down in good order: the others drain, and [`Server::join`] says why.
struct Fall(Shutdown);

impl Drop for Fall {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.trigger(Reason::Task("kafka"));
        }
    }
}

fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .build_local(LocalOptions::default())
}
