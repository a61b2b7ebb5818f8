//! Whole queries over small tables.
