//! Bounds of the readers of CSV, FITS and Arrow and of shapes, each with its unit. Those of VOTable stand
//! beside it.

/// Most columns of a table.
pub const COLUMNS_MAX: usize = 10_000;

/// A batch ends with the row in which its values pass this many bytes.
pub const BATCH_BYTES: usize = 8 << 20;

/// Most bytes of one record of a CSV with its line ends.
pub const CSV_RECORD_BYTES_MAX: usize = 16 << 20;

/// Bytes of a CSV read at once; a longer record makes room for itself.
pub const CSV_BUFFER_BYTES: usize = 256 << 10;

/// Most rows from which the types of a CSV's columns are guessed while it is read.
pub const CSV_INFER_ROWS: u64 = 65_536;

/// Most bytes from which the types of a CSV's columns are guessed while it is read, give or take a buffer.
pub const CSV_INFER_BYTES: usize = 4 << 20;

/// Most columns of a FITS table (FITS 4.0 7.3.1).
pub const FITS_COLUMNS_MAX: usize = 999;

/// Bytes of padding that a column of a FITS table may cost before its values move to the heap.
pub const FITS_PADDING_BYTES: u64 = 1 << 20;

/// Most cards of a FITS header: sixty for each of the most columns.
pub const FITS_CARDS_MAX: usize = 60_000;

/// Most header and data units of a file that are looked through for a table.
pub const FITS_UNITS_MAX: usize = 10_000;

/// Most bytes of one row of a FITS table, and of one array in its heap.
pub const FITS_ROW_BYTES_MAX: u64 = 64 << 20;

/// Most bytes of a FITS table with a heap whose source cannot seek: rows and heap are then held in memory.
pub const FITS_HELD_BYTES_MAX: u64 = 64 << 20;

/// How many times over the arrays of a FITS table may take up its heap: some share, but none grows a small
/// file into an endless table.
pub const FITS_HEAP_REUSE_MAX: u64 = 16;

/// Most vertices of a polygon, and of all shapes of a region together: relations and measures compare them in
/// pairs.
pub const VERTICES_MAX: usize = 4096;

/// Most shapes of a region.
pub const SHAPES_MAX: usize = 1024;

/// How deep unions of STC-S may be nested.
pub const REGION_DEPTH_MAX: usize = 16;

/// Most bytes of the metadata of one message of an Arrow stream.
pub const IPC_METADATA_BYTES_MAX: usize = 16 << 20;

/// Most bytes of one batch of an Arrow stream, as it is sent and as it is when decompressed.
pub const IPC_BODY_BYTES_MAX: usize = 512 << 20;

/// Rows that the text writer holds back to find the widths of the columns.
pub const TEXT_ROWS: usize = 200;

/// Bytes of rows that the text writer holds back at most, give or take a row.
pub const TEXT_BYTES: usize = 64 << 10;

const _: () = assert!(CSV_BUFFER_BYTES <= CSV_RECORD_BYTES_MAX && CSV_RECORD_BYTES_MAX < u32::MAX as usize);
const _: () = assert!(BATCH_BYTES as u64 + FITS_ROW_BYTES_MAX < i32::MAX as u64);
const _: () = assert!(BATCH_BYTES + CSV_RECORD_BYTES_MAX < i32::MAX as usize);
