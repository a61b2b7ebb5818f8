//! What can be configured, and the one step from there to what the listener runs on.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Duration;

use trifid_base_runtime::section;
use trifid_base_runtime::units::{Size, Span};
use trifid_base_web::auth;

use crate::development;
use crate::limits::{MTU_LEAST, MTU_MAX, WORKERS_MAX};
use crate::tls::{Tls, TlsError};

section! {
    /// The listener of the stream door's own protocol.
    pub struct Options in "stream" {
        /// Where to listen, for QUIC on UDP and for TLS on TCP; port 0 takes one that is free for both.
        listen: SocketAddr = "127.0.0.1:7443",
        /// Threads that serve, each with sockets of its own on the same port; 0 takes one a core, 8 at most.
        workers: usize = "0" in "threads",
        /// The certificate chain (PEM); without one a development certificate is made at the first start.
        tls_certificate: Option<PathBuf> = "",
        /// The certificate's private key (PEM).
        tls_key: Option<PathBuf> = "",
        /// Names and addresses that a development certificate is made for, besides localhost.
        tls_names: Vec<String> = "",
        /// UDP payload that every path to clients is known to carry, from 1200 to 8900; 0 finds it out.
        mtu: u16 = "0" in "bytes",
        /// Whether the kernel may cut large sends into packets (GSO); packets are then 6000 bytes at most.
        gso: bool = "true",
        /// Connections open at a time; further ones are refused.
        connections: NonZeroUsize = "10000" in "connections",
        /// Subscriptions of one connection.
        subscriptions: NonZeroUsize = "4096" in "subscriptions",
        /// The largest frame that is read; a larger one ends its connection.
        frame_limit: Size = "8MiB",
        /// What one connection may have published without its acknowledgement.
        connection_memory: Size = "16MiB",
        /// What may wait to be sent on one connection.
        send_memory: Size = "2MiB",
        /// What a QUIC connection may have on its way in each direction; it bounds what a slow reader costs.
        quic_window: Size = "4MiB",
        /// How long a client may take over its handshake and its greeting.
        handshake_timeout: Span = "10s",
        /// How long a connection may be silent: clients give a sign of life three times in this time.
        idle_timeout: Span = "30s",
        /// How long a client may leave unread what is sent to it.
        write_timeout: Span = "30s",
        /// How long requests in flight may take to finish at shutdown.
        drain_timeout: Span = "10s",
    }
}

/// Why the options cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// Beyond loopback without tokens.
    #[error(
        "listening on {listen}, beyond loopback, needs auth.tokens_file, or auth.allow_unauthenticated = true \
         if everybody who can reach this address may read and write everything"
    )]
    Unauthenticated {
        /// The address.
        listen: SocketAddr,
    },
    /// Certificate or key.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// One of certificate and key without the other.
    #[error("stream.tls_certificate and stream.tls_key go together")]
    HalfTls,
    /// A packet size that QUIC or the network cannot have.
    #[error("stream.mtu must be 0 or from {MTU_LEAST} to {MTU_MAX}")]
    Mtu,
    /// A limit that leaves no room.
    #[error("{key} must be {least} or more")]
    TooSmall {
        /// The key.
        key: &'static str,
        /// Its least value.
        least: Size,
    },
}

/// Options that hold together, files read: what [`serve`](crate::serve) takes.
#[derive(Debug)]
pub struct Resolved {
    pub(crate) listen: SocketAddr,
    pub(crate) workers: usize,
    pub(crate) tls: Tls,
    pub(crate) mtu: u16,
    pub(crate) gso: bool,
    pub(crate) limits: Limits,
}

/// The numbers among the options.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) connections: usize,
    pub(crate) subscriptions: usize,
    pub(crate) frame_bytes: usize,
    pub(crate) inflight_bytes: usize,
    pub(crate) send_bytes: usize,
    pub(crate) quic_window_bytes: u32,
    pub(crate) handshake_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) write_timeout: Duration,
    pub(crate) drain_timeout: Duration,
}

impl Resolved {
    /// How many threads will serve: the size of per-worker counters.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// SHA-256 of the certificate in hexadecimal: what a client can be told to trust.
    pub fn fingerprint(&self) -> String {
        self.tls.current().fingerprint.clone()
    }
}

