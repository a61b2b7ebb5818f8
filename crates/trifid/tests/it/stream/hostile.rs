//! Bytes that no client sends: each costs its own connection and nothing else, and is counted.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::Door;

/// Longer than anything here takes; nothing is asserted about time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Chance that is the same in every run.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let length = self.next() % most + 1;
        (0..length).map(|_| self.next().to_le_bytes()[3]).collect()
    }
}

/// Sends bytes and reads until the other side ends the connection; answers how much it said.
fn swallowed(stream: &mut (impl std::io::Read + std::io::Write), bytes: &[u8]) -> usize {
    // The other side may have hung up before everything was sent, which is its right.
    let _ = stream.write_all(bytes).and_then(|()| stream.flush());
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said);
    said.len()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A connection that has made its handshake and may speak the door's protocol.
fn inside(door: &Door) -> StreamOwned<ClientConnection, TcpStream> {
    let path = door.trifid.folder.path().join("trifid-data/tls/certificate.pem");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(path).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"trifid-stream/1".to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), connect(door.native))
}

/// The value of a metric that stands alone on its line.
fn metric(door: &Door, name: &str) -> f64 {
    let metrics = door.serving.get("/q/metrics").body;
    let line =
        metrics.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name}: {metrics}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Somebody who goes on working while `meanwhile` happens, and misses nothing.
fn unharmed(door: &Door, meanwhile: impl FnOnce()) {
    door.hand(&["create", "steady"]);
    let server = format!("quic://localhost:{}", door.native.port());
    let consume =
        ["stream", "consume", "steady", "--from", "earliest", "--count", "200", "--server", &server];
    let consumer = door.trifid.command(&consume).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let lines: String = (0..100).map(|number| format!("{number}\n")).collect();
    door.publish(&["steady"], &lines);
    meanwhile();
    door.publish(&["steady"], &lines);
    let said = crate::harness::Said::from(consumer.wait_with_output().unwrap());
    assert_eq!((said.out, said.code), (lines.repeat(2), Some(0)));
}

#[test]
fn noise_at_the_native_port_harms_nobody() {
    let door = Door::open();
    let mut chance = Chance(0x7121_f1d0);
    unharmed(&door, || {
        for _ in 0..50 {
            swallowed(&mut connect(door.native), &chance.bytes(4000));
        }
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..500 {
            // The first byte of a long header, now and then, so that more than the outermost check is met.
            let mut bytes = chance.bytes(1400);
            bytes[0] |= if chance.next().is_multiple_of(2) { 0xc0 } else { 0 };
            socket.send_to(&bytes, door.native).unwrap();
        }
    });
    assert!(metric(&door, "trifid_stream_handshakes_failed_total") >= 50.0);
    door.close();
}

#[test]
fn malformed_frames_end_their_connection_alone() {
    let door = Door::open();
    let mut chance = Chance(0x7121_f1d1);
    let preface = {
        use trifid_stream_model::frame::{Capabilities, Preface};
        Preface::new(Capabilities::ALL).encode().to_vec()
    };
    unharmed(&door, || {
        for round in 0..40 {
            let mut bytes = if round % 2 == 0 { preface.clone() } else { Vec::new() };
            bytes.extend(chance.bytes(4000));
            let mut stream = inside(&door);
            let _ = stream.write_all(&bytes);
            // Half a greeting is no reason to hang up at once; the end of the bytes is.
            stream.conn.send_close_notify();
            swallowed(&mut stream, &[]);
        }
        // A frame that claims four gigabytes.
        swallowed(&mut inside(&door), &[&preface[..], &[0xff; 64]].concat());
    });
    assert!(metric(&door, "trifid_stream_malformed_total") >= 20.0);
    door.close();
}

#[test]
fn noise_at_the_kafka_port_harms_nobody() {
    let door = Door::open();
    let mut chance = Chance(0x7121_f1d2);
    unharmed(&door, || {
        for round in 0..60u32 {
            let noise = chance.bytes(3000);
            let claimed: u32 = match round % 4 {
                0 => u32::MAX,
                1 => 0x7fff_ffff,
                2 => 0,
                _ => u32::try_from(noise.len()).unwrap(),
            };
            let mut stream = connect(door.kafka);
            let _ = stream.write_all(&claimed.to_be_bytes()).and_then(|()| stream.write_all(&noise));
            // Half a request is no reason to hang up at once; the end of the bytes is.
            let _ = stream.shutdown(Shutdown::Write);
            swallowed(&mut stream, &[]);
        }
        // An API that does not exist, then one in a version that does not.
        for (api, version) in [(9999u16, 0u16), (0, 999), (18, 999)] {
            let request =
                [&api.to_be_bytes()[..], &version.to_be_bytes(), &[0, 0, 0, 1], &[0xff, 0xff]].concat();
            let length = u32::try_from(request.len()).unwrap().to_be_bytes();
            let mut stream = connect(door.kafka);
            let _ = stream.write_all(&[&length[..], &request].concat());
            let _ = stream.shutdown(Shutdown::Write);
            let answered = swallowed(&mut stream, &[]);
            // ApiVersions alone is answered in any version (KIP-511).
            assert_eq!(answered > 0, api == 18, "{api}");
        }
    });
    let events = ["malformed", "too_large", "unsupported"];
    let ended: f64 = events
        .map(|event| metric(&door, &format!("trifid_kafka_events_total{{event=\"{event}\"}}")))
        .iter()
        .sum();
    assert!(ended >= 45.0, "{ended}");
    door.close();
}

#[test]
fn connections_beyond_the_limit_are_turned_away() {
    let settings = ["stream.connections=8", "stream.kafka_connections=8"];
    let door = Door::on(crate::harness::Trifid::new(), &settings);
    let idle: Vec<TcpStream> = (0..40).flat_map(|_| [connect(door.native), connect(door.kafka)]).collect();
    // Who was turned away reads the end; the others wait.
    for stream in &idle {
        stream.set_nonblocking(true).unwrap();
    }
    let ended = |stream: &mut &TcpStream| {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(0) => true,
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
            Ok(_) => false,
        }
    };
    while idle.iter().filter(|stream| ended(&mut &**stream)).count() < 48 {
        std::thread::yield_now();
    }
    drop(idle);
    // Once they are gone there is room again.
    while door.run(&["create", "room"]).code != Some(0) {
        std::thread::yield_now();
    }
    door.close();
}
