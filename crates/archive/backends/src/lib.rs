//! What the archive keeps besides its tables.
//!
//! [`jobs::FileJobs`] is the store of UWS jobs in a folder of files. Tables and their segments are kept by
//! `archive/datafusion`, the only room that knows Parquet.

pub mod jobs;
