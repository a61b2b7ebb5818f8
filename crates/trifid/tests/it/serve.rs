//! `trifid serve`: start, answers of the operations endpoints, reload, drain.

use rustix::process::Signal;

use crate::harness::Trifid;

const FREE_PORT: [&str; 3] = ["serve", "--listen", "127.0.0.1:0"];

#[test]
fn it_serves_until_it_is_told_to_stop() {
    let serving = Trifid::new().serve(&FREE_PORT);
    assert_eq!(serving.get("/q/ready").status, 200);
    assert_eq!(serving.get("/q/health").status, 200);
    assert!(serving.get("/q/metrics").body.contains("# TYPE"));
    assert_eq!(serving.get("/nothing/here").status, 404);
    serving.stop_cleanly();
}

#[test]
fn an_interrupt_stops_it_too() {
    let (status, logged) = Trifid::new().serve(&FREE_PORT).stop(Signal::INT);
    assert_eq!(status.code(), Some(0), "{logged:#?}");
    assert!(logged.iter().any(|line| line.contains("SIGINT")), "{logged:#?}");
}

#[test]
fn a_second_process_on_the_port_is_refused() {
    let trifid = Trifid::new();
    let first = trifid.serve(&FREE_PORT);
    let said = trifid.run(&["serve", "--listen", &first.address.to_string(), "--set", "data_dir=other"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains(&format!("cannot listen on {}", first.address)), "{}", said.err);
    first.stop_cleanly();
}

#[test]
fn beyond_loopback_it_wants_tokens() {
    let said = Trifid::new().run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("auth.tokens_file"), "{}", said.err);
}

#[test]
fn a_door_that_is_not_there_is_refused() {
    let said = Trifid::new().run(&["serve", "--set", "doors=cellar", "--listen", "127.0.0.1:0"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("`doors` names `cellar`"), "{}", said.err);
}

#[test]
#[cfg(feature = "context")]
fn tokens_are_read_again_on_sighup() {
    let trifid = Trifid::new().variable("TRIFID_AUTH_TOKENS_FILE", "tokens");
    let keep = |token| {
        let line = trifid.run_with(&["token", "hash", "--role", "read"], token).out;
        std::fs::write(trifid.folder.path().join("tokens"), line).unwrap();
    };
    keep("another");
    let mut serving = trifid.serve(&FREE_PORT);
    let types = |serving: &crate::harness::Serving| {
        serving.request("GET", "/ngsi-ld/v1/types", "Authorization: Bearer open-sesame\r\n", "").status
    };
    assert_eq!(types(&serving), 401);
    keep("open-sesame");
    serving.signal(Signal::HUP);
    serving.logs("read tokens and certificates again");
    assert_ne!(types(&serving), 401);
    serving.stop_cleanly();
}
