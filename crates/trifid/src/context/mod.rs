//! The context door: its store, its broker, its face, put together.

mod fetch;
mod health;
mod store;
pub(crate) mod transfer;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use trifid_base_runtime::config::{Config, Kind, Kinded};
use trifid_base_runtime::units::{Size, Span};
use trifid_base_runtime::{Shutdown, Supervisor, SystemClock, SystemEntropy, section};
use trifid_base_web::{HealthSource, Mount, egress};
use trifid_context_backends::file::FileStore;
use trifid_context_engine::Broker;
use trifid_context_engine::contexts::{Contexts, Ports, Settings};
use trifid_context_engine::time::Now;
use trifid_context_face::{ContextFace, Options as FaceOptions, ROOT};
use trifid_context_model::ld::CoreVersion;

use self::store::{Store, StoreKind};
use crate::settings::Root;

/// A version of the core context.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Core(String);

impl Kinded for Core {
    const KIND: Kind = Kind::Choice(&["1.3", "1.4", "1.5", "1.6", "1.7", "1.8", "1.9"]);
}

impl Core {
    fn version(&self) -> CoreVersion {
        let wanted = format!("-v{}.jsonld", self.0);
        let named = CoreVersion::ALL.into_iter().find(|version| version.url().ends_with(&wanted));
        named.unwrap_or(CoreVersion::LATEST)
    }
}

section! {
    /// The context door, beside what its face reads.
    pub(crate) struct Options in "context" {
        /// Where entities are kept: `memory` forgets them with the process, `file` keeps what was acknowledged in
        /// data_dir.
        store: StoreKind = "memory",
        /// The file store writes a snapshot once its journal has grown by so much, and by as much as the last one
        /// held.
        snapshot_after: Size = "256MiB",
        /// The core context of requests and answers that name none.
        core_version: Core = "1.9",
        /// How often what has expired is removed; it is not seen any more from the moment it expires.
        sweep_interval: Span = "10s",
        /// Where clients reach this broker, such as https://broker.example; hosted contexts
        /// get their URLs from it. Without it, the address of the listener.
        public_url: Option<String> = "",
    }
}

/// The door, open.
pub(crate) struct Door {
    pub(crate) broker: Arc<Broker>,
    pub(crate) contexts: Contexts,
    pub(crate) mount: Mount,
    file: Option<Arc<FileStore>>,
}

impl Door {
    /// Opens the door behind the listener at `address`; what it does by itself, `supervisor` watches.
    pub(crate) async fn open(
        config: &Config,
        address: SocketAddr,
        client: egress::Client,
        supervisor: &mut Supervisor,
    ) -> anyhow::Result<Self> {
        let options: Options = config.section(Options::SECTION)?;
        let face = config.section::<FaceOptions>(FaceOptions::SECTION)?.resolve()?;
        let Store { entities, hosted, recovered, file } =
            opened(&options, config.section::<Root>(Root::SECTION)?.data_dir, supervisor.shutdown()).await?;
        let broker = Arc::new(Broker::new(entities, Now::new(Arc::new(SystemClock))));
        let settings =
            Settings { core: options.core_version.version(), public_urls: public_urls(&options, address) };
        let fetch = Arc::new(fetch::ByHttp::new(client));
        let contexts = Contexts::new(settings, Ports { fetch, hosted, entropy: Arc::new(SystemEntropy) });
        contexts.import(recovered)?;
        let mount = Mount::new(ROOT, Arc::new(ContextFace::new(Arc::clone(&broker), contexts.clone(), face)));
        let shutdown = supervisor.shutdown().clone();
        let sweep = sweep(Arc::clone(&broker), contexts.clone(), options.sweep_interval, shutdown);
        supervisor.spawn("context sweep", sweep);
        Ok(Self { broker, contexts, mount, file })
    }

    /// What the door says of itself.
    pub(crate) fn health(&self) -> Arc<dyn HealthSource> {
        let (broker, contexts) = (Arc::clone(&self.broker), self.contexts.clone());
        Arc::new(health::Health { broker, contexts, file: self.file.clone() })
    }
}

/// The store, read on a thread of its own: a start that takes long still hears signals.
async fn opened(options: &Options, data_dir: PathBuf, shutdown: &Shutdown) -> anyhow::Result<Store> {
    let options = options.clone();
    let opening = tokio::task::spawn_blocking(move || store::open(&options, &data_dir));
    tokio::select! {
        store = opening => store?,
        () = shutdown.triggered() => anyhow::bail!("stopped while the store was being read"),
    }
}

/// The configured URL first: hosted contexts are named by it. The listener's own address is recognised too.
fn public_urls(options: &Options, address: SocketAddr) -> Vec<Box<str>> {
    let configured = options.public_url.as_deref().map(|url| url.trim_end_matches('/').into());
    let mut urls: Vec<Box<str>> = configured.into_iter().collect();
    urls.push(format!("http://{address}").into());
    if address.ip().is_loopback() {
        urls.push(format!("http://localhost:{}", address.port()).into());
    }
    urls
}

/// Removes what has expired (4.22) and what the store of contexts may forget.
async fn sweep(
    broker: Arc<Broker>,
    contexts: Contexts,
    interval: Span,
    shutdown: Shutdown,
) -> Result<(), Infallible> {
    let mut ticks = tokio::time::interval(interval.0.max(std::time::Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.triggered() => return Ok(()),
        }
        let now = broker.now();
        contexts.sweep(now);
        match broker.store().expire(now).await {
            Ok(0) => {}
            Ok(removed) => tracing::debug!(removed, "removed what had expired"),
            Err(error) => tracing::warn!(%error, "the sweep of expired entities failed; it will try again"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_of_the_core_is_known_by_its_number() {
        let Kind::Choice(words) = Core::KIND else { panic!("a choice") };
        let versions: Vec<_> = words.iter().map(|word| Core((*word).to_owned()).version()).collect();
        assert_eq!(versions, CoreVersion::ALL);
        assert_eq!(Options::default().core_version.version(), CoreVersion::LATEST);
    }

    #[test]
    fn the_configured_url_comes_first() {
        let address: SocketAddr = "127.0.0.1:9090".parse().unwrap();
        let mut options = Options::default();
        let urls = |options: &Options| public_urls(options, address).join(" ");
        assert_eq!(urls(&options), "http://127.0.0.1:9090 http://localhost:9090");
        options.public_url = Some("https://broker.example/".to_owned());
        assert_eq!(urls(&options), "https://broker.example http://127.0.0.1:9090 http://localhost:9090");
    }
}
