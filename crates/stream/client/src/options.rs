//! What a client is made with.

use std::time::Duration;

use trifid_stream_model::names::{NameError, Tenant};

use crate::address::{Address, AddressError};
use crate::trust::Trust;

/// What a client is made with. [`ClientOptions::new`] fills in everything but the address.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Where the broker is.
    pub address: Address,
    /// Whom to believe that he is the broker.
    pub trust: Trust,
    /// Who the client is; a broker on loopback may ask for no token.
    pub token: Option<String>,
    /// The tenant to speak for; without one that of the token, or the default one.
    pub tenant: Option<Tenant>,
    /// What the client calls itself, for the broker's logs.
    pub name: String,
    /// Connections, at most; each is made when it is first needed.
    pub connections: usize,
    /// Byte streams of each QUIC connection, at most. Over TCP each is a connection of its own.
    pub streams: usize,
    /// How long connecting may take, the greeting included.
    pub connect_timeout: Duration,
    /// How long an answer may take, for requests that do not wait for data.
    pub request_timeout: Duration,
    /// The first pause before connecting again; it doubles with each failure.
    pub reconnect_first: Duration,
    /// The longest pause before connecting again.
    pub reconnect_most: Duration,
}

impl ClientOptions {
    /// For the broker at `url`: `trifid://host:7443`, `quic://...` or `tls://...`.
    pub fn new(url: &str) -> Result<Self, AddressError> {
        Ok(Self {
            address: url.parse()?,
            trust: Trust::default(),
            token: None,
            tenant: None,
            name: concat!("trifid-client/", env!("CARGO_PKG_VERSION")).to_owned(),
            connections: 2,
            streams: 2,
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            reconnect_first: Duration::from_millis(50),
            reconnect_most: Duration::from_secs(5),
        })
    }

    /// The same with this trust.
    #[must_use]
    pub fn trust(self, trust: Trust) -> Self {
        Self { trust, ..self }
    }

    /// The same with this token.
    #[must_use]
    pub fn token(self, token: impl Into<String>) -> Self {
        Self { token: Some(token.into()), ..self }
    }

    /// The same for this tenant.
    pub fn tenant(self, tenant: &str) -> Result<Self, NameError> {
        Ok(Self { tenant: Some(Tenant::new(tenant)?), ..self })
    }

    /// The same with so many connections of so many byte streams each.
    #[must_use]
    pub fn pool(self, connections: usize, streams: usize) -> Self {
        Self { connections, streams, ..self }
    }

    /// The same under this name.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }
}
