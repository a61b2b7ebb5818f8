//! A certificate for development, made at the first start: one per installation, never shipped.
//!
//! It lies in the data directory as `tls/certificate.pem` with its key `tls/key.pem`, which only the owner
//! can read. It signs itself, so that a client trusts it by naming the file, or the SHA-256 that the server
//! tells at start; nothing trusts it by default. Without a data directory it lasts as long as the process.
//! The key is written before the certificate, each under another name first and renamed: a start that was cut
//! off is simply made good.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::limits::CERTIFICATE_NAMES_MAX;
use crate::tls::{Identity, TlsError};

/// Where a data directory keeps the certificate.
pub const CERTIFICATE: &str = "tls/certificate.pem";

/// Where a data directory keeps the certificate's key.
pub const KEY: &str = "tls/key.pem";

/// Why there is no development certificate.
#[derive(Debug, thiserror::Error)]
pub enum DevelopmentError {
    /// A name that certificates cannot carry, or too many of them.
    #[error("stream.tls_names: `{0}` cannot stand in a certificate")]
    Name(String),
    /// It cannot be made.
    #[error("a development certificate cannot be made")]
    Make(#[source] rcgen::Error),
    /// It cannot be kept.
    #[error("{} cannot be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// The certificate of the data directory, made if there is none; one for this process alone without a
/// directory.
pub(crate) fn certificate(
    data_dir: Option<&Path>,
    names: &[String],
    address: IpAddr,
) -> Result<Identity, TlsError> {
    let Some(data_dir) = data_dir else { return Ok(make(names, address)?.identity()) };
    let (certificate, key) = (data_dir.join(CERTIFICATE), data_dir.join(KEY));
    if !certificate.exists() {
        let made = make(names, address)?;
        keep(&key, &made.key.serialize_pem(), 0o600)?;
        keep(&certificate, &made.certificate.pem(), 0o644)?;
        tracing::info!(certificate = %certificate.display(), "made a development certificate");
    }
    warn_if_open(&key);
    Identity::read(&certificate, &key)
}

struct Made {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Made {
    fn identity(&self) -> Identity {
        let key = PrivatePkcs8KeyDer::from(self.key.serialize_der());
        Identity { chain: vec![self.certificate.der().clone()], key: PrivateKeyDer::Pkcs8(key) }
    }
}

fn make(names: &[String], address: IpAddr) -> Result<Made, DevelopmentError> {
    let mut all = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !address.is_unspecified() {
        all.push(address.to_string());
    }
    all.extend(names.iter().cloned());
    all.sort();
    all.dedup();
    if let Some(beyond) = all.get(CERTIFICATE_NAMES_MAX) {
        return Err(DevelopmentError::Name(beyond.clone()));
    }
    let mut params = CertificateParams::default();
    for name in all {
        let one = CertificateParams::new(vec![name.clone()]).map_err(|_| DevelopmentError::Name(name))?;
        params.subject_alt_names.extend(one.subject_alt_names);
    }
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, "Trifid development certificate");
    params.distinguished_name = subject;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate().map_err(DevelopmentError::Make)?;
    let certificate = params.self_signed(&key).map_err(DevelopmentError::Make)?;
    Ok(Made { certificate, key })
}

/// Writes a file whole or not at all.
fn keep(path: &Path, text: &str, mode: u32) -> Result<(), DevelopmentError> {
    let write = || -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let making = path.with_extension("making");
        let mut file = create(&making, mode)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&making, path)
    };
    write().map_err(|source| DevelopmentError::Write { path: path.into(), source })
}

/// A new file that is private from its first moment on.
fn create(path: &Path, mode: u32) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path)
}

#[cfg(unix)]
fn warn_if_open(key: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    if let Ok(meta) = fs::metadata(key)
        && meta.permissions().mode() & 0o077 != 0
    {
        tracing::warn!(key = %key.display(), "others can read the private key: chmod 600");
    }
}

#[cfg(not(unix))]
fn warn_if_open(_: &Path) {}

pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn one_is_made_and_kept_with_a_private_key() {
        let folder = tempfile::tempdir().unwrap();
        let first = certificate(Some(folder.path()), &[], LOOPBACK).unwrap();
        let second = certificate(Some(folder.path()), &[], LOOPBACK).unwrap();
        assert_eq!(first.fingerprint(), second.fingerprint());
        assert_eq!(first.fingerprint().len(), 64);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(folder.path().join(KEY)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_start_that_was_cut_off_is_made_good() {
        let folder = tempfile::tempdir().unwrap();
        let first = certificate(Some(folder.path()), &[], LOOPBACK).unwrap();
        fs::remove_file(folder.path().join(CERTIFICATE)).unwrap();
        fs::write(folder.path().join("tls/key.making"), "half").unwrap();
        let second = certificate(Some(folder.path()), &[], LOOPBACK).unwrap();
        assert_ne!(first.fingerprint(), second.fingerprint());
    }

    #[test]
    fn two_installations_share_nothing() {
        let one = certificate(None, &[], LOOPBACK).unwrap();
        let two = certificate(None, &[], LOOPBACK).unwrap();
        assert_ne!(one.fingerprint(), two.fingerprint());
    }

    #[test]
    fn names_are_checked_and_counted() {
        let check = |names: &[String]| certificate(None, names, LOOPBACK).map(|_| ());
        assert!(check(&["broker.example".to_owned()]).is_ok());
        let bad = check(&["na\u{ef}ve".to_owned()]);
        assert!(matches!(bad, Err(TlsError::Development(DevelopmentError::Name(_)))), "{bad:?}");
        let many: Vec<_> = (0..=CERTIFICATE_NAMES_MAX).map(|n| format!("n{n}.example")).collect();
        assert!(matches!(check(&many), Err(TlsError::Development(DevelopmentError::Name(_)))));
    }
}
