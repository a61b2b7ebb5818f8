//! Every bound of the log in one place, with units.

/// Bytes of a segment's header block; the first frame begins here.
pub const SEGMENT_HEADER_BYTES: u64 = 4096;
/// Bytes of a frame's header.
pub const FRAME_HEADER_BYTES: usize = 64;
/// Frames begin at multiples of this.
pub const FRAME_ALIGN_BYTES: usize = 8;
/// Largest payload of one frame, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 30;
/// Smallest record batch: its fixed fields without a record.
pub const RECORD_BATCH_BYTES_MIN: usize = 61;
/// A batch takes no further frame once it holds this many bytes: the most that one flush waits for, save one
/// large frame.
pub const BATCH_BYTES: usize = 4 << 20;
/// Small payloads are gathered in buffers of this size.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;
/// Payloads given as a slice and larger than this are copied outside the lock, into a buffer of their own.
pub(crate) const SMALL_PAYLOAD_BYTES_MAX: usize = 32 << 10;
/// Payloads given as shared bytes and larger than this are not copied.
pub(crate) const COPIED_BYTES_MAX: usize = 8 << 10;
/// Buffers kept for reuse per log: one batch in flight and one gathering.
pub(crate) const SPARE_CHUNKS_MAX: usize = 2 * BATCH_BYTES / CHUNK_BYTES;
/// Bytes that a scan reads at a time.
pub(crate) const READ_BYTES: usize = 1 << 20;
/// The least that a page is read with; a small frame and its neighbours come in one read.
pub(crate) const PAGE_READ_BYTES_MIN: usize = 16 << 10;
/// Bytes of a segment that one entry of its index stands for.
pub const INDEX_STRIDE_BYTES: u64 = 32 << 10;
/// Bytes of a block of an index file.
pub const INDEX_BLOCK_BYTES: usize = 4096;
/// A longer index file is no index: a segment of 100 GiB has a shorter one.
pub(crate) const INDEX_BYTES_MAX: u64 = 128 << 20;
/// Bytes between two calls of [`Replay::progress`](crate::Replay::progress).
pub(crate) const PROGRESS_BYTES: u64 = 16 << 20;
/// Threads that help the committer flush, by default.
pub(crate) const FLUSHERS: usize = 4;
/// Sealed segments kept open for readers, by default, over all logs of a directory.
pub(crate) const OPEN_SEGMENTS_MAX: usize = 128;
/// Dropped segments kept for reuse, by default, per log.
pub(crate) const RECYCLED_SEGMENTS_MAX: usize = 2;
/// Zeros written ahead of small writes, by default.
pub(crate) const PREWRITE_BYTES: usize = 1 << 20;
/// Zeros are written in pieces of this size.
pub(crate) const ZEROS_BYTES: usize = 64 << 10;
/// A larger batch is not worth writing ahead of.
pub(crate) const PREWRITE_BATCH_BYTES_MAX: usize = 64 << 10;
/// Classes of the histogram of frames per batch: class `n` counts batches of `2^n` frames up to the next class.
pub const BATCH_CLASSES: usize = 16;

const _: () = assert!(SMALL_PAYLOAD_BYTES_MAX + FRAME_HEADER_BYTES + FRAME_ALIGN_BYTES <= CHUNK_BYTES);
const _: () = assert!(COPIED_BYTES_MAX <= SMALL_PAYLOAD_BYTES_MAX);
const _: () = assert!(CHUNK_BYTES <= BATCH_BYTES);
const _: () = assert!(FRAME_HEADER_BYTES.is_multiple_of(FRAME_ALIGN_BYTES));
const _: () = assert!(SEGMENT_HEADER_BYTES.is_multiple_of(FRAME_ALIGN_BYTES as u64));
const _: () = assert!(PAYLOAD_BYTES_MAX + FRAME_HEADER_BYTES + FRAME_ALIGN_BYTES < u32::MAX as usize);
