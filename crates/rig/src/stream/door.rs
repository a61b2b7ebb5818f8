//! The program with its stream door open: started, administered, and asked what it counts.

use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use trifid_stream_client::wire::frame::{Policy, Start, request};
use trifid_stream_client::wire::spec::{CacheSpec, Durability, StreamSpec};
use trifid_stream_client::{CacheName, StreamName};

use super::batch::{Follower, Shape};
use super::publisher::{Publisher, Subscriber};
use super::{echo, kafka, native};
use crate::args::Transport;
use crate::bench::Bench;
use crate::client::Client;
use crate::error::Error;
use crate::request::{Expect, Template};
use crate::serve::{self, Setting};
use crate::server::Server;

/// Its name in messages.
pub(super) const NAME: &str = "trifid";
/// What the logs of one stream may keep on the disk, in bytes.
const RETENTION_BYTES: u64 = 256 << 20;

/// How the door is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Via {
    Tls,
    Quic,
    Kafka,
}

impl Via {
    pub(super) const ALL: [Via; 3] = [Via::Tls, Via::Quic, Via::Kafka];

    /// The side's name in reports.
    pub(super) fn side(self) -> &'static str {
        match self {
            Via::Tls => "trifid tls",
            Via::Quic => "trifid quic",
            Via::Kafka => "trifid kafka",
        }
    }

    fn transport(self) -> Transport {
        if self == Via::Quic { Transport::Quic } else { Transport::Tls }
    }
}

/// A running program.
pub(super) struct Door {
    pub(super) server: Server,
    pub(super) native: native::Door,
    kafka: SocketAddr,
}

