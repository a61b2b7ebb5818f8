//! The archive: what a table is, and how a query over it is answered (IVOA TAP 1.1, ADQL 2.1).
//!
//! ```text
//! catalogue   what is published: schemas, tables, columns, keys; TAP_SCHEMA
//! table       rows in chunks of Arrow columns, resident or read when needed; indexes beside them
//! eval        the meaning of every expression, vectorised: one implementation for every executor
//! access      the index path: one table, no planner
//! reference   a plain interpreter of whole trees: the executable specification
//! backend     the port to a real query engine
//! archive     prepare and run, with the plan cache in front
//! ```
//!
//! What this crate does not know: HTTP, files, DataFusion, Parquet. Time comes through `base/runtime`.

pub mod access;
pub mod answer;
pub mod archive;
pub mod backend;
pub mod cache;
pub mod catalogue;
pub mod compute;
pub mod error;
pub mod eval;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
pub mod index;
pub mod jobs;
pub mod limits;
pub mod memory;
pub mod metadata;
pub mod obscore;
pub mod reference;
pub mod table;
pub mod tap_schema;

pub use error::QueryError;
