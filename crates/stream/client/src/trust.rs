//! Whom to believe that he is the broker.
//!
//! A broker of the public web is believed because of the roots that browsers know; one with a certificate of
//! the house because of the house's authority; a development broker because its one certificate is named, by
//! file or by its SHA-256. There is no default that believes everybody: that is [`Trust::Anybody`], which has
//! to be asked for by name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring as provider, verify_tls13_signature};
use rustls::{
    CertificateError, CipherSuite, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use rustls_pki_types::pem::{self, PemObject as _};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use trifid_stream_model::frame::ALPN;

/// Where a broker's data directory keeps its development certificate.
const DEVELOPMENT: &str = "tls/certificate.pem";

/// Whom to believe that he is the broker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Who has a certificate of an authority that browsers know.
    #[default]
    WebRoots,
    /// Who has a certificate of an authority in this PEM file, or the very certificate that is in it.
    File(PathBuf),
    /// Who has the certificate with this SHA-256, whatever name it is made for.
    Fingerprint([u8; 32]),
    /// Anybody who answers. Whoever stands in between can then read and change everything: for experiments on
    /// a machine of one's own, nothing else.
    Anybody,
}

/// Why nobody can be trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file cannot be read as PEM.
    #[error("{} cannot be read as PEM", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// The file holds no certificate that can be trusted.
    #[error("{} holds no usable certificate", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Not a SHA-256.
    #[error("`{0}` is not the 64 hexadecimal digits of a SHA-256")]
    Fingerprint(String),
    /// The TLS library refuses.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
}

impl Trust {
    /// The certificate that a broker with this data directory made for itself.
    pub fn development(data_dir: impl AsRef<Path>) -> Self {
        Self::File(data_dir.as_ref().join(DEVELOPMENT))
    }

    /// A certificate's SHA-256 as a broker tells it at its start, in hexadecimal, colons allowed.
    pub fn fingerprint(text: &str) -> Result<Self, TrustError> {
        let refused = || TrustError::Fingerprint(text.into());
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b':').collect();
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return Err(refused());
        }
        let value = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = value(pair[0])
                .zip(value(pair[1]))
                .map(|(high, low)| (high << 4) | low)
                .ok_or_else(refused)?;
        }
        Ok(Self::Fingerprint(bytes))
    }

    /// The TLS configuration that goes with it.
    pub(crate) fn config(&self) -> Result<ClientConfig, TrustError> {
        let provider = Arc::new(liked());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(TrustError::Tls)?;
        let mut config = match self {
            Self::WebRoots => builder.with_root_certificates(web_roots()).with_no_client_auth(),
            Self::File(path) => builder.with_root_certificates(roots_of(path)?).with_no_client_auth(),
            Self::Fingerprint(_) | Self::Anybody => {
                let pin = if let Self::Fingerprint(pin) = self { Some(*pin) } else { None };
                let verifier = Arc::new(Pinned { pin, provider });
                builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
            }
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(config)
    }
}

fn web_roots() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

fn roots_of(path: &Path) -> Result<RootCertStore, TrustError> {
    let pem = |source| TrustError::Pem { path: path.into(), source };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(pem)? {
        // A file may hold certificates of kinds that cannot be roots beside one that can.
        let _ = roots.add(certificate.map_err(pem)?);
    }
    if roots.is_empty() { Err(TrustError::Empty { path: path.into() }) } else { Ok(roots) }
}

/// `ring`, with AES-128-GCM first: the server chooses, but a server without an opinion takes the first.
fn liked() -> CryptoProvider {
    let mut provider = provider::default_provider();
    provider.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    provider
}

/// Believes one certificate, or any. That the other side has its key is proven either way.
#[derive(Debug)]
struct Pinned {
    pin: Option<[u8; 32]>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match &self.pin {
            Some(pin) if digest(&SHA256, certificate).as_ref() != pin => {
                Err(CertificateError::ApplicationVerificationFailure.into())
            }
            Some(_) | None => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not spoken".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_with_and_without_colons() {
        let plain = "0a".repeat(32);
        let spaced = vec!["0A"; 32].join(":");
        assert_eq!(Trust::fingerprint(&plain).unwrap(), Trust::Fingerprint([10; 32]));
        assert_eq!(Trust::fingerprint(&spaced).unwrap(), Trust::Fingerprint([10; 32]));
        for text in ["", "0a", &"0g".repeat(32), &"0a".repeat(33)] {
            assert!(matches!(Trust::fingerprint(text), Err(TrustError::Fingerprint(_))), "{text}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(Trust::development(folder.path()).config(), Err(TrustError::Pem { .. })));
        let path = folder.path().join("empty.pem");
        std::fs::write(&path, "# nothing\n").unwrap();
        assert!(matches!(Trust::File(path).config(), Err(TrustError::Empty { .. })));
    }

    #[test]
    fn every_other_trust_makes_a_configuration() {
        for trust in [Trust::WebRoots, Trust::Fingerprint([0; 32]), Trust::Anybody] {
            assert_eq!(trust.config().unwrap().alpn_protocols, [ALPN]);
        }
    }
}
