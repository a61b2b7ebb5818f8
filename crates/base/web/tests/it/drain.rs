//! The way out: health first, then the listener, then what is in flight.

use std::time::Duration;

use trifid_base_runtime::units::Span;

use super::support::{PATIENCE, start, start_with};

#[test]
fn health_turns_first_and_requests_in_flight_finish() {
    // An hour of delay: what happens before its end happens while the listener is open.
    let running = start_with(|options| options.drain_delay = Span(Duration::from_secs(3600)));
    let mut waiting = running.connect();
    waiting.send("GET /door/wait HTTP/1.1\r\nhost: t\r\n\r\n");
    running.arrival();
    assert_eq!(running.get("/q/ready").status, 200);
    running.stop();
    let mut probe = running.connect();
    while probe.get("/q/health").status == 200 {
        std::thread::yield_now();
    }
    let health = probe.get("/q/health");
    assert_eq!((health.status, &health.json()["status"]), (503, &"draining".into()));
    assert_eq!(probe.get("/q/ready").status, 503);
    assert_eq!(running.get("/door/echo").status, 200, "new connections are still served");
    running.release(1);
    let answer = waiting.answer();
    assert_eq!((answer.status, answer.header("connection")), (200, None));
    // The process would wait for an hour now; the test does not.
    std::mem::forget(running);
}

#[test]
fn the_last_answer_says_close_and_idle_connections_end() {
    let running = start();
    let mut idle = running.connect();
    assert_eq!(idle.get("/door/echo").header("connection"), None);
    let mut waiting = running.connect();
    waiting.send("GET /door/wait HTTP/1.1\r\nhost: t\r\n\r\n");
    running.arrival();
    running.stop();
    assert!(idle.rest().is_empty(), "an idle connection is closed");
    running.release(1);
    let answer = waiting.answer();
    assert_eq!((answer.text(), answer.header("connection")), ("waited", Some("close")));
    assert!(waiting.rest().is_empty());
    let address = running.address;
    running.join();
    assert!(std::net::TcpStream::connect_timeout(&address, PATIENCE).is_err(), "nobody listens");
}

#[test]
fn connections_that_wait_to_be_accepted_are_answered() {
    let running = start();
    let mut blocking = running.connect();
    blocking.send("GET /door/block HTTP/1.1\r\nhost: t\r\n\r\n");
    running.arrival();
    // The core is busy: these connections stay in the accept queue, and the shutdown comes in the meantime.
    let mut queued: Vec<_> = (0..5).map(|_| running.connect()).collect();
    for client in &mut queued {
        client.send("GET /door/echo HTTP/1.1\r\nhost: t\r\n\r\n");
    }
    running.stop();
    running.release(1);
    assert_eq!(blocking.answer().status, 200);
    for client in &mut queued {
        assert_eq!(client.answer().status, 200);
        assert!(client.rest().is_empty(), "and closed, not reset");
    }
    running.join();
}

#[test]
fn a_drain_is_bounded() {
    let running = start_with(|options| options.drain_timeout = Span(Duration::from_millis(50)));
    let mut stuck = running.connect();
    stuck.send("GET /door/never HTTP/1.1\r\nhost: t\r\n\r\n");
    let mut fresh = running.connect();
    assert_eq!(fresh.get("/door/echo").status, 200);
    running.stop();
    running.join();
    assert!(stuck.rest().is_empty());
}
