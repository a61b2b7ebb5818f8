//! Archive model.
