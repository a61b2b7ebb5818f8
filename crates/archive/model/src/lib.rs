//! The archive's nouns and encodings: batches, tables as streams of bytes, the sphere. Pure.

pub mod batch;
pub mod healpix;
pub mod read;
pub mod sphere;
pub mod time;
pub mod votable;
pub mod write;
