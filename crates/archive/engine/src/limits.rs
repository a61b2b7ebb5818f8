//! Every bound of the crate, by name.

/// The most bytes of text that one expression may put out for a batch of rows.
pub const TEXT_BATCH_BYTES: usize = 256 << 20;

/// The most rows that the index path gathers in order to sort them; beyond that an engine that can spill does.
pub const ORDERED_ROWS: usize = 2_000_000;

/// Rows, taken one by one, that are a small effort.
pub const SMALL_RUN_ROWS: usize = 2_000;

/// Rows, scanned in runs, that are a small effort.
pub const SMALL_SCAN_ROWS: usize = 20_000;

/// Rows of a chunk: a column of 8-byte values takes half a mebibyte, which is decoded in about a millisecond.
pub const CHUNK_ROWS: usize = 65_536;

/// The most bytes that an aggregate may join into one text.
pub const JOINED_TEXT_BYTES: usize = 16 << 20;

/// The most bins of a histogram.
pub const HISTOGRAM_BINS: usize = 10_000;

/// The most bytes of a compiled regular expression.
pub const REGEX_BYTES: usize = 1 << 20;

/// The most bytes of what texts are searched for: a pattern of LIKE, a regular expression, words. Some searches take
/// the product of both lengths.
pub const PATTERN_BYTES: usize = 4096;

/// The most different regular expressions in one batch of rows.
pub const REGEX_PATTERNS: usize = 256;

/// The most rows that the interpreter holds at any one place of a query.
pub const REFERENCE_ROWS: usize = 10_000_000;

/// The most bytes that the interpreter holds at any one place of a query.
pub const REFERENCE_BYTES: usize = 512 << 20;

/// Up to so many pairings of rows the interpreter answers at once, without a thread.
pub const SMALL_PRODUCT_ROWS: u64 = 100_000;
