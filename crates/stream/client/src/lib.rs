//! Async client of the stream door's own protocol.
