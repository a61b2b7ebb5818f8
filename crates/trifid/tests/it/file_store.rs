//! The file store behind the real binary: what was acknowledged is there again.

use rustix::process::Signal;

use crate::harness::{Serving, Trifid};

const SERVE: [&str; 5] = ["serve", "--listen", "127.0.0.1:0", "--set", "context.store=file"];
const ENTITIES: &str = "/ngsi-ld/v1/entities";
const JSON: &str = "Content-Type: application/json\r\n";

fn create(serving: &Serving, id: &str) {
    let body = format!(r#"{{"id":"{id}","type":"Kite","altitude":{{"type":"Property","value":40}}}}"#);
    let answer = serving.request("POST", ENTITIES, JSON, &body);
    assert_eq!(answer.status, 201, "{}", answer.body);
}

fn status(serving: &Serving, id: &str) -> u16 {
    serving.get(&format!("{ENTITIES}/{id}")).status
}

#[test]
fn entities_outlive_a_stop() {
    let trifid = Trifid::new();
    let first = trifid.serve(&SERVE);
    create(&first, "urn:kite:1");
    first.stop_cleanly();
    let second = trifid.serve(&SERVE);
    assert_eq!(status(&second, "urn:kite:1"), 200);
    assert_eq!(status(&second, "urn:kite:2"), 404);
    second.stop_cleanly();
}

#[test]
fn an_acknowledged_entity_outlives_a_kill() {
    let trifid = Trifid::new();
    let ids: Vec<String> = (0..20).map(|number| format!("urn:kite:{number}")).collect();
    let first = trifid.serve(&SERVE);
    for id in &ids {
        create(&first, id);
    }
    first.stop(Signal::KILL);
    let second = trifid.serve(&SERVE);
    for id in &ids {
        assert_eq!(status(&second, id), 200, "{id}");
    }
    second.stop_cleanly();
}

#[test]
fn a_data_directory_has_one_owner() {
    let trifid = Trifid::new();
    let owner = trifid.serve(&SERVE);
    let said = trifid.run(&SERVE);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("cannot open the store in trifid-data"), "{}", said.err);
    owner.stop_cleanly();
}

#[test]
fn a_backup_is_taken_while_serving_and_put_back_elsewhere() {
    let trifid = Trifid::new();
    let serving = trifid.serve(&SERVE);
    create(&serving, "urn:kite:1");
    let exported = trifid.run(&["context", "export", "backup"]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    let again = trifid.run(&["context", "export", "backup"]);
    assert!(again.err.contains("the file exists"), "{again:?}");
    create(&serving, "urn:kite:2");
    serving.stop_cleanly();

    let elsewhere = ["--set", "data_dir=elsewhere"];
    let imported = trifid.run(&[&["context", "import", "backup"][..], &elsewhere].concat());
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let serving = trifid.serve(&[&SERVE[..], &elsewhere].concat());
    assert_eq!(status(&serving, "urn:kite:1"), 200);
    assert_eq!(status(&serving, "urn:kite:2"), 404, "it came after the backup");
    serving.stop_cleanly();

    let twice = trifid.run(&[&["context", "import", "backup"][..], &elsewhere].concat());
    assert_eq!(twice.code, Some(1), "{twice:?}");
}

#[test]
fn an_export_of_nothing_is_refused() {
    let said = Trifid::new().run(&["context", "export", "backup"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("there is no data directory trifid-data"), "{}", said.err);
}

#[test]
fn hosted_contexts_outlive_a_stop() {
    let trifid = Trifid::new();
    let first = trifid.serve(&SERVE);
    let body = r#"{"@context":{"kite":"https://kites.example/kite"}}"#;
    let answer =
        first.request("POST", "/ngsi-ld/v1/jsonldContexts", "Content-Type: application/ld+json\r\n", body);
    assert_eq!(answer.status, 201, "{}", answer.body);
    first.stop_cleanly();
    let second = trifid.serve(&SERVE);
    let listed = second.get("/ngsi-ld/v1/jsonldContexts?kind=Hosted");
    assert_eq!((listed.status, listed.body.matches("jsonldContexts/").count()), (200, 1), "{}", listed.body);
    second.stop_cleanly();
}
