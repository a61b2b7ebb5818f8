//! The protocol of the door: the same frames over QUIC and over TCP with TLS; `docs/stream-protocol.md` draws the
//! bytes.
//!
//! ```text
//!  preface (16 bytes, each side once per byte stream)
//!  frame:  length u32 | kind u8 | reserved u8 | flags u16 | id u32 | body (length bytes)      little endian
//! ```
//!
//! A [`Decoder`] takes bytes as they come and gives [`Frame`]s whose bodies are parts of the same buffer;
//! [`Request::decode`] and [`Reply::decode`] make messages of them, whose batches are parts of the body. A message is
//! encoded as a head and the batches behind it ([`Pieces`]), for vectored writes: the bytes of a batch are never
//! copied here. What is sent for each batch, [`Publish`](request::Publish) and [`Batch`](reply::Batch), has a head of
//! fixed size on the stack ([`publish_head`], [`batch_head`]).
//!
//! No state is kept: which message may come when is for the faces to know.

mod code;
mod decoder;
mod field;
mod head;
mod pieces;
mod preface;
pub mod reply;
pub mod request;
#[cfg(test)]
mod sample;
mod shared;
#[cfg(test)]
mod tests;

pub use code::{Code, Refusal, Retry};
pub use decoder::{Decoder, Frame};
pub use field::FrameError;
pub use head::{
    BATCH_HEAD_LEN, FRAME_HEAD_LEN, FrameHead, PUBLISH_HEAD_LEN, batch_head, frame_head, publish_head,
};
pub use pieces::Pieces;
pub use preface::{ALPN, Capabilities, PREFACE_LEN, Preface, VERSION};
pub use reply::Reply;
pub use request::Request;
pub use shared::{
    Ack, CacheChange, CacheEntry, CacheListing, CacheOp, CacheResult, CommittedOffset, Delivery, EndReason,
    Expect, GroupMember, GroupState, GroupSummary, JoinSettings, OffsetRange, Page, Policy, ShardOffset,
    ShardState, Start, StreamListing, TimedOffset, Ttl,
};
