//! `trifid demo`.

mod life;
mod world;
