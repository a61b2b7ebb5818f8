//! The face over a broker in memory: whole requests in, whole answers out, clause by clause.

#![allow(clippy::unwrap_used)]

mod harness;

mod attributes;
mod batch;
mod bodies;
mod conformance;
mod contexts;
mod discovery;
mod entities;
mod headers;
mod query;
mod robustness;
