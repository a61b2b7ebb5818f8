//! Where a broker is, and over which transport: `quic://host:7443`, `tls://host:7443`, or
//! `trifid://host:7443` for whichever answers.

use std::fmt;
use std::str::FromStr;

/// The port of a URL that names none.
pub const PORT: u16 = 7443;

/// Why a text names no broker.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not one of the three schemes.
    #[error("`{0}` does not begin with trifid://, quic:// or tls://")]
    Scheme(String),
    /// No host.
    #[error("`{0}` names no host")]
    Host(String),
    /// A port that is none.
    #[error("`{0}` ends in something that is no port")]
    Port(String),
    /// Something after the port.
    #[error("`{0}` has a path, a query or a user, which nothing here reads")]
    Surplus(String),
}

/// How bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// QUIC, over UDP.
    Quic,
    /// TLS 1.3, over TCP.
    Tls,
    /// QUIC and TLS at once; whichever is there first stays, with a small lead for QUIC.
    Either,
}

/// A broker's address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// How to reach it.
    pub transport: Transport,
    /// Its name or IP address, without brackets.
    pub host: String,
    /// Its port, for UDP and TCP.
    pub port: u16,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| AddressError::Scheme(text.into()))?;
        let transport = match scheme {
            "quic" => Transport::Quic,
            "tls" => Transport::Tls,
            "trifid" => Transport::Either,
            _ => return Err(AddressError::Scheme(text.into())),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#', '@']) {
            return Err(AddressError::Surplus(text.into()));
        }
        let (host, port) = split(rest).ok_or_else(|| AddressError::Port(text.into()))?;
        if host.is_empty() {
            return Err(AddressError::Host(text.into()));
        }
        Ok(Self { transport, host: host.into(), port })
    }
}

/// Host and port of `host`, `host:port`, `[v6]` or `[v6]:port`.
fn split(text: &str) -> Option<(&str, u16)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        return match port.strip_prefix(':') {
            Some(port) => Some((host, port.parse().ok()?)),
            None => port.is_empty().then_some((host, PORT)),
        };
    }
    match text.rsplit_once(':') {
        // Several colons without brackets: an IPv6 address without a port.
        Some((host, _)) if host.contains(':') => Some((text, PORT)),
        Some((host, port)) => Some((host, port.parse().ok()?)),
        None => Some((text, PORT)),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.transport {
            Transport::Quic => "quic",
            Transport::Tls => "tls",
            Transport::Either => "trifid",
        };
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{scheme}://{open}{}{close}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let check = |text: &str, transport, host: &str, port| {
            let expected = Address { transport, host: host.into(), port };
            assert_eq!(text.parse(), Ok(expected.clone()), "{text}");
            assert_eq!(expected.to_string().parse(), Ok(expected), "{text}");
        };
        check("quic://localhost:7000", Transport::Quic, "localhost", 7000);
        check("tls://10.0.0.1", Transport::Tls, "10.0.0.1", PORT);
        check("trifid://[::1]:1/", Transport::Either, "::1", 1);
        check("trifid://[::1]", Transport::Either, "::1", PORT);
        check("tls://::1", Transport::Tls, "::1", PORT);
    }

    #[test]
    fn other_texts_are_refused() {
        let check = |text: &str, error: fn(String) -> AddressError| {
            assert_eq!(text.parse::<Address>(), Err(error(text.into())), "{text}");
        };
        check("localhost:7443", AddressError::Scheme);
        check("http://localhost", AddressError::Scheme);
        check("tls://", AddressError::Host);
        check("tls://:7443", AddressError::Host);
        check("tls://h:x", AddressError::Port);
        check("tls://h:70000", AddressError::Port);
        check("tls://[::1]7443", AddressError::Port);
        check("tls://h/path", AddressError::Surplus);
        check("tls://u@h", AddressError::Surplus);
    }
}
