//! The server: sockets bound, a thread a core, and the way out.

mod connection;
mod core;
mod link;
mod listen;
mod operations;
mod service;
mod shared;
mod stats;
mod watch;
mod wire;
mod wording;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use trifid_base_runtime::{Entropy as _, Shutdown, SystemEntropy};

use self::core::Core;
use self::shared::{Shared, Stage};
use crate::auth::TokenFileError;
use crate::face::Mount;
use crate::health::HealthSource;
use crate::options::Resolved;
use crate::tls::TlsError;
use crate::workers::{self, Panicked, Workers};

pub use self::listen::bind;

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says; `AddrInUse` when another process listens there.
        source: io::Error,
    },
    /// A core's thread or runtime cannot be made.
    #[error("cannot start core {core}")]
    Core {
        /// The core.
        core: usize,
        /// What the system says.
        source: io::Error,
    },
}

/// A core ended by a panic of the shell's own.
#[derive(Debug, thiserror::Error)]
#[error("core {core} panicked: {message}")]
pub struct CorePanic {
    /// The core.
    pub core: usize,
    /// The panic's message.
    pub message: String,
}

/// Why files could not be read again.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The token file; the tokens are as they were.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    /// Certificate or key; they are as they were.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A running server. It stops when its shutdown token is triggered, not when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    reload: Reload,
    cores: Vec<JoinHandle<()>>,
}

/// Listens, and answers on every core until `shutdown`; then drains.
///
/// The drain: health and readiness turn 503; `drain_delay` later the listeners close, after what waited in
/// their queues has been taken; idle connections close, requests in flight finish and their answers say
/// `Connection: close`; whatever is left after `drain_timeout` is cut. [`Server::join`] returns at the end.
pub fn serve(
    resolved: Resolved,
    mounts: Vec<Mount>,
    health: Vec<Arc<dyn HealthSource>>,
    shutdown: &Shutdown,
) -> Result<Server, ServeError> {
    let wanted = resolved.listen;
    let (address, listeners) = listen::bind(wanted, resolved.cores)
        .map_err(|source| ServeError::Listen { address: wanted, source })?;
    // Half of the bits are plenty to tell two processes apart.
    let boot = (SystemEntropy.next_u64() >> 32) as u32;
    let shared = Shared::new(resolved, mounts, health, boot);
    let cores = listeners
        .into_iter()
        .enumerate()
        .map(|(index, listener)| start(index, listener, Arc::clone(&shared), shutdown.clone()))
        .collect::<Result<_, _>>()
        // The cores before the one that failed must not go on listening for nobody.
        .inspect_err(|_| {
            shared.stage.send_replace(Stage::Closing);
        })?;
    tracing::info!(%address, cores = shared.resolved.cores, tls = shared.resolved.is_tls(), "listening");
    Ok(Server { address, reload: Reload(shared), cores })
}

impl Server {
    /// The address that the server listens on, its port known.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// A handle for reading tokens and certificates again.
    pub fn reload(&self) -> Reload {
        self.reload.clone()
    }

    /// Blocks until the server has drained.
    pub fn join(self) -> Result<(), CorePanic> {
        let joined = workers::join(self.cores);
        joined.map_err(|Panicked { index, message }| CorePanic { core: index, message })
    }
}

/// Reads tokens and certificates again, as SIGHUP asks. Cheap to clone.
#[derive(Clone)]
pub struct Reload(Arc<Shared>);

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reload")
    }
}

impl Reload {
    /// Reads every file again. Each one that cannot be used leaves its part as it was; the first of the errors
    /// is answered, after the others have had their turn.
    pub fn run(&self) -> Result<(), ReloadError> {
        let resolved = &self.0.resolved;
        let tokens = resolved.tokens.as_ref().map_or(Ok(()), |tokens| tokens.reload().map(|_| ()));
        let tls = resolved.tls.as_ref().map_or(Ok(()), crate::tls::Tls::reload);
        tokens?;
        tls?;
        Ok(())
    }
}

/// Requests wait for no disk on these threads.
const CORES: Workers = Workers { name: "core", task: "core", blocking_threads: None, leaves_blocking: false };

/// Starts a core's thread, and returns when it listens.
fn start(
    core: usize,
    listener: TcpListener,
    shared: Arc<Shared>,
    shutdown: Shutdown,
) -> Result<JoinHandle<()>, ServeError> {
    let until = shutdown.clone();
    let begin = move || Ok(Core::new(core, shared).run(self::core::register(listener)?, until));
    CORES.start(core, shutdown, begin).map_err(|source| ServeError::Core { core, source })
}
