//! Async client of the stream door's own protocol, over QUIC or over TLS on TCP.
//!
//! ```no_run
//! use trifid_stream_client::{Client, ClientOptions, Event, ProducerOptions, Record, Start, SubscribeOptions, Trust};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! // Whichever of QUIC and TCP answers; the certificate that the broker made for itself.
//! let options = ClientOptions::new("trifid://localhost:7443")?.trust(Trust::development("/var/lib/trifid"));
//! let client = Client::connect(options).await?;
//!
//! let producer = client.producer("demo.readings", ProducerOptions::default()).await?;
//! let location = producer.publish(Record::new("21.5").key("sensor-7")).await?;
//! println!("shard {} offset {:?}", location.shard, location.offset);
//!
//! let mut readings = client.subscribe("demo.readings", SubscribeOptions::from(Start::Earliest)).await?;
//! loop {
//!     match readings.next().await? {
//!         Event::Batch(batch) => {
//!             for record in batch.records()? {
//!                 println!("{} {:?}", record.offset, record.value);
//!             }
//!         }
//!         Event::Lost { shard, from, to } => println!("shard {shard}: {from}..{to} will not come"),
//!     }
//! }
//! # }
//! ```
//!
//! A [`Client`] is a pool of connections. A [`Producer`] gathers records into batches, numbers them, and
//! sends again what was not acknowledged, so that a lost connection loses and doubles nothing. A
//! [`Subscription`] goes on where it was. A [`Group`] shares the records of streams among its members, who
//! acknowledge them. A [`Cache`] keeps values by key.
//!
//! Everything waits where it must, nothing is queued without bound, and dropping a future that this crate
//! made loses nothing but the answer. It needs a tokio runtime with time and I/O, of either flavour.

mod address;
mod cache;
mod client;
mod error;
mod group;
mod inlet;
mod limits;
mod line;
mod options;
mod pool;
mod producer;
mod record;
mod subscription;
mod transport;
mod trust;

pub use address::{Address, AddressError, PORT, Transport};
pub use cache::{Cache, Watch, WatchEvent};
pub use client::{Client, ClientError, StreamDescription};
pub use error::{ConnectError, PublishError, RequestError, SubscribeError};
pub use group::{Delivery, Group, GroupOptions, Lease, Settled};
pub use options::ClientOptions;
pub use producer::{Location, Producer, ProducerOptions, Receipt};
pub use record::{Batch, Received, Record};
pub use subscription::{Event, SubscribeOptions, Subscription};
pub use transport::DialError;
/// The protocol's bytes, for programs that measure or test it.
pub use trifid_stream_model as wire;
/// The protocol's own words, as they occur in what this crate takes and gives.
pub use trifid_stream_model::batch::Compression;
pub use trifid_stream_model::frame::{
    CacheChange, CacheEntry, CacheListing, CacheOp, CacheResult, Code, CommittedOffset, Expect, GroupMember,
    GroupState, GroupSummary, JoinSettings, Policy, Refusal, Retry, ShardOffset, ShardState, Start,
    StreamListing, TimedOffset, Ttl,
};
pub use trifid_stream_model::names::{CacheName, GroupName, NameError, StreamName, Tenant};
pub use trifid_stream_model::spec::{CacheSpec, Durability, StreamKind, StreamSpec};
pub use trust::{Trust, TrustError};
