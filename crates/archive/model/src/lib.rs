//! The archive's nouns and encodings: batches, tables as streams of bytes, the sphere. Pure.

pub mod adopt;
pub mod astro;
pub mod batch;
mod cell;
pub mod csv;
pub mod dali;
pub mod fits;
pub mod fuzz;
pub mod healpix;
pub mod html;
pub mod ipc;
pub mod json;
pub mod limits;
pub mod read;
#[cfg(test)]
mod sample;
pub mod sniff;
pub mod sphere;
pub mod text;
pub mod time;
pub mod votable;
pub mod write;
