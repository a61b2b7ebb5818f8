//! TLS on the listener, with certificates made for the test.

use std::path::Path;
use std::sync::Arc;

use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use trifid_base_web::{OptionsError, auth};

use super::support::{Running, options, run};

/// Writes a fresh certificate and key into a folder.
pub(crate) fn certify(folder: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    made.cert.der().clone()
}

pub(crate) fn start(folder: &Path) -> Running {
    let mut options = options();
    options.tls_certificate = Some(folder.join("cert.pem"));
    options.tls_key = Some(folder.join("key.pem"));
    run(options.resolve(&auth::Options::default()).unwrap())
}

async fn connect(
    running: &Running,
    trusted: &CertificateDer<'static>,
    alpn: &[&str],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(running.address).await.unwrap();
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
}

fn request() -> http::Request<Empty<bytes::Bytes>> {
    http::Request::get("https://localhost/door/echo").header("host", "localhost").body(Empty::new()).unwrap()
}

#[tokio::test]
async fn http1_is_spoken_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let trusted = certify(folder.path());
    let running = start(folder.path());
    let stream = connect(&running, &trusted, &["http/1.1"]).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..3 {
        let response = sender.send_request(request()).await.unwrap();
        assert_eq!(response.status(), 200);
        response.into_body().collect().await.unwrap();
    }
}

#[tokio::test]
async fn http2_is_chosen_by_alpn() {
    let folder = tempfile::tempdir().unwrap();
    let trusted = certify(folder.path());
    let running = start(folder.path());
    let stream = connect(&running, &trusted, &["h2", "http/1.1"]).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    assert_eq!(sender.send_request(request()).await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_reload_serves_the_new_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let old = certify(folder.path());
    let running = start(folder.path());
    connect(&running, &old, &[]).await.unwrap();
    let new = certify(folder.path());
    let reload = running.server.as_ref().unwrap().reload();
    reload.run().unwrap();
    connect(&running, &new, &[]).await.unwrap();
    assert!(connect(&running, &old, &[]).await.is_err());
    std::fs::write(folder.path().join("key.pem"), "nonsense").unwrap();
    assert!(reload.run().is_err());
    connect(&running, &new, &[]).await.unwrap();
}

#[tokio::test]
async fn plain_text_on_a_tls_port_is_no_request() {
    let folder = tempfile::tempdir().unwrap();
    certify(folder.path());
    let running = start(folder.path());
    let mut client = running.connect();
    client.send("GET /door/echo HTTP/1.1\r\nhost: t\r\n\r\n");
    let rest = client.rest();
    assert!(!rest.starts_with(b"HTTP"), "{rest:?}");
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    certify(one.path());
    certify(two.path());
    let mut options = options();
    options.tls_certificate = Some(one.path().join("cert.pem"));
    options.tls_key = Some(two.path().join("key.pem"));
    let refused = options.resolve(&auth::Options::default());
    assert!(matches!(refused, Err(OptionsError::Tls(_))), "{refused:?}");
}
