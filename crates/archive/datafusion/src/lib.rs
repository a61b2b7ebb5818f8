//! DataFusion and Parquet behind the archive's ports: the only crate that names them.
//!
//! ```text
//! store   tables on disk: Parquet segments, loading, files attached as they lie, Parquet results
//! query   whole trees on DataFusion: translation, our semantics as functions, the bucket join, kept plans
//! ```
//!
//! What a query means is decided above, in the tree and in `engine::eval`; what is decided here is only in which
//! order and on how many threads it is computed.

pub mod limits;
pub mod query;
pub mod store;
