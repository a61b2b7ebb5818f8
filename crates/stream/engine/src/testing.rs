//! What the tests of this crate share: batches, brokers with a clock moved by hand, and disks that lose
//! power.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use trifid_base_runtime::{Clock, ManualClock, SeededEntropy, Timestamp};
use trifid_base_sim::SimDisk;
use trifid_stream_model::batch::{BatchBuilder, BuildOptions, Producer, RecordData, open};
use trifid_stream_model::names::{StreamName, Tenant};
use trifid_stream_model::spec::{Durability, StreamSpec};

use crate::admission::Admitted;
use crate::error::PublishError;
use crate::limits::Limits;
use crate::shard::{Entry, Published, Shard};
use crate::{Broker, Checked, CreatePolicy, Options, Stream};

pub(crate) const START_MS: i64 = 1_700_000_000_000;

/// A batch of records with these values, created at `ms`.
pub(crate) fn batch_at(ms: i64, values: &[&[u8]], producer: Option<(i64, i16, i32)>) -> Bytes {
    let mut builder = BatchBuilder::new(BuildOptions::default());
    for value in values {
        let record = RecordData { timestamp: ms, key: None, value: Some(value), headers: &[] };
        builder.append(&record).unwrap();
    }
    let producer = producer.map(|(id, epoch, sequence)| Producer { id, epoch, sequence });
    builder.finish(producer).unwrap().unwrap()
}

/// A batch of one keyed record each.
pub(crate) fn keyed(ms: i64, records: &[(&str, Option<&str>)]) -> Bytes {
    let mut builder = BatchBuilder::new(BuildOptions::default());
    for (key, value) in records {
        let value = value.map(str::as_bytes);
        builder
            .append(&RecordData { timestamp: ms, key: Some(key.as_bytes()), value, headers: &[] })
            .unwrap();
    }
    builder.finish(None).unwrap().unwrap()
}

pub(crate) fn checked(batch: &Bytes) -> Checked {
    Checked::payload(batch, 1 << 20).unwrap()
}

/// A batch of records with these values.
pub(crate) fn values(values: &[&[u8]]) -> Checked {
    checked(&batch_at(START_MS, values, None))
}

/// A batch of one record that fills about so many bytes.
pub(crate) fn sized(bytes: usize) -> Checked {
    values(&[&vec![7; bytes.saturating_sub(75)]])
}

pub(crate) fn publish(shard: &Arc<Shard>, batches: Checked) -> Result<Published, PublishError> {
    shard.publish(batches, Admitted::unmetered())
}

/// Publishes and waits until it counts; answers the first offset.
pub(crate) fn put(shard: &Arc<Shard>, batches: Checked) -> u64 {
    let published = publish(shard, batches).unwrap();
    published.ack.wait().unwrap();
    published.base_offset
}

/// Offset and value of each record.
pub(crate) fn records(entries: &[Entry]) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in entries {
        let opened = open(&entry.bytes, 1 << 20).unwrap();
        assert_eq!(opened.header().base_offset, entry.base as i64, "the offset is written into the batch");
        assert_eq!(opened.header().leader_epoch, entry.epoch as i32);
        for record in opened.records() {
            let record = record.unwrap();
            all.push((entry.base + u64::from(record.delta), record.value.unwrap_or_default().to_vec()));
        }
    }
    all
}

/// Everything that can be read from an offset on.
pub(crate) fn read_all(shard: &Shard, mut from: u64) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    while from < shard.end_offset() {
        let fetched = shard.fetch(from, 300).unwrap();
        assert!(fetched.next > from, "a fetch below the end goes on");
        all.extend(records(&fetched.batches).into_iter().filter(|(offset, _)| *offset >= from));
        from = fetched.next;
    }
    all
}

pub(crate) fn name(name: &str) -> StreamName {
    StreamName::new(name).unwrap()
}

pub(crate) fn spec(durability: Durability) -> StreamSpec {
    StreamSpec { durability, ..StreamSpec::default() }
}

/// A broker with its clock and, if it has one, its disk.
pub(crate) struct Rig {
    pub(crate) broker: Broker,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) disk: Option<SimDisk>,
    options: Options,
}

impl Rig {
    pub(crate) fn memory() -> Self {
        Self::with(None, |_| {})
    }

    pub(crate) fn on_disk() -> Self {
        Self::with(Some(SimDisk::new()), |_| {})
    }

    pub(crate) fn with(disk: Option<SimDisk>, change: impl FnOnce(&mut Options)) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(START_MS * 1000)));
        let mut options = Options {
            dir: disk.clone().map(|disk| Arc::new(disk) as _),
            logs: trifid_base_log::Options {
                segment_bytes: 16 << 10,
                preallocate: false,
                linger_max: Duration::ZERO,
                // What a dead process still tries fails, and must not end the tests.
                on_fatal: Arc::new(|_| {}),
                ..trifid_base_log::Options::default()
            },
            limits: Limits { tail_bytes_per_shard: 8 << 10, ..Limits::default() },
            create: CreatePolicy::default(),
            clock: clock.clone(),
            entropy: Arc::new(SeededEntropy::new(7)),
        };
        change(&mut options);
        let broker = Broker::open(options.clone()).unwrap();
        Rig { broker, clock, disk, options }
    }

    /// The process ends, and another begins on what is left: `after` says what that is.
    pub(crate) fn reopen(self, after: impl FnOnce(&SimDisk) -> SimDisk) -> Self {
        let Rig { broker, clock, disk, mut options } = self;
        let disk = disk.map(|disk| after(&disk));
        options.dir = disk.clone().map(|disk| Arc::new(disk) as _);
        drop(broker);
        let broker = Broker::open(options.clone()).unwrap();
        Rig { broker, clock, disk, options }
    }

    /// An orderly end and a new beginning.
    pub(crate) fn restart(self) -> Self {
        self.broker.drain();
        let Rig { broker, clock, disk, options } = self;
        drop(broker);
        let broker = Broker::open(options.clone()).unwrap();
        Rig { broker, clock, disk, options }
    }

    pub(crate) fn tenant(&self) -> Tenant {
        Tenant::default()
    }

    pub(crate) fn create(&self, stream: &str, spec: StreamSpec) -> Arc<Stream> {
        self.broker.create(&self.tenant(), &name(stream), spec).unwrap()
    }

    pub(crate) fn stream(&self, stream: &str) -> Arc<Stream> {
        self.broker.stream(&self.tenant(), &name(stream)).unwrap()
    }

    pub(crate) fn shard(&self, stream: &str) -> Arc<Shard> {
        self.stream(stream).shards()[0].clone()
    }

    /// Lets time pass and looks after everything.
    pub(crate) fn pass(&self, span: Duration) {
        self.clock.advance(span);
        self.broker.tick(self.clock.now().micros() / 1000);
    }
}

/// A waker that counts.
#[derive(Default)]
pub(crate) struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Count {
    pub(crate) fn waker() -> (Arc<Self>, Waker) {
        let count = Arc::new(Count::default());
        (count.clone(), Waker::from(count))
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Polls once.
pub(crate) fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}
