//! Every bound of the binding that is not an option, with its unit. The options' defaults stand in `settings.rs`.

use std::time::Duration;

/// Name and value pairs of one request.
pub(crate) const PAIRS_MAX: usize = 256;

/// Parts of a multipart body.
pub(crate) const PARTS_MAX: usize = 64;

/// Bytes of the header of one part.
pub(crate) const PART_HEADER_BYTES_MAX: usize = 4 << 10;

/// Bytes of a boundary (RFC 2046 5.1.1).
pub(crate) const BOUNDARY_BYTES_MAX: usize = 70;

/// Bytes of a part without a file name: a parameter. A query is one of them.
pub(crate) const FIELD_BYTES_MAX: usize = 4 << 20;

/// Tables that one request may upload.
pub(crate) const UPLOADS_MAX: usize = 32;

/// Bytes of the name of an uploaded table.
pub(crate) const UPLOAD_NAME_BYTES_MAX: usize = 128;

/// Characters of RUNID that are kept (DALI 1.1 3.4.6).
pub(crate) const RUN_ID_CHARS_MAX: usize = 64;

/// Bytes of RESPONSEFORMAT.
pub(crate) const FORMAT_BYTES_MAX: usize = 256;

/// Bytes of a value that is repeated in an error.
pub(crate) const QUOTED_BYTES_MAX: usize = 80;

/// Bytes of one piece of a streamed result, roughly.
pub(crate) const PIECE_BYTES: usize = 128 << 10;

/// Rows that are encoded before the size of a row is known.
pub(crate) const ROWS_FIRST: usize = 16;

/// Rows that are encoded in one step, at most.
pub(crate) const ROWS_STEP_MAX: usize = 8192;

/// Pieces that wait for the client in memory; the rest waits in the spool.
pub(crate) const PIECES_WAITING: usize = 4;

/// Bytes that are read from the spool at a time.
pub(crate) const SPOOL_READ_BYTES: usize = 256 << 10;

/// Cells of a result that is encoded by the core that serves the request: some 30 nanoseconds each.
pub(crate) const INLINE_CELLS_MAX: usize = 16 << 10;

/// What a cell counts whose size is not known from its type: text of any length, arrays, regions.
pub(crate) const INLINE_CELLS_PER_WIDE: usize = 8;

/// Bytes of a body below which compressing it saves nothing: it fits into one packet.
pub(crate) const CODED_BYTES_MIN: usize = 1400;

/// What `Retry-After` says when the engine is busy, in seconds.
pub(crate) const RETRY_AFTER_S: u32 = 1;

/// Rows of an upload that are read at a time.
pub(crate) const UPLOAD_BATCH_ROWS: usize = 8192;

/// Table names in `/tables/{name}` and `/scs/{name}`, in bytes.
pub(crate) const TABLE_NAME_BYTES_MAX: usize = 512;

/// Items of a header that lists preferences (`Accept-Encoding`, `If-None-Match`).
pub(crate) const PREFERENCES_MAX: usize = 32;

const _: () = assert!(PIECES_WAITING * 2 * PIECE_BYTES <= 2 << 20, "what waits for one client stays small");

/// Bytes of a query that the core that serves the request parses itself.
pub(crate) const PREPARE_INLINE_BYTES_MAX: usize = 64 << 10;

/// Bytes of the query that a result repeats.
pub(crate) const INFO_BYTES_MAX: usize = 4 << 10;

/// How long the first rows may take before the head goes out without them: a client that sees a head waits longer, and
/// so do the proxies between.
pub(crate) const FIRST_ROWS_WAIT: Duration = Duration::from_secs(20);

/// Columns that the page for people lists; with more it lists tables alone.
pub(crate) const PAGE_COLUMNS_MAX: usize = 2_000;

/// How long each of the next rows may take as long as the result is small.
pub(crate) const MORE_ROWS_WAIT: Duration = Duration::from_millis(2);

/// Bytes of the parameters of a job, names and values together: a query and what goes with it.
pub(crate) const JOB_PARAMETERS_BYTES_MAX: usize = 8 << 20;

/// Bytes of the name of a part that a job keeps: twice as many are the name of a file.
pub(crate) const JOB_PART_NAME_BYTES_MAX: usize = 100;
