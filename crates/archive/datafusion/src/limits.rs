//! Every bound of the crate, by name.

/// The most tables, derived tables and subqueries that one plan may read; a CTE counts each time it is used.
pub const PLAN_RELATIONS: usize = 512;

/// Optimised plans that are kept.
pub const PLANS_KEPT: usize = 256;

/// Rows of all tables together below which a query is not worth a second thread.
pub const WIDE_ROWS: u64 = 64 << 10;

/// Rows below which a scan is not worth a second partition.
pub const PARTITION_ROWS: usize = 32 << 10;

/// Row groups of one segment file: about a million rows.
pub const SEGMENT_CHUNKS: usize = 16;

/// Tables of more rows get no value indexes: those are kept in memory.
pub const INDEXED_ROWS: u64 = 20_000_000;

/// The bytes of rows that a load sorts at once; what is more goes through files.
pub const RUN_BYTES: usize = 256 << 20;

/// Rows that a load asks of a reader at once.
pub const LOAD_BATCH_ROWS: usize = 65_536;

/// Files of one attached table.
pub const ATTACHED_FILES: usize = 100_000;

/// Rows below which pages of an attached file are read together.
pub const PAGE_CHUNK_ROWS: u32 = 8192;

/// Least and greatest values that are held of attached files, over all row groups and columns: some hundred mebibytes.
pub const ATTACHED_RANGES: usize = 4_000_000;

/// Bytes of Parquet footers that are held.
pub const FOOTER_BYTES: u64 = 64 << 20;

/// Columns of an uploaded Parquet file.
pub const UPLOAD_COLUMNS: usize = 10_000;

/// How many times the size of its pages an uploaded Parquet file may have in memory.
pub const UPLOAD_GROWTH: u64 = 4;

/// Bytes of a batch out of an uploaded Parquet file, at worst.
pub const UPLOAD_BATCH_BYTES: u64 = 64 << 20;

/// Pairs of rows that a join may have to look at one by one: some minutes of a core.
pub const PAIRS: u64 = 100_000_000_000;

/// Pairs of rows that a join looks at before it lets others have their turn: some ten milliseconds. Tests have small
/// tables.
pub const PAIRS_AT_ONCE: usize = if cfg!(test) { 64 << 10 } else { 8 << 20 };

/// Batches of rows that a scan passes over before it lets others have their turn.
pub const SCAN_STEPS: usize = 32;
