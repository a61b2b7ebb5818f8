//! TLS for the listener: rustls with the provider `ring`, ALPN for HTTP/2 and HTTP/1.1 (RFC 7301, RFC 9113 3.2).
//!
//! The provider is named here rather than taken from the process, so that a second provider in the graph can
//! neither change nor break it. Certificate and key are read again on demand; connections that are open keep
//! the certificate that they began with.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls_pki_types::pem::{self, PemObject as _};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

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
    #[error("certificate {} and key {} cannot be used", certificate.display(), key.display())]
    Unusable {
        /// The certificate file.
        certificate: PathBuf,
        /// The key file.
        key: PathBuf,
        /// What rustls says.
        source: rustls::Error,
    },
}

/// The listener's certificate and key, as last read.
pub(crate) struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    config: ArcSwap<ServerConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads both files.
    pub(crate) fn open(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let config = server_config(certificate, key, ALPN)?;
        Ok(Self { certificate: certificate.into(), key: key.into(), config: ArcSwap::from_pointee(config) })
    }

    /// Reads both files again; if that fails, nothing changes.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        self.config.store(Arc::new(server_config(&self.certificate, &self.key, ALPN)?));
        Ok(())
    }

    /// The configuration for a new connection.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.config.load_full()
    }
}

/// The protocols that the HTTP listener offers.
const ALPN: &[&[u8]] = &[b"h2", b"http/1.1"];

/// What a listener with this certificate chain and key needs, offering the protocols `alpn` (RFC 7301; none offers
/// nothing and accepts every client).
pub fn server_config(certificate: &Path, key: &Path, alpn: &[&[u8]]) -> Result<ServerConfig, TlsError> {
    let chain = certificates(certificate)?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate { path: certificate.into() });
    }
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|source| TlsError::Pem { path: key.into(), source })?;
    let unusable = |source| TlsError::Unusable { certificate: certificate.into(), key: key.into(), source };
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private))
        .map_err(unusable)?;
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}

/// The certificates of a PEM file.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = |source| TlsError::Pem { path: path.into(), source };
    CertificateDer::pem_file_iter(path).map_err(pem)?.collect::<Result<_, _>>().map_err(pem)
}
