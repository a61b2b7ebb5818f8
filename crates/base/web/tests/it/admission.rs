//! A noisy neighbour, end to end: in numbers of requests, never in time.

use super::support::{Client, Running, start_with};

fn wait(running: &Running, tenant: &str) -> Client {
    let mut client = running.connect();
    client.send(format!("GET /door/wait?{tenant} HTTP/1.1\r\nhost: t\r\ntenant: {tenant}\r\n\r\n"));
    client
}

#[test]
fn a_tenant_that_floods_takes_nothing_from_the_others_share() {
    let running = start_with(|options| options.in_flight = 8.try_into().unwrap());
    let mut noisy: Vec<_> = (0..8).map(|_| wait(&running, "noisy")).collect();
    for _ in &noisy {
        assert_eq!(running.arrival(), "noisy");
    }
    // The core is full. What the noisy tenant sends now is refused at once, told when to come back.
    for _ in 0..20 {
        let refused = wait(&running, "noisy").answer();
        assert_eq!((refused.status, refused.text()), (503, "door says: Tenant over its share"));
        assert_eq!(refused.header("retry-after"), Some("1"));
    }
    // The quiet tenant has its half all the same, however often it asks.
    for _ in 0..10 {
        let mut quiet: Vec<_> = (0..4).map(|_| wait(&running, "quiet")).collect();
        for _ in &quiet {
            assert_eq!(running.arrival(), "quiet");
        }
        assert_eq!(wait(&running, "quiet").answer().status, 503, "and no more than its half");
        assert_eq!(wait(&running, "noisy").answer().status, 503);
        running.release(4 + 8);
        for client in quiet.iter_mut().chain(&mut noisy) {
            assert_eq!(client.answer().status, 200);
        }
        noisy = (0..8).map(|_| wait(&running, "noisy")).collect();
        for _ in &noisy {
            assert_eq!(running.arrival(), "noisy");
        }
    }
    let refused = running.get("/q/health").json()["counters"]["refusals"]["saturated"].as_u64();
    assert_eq!(refused, Some(20 + 10 * 2), "every refusal is counted");
}

#[test]
fn weights_set_the_shares() {
    let running = start_with(|options| {
        options.in_flight = 8.try_into().unwrap();
        options.tenant_weights = vec!["gold=3".into()];
    });
    let _noisy: Vec<_> = (0..8).map(|_| wait(&running, "noisy")).collect();
    for _ in 0..8 {
        running.arrival();
    }
    let _gold: Vec<_> = (0..6).map(|_| wait(&running, "gold")).collect();
    for _ in 0..6 {
        assert_eq!(running.arrival(), "gold");
    }
    assert_eq!(wait(&running, "gold").answer().status, 503);
}
