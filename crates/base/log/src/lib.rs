//! The segmented, checksummed, group-committing log.
