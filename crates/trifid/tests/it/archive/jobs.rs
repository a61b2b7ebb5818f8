//! Jobs of the real binary across restarts and crashes.

use rustix::process::Signal;

use super::post;
use crate::harness::{Serving, Trifid};

const SERVE: &[&str] = &["serve", "--listen", "127.0.0.1:0", "--set", "doors=archive"];

/// Makes a job; its path.
fn make(serving: &Serving, form: &[(&str, &str)]) -> String {
    let made = post(serving, "/tap/async", form);
    assert_eq!(made.status, 303, "{}", made.body);
    let location = made.location.unwrap();
    location[location.find("/tap/async/").unwrap()..].to_owned()
}

fn waited(serving: &Serving, job: &str) -> String {
    let mut document = serving.get(&format!("{job}?WAIT=30")).body;
    while ["QUEUED", "EXECUTING"].iter().any(|phase| document.contains(&format!(">{phase}<"))) {
        document = serving.get(&format!("{job}?WAIT=30")).body;
    }
    serving.get(&format!("{job}/phase")).body
}

#[test]
fn a_job_survives_a_crash_with_its_result() {
    let trifid = Trifid::new();
    let serving = trifid.serve(SERVE);
    let query = "SELECT table_name FROM TAP_SCHEMA.tables WHERE table_name = 'TAP_SCHEMA.keys'";
    let form = [("LANG", "ADQL"), ("FORMAT", "csv"), ("QUERY", query)];
    let pending = make(&serving, &form);
    let done = make(&serving, &[&form[..], &[("PHASE", "RUN")]].concat());
    assert_eq!(waited(&serving, &done), "COMPLETED");
    serving.signal(Signal::KILL);
    drop(serving);
    let serving = trifid.serve(SERVE);
    assert_eq!(serving.get(&format!("{pending}/phase")).body, "PENDING");
    assert_eq!(serving.get(&format!("{done}/phase")).body, "COMPLETED");
    let result = serving.get(&format!("{done}/results/result")).body;
    assert!(result.contains("TAP_SCHEMA.keys"), "{result}");
    assert_eq!(post(&serving, &format!("{pending}/phase"), &[("PHASE", "RUN")]).status, 303);
    assert_eq!(waited(&serving, &pending), "COMPLETED");
    assert_eq!(serving.request("DELETE", &pending, "", "").status, 303);
    assert_eq!(serving.get(&pending).status, 404);
    serving.stop_cleanly();
}

#[test]
fn a_job_that_fails_says_why() {
    let trifid = Trifid::new();
    let serving = trifid.serve(SERVE);
    let job = make(&serving, &[("LANG", "ADQL"), ("QUERY", "SELECT x FROM y"), ("PHASE", "RUN")]);
    assert_eq!(waited(&serving, &job), "ERROR");
    let error = serving.get(&format!("{job}/error"));
    assert_eq!(error.status, 200);
    assert!(
        error.body.contains("there is no table y") && error.body.contains("QUERY_STATUS"),
        "{}",
        error.body
    );
    assert!(serving.get(&job).body.contains("there is no table y"));
    serving.stop_cleanly();
}
