//! Every bound of the log in one place, with units.

/// Bytes of a segment's header block; the first frame begins here.
pub const SEGMENT_HEADER_BYTES: u64 = 4096;
/// Bytes of a frame's header.
pub const FRAME_HEADER_BYTES: usize = 64;
/// Frames begin at multiples of this.
pub const FRAME_ALIGN_BYTES: usize = 8;
/// Largest payload of one frame, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 30;
/// A batch takes no further frame once it holds this many bytes: the most that one flush waits for, save one
/// large frame.
pub const BATCH_BYTES: usize = 4 << 20;
/// Small payloads are gathered in buffers of this size.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;
/// Payloads above this get a buffer of their own, filled outside the lock.
pub(crate) const SMALL_PAYLOAD_BYTES_MAX: usize = 32 << 10;
/// Buffers kept for reuse per log: one batch in flight and one gathering.
pub(crate) const SPARE_CHUNKS_MAX: usize = 2 * BATCH_BYTES / CHUNK_BYTES;
/// Bytes that a scan reads at a time.
pub(crate) const READ_BYTES: usize = 1 << 20;
/// Bytes between two calls of [`Replay::progress`](crate::Replay::progress).
pub(crate) const PROGRESS_BYTES: u64 = 16 << 20;

const _: () = assert!(SMALL_PAYLOAD_BYTES_MAX + FRAME_HEADER_BYTES + FRAME_ALIGN_BYTES <= CHUNK_BYTES);
const _: () = assert!(CHUNK_BYTES <= BATCH_BYTES);
const _: () = assert!(FRAME_HEADER_BYTES.is_multiple_of(FRAME_ALIGN_BYTES));
const _: () = assert!(SEGMENT_HEADER_BYTES.is_multiple_of(FRAME_ALIGN_BYTES as u64));
const _: () = assert!(PAYLOAD_BYTES_MAX + FRAME_HEADER_BYTES + FRAME_ALIGN_BYTES < u32::MAX as usize);
