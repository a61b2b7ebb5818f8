//! Every input is bounded, and whoever exceeds a bound is told.

use trifid_base_runtime::units::{Size, Span};

use super::support::{FILES_BYTES_MAX, start, start_with};

fn millis(millis: u64) -> Span {
    Span(std::time::Duration::from_millis(millis))
}

#[test]
fn an_announced_body_over_the_limit_is_refused_before_it_is_read() {
    let running = start_with(|options| options.body_limit = Size(1000));
    let mut client = running.connect();
    client.send("POST /door/body HTTP/1.1\r\nhost: t\r\ncontent-length: 1001\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status, answer.text()), (413, "door says: Body too large"));
    let mut client = running.connect();
    client
        .send("POST /door/body HTTP/1.1\r\nhost: t\r\nexpect: 100-continue\r\ncontent-length: 1001\r\n\r\n");
    assert_eq!(client.answer().status, 413, "no 100 (Continue) for what will not be read");
    let mut client = running.connect();
    client.send(format!(
        "POST /door/body HTTP/1.1\r\nhost: t\r\ncontent-length: 1000\r\n\r\n{}",
        "x".repeat(1000)
    ));
    assert_eq!(client.answer().status, 200);
}

#[test]
fn a_door_may_take_larger_bodies_where_it_takes_files() {
    let running = start_with(|options| {
        options.body_limit = Size(1000);
        options.body_memory = Size(1000);
    });
    let most = usize::try_from(FILES_BYTES_MAX).unwrap();
    for (length, status) in [(most, 200), (most + 1, 413)] {
        let mut client = running.connect();
        client.send(format!("POST /door/files HTTP/1.1\r\nhost: t\r\ncontent-length: {length}\r\n\r\n"));
        client.send(vec![b'x'; length]);
        assert_eq!(client.answer().status, status);
    }
}

#[test]
fn a_client_that_sends_ten_megabytes_first_still_reads_its_refusal() {
    let running = start();
    let mut client = running.connect();
    client.send("POST /door/body HTTP/1.1\r\nhost: t\r\ncontent-length: 10000000\r\n\r\n");
    client.send(vec![b'x'; 10_000_000]);
    assert_eq!(client.answer().status, 413);
}

#[test]
fn a_chunked_body_is_refused_when_it_passes_the_limit() {
    let running = start_with(|options| options.body_limit = Size(100_000));
    let mut client = running.connect();
    client.send("POST /door/body HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n");
    for _ in 0..20 {
        client.send(format!("2710\r\n{}\r\n", "x".repeat(10_000)));
    }
    assert_eq!(client.answer().status, 413);
}

#[test]
fn a_body_that_breaks_off_is_not_taken_for_whole() {
    let running = start();
    let mut client = running.connect();
    client.send("POST /door/body HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n");
    assert_eq!(client.answer().status, 400);
}

#[test]
fn a_body_that_stops_arriving_is_answered_408() {
    let running = start_with(|options| options.body_timeout = millis(50));
    let mut client = running.connect();
    client.send("POST /door/body HTTP/1.1\r\nhost: t\r\ncontent-length: 10\r\n\r\nabc");
    let answer = client.answer();
    assert_eq!((answer.status, answer.text()), (408, "door says: Body not received in time"));
    client.close_write();
    assert!(client.rest().is_empty(), "the connection closes");
}

#[test]
fn a_head_that_does_not_arrive_is_answered_408() {
    let running = start_with(|options| options.head_timeout = millis(50));
    let mut client = running.connect();
    client.send("GET /door/echo HTTP/1.1\r\nhost: t\r\n");
    assert!(client.rest().starts_with(b"HTTP/1.1 408"));
    let mut second = running.connect();
    second.get("/door/echo");
    second.send("GET /door/echo HTTP/1.1\r\n");
    assert!(second.rest().starts_with(b"HTTP/1.1 408"), "later heads have the same limit");
    let mut silent = running.connect();
    assert!(silent.rest().is_empty(), "who says nothing is not answered");
}

#[test]
fn a_head_that_drips_gains_no_time() {
    let running = start_with(|options| options.head_timeout = millis(100));
    let mut client = running.connect();
    client.send("GET /door/echo HTTP/1.1\r\n");
    // Each byte arrives well within the limit; the whole never ends. The server ends it.
    let mut byte = 0u8;
    while std::io::Write::write_all(&mut client.stream, b"x").is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(5));
        byte = byte.wrapping_add(1);
        if matches!(client.stream.peek(&mut [0]), Ok(0)) || has_answer(&client.stream) {
            break;
        }
    }
    assert!(client.rest().starts_with(b"HTTP/1.1 408"));
}

