//! Health, readiness, metrics.

use trifid_base_web::Readiness;

use super::support::start;

#[test]
fn health_tells_status_sections_limits_and_counters() {
    let running = start();
    running.get("/door/echo");
    running.get("/door/none");
    let answer = running.get("/q/health");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let health = answer.json();
    assert_eq!(health["status"], "up");
    assert_eq!(health["doors"]["door"]["store"]["entities"], 7);
    assert_eq!(health["limits"]["body_bytes"], 5 << 20);
    assert_eq!(health["counters"]["answers"]["2xx"], 1);
    assert_eq!(health["counters"]["answers"]["4xx"], 1);
    assert_eq!(health["counters"]["connections"]["accepted"], 3);
}

#[test]
fn readiness_follows_the_parts() {
    let running = start();
    assert_eq!(running.get("/q/ready").status, 200);
    *running.part.0.lock().unwrap() = Readiness::Starting("replayed 3 of 9 segments".into());
    let answer = running.get("/q/ready");
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["waiting"]["door"], "replayed 3 of 9 segments");
    assert_eq!(running.get("/q/health").status, 200, "starting is no failure");
    *running.part.0.lock().unwrap() = Readiness::Failed("the disk is full".into());
    assert_eq!((running.get("/q/health").status, running.get("/q/ready").status), (503, 503));
}

#[test]
fn metrics_are_prometheus_text() {
    let running = start();
    running.get("/door/echo");
    let answer = running.get("/q/metrics");
    assert!(answer.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    let text = answer.text();
    for line in [
        "trifid_http_answers_total{class=\"2xx\"} 1",
        "trifid_door_entities 7",
        "# TYPE trifid_http_sampled_duration_seconds histogram",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}

#[test]
fn other_methods_and_paths_are_refused() {
    let running = start();
    let mut client = running.connect();
    client.send("POST /q/health HTTP/1.1\r\nhost: t\r\ncontent-length: 0\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")));
    assert_eq!(client.get("/q/secrets").status, 404);
    let nowhere = client.get("/");
    assert_eq!((nowhere.status, nowhere.header("content-type")), (404, Some("application/problem+json")));
    assert_eq!(nowhere.json()["status"], 404);
}
