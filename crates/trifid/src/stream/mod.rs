//! The stream door: its broker and the two listeners in front of it, put together.

mod figures;
pub(crate) mod hands;
mod health;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde::Deserialize;
use tokio::time::MissedTickBehavior;
use trifid_base_log::RealDisk;
use trifid_base_runtime::config::{Config, Kind, Kinded};
use trifid_base_runtime::units::{Size, Span};
use trifid_base_runtime::{Shutdown, Supervisor, section};
use trifid_base_web::{self as web, HealthSource, auth};
use trifid_stream_engine::{Broker, CreatePolicy, Options as BrokerOptions};
use trifid_stream_face as face;
use trifid_stream_kafka as kafka;
use trifid_stream_model::spec::{Durability as Promise, StreamSpec};

use crate::settings::Root;

/// How often the broker looks after itself: retention, compaction, what has expired.
const UPKEEP_INTERVAL: Duration = Duration::from_millis(100);

/// Where streams are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Store {
    File,
    Memory,
}

impl Kinded for Store {
    const KIND: Kind = Kind::Choice(&["file", "memory"]);
}

/// What an acknowledgement promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Durability {
    Memory,
    Periodic,
    OnCommit,
}

impl Kinded for Durability {
    const KIND: Kind = Kind::Choice(&["memory", "periodic", "on-commit"]);
}

section! {
    /// The stream door, beside what its listeners read.
    pub(crate) struct Options in "stream" {
        /// Where durable streams are kept: `file` in data_dir; with `memory` there are none, and who asks for one is
        /// refused.
        store: Store = "file",
        /// Whether a stream that is named for the first time is made.
        auto_create: bool = "false",
        /// Shards of a stream that is made so.
        auto_shards: u32 = "1" in "shards",
        /// What an acknowledgement of a stream that is made so promises.
        auto_durability: Durability = "on-commit",
        /// How long a stream that is made so keeps records; 0 keeps them.
        auto_retention: Span = "0s",
        /// A new segment of a shard's log is begun after so much; sooner where a stream keeps little or has many
        /// shards.
        segment: Size = "64MiB",
        /// What may have been published and wait for its acknowledgement, in the whole process.
        inflight: Size = "64MiB",
        /// The same, of one tenant.
        tenant_inflight: Size = "32MiB",
        /// What is kept in memory of recent batches of durable streams, for readers at the end.
        tail: Size = "64MiB",
        /// What all streams in memory keep together.
        memory: Size = "64MiB",
    }
}

impl Options {
    fn broker(&self, folder: Option<&PathBuf>) -> anyhow::Result<BrokerOptions> {
        let mut options = match folder {
            Some(folder) => BrokerOptions::on(Arc::new(RealDisk::open(folder)?)),
            None => BrokerOptions::memory(),
        };
        options.logs.segment_bytes = self.segment.0;
        options.limits.process_inflight_bytes = bytes(self.inflight);
        options.limits.tenant_inflight_bytes = bytes(self.tenant_inflight);
        options.limits.tail_bytes_total = bytes(self.tail);
        options.limits.memory_bytes_total = bytes(self.memory);
        options.create = CreatePolicy { auto_create: self.auto_create, spec: self.first_use()? };
        Ok(options)
    }

    /// What a stream is that is made on first use.
    fn first_use(&self) -> anyhow::Result<StreamSpec> {
        let retention = Duration::from(self.auto_retention);
        let spec = StreamSpec {
            shards: self.auto_shards,
            durability: match (self.auto_durability, self.store) {
                (Durability::Memory, _) => Promise::Memory,
                (Durability::Periodic, Store::File) => Promise::PERIODIC,
                (Durability::OnCommit, Store::File) => Promise::OnCommit,
                (Durability::Periodic | Durability::OnCommit, Store::Memory) if self.auto_create => {
                    anyhow::bail!(
                        "stream.auto_durability must be memory where stream.store is: a durable stream needs files"
                    )
                }
                (Durability::Periodic | Durability::OnCommit, Store::Memory) => Promise::Memory,
            },
            retention_ms: (!retention.is_zero())
                .then(|| u64::try_from(retention.as_millis()).unwrap_or(u64::MAX)),
            ..StreamSpec::default()
        };
        spec.validate().context("stream.auto_*")?;
        Ok(spec)
    }
}

fn bytes(size: Size) -> usize {
    usize::try_from(size.0).unwrap_or(usize::MAX)
}

/// The door, open.
pub(crate) struct Door {
    pub(crate) broker: Broker,
    pub(crate) native: face::Server,
    pub(crate) kafka: Option<kafka::Server>,
}

