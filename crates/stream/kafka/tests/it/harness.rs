//! A broker with the listener, and a client that writes and reads with `kafka-protocol`'s client side.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use trifid_base_log::RealDisk;
use trifid_base_runtime::Shutdown;
use trifid_base_runtime::shutdown::Reason;
use trifid_base_web::{Tokens, auth};
use trifid_stream_engine::{Broker, CreatePolicy, Options as EngineOptions};
use trifid_stream_kafka::{Options, Server, Stats, serve};
use trifid_stream_model::batch::{BatchBuilder, BuildOptions, Producer, RecordData};
use trifid_stream_model::names::{StreamName, Tenant};
use trifid_stream_model::spec::StreamSpec;

/// A listener that ends with this.
pub(crate) struct Harness {
    pub(crate) broker: Broker,
    pub(crate) address: SocketAddr,
    counters: trifid_stream_kafka::Counters,
    shutdown: Shutdown,
    server: Option<Server>,
    ticking: Arc<AtomicBool>,
    ticker: Option<JoinHandle<()>>,
}

impl Harness {
    /// Over memory, with topics made on first use.
    pub(crate) fn new() -> Self {
        Self::with(|_, _| ())
    }

    pub(crate) fn with(change: impl FnOnce(&mut Options, &mut EngineOptions)) -> Self {
        let mut engine = EngineOptions::memory();
        engine.create = CreatePolicy { auto_create: true, spec: StreamSpec::memory(1) };
        Self::of(engine, None, change)
    }

    /// Over a data directory: topics are durable on commit.
    pub(crate) fn on(dir: &Path) -> Self {
        Self::durable(dir, |_, _| ())
    }

    pub(crate) fn durable(dir: &Path, change: impl FnOnce(&mut Options, &mut EngineOptions)) -> Self {
        let mut engine = EngineOptions::on(Arc::new(RealDisk::open(dir).unwrap()));
        engine.create = CreatePolicy { auto_create: true, spec: StreamSpec::default() };
        Self::of(engine, None, change)
    }

    /// With a token file.
    pub(crate) fn with_tokens(path: &Path) -> (Self, Arc<Tokens>) {
        let tokens = Arc::new(Tokens::open(path).unwrap());
        let mut engine = EngineOptions::memory();
        engine.create = CreatePolicy { auto_create: true, spec: StreamSpec::memory(1) };
        (Self::of(engine, Some(Arc::clone(&tokens)), |_, _| ()), tokens)
    }

    fn of(
        mut engine: EngineOptions,
        tokens: Option<Arc<Tokens>>,
        change: impl FnOnce(&mut Options, &mut EngineOptions),
    ) -> Self {
        let mut options = Options { kafka_listen: "127.0.0.1:0".parse().unwrap(), ..Options::default() };
        options.kafka_workers = 2;
        change(&mut options, &mut engine);
        let broker = Broker::open(engine).unwrap();
        let resolved = options.resolve(&auth::Options::default()).unwrap();
        let shutdown = Shutdown::new();
        let server = serve(resolved, broker.clone(), tokens, &shutdown).unwrap();
        let ticking = Arc::new(AtomicBool::new(true));
        let ticker = std::thread::spawn({
            let (broker, ticking) = (broker.clone(), Arc::clone(&ticking));
            move || {
                while ticking.load(Ordering::Relaxed) {
                    broker.tick(broker.now_ms());
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        });
        Self {
            broker,
            address: server.local_addr(),
            counters: server.counters(),
            shutdown,
            server: Some(server),
            ticking,
            ticker: Some(ticker),
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address)
    }

    pub(crate) fn stats(&self) -> Stats {
        self.counters.read()
    }

    /// Makes a stream of the default tenant.
    pub(crate) fn stream(&self, name: &str, spec: StreamSpec) {
        self.broker.create(&Tenant::default(), &StreamName::new(name).unwrap(), spec).unwrap();
    }

    /// Ends the listener and waits until it has drained.
    pub(crate) fn stop(&mut self) {
        self.shutdown.trigger(Reason::Requested);
        if let Some(server) = self.server.take() {
            server.join().unwrap();
        }
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.stop();
        self.ticking.store(false, Ordering::Relaxed);
        if let Some(ticker) = self.ticker.take() {
            ticker.join().unwrap();
        }
    }
}

/// A client of one connection.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    correlation: i32,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        // No test waits so long unless it is about to fail.
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self { stream, correlation: 0 }
    }

    /// Writes a request; answers its correlation.
    pub(crate) fn send<Q: Request>(&mut self, version: i16, request: &Q) -> i32 {
        self.correlation += 1;
        let frame = frame(Q::KEY, version, self.correlation, request);
        self.stream.write_all(&frame).unwrap();
        self.correlation
    }

