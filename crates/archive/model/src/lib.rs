//! The archive's nouns and encodings: batches, tables as streams of bytes, the sphere. Pure.

pub mod batch;
pub mod read;
pub mod write;
