//! Who calls, and what they may do.
//!
//! A bearer token (RFC 6750) belongs to one tenant, or to all, and has one role. Without a token file there is
//! nobody to tell apart, and every caller is [`Principal::local`]; that is allowed on loopback, and elsewhere
//! only when `auth.allow_unauthenticated` says so. With a token file every request needs a token, on loopback
//! too, save those that a door declares public and the probes under `/q`.
//!
//! A missing or unknown token is answered 401, a role or tenant that does not reach 403.

mod tokens;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use trifid_base_runtime::section;

pub(crate) use tokens::{Table, bearer};
pub use tokens::{TokenError, TokenFileError, Tokens, generate_token, hash_token};

section! {
    /// Who may call.
    pub struct Options in "auth" {
        /// The file of hashed bearer tokens; with it every request needs a token.
        tokens_file: Option<PathBuf> = "",
        /// Whether everybody who can reach a listener beyond loopback may do everything.
        allow_unauthenticated: bool = "false",
    }
}

/// What a caller may do; each role includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Read.
    Read,
    /// Read and change.
    Write,
    /// Everything, operations included.
    Admin,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        })
    }
}

impl FromStr for Role {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "read" => Ok(Self::Read),
            "write" => Ok(Self::Write),
            "admin" => Ok(Self::Admin),
            _ => Err(()),
        }
    }
}

/// The tenants that a caller may address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TenantScope {
    /// Every tenant: `*` in a token file.
    Any,
    /// The tenant of this name; the default tenant is the empty name, `-` in a token file.
    One(Arc<str>),
}

impl TenantScope {
    /// Whether the tenant of this name is covered. The default tenant is the empty name.
    pub fn covers(&self, tenant: &str) -> bool {
        match self {
            Self::Any => true,
            Self::One(name) => &**name == tenant,
        }
    }
}

/// An authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The tenants that it may address.
    pub tenant: TenantScope,
    /// What it may do.
    pub role: Role,
    /// The name that the token file gives it, for logs.
    pub name: Option<Arc<str>>,
}

impl Principal {
    /// The caller of a server that asks for no tokens: all tenants, all roles.
    pub const fn local() -> Self {
        Self { tenant: TenantScope::Any, role: Role::Admin, name: None }
    }

    /// A caller without a token, where a door lets everybody in. It can name any tenant and do no more than read.
    pub(crate) const fn anonymous() -> Self {
        Self { tenant: TenantScope::Any, role: Role::Read, name: None }
    }
}
