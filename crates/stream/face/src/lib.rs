//! The stream door's own protocol on the network: the same frames over QUIC and over TLS on TCP, on one port.
//!
//! ```text
//!             +- worker 0: UDP socket, TCP listener -+
//!  port 7443 -+- worker 1: ...                       +-> connection -> byte stream -> lane (one task)
//!             +- (SO_REUSEPORT, a thread each)      -+                                 |
//!                                    frames in -> session -> engine: Broker            |
//!                                    acks, replies, pushes <- session ------------- outbox
//! ```
//!
//! A TCP connection is one byte stream; a QUIC connection has as many as its client opens, each a
//! conversation of its own with preface and greeting, so that a client chooses itself what may wait for what.
//! [`Options`] are resolved once, and [`serve`] runs the broker on every worker until the shutdown token is
//! triggered, then drains.
//!
//! What it does not know: how offsets are given, what is durable, when a group delivers again. It carries the
//! engine's words to the wire and back.
//!
//! Invariants:
//! - A connection has one task, its subscriptions have none; what is ready when it is woken leaves in one
//!   write.
//! - The bytes of a batch are not copied between the cipher that opened them and the shard's ring, nor from
//!   there to the cipher that closes them for a subscriber (small ones are: that is cheaper).
//! - Every queue is bounded, in bytes where it holds bytes; what is refused or dropped is told and counted.
//! - A client that does not read, or falls silent, costs nobody else anything.

mod account;
mod core;
pub mod development;
pub mod fuzz;
mod lane;
mod limits;
mod link;
mod listen;
mod options;
mod quic;
mod ready;
mod server;
mod session;
mod stats;
mod tls;
mod worker;

pub use development::DevelopmentError;
pub use options::{Options, OptionsError, Resolved};
pub use server::{Reload, ServeError, Server, WorkerPanic, serve};
pub use tls::{ALPN, TlsError};
