//! Every bound of the file store, with units.

/// A block of a snapshot is closed once it holds this many bytes.
pub(super) const BLOCK_BYTES: usize = 1 << 20;
/// Bytes of a snapshot between two flushes, so that the journal never waits behind one large flush.
pub(super) const FLUSH_BYTES: u64 = 16 << 20;
/// Bytes of a snapshot between two reports of progress.
pub(super) const PROGRESS_BYTES: u64 = 16 << 20;
/// How often an export begins anew when the server drops what it was about to read.
pub(super) const EXPORT_ATTEMPTS: usize = 8;
/// How often the background looks whether a snapshot is due.
pub(super) const LOOK_EVERY: std::time::Duration = std::time::Duration::from_secs(1);
/// How long it waits after a snapshot failed.
pub(super) const RETRY_AFTER: std::time::Duration = std::time::Duration::from_secs(60);
/// What a client is told to wait, in seconds, when too much waits for the disk.
pub(super) const RETRY_AFTER_S: u32 = 1;
