//! The query languages of NGSI-LD: what a request asks for, and the one evaluator that answers it.
//!
//! | language | clause | module |
//! |---|---|---|
//! | `q`, `expandValues`, `jsonKeys` | 4.9 | [`q`] |
//! | geo-query; GeoJSON geometries | 4.10, 4.7 | [`geo`] |
//! | `lang` | 4.15 | [`lang`] |
//! | `type` | 4.17 | [`types`] |
//! | `scopeQ` | 4.19 | [`scope`] |
//! | `pick`, `omit`, `attrs` | 4.21 | [`project`] |
//! | `orderBy`, `collation` | 4.23 | [`order`] |
//! | `datasetId` | 4.5.5 | [`dataset`] |
//! | all that selects entities, as one | 5.7.2.4 | [`entity`] |
//!
//! Each language goes three steps: text to a syntax tree that prints back ([`q::parse`] and its siblings:
//! pure, bounded, total, made for fuzzing), tree to a compiled form with names expanded by the request's
//! context, compiled form against a [`Record`](crate::record::Record). Refusals are an [`Error`] that names
//! parameter and character. Bounds are in [`limits`].
//!
//! [`entity::Filter`] alone decides what matches. Indexes may narrow the candidates by its
//! [`hints`](entity::Filter::hints), which select too much at worst.

pub mod dataset;
pub mod entity;
mod error;
pub mod geo;
pub mod lang;
pub mod limits;
pub mod literal;
pub mod names;
pub mod order;
pub mod pattern;
pub mod project;
pub mod q;
mod raw;
mod scan;
pub mod scope;
#[cfg(test)]
mod testing;
pub mod types;
pub mod uri;

pub use error::{Error, Problem, Reason};
