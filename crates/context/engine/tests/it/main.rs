//! The store in memory under the behavioural suite.

mod memory;
