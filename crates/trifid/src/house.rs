//! The running program: doors opened, listener started, signals heard, and everything ended in order.
//!
//! The main thread runs a small runtime for what the program does by itself (signals, sweeps); requests run on
//! the threads of `base/web`, one a core. At shutdown the listener drains first, while the doors still work.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use trifid_base_runtime::config::Config;
use trifid_base_runtime::shutdown::Reason;
use trifid_base_runtime::signals::Signals;
use trifid_base_runtime::{Shutdown, Supervisor, telemetry};
use trifid_base_web::{self as web, HealthSource, Mount, Reload, auth, egress};

#[cfg(feature = "archive")]
use crate::archive;
#[cfg(feature = "context")]
use crate::context;
use crate::settings::Root;
#[cfg(feature = "stream")]
use crate::stream;

/// How long supervised tasks may take to end once nothing is served any more.
const TASKS_TIMEOUT: Duration = Duration::from_secs(10);

/// What runs, for whoever adds to it before the process waits.
pub(crate) struct House {
    #[cfg_attr(not(feature = "context"), allow(dead_code))] // for doors
    pub(crate) address: SocketAddr,
    pub(crate) supervisor: Supervisor,
    #[cfg(feature = "context")]
    pub(crate) context: Option<context::Door>,
    #[cfg(feature = "stream")]
    pub(crate) stream: Option<stream::Door>,
    #[cfg(feature = "archive")]
    pub(crate) archive: Option<archive::Door>,
}