impl Options {
    /// Reads the files that the options name, makes a development certificate where none is named, and
    /// refuses what does not hold together. The certificate is kept in `data_dir`.
    pub fn resolve(&self, auth: &auth::Options, data_dir: Option<&Path>) -> Result<Resolved, OptionsError> {
        let is_open = auth.tokens_file.is_none() && !auth.allow_unauthenticated;
        if is_open && !self.listen.ip().is_loopback() {
            return Err(OptionsError::Unauthenticated { listen: self.listen });
        }
        if self.mtu != 0 && !(MTU_LEAST..=MTU_MAX).contains(&self.mtu) {
            return Err(OptionsError::Mtu);
        }
        Ok(Resolved {
            listen: self.listen,
            workers: self.workers_resolved(),
            tls: self.tls(data_dir)?,
            mtu: self.mtu,
            gso: self.gso,
            limits: self.limits()?,
        })
    }

    fn workers_resolved(&self) -> usize {
        let wanted = match self.workers {
            0 => available_parallelism().map_or(1, NonZeroUsize::get),
            workers => workers,
        };
        wanted.min(WORKERS_MAX)
    }

    fn tls(&self, data_dir: Option<&Path>) -> Result<Tls, OptionsError> {
        match (&self.tls_certificate, &self.tls_key) {
            (Some(certificate), Some(key)) => Ok(Tls::open(certificate, key)?),
            (Some(_), None) | (None, Some(_)) => Err(OptionsError::HalfTls),
            (None, None) => {
                let made = development::certificate(data_dir, &self.tls_names, self.listen.ip())?;
                Ok(Tls::development(made)?)
            }
        }
    }

    pub(crate) fn limits(&self) -> Result<Limits, OptionsError> {
        at_least("stream.frame_limit", self.frame_limit, Size(64 << 10))?;
        at_least("stream.connection_memory", self.connection_memory, self.frame_limit)?;
        at_least("stream.send_memory", self.send_memory, Size(64 << 10))?;
        at_least("stream.quic_window", self.quic_window, Size(64 << 10))?;
        Ok(Limits {
            connections: self.connections.get(),
            subscriptions: self.subscriptions.get(),
            frame_bytes: bytes(self.frame_limit),
            inflight_bytes: bytes(self.connection_memory),
            send_bytes: bytes(self.send_memory),
            quic_window_bytes: u32::try_from(bytes(self.quic_window)).unwrap_or(u32::MAX >> 2),
            handshake_timeout: self.handshake_timeout.into(),
            idle_timeout: self.idle_timeout.into(),
            write_timeout: self.write_timeout.into(),
            drain_timeout: self.drain_timeout.into(),
        })
    }
}

/// A size that this machine can address; a gigabyte is past every use here.
fn bytes(size: Size) -> usize {
    usize::try_from(size.0.min(1 << 30)).unwrap_or(1 << 30)
}

fn at_least(key: &'static str, value: Size, least: Size) -> Result<(), OptionsError> {
    if value < least { Err(OptionsError::TooSmall { key, least }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut Options, &mut auth::Options)) -> String {
        let (mut options, mut auth) = (Options::default(), auth::Options::default());
        change(&mut options, &mut auth);
        options.resolve(&auth, None).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn the_defaults_hold_together() {
        let resolved = Options::default().resolve(&auth::Options::default(), None).unwrap();
        assert!((1..=WORKERS_MAX).contains(&resolved.workers()));
        assert_eq!(resolved.fingerprint().len(), 64);
    }

    #[test]
    fn what_does_not_hold_together_is_refused() {
        assert!(refusal(|o, _| o.listen = "0.0.0.0:7443".parse().unwrap()).contains("allow_unauthenticated"));
        assert!(refusal(|o, _| o.tls_key = Some("k".into())).contains("go together"));
        assert!(refusal(|o, _| o.mtu = 1199).contains("stream.mtu"));
        assert!(refusal(|o, _| o.mtu = 9001).contains("stream.mtu"));
        assert!(refusal(|o, _| o.connection_memory = Size(1 << 20)).contains("stream.connection_memory"));
    }

    #[test]
    fn tokens_open_the_door_beyond_loopback() {
        let options = Options { listen: "0.0.0.0:7443".parse().unwrap(), ..Options::default() };
        let auth = auth::Options { tokens_file: Some("tokens".into()), ..auth::Options::default() };
        assert!(options.resolve(&auth, None).is_ok());
    }
}
