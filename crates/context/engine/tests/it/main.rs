//! The store in memory under the behavioural suite, and under readers and writers at once.

mod concurrency;
mod memory;
