//! `trifid demo`: what it prints works.

use crate::harness::{Serving, Trifid};

/// The targets of the requests that the demo prints.
fn targets(printed: &str, serving: &Serving) -> Vec<String> {
    let origin = format!("http://{}", serving.address);
    let quoted =
        printed.lines().filter(|line| line.starts_with("curl ")).filter_map(|line| line.split('\'').nth(1));
    quoted.map(|url| url.strip_prefix(&origin).unwrap().to_owned()).collect()
}

#[test]
fn every_request_that_it_prints_shows_something() {
    let mut serving = Trifid::new().serve(&["demo", "--port", "0"]);
    let printed = serving.printed_until("Ctrl-C");
    let targets = targets(&printed, &serving);
    assert_eq!(targets.len(), 5, "{printed}");
    for target in targets {
        let answer = serving.get(&target);
        assert_eq!(answer.status, 200, "{target}: {}", answer.body);
        let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert!(body.as_array().is_none_or(|items| !items.is_empty()), "{target} shows nothing");
        assert!(!body.to_string().contains("default-context"), "{target} shows long names: {body}");
    }
    serving.stop_cleanly();
}

#[test]
fn the_city_lives() {
    let mut serving = Trifid::new().serve(&["demo", "--port", "0"]);
    serving.printed_until("Ctrl-C");
    let tram = || serving.get("/ngsi-ld/v1/entities/urn:ngsi-ld:Vehicle:tram-01?pick=location").body;
    let first = tram();
    // Something happens every second; the loop ends with the first change that is seen.
    while tram() == first {
        std::thread::yield_now();
    }
    serving.stop_cleanly();
}
