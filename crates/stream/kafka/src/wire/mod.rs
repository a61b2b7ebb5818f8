//! The bytes of the protocol: frames, heads, shapes of requests, and the two messages that carry records.
//!
//! ```text
//! length:i32 | api key:i16 version:i16 correlation:i32 client id:string [tags] | body      (a request)
//! length:i32 | correlation:i32 [tags] | body                                               (an answer)
//! ```
//!
//! A body is walked once over its [`shape`] before anything else believes its counts; then messages without records
//! are read by `kafka-protocol`, and Produce and Fetch by hand ([`produce`], [`fetch`]), because their records are
//! slices of the request on the way in and pieces of a vectored write on the way out.

pub(crate) mod fetch;
pub(crate) mod frame;
pub(crate) mod head;
pub(crate) mod produce;
pub(crate) mod reader;
pub(crate) mod shape;
pub(crate) mod shapes;
pub(crate) mod writer;

/// Why a request cannot be read. The protocol has no answer to it: the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    /// It ends before a value does.
    #[error("a value passes the end of the request")]
    Short,
    /// A length or count is negative where that has no meaning.
    #[error("a length is negative")]
    Negative,
    /// A variable-length integer is longer than five bytes.
    #[error("a variable-length integer passes 32 bits")]
    Varint,
    /// More elements than one request may hold.
    #[error("more than {} elements", crate::limits::ELEMENTS_MAX)]
    Elements,
    /// A text is not UTF-8.
    #[error("a text is not UTF-8")]
    Text,
    /// What `kafka-protocol` says of a body whose shape was right.
    #[error("the body cannot be read")]
    Body,
}

#[cfg(test)]
mod tests;
