//! The shell as a client sees it: real sockets on loopback, raw bytes where bytes matter.
#![allow(clippy::unwrap_used)] // the whole crate is a test

mod admission;
mod auth;
mod drain;
mod egress;
mod http1;
mod http2;
mod limits;
mod operations;
mod support;
mod tls;