fn has_answer(stream: &std::net::TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let found = stream.peek(&mut [0]).is_ok();
    stream.set_nonblocking(false).unwrap();
    found
}

#[test]
fn header_bombs_are_answered_431() {
    let running = start();
    let many: String = (0..101).map(|n| format!("h{n}: x\r\n")).collect();
    let long = format!("h: {}\r\n", "x".repeat(40_000));
    let endless = format!("h: {}", "x".repeat(1_000_000));
    for bomb in [many, long, endless] {
        let mut client = running.connect();
        client.send(format!("GET /door/echo HTTP/1.1\r\nhost: t\r\n{bomb}\r\n"));
        let answer = client.answer();
        assert_eq!(answer.status, 431, "{}", bomb.len());
    }
    // Counted when the connection is over, which is a moment after its client went.
    while running.get("/q/health").json()["counters"]["connections"]["large_head"] != 3 {
        std::thread::yield_now();
    }
    let mut client = running.connect();
    client.send(format!("GET /{} HTTP/1.1\r\nhost: t\r\n\r\n", "x".repeat(30_000)));
    assert_eq!(client.answer().status, 404, "a head within the limit is read");
}

#[test]
fn the_number_of_headers_can_be_set() {
    let running = start_with(|options| options.headers = 5.try_into().unwrap());
    let mut client = running.connect();
    assert_eq!(client.get("/door/echo").status, 200);
    client.send(format!("GET /door/echo HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(6)));
    assert_eq!(client.answer().status, 431);
}

#[test]
fn a_connection_over_the_limit_is_told_to_come_back() {
    let running = start_with(|options| options.connections = 2.try_into().unwrap());
    let (mut first, mut second) = (running.connect(), running.connect());
    assert_eq!((first.get("/door/echo").status, second.get("/door/echo").status), (200, 200));
    let mut third = running.connect();
    third.send("GET /door/echo HTTP/1.1\r\nhost: t\r\n\r\n");
    let answer = third.answer();
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    drop(first);
    // The server learns of the close by itself; until then it goes on refusing.
    while running.get("/door/echo").status != 200 {
        std::thread::yield_now();
    }
}

#[test]
fn a_door_that_does_not_answer_is_given_up() {
    let running = start_with(|options| options.request_timeout = millis(50));
    let mut client = running.connect();
    let answer = client.get("/door/never");
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    assert_eq!(client.get("/door/echo").status, 200, "the connection goes on");
}

#[test]
fn an_idle_connection_is_closed() {
    let running = start_with(|options| options.idle_timeout = millis(50));
    let mut client = running.connect();
    assert_eq!(client.get("/door/echo").status, 200);
    assert!(client.rest().is_empty());
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let running = start_with(|options| options.write_timeout = millis(50));
    let mut client = running.connect();
    client.send("GET /door/big HTTP/1.1\r\nhost: t\r\n\r\n");
    let cut = || running.get("/q/health").json()["counters"]["connections"]["cut"].as_u64();
    while cut() != Some(1) {
        std::thread::yield_now();
    }
    let mut got = Vec::new();
    let read = std::io::Read::read_to_end(&mut client.stream, &mut got);
    assert!(read.is_err() || got.len() < 32 << 20, "the answer is not whole");
}

#[test]
fn bodies_in_flight_share_their_memory() {
    let running = start_with(|options| {
        options.body_limit = Size(200_000);
        options.body_memory = Size(300_000);
    });
    let head = "POST /door/wait HTTP/1.1\r\nhost: t\r\ncontent-length: 200000\r\n\r\n";
    let mut first = running.connect();
    first.send(head);
    first.send(vec![b'x'; 200_000]);
    running.arrival();
    let mut second = running.connect();
    second.send(head);
    second.send(vec![b'x'; 200_000]);
    let refused = second.answer();
    assert_eq!((refused.status, refused.text()), (503, "door says: Too many bodies at once"));
    running.release(1);
    assert_eq!(first.answer().status, 200);
    let mut third = running.connect();
    third.send(head);
    third.send(vec![b'x'; 200_000]);
    running.arrival();
    running.release(1);
    assert_eq!(third.answer().status, 200, "what the first held is free again");
}
