//! Archive engine.
