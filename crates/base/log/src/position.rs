//! The numbers of a log, each in a type of its own.

use std::fmt;

/// Which log of a data directory: the shard of a stream, or a number that a store chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId(pub u64);

/// The ordinal of a record in its log, counted from zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(u64);

impl Position {
    /// The position of a log's first record.
    pub const ZERO: Position = Position(0);

    /// The position of the record that `ordinal` records precede.
    pub const fn new(ordinal: u64) -> Self {
        Position(ordinal)
    }

    /// How many records precede this one.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The position `records` further on.
    ///
    /// # Panics
    /// After 2^64 records, which no disk holds.
    #[must_use]
    pub const fn advance(self, records: u32) -> Self {
        match self.0.checked_add(records as u64) {
            Some(ordinal) => Position(ordinal),
            None => panic!("positions are exhausted"),
        }
    }

    /// Like [`advance`](Self::advance), for numbers read from disk.
    pub(crate) const fn checked_advance(self, records: u32) -> Option<Self> {
        match self.0.checked_add(records as u64) {
            Some(ordinal) => Some(Position(ordinal)),
            None => None,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The incarnation of a log: raised whenever it is opened and after a refused write. (A replicated log's term
/// will use it.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Epoch(pub(crate) u64);

impl Epoch {
    pub(crate) fn next(self) -> Self {
        Epoch(self.0.saturating_add(1))
    }
}
