//! The binary `trifid`.
fn main() {}
