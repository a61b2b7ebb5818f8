//! The HTTP shell: listeners, limits, drain, tokens, admission, health, metrics, and the guarded outbound client.

mod admission;
pub mod auth;
mod body;
mod cors;
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

pub use auth::{Principal, Role, TenantScope, Tokens};
pub use body::{Body, BodyError, BodySender, Gone};
pub use cors::CorsError;
pub use face::{Access, Answer, Face, Mount, Response};
pub use health::{HealthSource, Readiness};
pub use options::{Options, OptionsError, Resolved};
pub use problem::ShellProblem;
pub use request::{Framing, Request, RequestId};
pub use router::Router;
pub use server::{CorePanic, Reload, ReloadError, ServeError, Server, serve};
pub use tls::TlsError;
