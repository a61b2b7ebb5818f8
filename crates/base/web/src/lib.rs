//! The HTTP shell: listeners, limits, drain, tokens, admission, health, metrics, and the guarded outbound client.

pub mod auth;
mod body;
mod face;
mod limits;
mod problem;
mod request;
pub mod router;

pub use auth::{Principal, Role, TenantScope, Tokens};
pub use body::{Body, BodyError, BodySender, Gone};
pub use face::{Access, Answer, Face, Mount, Response};
pub use problem::ShellProblem;
pub use request::{Framing, Request, RequestId};
pub use router::Router;
