//! TLS for both transports: rustls with the provider `ring`, TLS 1.3 alone, ALPN `trifid-stream/1` (RFC
//! 7301).
//!
//! The provider is named here rather than taken from the process. It is told which cipher comes first:
//! AES-128-GCM where the processor has instructions for it (it then costs a third of ChaCha20 a byte),
//! ChaCha20-Poly1305 elsewhere. The server's order counts, since it is the server that pays for every
//! subscriber.
//!
//! Certificate and key are read again on demand; connections that are open keep the certificate that they
//! began with.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use quinn::crypto::rustls::QuicServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::{CipherSuite, ServerConfig};
use rustls_pki_types::pem::{self, PemObject as _};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use ::ring::hmac;

use crate::development::{self, DevelopmentError};

pub use trifid_stream_model::frame::ALPN;

/// Why certificate and key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read as PEM.
    #[error("{} cannot be read as PEM", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// The certificate file holds none.
    #[error("{} holds no certificate", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// Certificate and key do not go together, or are of a kind that is not supported.
    #[error("certificate and key cannot be used")]
    Unusable(#[source] rustls::Error),
    /// The provider lacks what QUIC's first packets are protected with.
    #[error("no cipher for QUIC's initial packets")]
    NoInitialCipher,
    /// A development certificate cannot be made or kept.
    #[error(transparent)]
    Development(#[from] DevelopmentError),
}

/// A certificate chain with its key.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        Self { chain: self.chain.clone(), key: self.key.clone_key() }
    }
}

impl Identity {
    /// Reads both files.
    pub(crate) fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let pem = |source| TlsError::Pem { path: certificate.into(), source };
        let chain: Vec<_> = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<_, _>>)
            .map_err(pem)?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate { path: certificate.into() });
        }
        let key =
            PrivateKeyDer::from_pem_file(key).map_err(|source| TlsError::Pem { path: key.into(), source })?;
        Ok(Self { chain, key })
    }

    /// Derived from the certificate's key, which it does not tell.
    fn secret(&self) -> [u8; 32] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.key.secret_der());
        let mut secret = [0; 32];
        secret.copy_from_slice(hmac::sign(&key, b"trifid-stream/1 secret").as_ref());
        secret
    }

    /// SHA-256 of the first certificate, in hexadecimal: what a client can be told to trust.
    pub(crate) fn fingerprint(&self) -> String {
        let first = self.chain.first().map(AsRef::as_ref).unwrap_or_default();
        development::hex(::ring::digest::digest(&::ring::digest::SHA256, first).as_ref())
    }
}

/// Where certificate and key come from.
#[derive(Debug)]
enum Source {
    /// Files of the operator's.
    Files { certificate: PathBuf, key: PathBuf },
    /// Made here; they last as long as their files, or as this process.
    Development,
}

/// What new connections are greeted with, as last read.
#[derive(Debug)]
pub(crate) struct Tls {
    source: Source,
    current: ArcSwap<Configs>,
}

/// The configurations that one certificate makes.
pub(crate) struct Configs {
    pub(crate) tcp: Arc<ServerConfig>,
    pub(crate) quic: Arc<QuicServerConfig>,
    pub(crate) fingerprint: String,
    /// A secret that only who holds the certificate's key can know; the same after every start.
    pub(crate) secret: [u8; 32],
}

impl Tls {
    /// Reads the operator's files.
    pub(crate) fn open(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let current = ArcSwap::from_pointee(Configs::new(Identity::read(certificate, key)?)?);
        Ok(Self { source: Source::Files { certificate: certificate.into(), key: key.into() }, current })
    }

    /// Takes a certificate of this installation's own.
    pub(crate) fn development(identity: Identity) -> Result<Self, TlsError> {
        Ok(Self { source: Source::Development, current: ArcSwap::from_pointee(Configs::new(identity)?) })
    }

    /// Reads the files again; if that fails, nothing changes. A development certificate stays.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        if let Source::Files { certificate, key } = &self.source {
            self.current.store(Arc::new(Configs::new(Identity::read(certificate, key)?)?));
        }
        Ok(())
    }

    pub(crate) fn current(&self) -> Arc<Configs> {
        self.current.load_full()
    }
}

impl fmt::Debug for Configs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Configs").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

impl Configs {
    fn new(identity: Identity) -> Result<Self, TlsError> {
        let (fingerprint, secret) = (identity.fingerprint(), identity.secret());
        let tcp = config(identity)?;
        let quic = QuicServerConfig::try_from(quic_of(&tcp)).map_err(|_| TlsError::NoInitialCipher)?;
        Ok(Self { tcp: Arc::new(tcp), quic: Arc::new(quic), fingerprint, secret })
    }
}

fn config(identity: Identity) -> Result<ServerConfig, TlsError> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(identity.chain, identity.key))
        .map_err(TlsError::Unusable)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.ignore_client_order = true;
    // A resumed session would save a signature; tickets for tens of thousands of short connections cost more.
    config.send_tls13_tickets = 1;
    Ok(config)
}

/// The same for QUIC, which wants to bound 0-RTT data itself (RFC 9001 4.6.1). Requests are not safe to
/// replay: none.
fn quic_of(tcp: &ServerConfig) -> ServerConfig {
    let mut config = tcp.clone();
    config.max_early_data_size = 0;
    config
}

/// `ring`, its TLS 1.3 ciphers in the order in which this processor likes them.
fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    let first = if has_aes() {
        CipherSuite::TLS13_AES_128_GCM_SHA256
    } else {
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256
    };
    provider.cipher_suites.sort_by_key(|suite| suite.suite() != first);
    provider
}

/// Whether the processor has instructions for AES-GCM.
fn has_aes() -> bool {
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    let has = std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    let has = std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64")))]
    let has = false;
    has
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_liked_cipher_comes_first_and_none_is_lost() {
        let (ours, all) = (provider(), ring::default_provider());
        assert_eq!(ours.cipher_suites.len(), all.cipher_suites.len());
        let first = ours.cipher_suites[0].suite();
        let expected = if has_aes() {
            CipherSuite::TLS13_AES_128_GCM_SHA256
        } else {
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256
        };
        assert_eq!(first, expected);
    }

    #[test]
    fn files_that_do_not_fit_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
        assert!(matches!(Tls::open(&certificate, &key), Err(TlsError::Pem { .. })));
        std::fs::write(&certificate, "# nothing\n").unwrap();
        assert!(matches!(Tls::open(&certificate, &key), Err(TlsError::NoCertificate { .. })));
        let (one, two) = (rcgen::KeyPair::generate().unwrap(), rcgen::KeyPair::generate().unwrap());
        let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        std::fs::write(&certificate, params.self_signed(&one).unwrap().pem()).unwrap();
        std::fs::write(&key, two.serialize_pem()).unwrap();
        assert!(matches!(Tls::open(&certificate, &key), Err(TlsError::Unusable(_))));
        std::fs::write(&key, one.serialize_pem()).unwrap();
        let tls = Tls::open(&certificate, &key).unwrap();
        let before = tls.current().fingerprint.clone();
        std::fs::write(&certificate, "broken").unwrap();
        assert!(tls.reload().is_err());
        assert_eq!(tls.current().fingerprint, before);
    }
}
