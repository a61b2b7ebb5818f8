//! Tests of the rig from outside.

#[cfg(test)]
mod world;
