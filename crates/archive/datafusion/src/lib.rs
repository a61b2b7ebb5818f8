//! Archive datafusion.
