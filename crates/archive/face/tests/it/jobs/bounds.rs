//! What there is too much of.

use http::Method;

use super::{ENDLESS, Limits, Office};
use crate::harness::encoded;

#[tokio::test]
async fn more_jobs_than_one_may_have_are_refused() {
    let office = Office::with(Limits { per_owner: 2, total: 3, ..Limits::default() }, |_| ());
    let first = office.made("").await;
    office.made("").await;
    let refused = office.post("/async", "").await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, "1"));
    assert_eq!(refused.statuses(), ["ERROR"]);
    let other = office.send(Some("ada"), Method::POST, "/async", &[], "").await;
    assert_eq!(other.status, 303, "others have their own");
    assert_eq!(office.send(Some("bob"), Method::POST, "/async", &[], "").await.status, 503);
    office.delete(&first).await;
    office.made("").await;
}

#[tokio::test]
async fn more_jobs_than_can_wait_are_refused() {
    let office = Office::with(Limits { running: 1, queued: 1, ..Limits::default() }, |_| ());
    let first = office.run(ENDLESS, "").await;
    office.running(&first).await;
    office.run(ENDLESS, "").await;
    let form = format!("PHASE=RUN&QUERY={}", encoded(ENDLESS));
    assert_eq!(office.post("/async", &form).await.status, 503);
    assert_eq!(office.jobs.load(), (1, 1, 2), "nothing stays of what was refused");
    let pending = office.made("").await;
    assert_eq!(office.post(&format!("{pending}/phase"), "PHASE=RUN").await.status, 503);
    assert_eq!(office.phase(&pending).await, "PENDING");
}

#[tokio::test]
async fn parameters_do_not_pile_up() {
    let office = Office::new();
    let path = office.made("").await;
    let uploads = "UPLOAD=a,param:b&".repeat(200);
    assert_eq!(office.post(&path, &uploads).await.status, 303);
    let refused = office.post(&path, &uploads).await;
    assert_eq!((refused.status, refused.statuses()), (400, vec!["ERROR".to_owned()]));
    let path = office.made("").await;
    let large = "x".repeat(5 << 20);
    assert_eq!(office.post(&path, &format!("UPLOAD={large}")).await.status, 303);
    assert_eq!(office.post(&path, &format!("UPLOAD={large}")).await.status, 413);
    let part = format!(
        "--b\r\nContent-Disposition: form-data; name=\"{}\"; filename=\"f\"\r\n\r\nx\r\n--b--",
        "n".repeat(101)
    );
    let media = [("content-type", "multipart/form-data; boundary=b")];
    assert_eq!(office.send(None, Method::POST, &path, &media, part).await.status, 400);
}

#[tokio::test]
async fn a_face_without_jobs_has_no_such_resource() {
    let door = crate::harness::Door::new();
    for path in ["/async", "/async/7f"] {
        let answer = door.get(path).await;
        assert_eq!((answer.status, answer.statuses()), (404, vec!["ERROR".to_owned()]), "{path}");
    }
}

/// Running a query is reading.
#[test]
fn who_may_read_may_have_jobs() {
    use trifid_base_web::auth::Role;
    use trifid_base_web::{Access, Face as _};
    let office = Office::new();
    for (method, path) in [
        ("GET", "/tap/async"),
        ("POST", "/tap/async"),
        ("DELETE", "/tap/async/7f"),
        ("POST", "/tap/async/7f/phase"),
    ] {
        let request = http::Request::builder().method(method).uri(path).body(()).unwrap();
        let access = office.door.face.access(&request.into_parts().0);
        assert_eq!(access, Access::Needs(Role::Read), "{method} {path}");
    }
}