    /// Reads the answer to a request.
    pub(crate) fn receive<Q: Request>(&mut self, version: i16, correlation: i32) -> Q::Response {
        let mut frame = self.receive_frame().expect("the connection ended without an answer");
        let head = ResponseHeader::decode(&mut frame, Q::Response::header_version(version)).unwrap();
        assert_eq!(head.correlation_id, correlation);
        let response = Q::Response::decode(&mut frame, version).unwrap();
        assert!(frame.is_empty(), "{} bytes follow the answer", frame.len());
        response
    }

    pub(crate) fn ask<Q: Request>(&mut self, version: i16, request: &Q) -> Q::Response {
        let correlation = self.send(version, request);
        self.receive::<Q>(version, correlation)
    }

    /// The next frame, or nothing if the connection ends.
    pub(crate) fn receive_frame(&mut self) -> Option<Bytes> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).ok()?;
        let mut frame = vec![0; usize::try_from(i32::from_be_bytes(length)).unwrap()];
        self.stream.read_exact(&mut frame).unwrap();
        Some(frame.into())
    }

    pub(crate) fn is_closed(&mut self) -> bool {
        match self.stream.read(&mut [0; 1]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    /// Publishes records and answers the code and the base offset.
    pub(crate) fn produce(&mut self, topic: &str, values: &[&str]) -> (i16, i64) {
        let response = self.ask(9, &produce_request(topic, 0, batch(values), -1));
        let partition = &response.responses[0].partition_responses[0];
        (partition.error_code, partition.base_offset)
    }
}

/// A request with its length.
pub(crate) fn frame(key: i16, version: i16, correlation: i32, request: &impl Encodable) -> Bytes {
    let header = RequestHeader::default()
        .with_request_api_key(key)
        .with_request_api_version(version)
        .with_correlation_id(correlation)
        .with_client_id(Some(StrBytes::from_static_str("it")));
    let mut out = BytesMut::from(&[0; 4][..]);
    let head = ApiKey::try_from(key).unwrap().request_header_version(version);
    header.encode(&mut out, head).unwrap();
    request.encode(&mut out, version).unwrap();
    let length = i32::try_from(out.len() - 4).unwrap();
    out[..4].copy_from_slice(&length.to_be_bytes());
    out.freeze()
}

pub(crate) fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub(crate) fn topic(name: &str) -> TopicName {
    TopicName(text(name))
}

/// A batch of these values, created at the times 1000, 1001, ...
pub(crate) fn batch(values: &[&str]) -> Bytes {
    batch_of(values, None)
}

pub(crate) fn batch_of(values: &[&str], producer: Option<Producer>) -> Bytes {
    let mut builder = BatchBuilder::new(BuildOptions::default());
    for (timestamp, value) in (1000..).zip(values) {
        let record = RecordData { timestamp, key: Some(b"key"), value: Some(value.as_bytes()), headers: &[] };
        builder.append(&record).unwrap();
    }
    builder.finish(producer).unwrap().unwrap()
}

pub(crate) fn produce_request(topic_name: &str, index: i32, records: Bytes, acks: i16) -> ProduceRequest {
    let partition =
        produce_request::PartitionProduceData::default().with_index(index).with_records(Some(records));
    let data = produce_request::TopicProduceData::default()
        .with_name(topic(topic_name))
        .with_partition_data(vec![partition]);
    ProduceRequest::default().with_acks(acks).with_timeout_ms(1000).with_topic_data(vec![data])
}

pub(crate) fn fetch_request(topic_name: &str, index: i32, offset: i64, wait_ms: i32) -> FetchRequest {
    let partition = fetch_request::FetchPartition::default()
        .with_partition(index)
        .with_fetch_offset(offset)
        .with_partition_max_bytes(1 << 20);
    let wanted =
        fetch_request::FetchTopic::default().with_topic(topic(topic_name)).with_partitions(vec![partition]);
    FetchRequest::default()
        .with_max_wait_ms(wait_ms)
        .with_min_bytes(1)
        .with_max_bytes(1 << 20)
        .with_topics(vec![wanted])
}

/// The values of all batches in a fetched partition, with their offsets.
pub(crate) fn values(records: Option<&Bytes>) -> Vec<(i64, String)> {
    let mut found = Vec::new();
    for batch in trifid_stream_model::batch::split(&records.cloned().unwrap_or_default()) {
        let batch = batch.unwrap();
        let base = i64::from_be_bytes(*batch.first_chunk().unwrap());
        let opened = trifid_stream_model::batch::open(&batch, 1 << 20).unwrap();
        for record in opened.records() {
            let record = record.unwrap();
            let value = String::from_utf8(record.value.unwrap().to_vec()).unwrap();
            found.push((base + i64::from(record.delta), value));
        }
    }
    found
}
