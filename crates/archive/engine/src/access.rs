//! The index path: one table, no planner.
//!
//! A query over a single table that neither groups nor nests is a filter, a projection, perhaps an order and a
//! count. Its conjuncts are looked at once, when the plan is made ([`Program`]); at each run the constants are bound
//! ([`condition::Bound`]), the indexes say how many rows each conjunct leaves ([`selection`]), and the
//! cheapest way in is taken: rows from a value index, rows from the cells of the sky, rows in the order of an index
//! until there are enough, or all chunks whose statistics do not rule them out. Every conjunct that the way in did
//! not decide exactly is then evaluated by [`crate::eval`] over the rows that are left, so an index can only ever be
//! too generous, never wrong.
//!
//! What is expected to take well below a millisecond runs where it stands ([`Effort::Small`]); the rest is for the
//! compute pool, chunk by chunk.

pub mod condition;
pub mod constant;
mod program;
mod run;
pub mod selection;
mod sky;
mod sort;
#[cfg(test)]
mod tests;

pub use program::Program;
pub use run::{Effort, Running, Step};
pub use selection::{Selection, select};
