//! Kafka's classic group protocol.

mod types;

pub use types::{ClassicError, JoinRequest, Joined, JoinedMember, Leaving, MemberRef, SyncRequest, Synced};
