//! Who is let in, and for whom.

use std::path::{Path, PathBuf};

use trifid_base_web::auth::hash_token;
use trifid_stream_client::{Client, ClientError, Code, ConnectError, ProducerOptions, RequestError, Trust};
use trifid_stream_model::frame::{Capabilities, Reply};

use crate::harness::{BOTH, House, memory, on_runtime};
use crate::raw::Raw;

/// A certificate and its key, in files.
pub(crate) fn certificate(folder: &Path) -> (PathBuf, PathBuf) {
    let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
    let pair = rcgen::KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let signed = rcgen::CertificateParams::new(names).unwrap().self_signed(&pair).unwrap();
    std::fs::write(&certificate, signed.pem()).unwrap();
    std::fs::write(&key, pair.serialize_pem()).unwrap();
    (certificate, key)
}

fn house(folder: &Path) -> House {
    let path = folder.join("tokens");
    let lines = format!(
        "{} city write\n{} city read\n{} - write\n{} * admin\n",
        hash_token("writer"),
        hash_token("reader"),
        hash_token("plain"),
        hash_token("root"),
    );
    std::fs::write(&path, lines).unwrap();
    House::with(|_| {}, |_| {}, Some(&path))
}

fn refused(connected: Result<Client, ClientError>) -> Code {
    match connected {
        Err(ClientError::Connect(ConnectError::Refused(refusal))) => refusal.code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_token_is_needed_and_has_its_tenant_and_its_role() {
    let folder = tempfile::tempdir().unwrap();
    let house = house(folder.path());
    for scheme in BOTH {
        on_runtime(async {
            let options = || house.options(scheme);
            assert_eq!(refused(Client::connect(options()).await), Code::Unauthorized);
            assert_eq!(refused(Client::connect(options().token("wrong")).await), Code::Unauthorized);
            let other = options().token("writer").tenant("town").unwrap();
            assert_eq!(refused(Client::connect(other).await), Code::Forbidden);
            let internal = options().token("root").tenant("_system").unwrap();
            assert_eq!(refused(Client::connect(internal).await), Code::Forbidden);
            let writer = Client::connect(options().token("writer")).await.unwrap();
            assert_eq!(writer.welcome().await.unwrap().tenant.as_str(), "city");
            writer.create_stream("mine", memory(1)).await.unwrap();
            // Another tenant does not see it; a reader may look and not write.
            let plain = Client::connect(options().token("plain")).await.unwrap();
            let unseen = plain.describe_stream("mine").await;
            assert_eq!(unseen.unwrap_err().code(), Some(Code::UnknownStream));
            let reader = Client::connect(options().token("reader")).await.unwrap();
            reader.describe_stream("mine").await.unwrap();
            let forbidden = reader.producer("mine", ProducerOptions::default()).await;
            assert_eq!(forbidden.unwrap_err().code(), Some(Code::Forbidden));
            let forbidden = reader.delete_stream("mine").await;
            assert_eq!(forbidden.unwrap_err().code(), Some(Code::Forbidden));
            writer.delete_stream("mine").await.unwrap();
        });
    }
    assert!(house.metric("trifid_stream_refused_tokens_total") >= 4);
}

#[test]
fn a_certificate_is_believed_by_its_file_or_its_fingerprint_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = certificate(folder.path());
    let house = House::with(
        |options| {
            options.tls_certificate = Some(certificate.clone());
            options.tls_key = Some(key);
        },
        |_| {},
        None,
    );
    for scheme in BOTH {
        on_runtime(async {
            let connect = |trust| Client::connect(house.options(scheme).trust(trust));
            connect(Trust::File(certificate.clone())).await.unwrap();
            connect(Trust::Anybody).await.unwrap();
            for stranger in [Trust::WebRoots, Trust::Fingerprint([7; 32])] {
                let refused = connect(stranger).await;
                assert!(matches!(refused, Err(ClientError::Connect(ConnectError::Dial(_)))), "{refused:?}");
            }
        });
    }
}

#[test]
fn a_development_certificate_is_found_in_the_data_directory() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        trifid_stream_face::Options { listen: "127.0.0.1:0".parse().unwrap(), ..Default::default() };
    let resolved = options.resolve(&trifid_base_web::auth::Options::default(), Some(folder.path())).unwrap();
    let broker = trifid_stream_engine::Broker::open(trifid_stream_engine::Options::memory()).unwrap();
    let shutdown = trifid_base_runtime::Shutdown::new();
    let server = trifid_stream_face::serve(resolved, broker, None, &shutdown).unwrap();
    on_runtime(async {
        let url = format!("trifid://localhost:{}", server.local_addr().port());
        let options = trifid_stream_client::ClientOptions::new(&url).unwrap();
        let client = Client::connect(options.trust(Trust::development(folder.path()))).await.unwrap();
        client.ping().await.unwrap();
    });
    shutdown.trigger(trifid_base_runtime::shutdown::Reason::Requested);
    server.join().unwrap();
}

