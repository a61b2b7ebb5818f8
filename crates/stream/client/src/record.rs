//! Records as callers give and get them.

use bytes::Bytes;
use trifid_stream_model::batch::{self, BatchError, Opened, RecordData};
use trifid_stream_model::limits::INFLATED_BYTES_DEFAULT;

/// A record to be published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Decides the shard: records of one key stay in order.
    pub key: Option<Bytes>,
    /// The payload; none deletes its key from a compacted stream.
    pub value: Option<Bytes>,
    /// What goes with it.
    pub headers: Vec<(String, Option<Bytes>)>,
    /// Milliseconds since 1970; without one the time of the call.
    pub timestamp_ms: Option<i64>,
    /// The shard, whatever the key says.
    pub shard: Option<u32>,
}

impl Record {
    /// A record with this payload and nothing else.
    pub fn new(value: impl Into<Bytes>) -> Self {
        Self { value: Some(value.into()), ..Self::default() }
    }

    /// The same with a key.
    #[must_use]
    pub fn key(self, key: impl Into<Bytes>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// The same with one more header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Bytes>) -> Self {
        self.headers.push((name.into(), Some(value.into())));
        self
    }

    /// The same at another time.
    #[must_use]
    pub fn timestamp_ms(self, timestamp_ms: i64) -> Self {
        Self { timestamp_ms: Some(timestamp_ms), ..self }
    }

    /// The same for a certain shard.
    #[must_use]
    pub fn shard(self, shard: u32) -> Self {
        Self { shard: Some(shard), ..self }
    }

    /// About the bytes that it takes in a batch.
    pub(crate) fn size(&self) -> usize {
        let headers: usize = self
            .headers
            .iter()
            .map(|(name, value)| name.len() + value.as_ref().map_or(0, Bytes::len) + 8)
            .sum();
        self.key.as_ref().map_or(0, Bytes::len) + self.value.as_ref().map_or(0, Bytes::len) + headers + 24
    }

    /// Calls `append` with the record as the batch builder takes it.
    pub(crate) fn with_data<T>(&self, now_ms: i64, append: impl FnOnce(&RecordData<'_>) -> T) -> T {
        let headers: Vec<(&str, Option<&[u8]>)> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect();
        append(&RecordData {
            timestamp: self.timestamp_ms.unwrap_or(now_ms),
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            headers: &headers,
        })
    }
}

/// A record that was read. Its bytes are parts of the batch that it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The shard.
    pub shard: u32,
    /// Its offset in the shard.
    pub offset: u64,
    /// Milliseconds since 1970, as its producer told them.
    pub timestamp_ms: i64,
    /// Its key.
    pub key: Option<Bytes>,
    /// Its payload.
    pub value: Option<Bytes>,
    /// What goes with it; names that are no text are shown as well as can be.
    pub headers: Vec<(String, Option<Bytes>)>,
}

/// Records of one shard, as they were published together.
#[derive(Clone, Debug)]
pub struct Batch {
    pub(crate) shard: u32,
    /// The first offset that was asked for: a batch may begin before it.
    pub(crate) from: u64,
    /// The offset after the last that was asked for.
    pub(crate) to: u64,
    pub(crate) bytes: Bytes,
    pub(crate) header: batch::BatchHeader,
}

impl Batch {
    /// Reads the head of a batch.
    pub(crate) fn read(shard: u32, from: u64, to: u64, bytes: Bytes) -> Result<Self, BatchError> {
        let header = batch::Rules::STORED.check(&bytes)?;
        Ok(Self { shard, from, to, bytes, header })
    }

    /// The shard.
    pub fn shard(&self) -> u32 {
        self.shard
    }

    /// The offset of the first record.
    pub fn base_offset(&self) -> u64 {
        u64::try_from(self.header.base_offset).unwrap_or(0)
    }

    /// The offset after the last record.
    pub fn end_offset(&self) -> u64 {
        self.base_offset().saturating_add(u64::from(self.header.span()))
    }

    /// The whole batch, as it is stored (Kafka's RecordBatch v2).
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// About how many records it has: some may lie before what was asked for, or be gone by compaction.
    pub fn len(&self) -> usize {
        usize::try_from(self.header.count).unwrap_or(0)
    }

    /// Whether it has no records, as a compacted batch may.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The records that were asked for, in order. Compressed ones are read where the feature `compression` is
    /// on.
    pub fn records(&self) -> Result<Vec<Received>, BatchError> {
        let opened = batch::open(&self.bytes, INFLATED_BYTES_DEFAULT)?;
        let mut received = Vec::with_capacity(self.len().min(4096));
        for record in opened.records() {
            let record = record?;
            if (self.from..self.to).contains(&record.offset) {
                received.push(self.received(&opened, &record));
            }
        }
        Ok(received)
    }

    fn received(&self, opened: &Opened, record: &batch::Record<'_>) -> Received {
        let own = |bytes: &[u8]| opened.body().slice_ref(bytes);
        Received {
            shard: self.shard,
            offset: record.offset,
            timestamp_ms: record.timestamp,
            key: record.key.map(own),
            value: record.value.map(own),
            headers: record
                .headers
                .map(|header| (String::from_utf8_lossy(header.key).into_owned(), header.value.map(own)))
                .collect(),
        }
    }
}
