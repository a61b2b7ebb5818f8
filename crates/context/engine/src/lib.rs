//! The NGSI-LD broker: the operations of clause 5 over an entity store (ETSI GS CIM 009 v1.9.1).
//!
//! [`broker::Broker`] has the operations as methods. Below it stands one port, [`store::EntityStore`]; the
//! implementation in memory, [`memory::MemoryStore`], is the executable specification and, with a
//! [`journal::Journal`] beneath it, the file store. [`action::Op::apply`] is where an operation meets the
//! current state of an entity, for every store alike.
//!
//! What this crate does not know: HTTP, files, SQL. Time and randomness come through `base/runtime`; remote
//! `@context` documents through [`contexts`]' port.
//!
//! Invariants: an entity's changes are applied in the order of their positions; a reader sees whole records
//! only; what a reader sees in a journaled store is durable; no answer depends on the store.

pub mod action;
pub mod broker;
pub mod contexts;
pub mod error;
pub mod journal;
pub mod limits;
pub mod memory;
pub mod store;
pub mod tenant;
#[cfg(feature = "testing")]
pub mod testing;
pub mod time;

pub use broker::{Broker, Call};
pub use error::Error;
pub use tenant::TenantName;
