//! A server that is gone without a word, and comes back knowing nothing.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::UdpSocket;
use trifid_stream_client::{Client, ClientOptions, Trust};

use crate::harness::{House, on_runtime};

/// Carries datagrams between one client and wherever `to` points.
async fn relay(front: UdpSocket, to: Arc<Mutex<SocketAddr>>) {
    let back = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (mut outward, mut inward) = (vec![0; 65_536], vec![0; 65_536]);
    let mut client = None;
    loop {
        tokio::select! {
            received = front.recv_from(&mut outward) => {
                let (bytes, from) = received.unwrap();
                client = Some(from);
                let to = *to.lock();
                let _ = back.send_to(&outward[..bytes], to).await;
            }
            received = back.recv_from(&mut inward) => {
                let (bytes, from) = received.unwrap();
                // What a server says that is gone by now is lost.
                if let Some(client) = client.filter(|_| from == *to.lock()) {
                    let _ = front.send_to(&inward[..bytes], client).await;
                }
            }
        }
    }
}

#[test]
fn a_server_that_knows_nothing_says_so_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = crate::tokens::certificate(folder.path());
    let house = || {
        House::with(
            |options| {
                options.tls_certificate = Some(certificate.clone());
                options.tls_key = Some(key.clone());
            },
            |_| {},
            None,
        )
    };
    let (first, second) = (house(), house());
    on_runtime(async {
        let front = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let url = format!("quic://{}", front.local_addr().unwrap());
        let to = Arc::new(Mutex::new(first.address));
        tokio::spawn(relay(front, Arc::clone(&to)));
        let options = ClientOptions::new(&url).unwrap().trust(Trust::File(certificate.clone()));
        let client = Client::connect(options).await.unwrap();
        client.ping().await.unwrap();
        *to.lock() = second.address;
        // The idle timeout is longer than the patience of this test: only a reset can end the old connection.
        assert!(client.ping().await.is_err());
        while client.ping().await.is_err() {}
        assert_eq!(second.metric("trifid_stream_quic_connections_total"), 1);
    });
}
