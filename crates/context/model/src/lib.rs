//! The NGSI-LD data model (ETSI GS CIM 009 v1.9.1, clause 4): JSON-LD contexts, entity records and their
//! renderers, and the query languages.
//!
//! Pure: no I/O, no async, no clock, no global state. Time arrives as an argument ([`time::Instant`]),
//! remote contexts arrive as documents that somebody else fetched.
//!
//! The way of a write: bytes -> [`json::Doc`] -> names expanded by a context and interned as
//! [`symbol::Symbol`]s -> an immutable record of pre-rendered fragments. The way of a read: record plus a
//! context's term table -> bytes, without a tree of JSON values in between.

pub mod canonical;
pub mod chunked;
pub mod fuzz;
pub mod input;
pub mod json;
pub mod ld;
pub mod limits;
pub mod name;
pub mod query;
pub mod record;
pub mod render;
pub mod symbol;
pub mod time;
pub mod update;
