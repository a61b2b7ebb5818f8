//! Archive face.
