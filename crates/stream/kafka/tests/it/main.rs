//! The listener over a broker in the process: bytes in, bytes out, through a real socket.

#![allow(clippy::unwrap_used)]

mod harness;

mod bad_input;
mod fetching;
mod groups;
mod pipelining;
mod producing;
mod sasl;
mod tls;
mod topics;
mod versions;
