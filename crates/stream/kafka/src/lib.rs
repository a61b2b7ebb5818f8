//! The Kafka protocol over the stream door's engine: a first piece, options and the bytes of the protocol.
#![allow(dead_code)]

mod api {
    #[path = "table.rs"]
    pub(crate) mod table;
}
mod limits;
mod options;
mod wire;

pub use options::{Options, OptionsError, Resolved};
