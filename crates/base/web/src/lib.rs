//! The HTTP shell: everything between a socket and a door's face, and the way out again.
//!
//! ```text
//!             accept     head      caller    tenant      body       answer
//! core 0 --> listener -> mount -> token -> admission -> collect -> Face::call -> sealed
//! core 1 --> listener -> ...            (each core: a thread, a runtime, books of its own)
//!
//! door --> egress::Client -> scheme, name, address class -> connection to the checked address
//! ```
//!
//! A door implements [`Face`] and is mounted under a path prefix; [`serve`] runs it on every core until the
//! shutdown token is triggered, then drains. The shell owns what is the same for every protocol over HTTP: limits and
//! deadlines, TLS, HTTP/1.1 and HTTP/2, bearer tokens ([`auth`]), fair admission by tenant, CORS, request ids, the
//! access log, `/q/health`, `/q/ready` and `/q/metrics` ([`HealthSource`], [`metrics`]), and the guarded outbound
//! client ([`egress`]). Its refusals are types ([`ShellProblem`]) that each door words in its own form.
//!
//! What it does not know: entities, queries, tenants beyond their names, media types, or what a path means (a face
//! brings a [`Router`] of its own). It decodes and normalises nothing before a face has seen it.
//!
//! Invariants:
//! - A request that is answered without waiting costs no lock, timer, spawn or write to memory that another core
//!   writes; a body that arrived in one piece is not copied.
//! - Every refusal is counted and told to its caller; nothing waits in a queue without a bound.
//! - Every input is bounded in size, count and time; the bounds are options or stand in `limits.rs`.
//! - Nobody outside gets a connection to an address that the guard has not seen.
//! - Tokens are never logged, and compared in constant time.

mod admission;
pub mod auth;
mod body;
mod cors;
pub mod egress;
mod face;
mod health;
mod limits;
pub mod metrics;
mod options;
mod problem;
mod request;
pub mod router;
mod server;
mod tls;
pub mod workers;

pub use auth::{Principal, Role, TenantScope, Tokens};
pub use body::{Body, BodyError, BodySender, Gone, Slot};
pub use cors::CorsError;
pub use face::{Access, Answer, Face, Mount, Response};
pub use health::{HealthSource, Readiness};
pub use options::{Options, OptionsError, Resolved};
pub use problem::ShellProblem;
pub use request::{Framing, Request, RequestId};
pub use router::Router;
pub use server::{CorePanic, Reload, ReloadError, ServeError, Server, bind, serve};
pub use tls::{TlsError, server_config};