/// Serves until a signal or a failure, then drains. `settle` runs once the doors are open and the listener
/// answers.
pub(crate) fn run(
    config: &Config,
    settle: impl AsyncFnOnce(&mut House) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    telemetry::init(&config.section(telemetry::Options::SECTION)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let lived = runtime.block_on(live(config, settle));
    // A start that was broken off leaves a thread reading; it holds nothing that the disk waits for.
    runtime.shutdown_background();
    lived
}

async fn live(
    config: &Config,
    settle: impl AsyncFnOnce(&mut House) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (shutdown, reload) = (Shutdown::new(), Arc::new(OnceLock::new()));
    let signals = Signals::install()?.listen(shutdown.clone(), reloading(Arc::clone(&reload)));
    // Not supervised: it goes on to the very end, for the second signal.
    tokio::spawn(signals);

    let (mut house, server) = open(config, &shutdown).await?;
    let _ = reload.set(house.reloads(server.reload()));
    if let Err(error) = settle(&mut house).await {
        shutdown.trigger(Reason::Requested);
        drain(server, house).await?;
        return Err(error);
    }
    drain(server, house).await
}

/// Opens the doors that the configuration names, and the listener before them.
async fn open(config: &Config, shutdown: &Shutdown) -> anyhow::Result<(House, web::Server)> {
    let root: Root = config.section(Root::SECTION)?;
    let mut options: web::Options = config.section(web::Options::SECTION)?;
    options.listen = settled(options.listen)?;
    let resolved = options.resolve(&config.section(auth::Options::SECTION)?)?;
    let client = egress::Client::new(&config.section(egress::Options::SECTION)?)?;
    let mut house = House::new(options.listen, shutdown.clone());
    house.open_doors(config, &root, &client, &resolved).await?;
    let server = web::serve(resolved, house.mounts(), house.health(client), shutdown)?;
    let doors = root.open_doors()?.join(",");
    // The rig, and scripts, look for this line and the address in it.
    tracing::info!("listening http={} doors={doors}{}", server.local_addr(), house.addresses());
    Ok((house, server))
}

impl House {
    fn new(address: SocketAddr, shutdown: Shutdown) -> Self {
        Self {
            address,
            supervisor: Supervisor::new(shutdown),
            #[cfg(feature = "context")]
            context: None,
            #[cfg(feature = "stream")]
            stream: None,
            #[cfg(feature = "archive")]
            archive: None,
        }
    }

    /// Opens the doors that `root` names.
    #[cfg_attr(not(all(feature = "context", feature = "archive")), allow(unused_variables))] // for doors
    async fn open_doors(
        &mut self,
        config: &Config,
        root: &Root,
        client: &egress::Client,
        listener: &web::Resolved,
    ) -> anyhow::Result<()> {
        let open = root.open_doors()?;
        #[cfg(feature = "context")]
        if open.contains(&"context") {
            let door =
                context::Door::open(config, self.address, client.clone(), &mut self.supervisor).await?;
            self.context = Some(door);
        }
        #[cfg(feature = "stream")]
        if open.contains(&"stream") {
            self.stream = Some(stream::Door::open(config, listener, &mut self.supervisor).await?);
        }
        #[cfg(feature = "archive")]
        if open.contains(&"archive") {
            self.archive = Some(archive::Door::open(config, listener, client.clone(), &mut self.supervisor)?);
        }
        Ok(())
    }

    #[cfg_attr(not(any(feature = "context", feature = "archive")), allow(unused_mut))] // for doors
    fn mounts(&self) -> Vec<Mount> {
        let mut mounts = Vec::new();
        #[cfg(feature = "context")]
        mounts.extend(self.context.iter().map(|door| door.mount.clone()));
        #[cfg(feature = "archive")]
        mounts.extend(self.archive.iter().map(|door| door.mount.clone()));
        mounts
    }

    /// What is read again on SIGHUP.
    #[cfg_attr(not(feature = "stream"), allow(clippy::unused_self, unused_mut))] // for doors
    fn reloads(&self, server: Reload) -> Vec<Rereading> {
        let mut reloads: Vec<Rereading> = vec![Box::new(move || Ok(server.run()?))];
        #[cfg(feature = "stream")]
        if let Some(door) = &self.stream {
            let reload = door.reload();
            reloads.push(Box::new(move || Ok(reload.run()?)));
        }
        reloads
    }

    /// Where doors listen besides, for the line at the start.
    #[cfg_attr(not(feature = "stream"), allow(clippy::unused_self))] // for doors
    fn addresses(&self) -> String {
        #[cfg(feature = "stream")]
        if let Some(door) = &self.stream {
            return format!(" {}", door.addresses());
        }
        String::new()
    }

    fn health(&self, client: egress::Client) -> Vec<Arc<dyn HealthSource>> {
        let mut sources: Vec<Arc<dyn HealthSource>> = Vec::new();
        #[cfg(feature = "context")]
        sources.extend(self.context.iter().map(context::Door::health));
        #[cfg(feature = "stream")]
        sources.extend(self.stream.iter().flat_map(stream::Door::health));
        #[cfg(feature = "archive")]
        sources.extend(self.archive.iter().map(archive::Door::health));
        sources.push(Arc::new(client));
        sources
    }
}

/// An address whose port is known before anybody asks for it: hosted contexts are named by it. A free port is
/// found by taking and leaving it; should another process take it in between, the listener says so.
fn settled(address: SocketAddr) -> anyhow::Result<SocketAddr> {
    if address.port() != 0 {
        return Ok(address);
    }
    let probe = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    Ok(probe.local_addr()?)
}

/// Reads files again.
type Rereading = Box<dyn Fn() -> anyhow::Result<()> + Send + Sync>;

/// What SIGHUP does: files are read again, once there are listeners that read any.
fn reloading(reloads: Arc<OnceLock<Vec<Rereading>>>) -> impl FnMut() {
    move || {
        for reread in reloads.get().into_iter().flatten() {
            match reread() {
                Ok(()) => tracing::info!("read tokens and certificates again"),
                Err(error) => {
                    tracing::error!(error = %format!("{error:#}"), "files are in force as they were");
                }
            }
        }
    }
}

/// Waits for the end of serving: requests first, then the program's own tasks.
async fn drain(server: web::Server, #[allow(unused_mut)] mut house: House) -> anyhow::Result<()> {
    let shutdown = house.supervisor.shutdown().clone();
    shutdown.triggered().await;
    if let Some(reason) = shutdown.reason() {
        tracing::info!(%reason, "draining");
    }
    let drained = tokio::task::spawn_blocking(move || server.join()).await?;
    #[cfg(feature = "stream")]
    let streams = match house.stream.take() {
        Some(door) => tokio::task::spawn_blocking(move || door.join()).await?,
        None => Ok(()),
    };
    house.supervisor.join(TASKS_TIMEOUT).await?;
    drained?;
    #[cfg(feature = "stream")]
    streams?;
    tracing::info!("stopped");
    Ok(())
}