impl Door {
    /// Starts it with its files in `folder`.
    pub(super) fn start(bench: &Bench<'_>, folder: &Path, more: &[Setting<'_>]) -> Result<Self, Error> {
        let any: &OsStr = "127.0.0.1:0".as_ref();
        let one: &OsStr = "1".as_ref();
        let mut settings: Vec<Setting<'_>> = vec![
            ("doors", "stream".as_ref()),
            ("data_dir", folder.as_os_str()),
            ("stream.listen", any),
            ("stream.kafka_listen", any),
            ("stream.workers", one),
            ("stream.kafka_workers", one),
        ];
        settings.extend(more);
        let server =
            serve::start(NAME, bench.program, &settings, bench.directory, bench.options.server_core())?;
        let missing =
            |door: &str| Error::Wrong { name: NAME, what: format!("it did not say where {door} is") };
        let address = server.address_of("stream").ok_or_else(|| missing("stream"))?;
        let kafka = server.address_of("kafka").ok_or_else(|| missing("kafka"))?;
        let certificate = echo::trusted(&folder.join("tls").join("certificate.pem"))?;
        Ok(Door { server, native: native::Door { address, certificate }, kafka })
    }

    /// The same in a folder of its own within the suite's.
    pub(super) fn in_folder(bench: &Bench<'_>, name: &str) -> Result<Self, Error> {
        let folder = folder(bench, name)?;
        Door::start(bench, &folder, &[])
    }

    /// Makes a stream of one shard.
    pub(super) async fn create(&self, stream: &str, durability: Durability) -> Result<(), Error> {
        self.create_keeping(stream, durability, RETENTION_BYTES).await
    }

    /// The same that keeps so many bytes.
    pub(super) async fn create_keeping(
        &self,
        stream: &str,
        durability: Durability,
        bytes: u64,
    ) -> Result<(), Error> {
        let name = StreamName::new(stream).map_err(|error| failed(io::Error::other(error)))?;
        let retention_bytes = Some(bytes);
        let spec =
            StreamSpec { durability, retention_bytes, max_batch_bytes: 4 << 20, ..StreamSpec::default() };
        self.administer(&request::CreateStream { name, spec }.into()).await
    }

    /// Deletes a stream.
    pub(super) async fn delete(&self, stream: &str) -> Result<(), Error> {
        let name = StreamName::new(stream).map_err(|error| failed(io::Error::other(error)))?;
        self.administer(&request::DeleteStream { name }.into()).await
    }

    /// Makes a cache in memory.
    pub(super) async fn create_cache(&self, cache: &str) -> Result<(), Error> {
        let name = CacheName::new(cache).map_err(|error| failed(io::Error::other(error)))?;
        self.administer(&request::CacheCreate { name, spec: CacheSpec::default() }.into()).await
    }

    async fn administer(&self, request: &trifid_stream_client::wire::frame::Request) -> Result<(), Error> {
        let mut line = self.native.connect(Transport::Tls).await.map_err(failed)?;
        line.ask(request, 2).await.map(drop).map_err(failed)
    }

    /// Connections that each publish this batch.
    pub(super) async fn publishers(
        &self,
        via: Via,
        count: usize,
        stream: &str,
        shape: Shape,
        batch: &Bytes,
    ) -> Result<Vec<Publisher>, Error> {
        let mut publishers = Vec::with_capacity(count);
        for _ in 0..count {
            publishers.push(match via {
                Via::Kafka => {
                    let records = shape.records as u64;
                    let publisher = kafka::Publisher::connect(self.kafka, stream, records, batch).await;
                    Publisher::Kafka(publisher.map_err(failed)?)
                }
                Via::Tls | Via::Quic => {
                    let line = self.native.connect(via.transport()).await.map_err(failed)?;
                    Publisher::Native(line.publisher(stream, batch).await.map_err(failed)?)
                }
            });
        }
        Ok(publishers)
    }

    /// A connection that is given what is published from now on, which must be `expected` where that is given.
    pub(super) async fn subscriber(
        &self,
        via: Via,
        stream: &str,
        expected: Option<Bytes>,
    ) -> Result<Subscriber, Error> {
        let line = self.native.connect(via.transport()).await.map_err(failed)?;
        let native = line.subscriber(stream, Start::Latest, Policy::Block, expected.clone()).await;
        let native = native.map_err(failed)?;
        if via != Via::Kafka {
            return Ok(Subscriber::Native(native));
        }
        // The native protocol has told where the end is.
        let follower = Follower::new(native.next_offset(), expected);
        kafka::Fetcher::connect(self.kafka, stream, follower).await.map(Subscriber::Kafka).map_err(failed)
    }

    /// Waves of the committer and records published of a stream until now, by its own metrics.
    pub(super) fn counted(&self, stream: &str) -> Result<(f64, f64), Error> {
        let mut request = Vec::new();
        let host = self.server.address().to_string();
        Template::new("GET", &host, "/q/metrics", None, Expect::status(200)).write(0, &mut request);
        let reply = Client::connect(NAME, self.server.address())?.call(&request)?;
        let text = reply.text();
        let value = |name: &str| metric(&text, name, stream).unwrap_or(0.0);
        Ok((value("trifid_stream_commits_total"), value("trifid_stream_records_in_total")))
    }
}

/// A new folder for a server's files.
pub(super) fn folder(bench: &Bench<'_>, name: &str) -> Result<PathBuf, Error> {
    let folder = bench.directory.join(name);
    std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    Ok(folder)
}

/// For `map_err` of what concerns the program.
pub(super) fn failed(source: io::Error) -> Error {
    Error::Connection { name: NAME, source }
}

/// The value of a metric's sample that has this stream as a label.
fn metric(text: &str, name: &str, stream: &str) -> Option<f64> {
    let label = format!("stream=\"{stream}\"");
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(name)?.strip_prefix('{')?;
        let (labels, value) = rest.rsplit_once('}')?;
        labels.split(',').any(|one| one == label).then(|| value.trim().parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_found_by_its_stream() {
        let text =
            "# TYPE a counter\na{tenant=\"t\",stream=\"x.y\"} 3\na{tenant=\"t\",stream=\"x.z\"} 4.5\na 9\n";
        assert_eq!(metric(text, "a", "x.z"), Some(4.5));
        assert_eq!(metric(text, "a", "x"), None);
        assert_eq!(metric(text, "b", "x.z"), None);
    }
}
