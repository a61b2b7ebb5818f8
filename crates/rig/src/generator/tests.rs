//! The generator against the floor, both in this process.

use super::*;
use crate::floor::Fixed;
use crate::floor::tests::{fixed, spawned};
use crate::request::{Expect, Template};
use crate::scanner::Fault;
use std::net::TcpListener;

fn load(address: SocketAddr, pace: Pace) -> Load<'static> {
    Load {
        name: "the floor",
        address,
        pids: &[],
        clients: 5,
        pace,
        warm_up: Duration::from_millis(20),
        window: Duration::from_millis(100),
        compare_bodies: true,
    }
}

fn requests(expect: &Fixed) -> Requests {
    let templates = [("GET", None), ("POST", Some("{\"x\":1}"))];
    let templates =
        templates.map(|(method, body)| Template::new(method, "h", "/x", body, Expect::status(200)));
    Requests::new(templates.to_vec()).expecting(expect)
}

fn driven(answers: &Fixed, expects: &Fixed) -> Result<Window, Error> {
    drive(&load(spawned(answers, None), Pace::Closed), &mut requests(expects))
}

#[test]
fn closed_load_counts_answers() {
    let body = "[1,2,3]".repeat(20_000);
    for answer in [fixed(200, "{}"), fixed(204, ""), fixed(200, &body)] {
        let window = driven(&answer, &answer).unwrap();
        assert!(window.latency.count() > 0 && window.rate() > 0.0 && window.offered.is_none());
        assert!(window.generator_cpu > Duration::ZERO);
    }
}

#[test]
fn paced_load_offers_its_rate_and_no_more() {
    let answer = fixed(200, "{}");
    let mut requests = requests(&answer);
    let start = Instant::now();
    let window = drive(&load(spawned(&answer, None), Pace::Paced(200.0)), &mut requests).unwrap();
    assert_eq!(window.offered, Some(200.0));
    // However slow the machine is, no more requests leave than were due by now.
    let due = (start.elapsed().as_secs_f64() * 200.0).ceil();
    assert!((1.0..=due).contains(&(requests.serial() as f64)), "{} of {due}", requests.serial());
}

#[test]
fn a_wrong_answer_ends_the_measurement() {
    let answer = fixed(200, "{\"a\":1}");
    let check = |expects: Fixed, what: &str| {
        let error = driven(&answer, &expects).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    };
    check(fixed(201, "{\"a\":1}"), "status 200 instead of 201");
    check(fixed(200, "{\"a\":12}"), "a body of 7 bytes instead of 8");
    check(fixed(200, "{\"a\":2}"), "another body than before: {\"a\":1}");
}

/// A server that sends these bytes to the first connection that asks, then closes it.
fn blunt(bytes: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut sockets: Vec<_> = (0..5).map(|_| listener.accept().unwrap().0).collect();
        let _ = sockets[0].read(&mut [0; 1024]);
        let _ = sockets[0].write_all(bytes);
    });
    address
}

#[test]
fn a_server_that_breaks_the_protocol_ends_the_measurement() {
    let driven = |bytes| {
        let expect = fixed(200, "x");
        drive(&load(blunt(bytes), Pace::Closed), &mut requests(&expect)).unwrap_err()
    };
    assert!(matches!(driven(b""), Error::Connection { .. }));
    assert!(matches!(driven(b"SSH-2.0\r\n\r\n"), Error::Response { fault: Fault::StatusLine, .. }));
    let surplus = driven(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy");
    assert!(surplus.to_string().contains("bytes after the end"), "{surplus}");
}

#[test]
fn clients_are_bounded() {
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let none = Load { clients: 0, ..load(address, Pace::Closed) };
    assert!(matches!(drive(&none, &mut requests(&fixed(200, ""))), Err(Error::Options(_))));
}