#[test]
fn a_second_listener_is_refused() {
    let house = House::new();
    let options = trifid_stream_face::Options { listen: house.address, ..Default::default() };
    let resolved = options.resolve(&trifid_base_web::auth::Options::default(), None).unwrap();
    let broker = trifid_stream_engine::Broker::open(trifid_stream_engine::Options::memory()).unwrap();
    let second = trifid_stream_face::serve(resolved, broker, None, &trifid_base_runtime::Shutdown::new());
    assert!(matches!(second, Err(trifid_stream_face::ServeError::Listen { .. })));
}

#[test]
fn capabilities_that_are_not_there_are_refused() {
    let house = House::new();
    for scheme in BOTH {
        on_runtime(async {
            let mut raw = Raw::connect(&house, scheme).await;
            raw.preface().await;
            let mut hello = Raw::hello();
            hello.required = Capabilities(1 << 60);
            let id = raw.send(hello).await;
            let (answered, reply) = raw.read_to_end().await.unwrap();
            assert_eq!(answered, id);
            assert!(matches!(reply, Reply::Error(refusal) if refusal.code == Code::Unsupported));
        });
    }
}

#[test]
fn a_token_that_was_taken_away_ends_its_connections() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    std::fs::write(&path, format!("{} - write\n{} - write\n", hash_token("one"), hash_token("two"))).unwrap();
    let tokens = std::sync::Arc::new(trifid_base_web::Tokens::open(&path).unwrap());
    let options =
        trifid_stream_face::Options { listen: "127.0.0.1:0".parse().unwrap(), ..Default::default() };
    let resolved = options.resolve(&trifid_base_web::auth::Options::default(), None).unwrap();
    let broker = trifid_stream_engine::Broker::open(trifid_stream_engine::Options::memory()).unwrap();
    let shutdown = trifid_base_runtime::Shutdown::new();
    let server = trifid_stream_face::serve(resolved, broker, Some(tokens.clone()), &shutdown).unwrap();
    on_runtime(async {
        let url = format!("tls://{}", server.local_addr());
        let options = trifid_stream_client::ClientOptions::new(&url).unwrap();
        let options = options.trust(Trust::fingerprint(&server.fingerprint()).unwrap());
        let one = Client::connect(options.clone().token("one")).await.unwrap();
        let two = Client::connect(options.token("two")).await.unwrap();
        one.ping().await.unwrap();
        std::fs::write(&path, format!("{} - write\n", hash_token("two"))).unwrap();
        tokens.reload().unwrap();
        two.ping().await.unwrap();
        // The open conversation ends; a new one is not begun.
        let first = one.ping().await;
        let second = one.ping().await;
        let is_refused = |error: &RequestError| error.code() == Some(Code::Unauthorized);
        assert!(first.is_err());
        assert!(is_refused(&second.unwrap_err()));
    });
    shutdown.trigger(trifid_base_runtime::shutdown::Reason::Requested);
    server.join().unwrap();
}
