//! TLS on the listener, with a certificate made for the test.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use kafka_protocol::messages::*;
use kafka_protocol::protocol::Decodable as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use trifid_stream_model::spec::StreamSpec;

use crate::harness::{Harness, batch, fetch_request, frame, produce_request, values};

fn certify(folder: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    made.cert.der().clone()
}

fn connect(harness: &Harness, trusted: CertificateDer<'static>) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connection =
        ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
    StreamOwned::new(connection, TcpStream::connect(harness.address).unwrap())
}

fn answer(stream: &mut impl std::io::Read) -> bytes::Bytes {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut answer = vec![0; usize::try_from(i32::from_be_bytes(length)).unwrap()];
    stream.read_exact(&mut answer).unwrap();
    answer.into()
}

#[test]
fn records_pass_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let trusted = certify(folder.path());
    let harness = Harness::with(|options, _| {
        options.kafka_tls_certificate = Some(folder.path().join("cert.pem"));
        options.kafka_tls_key = Some(folder.path().join("key.pem"));
    });
    harness.stream("orders", StreamSpec::memory(1));
    let mut stream = connect(&harness, trusted);
    let large = "x".repeat(500_000);
    for (correlation, value) in (1..).zip(["small", large.as_str()]) {
        let request = produce_request("orders", 0, batch(&[value]), -1);
        stream.write_all(&frame(0, 9, correlation, &request)).unwrap();
        let mut produced = answer(&mut stream);
        assert_eq!(ResponseHeader::decode(&mut produced, 1).unwrap().correlation_id, correlation);
        let produced = ProduceResponse::decode(&mut produced, 9).unwrap();
        assert_eq!(produced.responses[0].partition_responses[0].error_code, 0);
    }
    stream.write_all(&frame(1, 12, 3, &fetch_request("orders", 0, 0, 0))).unwrap();
    let mut fetched = answer(&mut stream);
    ResponseHeader::decode(&mut fetched, 1).unwrap();
    let fetched = FetchResponse::decode(&mut fetched, 12).unwrap();
    let got = values(fetched.responses[0].partitions[0].records.as_ref());
    assert_eq!(got, [(0, "small".to_owned()), (1, large)]);
}

#[test]
fn who_speaks_no_tls_is_shown_out() {
    let folder = tempfile::tempdir().unwrap();
    certify(folder.path());
    let harness = Harness::with(|options, _| {
        options.kafka_tls_certificate = Some(folder.path().join("cert.pem"));
        options.kafka_tls_key = Some(folder.path().join("key.pem"));
    });
    let mut client = harness.client();
    client.send(3, &ApiVersionsRequest::default());
    // What comes is an alert of TLS, and then the end.
    let mut rest = Vec::new();
    let _ = client.stream.read_to_end(&mut rest);
    assert_eq!(harness.stats().tls_failures, 1);
}
