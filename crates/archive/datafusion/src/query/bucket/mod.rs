//! The bucket join: partners that lie near each other on the sky.
//!
//! The side with fewer rows is put into buckets, one for each HEALPix cell, each row into all cells that its circle may
//! touch; the cells are as deep as they can be without being narrower than the circle. A row of the other side then
//! looks into the one bucket of its own cell. Candidates pass a chord test that is a hair too generous, and then the
//! whole condition as it was written, evaluated for all of them together. Poles and the meridian of RA 0 are no
//! special places for cells.
//!
//! Cost: a hash and a sine and cosine or two for each row of either side, and then as much as there is to find. Memory:
//! the smaller side, accounted for in the pool.

mod exec;
mod node;
mod table;

pub(crate) use exec::{BucketJoinExec, Conditions, Side};
pub(crate) use node::BucketJoin;
