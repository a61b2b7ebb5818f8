//! Why bytes are no batch, or not one that is taken.

/// Why bytes are no record batch, or not one that is taken here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// Fewer bytes than the header, or than it says.
    #[error("a batch of {needed} bytes is cut off after {have}")]
    Truncated {
        /// How many bytes it should have.
        needed: usize,
        /// How many there are.
        have: usize,
    },
    /// More bytes than its header says.
    #[error("{0} bytes follow the batch")]
    Trailing(usize),
    /// The length field is smaller than a header.
    #[error("a batch says that its length is {0}")]
    Length(i32),
    /// More bytes than a batch may have here.
    #[error("a batch of {len} bytes is larger than the {max} allowed")]
    TooLarge {
        /// What it has.
        len: usize,
        /// What is allowed.
        max: usize,
    },
    /// A payload with more batches than a publish may have.
    #[error("a payload has more than {0} batches")]
    TooMany(usize),
    /// A payload without any.
    #[error("a payload has no batch")]
    Empty,
    /// The message formats before Kafka 0.11, and those after ours.
    #[error("message format {0} is not supported, only 2 is")]
    Magic(i8),
    /// What was computed differs from what is written.
    #[error("the checksum of a batch is {computed:#010x}, and its header says {stored:#010x}")]
    Checksum {
        /// In the header.
        stored: u32,
        /// Of the bytes.
        computed: u32,
    },
    /// A bit of the attributes that means nothing, or a compression that does not exist.
    #[error("the attributes {0:#06x} are not known")]
    Attributes(i16),
    /// The time of appending, where only the time of creation is taken.
    #[error("a batch with the time of appending is not taken, only the time of creation is")]
    LogAppendTime,
    /// A control batch from a producer.
    #[error("a control batch is not taken from a producer")]
    Control,
    /// A batch of a transaction.
    #[error("a batch of a transaction is not taken")]
    Transactional,
    /// Records and offsets do not agree.
    #[error("a batch of {count} records has the last offset delta {last_offset_delta}")]
    Count {
        /// Number of records.
        count: i32,
        /// Offset of the last record within the batch.
        last_offset_delta: i32,
    },
    /// A batch of more records than a batch may have.
    #[error("a batch has {0} records, more than allowed")]
    TooManyRecords(u32),
    /// More records than the bytes can hold.
    #[error("a batch says that {count} records lie in {len} bytes")]
    Dense {
        /// Number of records.
        count: u32,
        /// Bytes of the records.
        len: usize,
    },
    /// The producer's id, epoch and sequence do not go together.
    #[error("producer id {id}, epoch {epoch} and sequence {sequence} do not go together")]
    Producer {
        /// Its id.
        id: i64,
        /// Its epoch.
        epoch: i16,
        /// The sequence of the first record.
        sequence: i32,
    },
    /// The last timestamp lies before the first, or one is negative where a time is asked for.
    #[error("the timestamps {base} and {max} of a batch are no times")]
    Timestamps {
        /// Of the first record.
        base: i64,
        /// The largest.
        max: i64,
    },
    /// Something is wrong with a record.
    #[error("record {index} of a batch: {problem}")]
    Record {
        /// Which record.
        index: u32,
        /// What is wrong.
        problem: RecordProblem,
    },
    /// Compressed records, and this build cannot read them.
    #[error("a batch is compressed with {0}, which this build does not read")]
    Compressed(super::Compression),
    /// The compressed bytes are damaged.
    #[error("records compressed with {0} are damaged")]
    Damaged(super::Compression),
    /// The records inflate to more than allowed.
    #[error("compressed records inflate to more than {0} bytes")]
    Inflated(usize),
}

/// What is wrong with one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordProblem {
    /// It ends within a field.
    #[error("it is cut off")]
    Truncated,
    /// A number of more bytes than its type has.
    #[error("a number is too long")]
    Varint,
    /// A length below none.
    #[error("a length is negative")]
    Length,
    /// Its fields do not fill its length.
    #[error("its fields do not fill its length")]
    Excess,
    /// Offset deltas must rise and stay within the last.
    #[error("its offset does not follow the one before")]
    Offset,
    /// Its time lies outside 64 bits.
    #[error("its time is out of range")]
    Time,
    /// More headers than allowed.
    #[error("it has too many headers")]
    Headers,
    /// Bytes after the last record.
    #[error("bytes follow the last record")]
    Trailing,
}
