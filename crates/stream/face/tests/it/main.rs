//! The listener with a broker behind it and clients before it, over both transports.

#![allow(clippy::unwrap_used)] // a test that cannot go on has failed

mod caching;
mod corpus;
mod drain;
mod durable;
mod groups;
mod harness;
mod hostile;
mod publishing;
mod raw;
mod reset;
mod subscribing;
mod tokens;
