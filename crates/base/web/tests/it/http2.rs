//! HTTP/2 with prior knowledge on the same cleartext port (RFC 9113 3.3).

use bytes::Bytes;
use http::{Request, Version};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use trifid_base_runtime::units::Size;

use super::support::{Running, start, start_with};

async fn connect(running: &Running) -> http2::SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(running.address).await.unwrap();
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn request(method: &str, path: &str, body: Vec<u8>) -> Request<Full<Bytes>> {
    let uri = format!("http://t{path}");
    Request::builder().method(method).uri(uri).version(Version::HTTP_2).body(Full::from(body)).unwrap()
}

async fn ask(sender: &mut http2::SendRequest<Full<Bytes>>, request: Request<Full<Bytes>>) -> (u16, Bytes) {
    let response = sender.send_request(request).await.unwrap();
    let status = response.status().as_u16();
    (status, response.into_body().collect().await.unwrap().to_bytes())
}

#[tokio::test]
async fn many_streams_share_a_connection() {
    let running = start();
    let mut sender = connect(&running).await;
    let waiting = tokio::spawn(sender.send_request(request("GET", "/door/wait", Vec::new())));
    running.arrival_async().await;
    for n in 0..20 {
        let (status, body) = ask(&mut sender, request("GET", &format!("/door/echo?{n}"), Vec::new())).await;
        assert_eq!((status, &body[..]), (200, format!("GET /door/echo?{n} None 0 admin").as_bytes()));
    }
    running.release(1);
    assert_eq!(waiting.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn bodies_have_the_same_limits() {
    let running = start_with(|options| options.body_limit = Size(100_000));
    let mut sender = connect(&running).await;
    let body = vec![b'x'; 100_000];
    let (status, back) = ask(&mut sender, request("POST", "/door/body", body.clone())).await;
    assert_eq!((status, back.len()), (200, body.len()));
    let (status, text) = ask(&mut sender, request("POST", "/door/body", vec![b'x'; 100_001])).await;
    assert_eq!((status, &text[..]), (413, &b"door says: Body too large"[..]));
    assert_eq!(
        ask(&mut sender, request("GET", "/door/echo", Vec::new())).await.0,
        200,
        "the connection goes on"
    );
}

#[tokio::test]
async fn a_body_of_undeclared_length_reads_as_chunked() {
    let running = start();
    let stream = TcpStream::connect(running.address).await.unwrap();
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let (pieces, body) = trifid_base_web::Body::channel(2);
    pieces.send(Bytes::from("hello")).await.unwrap();
    pieces.finish().await.unwrap();
    let request = Request::post("http://t/door/echo").version(Version::HTTP_2).body(body).unwrap();
    let answer = sender.send_request(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    assert_eq!(&answer[..], b"POST /door/echo Chunked 5 admin");
}

#[tokio::test]
async fn a_drain_says_goaway_and_finishes_what_is_in_flight() {
    let running = start();
    let mut sender = connect(&running).await;
    let waiting = tokio::spawn(sender.send_request(request("GET", "/door/wait", Vec::new())));
    running.arrival_async().await;
    running.stop();
    while TcpStream::connect(running.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    running.release(1);
    assert_eq!(waiting.await.unwrap().unwrap().status(), 200);
    while !sender.is_closed() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    running.join();
}

#[tokio::test]
async fn a_header_bomb_is_answered_431() {
    let running = start();
    let mut sender = connect(&running).await;
    let mut bomb = request("GET", "/door/echo", Vec::new());
    bomb.headers_mut().insert("h", "x".repeat(40_000).parse().unwrap());
    let outcome = sender.send_request(bomb).await;
    // Told at once, or the connection refuses what it was told not to send.
    assert!(outcome.map_or(true, |response| response.status() == 431));
    let mut fresh = connect(&running).await;
    assert_eq!(ask(&mut fresh, request("GET", "/door/echo", Vec::new())).await.0, 200);
}

#[tokio::test]
async fn a_panic_costs_one_stream() {
    let running = start();
    let mut sender = connect(&running).await;
    assert_eq!(ask(&mut sender, request("GET", "/door/panic", Vec::new())).await.0, 500);
    assert_eq!(ask(&mut sender, request("GET", "/door/echo", Vec::new())).await.0, 200);
}
