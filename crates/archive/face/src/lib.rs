//! The archive door over HTTP: TAP 1.1, UWS 1.1, VOSI 1.1, DALI 1.1 and simple cone search.

#![allow(dead_code)]

mod coding;
mod document;
mod encode;
mod fault;
mod form;
mod format;
mod limits;
mod multipart;
mod origin;
mod params;
mod percent;
mod route;
mod settings;
mod spool;
mod stream;
mod terms;
mod xml;

pub use format::ExtraFormat;
pub use settings::{Options, OptionsError, Resolved};
pub use terms::Terms;