impl Door {
    /// Opens the door; what it does by itself, `supervisor` watches. Tokens are those of the HTTP listener.
    pub(crate) async fn open(
        config: &Config,
        listener: &web::Resolved,
        supervisor: &mut Supervisor,
    ) -> anyhow::Result<Self> {
        let options: Options = config.section(Options::SECTION)?;
        let auth: auth::Options = config.section(auth::Options::SECTION)?;
        let data_dir = config.section::<Root>(Root::SECTION)?.data_dir;
        let kept = (options.store == Store::File).then_some(&data_dir);
        let native: face::Options = config.section(face::Options::SECTION)?;
        let native = native.resolve(&auth, kept.map(PathBuf::as_path))?;
        let by_kafka: kafka::Options = config.section(kafka::Options::SECTION)?;
        let by_kafka = if by_kafka.kafka { Some(by_kafka.resolve(&auth)?) } else { None };

        let folder = kept.map(|data_dir| data_dir.join("stream"));
        let broker = opened(options, folder, supervisor.shutdown()).await?;
        let shutdown = supervisor.shutdown().clone();
        supervisor.spawn("stream upkeep", upkeep(broker.clone(), shutdown.clone()));
        let native = face::serve(native, broker.clone(), listener.tokens(), &shutdown)?;
        let kafka =
            by_kafka.map(|by_kafka| kafka::serve(by_kafka, broker.clone(), listener.tokens(), &shutdown));
        Ok(Self { broker, native, kafka: kafka.transpose()? })
    }

    /// Where it listens, as the line at the start says it.
    pub(crate) fn addresses(&self) -> String {
        let kafka = self.kafka.as_ref().map(|kafka| format!(" kafka={}", kafka.local_addr()));
        format!("stream={}{}", self.native.local_addr(), kafka.unwrap_or_default())
    }

    /// Where clients of Kafka connect.
    pub(crate) fn kafka_address(&self) -> Option<SocketAddr> {
        self.kafka.as_ref().map(kafka::Server::local_addr)
    }

    /// What the door says of itself.
    pub(crate) fn health(&self) -> Vec<Arc<dyn HealthSource>> {
        let counters = self.kafka.as_ref().map(kafka::Server::counters);
        vec![Arc::new(health::Health { broker: self.broker.clone(), kafka: counters }), self.native.health()]
    }

    /// Reads the certificate again, as SIGHUP asks.
    pub(crate) fn reload(&self) -> face::Reload {
        self.native.reload()
    }

    /// Waits until both listeners have drained, then lets the broker write what it holds. Blocks.
    pub(crate) fn join(self) -> anyhow::Result<()> {
        let native = self.native.join();
        let kafka = self.kafka.map_or(Ok(()), kafka::Server::join);
        self.broker.drain();
        native?;
        kafka?;
        Ok(())
    }
}

/// The broker, its logs read on a thread of its own: a start that takes long still hears signals.
async fn opened(options: Options, folder: Option<PathBuf>, shutdown: &Shutdown) -> anyhow::Result<Broker> {
    let opening = tokio::task::spawn_blocking(move || {
        let broker = Broker::open(options.broker(folder.as_ref())?);
        let place = || folder.map_or_else(|| "memory".to_owned(), |folder| folder.display().to_string());
        broker.with_context(|| format!("cannot open the streams in {}", place()))
    });
    tokio::select! {
        broker = opening => broker?,
        () = shutdown.triggered() => anyhow::bail!("stopped while the streams were being read"),
    }
}

/// What the broker does by the clock; on a thread that may wait for the disk.
async fn upkeep(broker: Broker, shutdown: Shutdown) -> Result<(), Infallible> {
    let mut ticks = tokio::time::interval(UPKEEP_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.triggered() => return Ok(()),
        }
        let broker = broker.clone();
        let ticked = tokio::task::spawn_blocking(move || broker.tick(broker.now_ms())).await;
        if let Err(panic) = ticked
            && panic.is_panic()
        {
            std::panic::resume_unwind(panic.into_panic());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_make_durable_streams() {
        let spec = Options::default().first_use().unwrap();
        assert_eq!((spec.durability, spec.retention_ms), (Promise::OnCommit, None));
    }

    #[test]
    fn a_durable_stream_is_never_made_where_there_are_no_files() {
        let options = Options { store: Store::Memory, auto_create: true, ..Options::default() };
        assert!(options.first_use().unwrap_err().to_string().contains("stream.auto_durability"));
        let options = Options { auto_durability: Durability::Memory, ..options };
        assert_eq!(options.first_use().unwrap().durability, Promise::Memory);
    }
}
