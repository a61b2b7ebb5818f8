//! Trees used again, and what those who execute them want to know of them.
//!
//! The literals of a tree know their slots, so one tree serves all queries that differ in literals alone, if they
//! pass its [`Guard`]s: literals that shaped the tree (`ORDER BY 2`, `IN_UNIT(x, 'km')`) must be what they were.
//! [`Resolved::bind`] checks and replaces; it costs a walk over the literals when nothing differs, and a copy of the
//! tree otherwise.
//!
//! The helpers recurse; the height of a tree is bounded by [`limits::HEIGHT`](crate::limits::HEIGHT) and
//! [`limits::QUERY_DEPTH`](crate::limits::QUERY_DEPTH).

mod bind;
mod slots;
#[cfg(test)]
mod tests;
mod visit;

pub use bind::{Guard, Resolved, bind, fit};
pub use slots::{bind_expr, fits, has_query, has_slot, slots};
pub use visit::{
    any, conjuncts, each_child, each_column, into_conjuncts, is_constant, is_correlated, is_volatile, nodes,
    refers_to, same, subquery, used_columns,
};
