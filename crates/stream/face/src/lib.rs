//! The stream door's own protocol on the network.
//!
//! A first piece: sockets, TLS and QUIC settings.
#![allow(dead_code)]

pub mod development;
mod limits;
mod listen;
mod options;
mod quic;
mod tls;

pub use development::DevelopmentError;
pub use options::{Options, OptionsError, Resolved};
pub use tls::{ALPN, TlsError};
