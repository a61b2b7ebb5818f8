//! Why something was not fetched.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use http::StatusCode;

use super::address::AddressClass;

/// Why a fetch failed.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The guard does not let this request out. A retry changes nothing.
    #[error("refused to fetch from `{host}`: {refusal}")]
    Refused {
        /// The host as it was named.
        host: String,
        /// Why.
        refusal: Refusal,
    },
    /// The host's name has no address.
    #[error("cannot resolve `{host}`")]
    Resolve {
        /// The host.
        host: String,
        /// What the resolver says.
        source: io::Error,
    },
    /// None of the host's addresses takes a connection.
    #[error("cannot connect to `{host}`")]
    Connect {
        /// The host.
        host: String,
        /// What the system says of the last address.
        source: io::Error,
    },
    /// The TLS handshake failed, which includes a certificate that is not trusted.
    #[error("no TLS connection to `{host}`")]
    Tls {
        /// The host.
        host: String,
        /// What rustls says.
        source: io::Error,
    },
    /// The whole did not end in time.
    #[error("not done within {limit:?}")]
    Timeout {
        /// The time it had.
        limit: Duration,
    },
    /// The body is larger than the limit.
    #[error("the answer is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// Redirected too often.
    #[error("more than {limit} redirects")]
    TooManyRedirects {
        /// The limit.
        limit: u32,
    },
    /// A redirect without a usable target.
    #[error("a redirect to `{location}`, which is no URL")]
    BadRedirect {
        /// Its target, or nothing.
        location: String,
    },
    /// The other side does not speak HTTP as it should, or went away in the middle.
    #[error("the exchange with `{host}` failed")]
    Exchange {
        /// The host.
        host: String,
        /// What hyper says.
        source: hyper::Error,
    },
    /// An answer without success, where [`success`](super::Client::success) wanted one.
    #[error("answered {0}")]
    Status(StatusCode),
}

impl FetchError {
    /// Whether another try, later, can go better.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Resolve { .. } | Self::Connect { .. } | Self::Timeout { .. } | Self::Exchange { .. } => {
                true
            }
            Self::Status(status) => {
                status.is_server_error()
                    || matches!(*status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
            }
            Self::Refused { .. }
            | Self::Tls { .. }
            | Self::TooLarge { .. }
            | Self::TooManyRedirects { .. }
            | Self::BadRedirect { .. } => false,
        }
    }
}

/// Why the guard does not let a request out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The URL's scheme is not allowed.
    #[error("the scheme `{0}` is not allowed")]
    Scheme(String),
    /// The URL is relative: it names no host.
    #[error("the URL names no host")]
    NoHost,
    /// The URL holds credentials, which would end up in logs.
    #[error("the URL holds credentials")]
    Credentials,
    /// The host's address is not a public one.
    #[error("{address} is a {class} address, and egress.allow_private is not set")]
    Address {
        /// The address.
        address: IpAddr,
        /// Its class.
        class: AddressClass,
    },
}
