//! Documents byte for byte, round trips of any table, and documents that are wrong.

mod any_bytes;
mod documents;
mod golden;
mod round;
