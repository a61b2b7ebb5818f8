//! Requests that nobody should send.

use http::Method;

use super::Office;

#[tokio::test]
async fn values_that_make_no_sense_are_named() {
    let office = Office::new();
    let path = office.made("").await;
    for (path, word) in [
        ("/async?PHASE=SLEEPING".into(), "SLEEPING"),
        ("/async?AFTER=yesterday".into(), "AFTER"),
        ("/async?AFTER=2026-13-01T00:00:00Z".into(), "AFTER"),
        ("/async?LAST=0".into(), "LAST"),
        ("/async?LAST=-1".into(), "LAST"),
        ("/async?LAST=ten".into(), "LAST"),
        (format!("{path}?WAIT=abc"), "WAIT"),
        (format!("{path}?WAIT=-"), "WAIT"),
        (format!("{path}?WAIT=1.5"), "WAIT"),
        (format!("{path}?WAIT=1&PHASE=SLEEPING"), "SLEEPING"),
    ] {
        let answer = office.get(&path).await;
        assert_eq!((answer.status, answer.statuses()), (400, vec!["ERROR".to_owned()]), "{path}");
        assert!(answer.text().contains(word), "{path}: {}", answer.text());
    }
    for (resource, form, word) in [
        ("/phase", "PHASE=WALK", "WALK"),
        ("/phase", "", "PHASE"),
        ("/phase", "PHASE=run", "RUN or ABORT"),
        ("/destruction", "", "DESTRUCTION"),
        ("/destruction", "DESTRUCTION=soon", "soon"),
        ("/destruction", "DESTRUCTION=99999-01-01T00:00:00Z", "DESTRUCTION"),
        ("/executionduration", "EXECUTIONDURATION=-1", "EXECUTIONDURATION"),
        ("/executionduration", "EXECUTIONDURATION=1e9", "EXECUTIONDURATION"),
        ("/executionduration", "QUERY=x", "EXECUTIONDURATION"),
        ("", "ACTION=EXPLODE", "EXPLODE"),
    ] {
        let answer = office.post(&format!("{path}{resource}"), form).await;
        assert_eq!((answer.status, answer.statuses()), (400, vec!["ERROR".to_owned()]), "{resource} {form}");
        assert!(answer.text().contains(word), "{resource} {form}: {}", answer.text());
    }
    for form in
        ["PHASE=ABORT", "PHASE=HOP", "ACTION=DELETE", "DESTRUCTION=x", "EXECUTIONDURATION=x", "QUERY=%ff"]
    {
        assert_eq!(office.post("/async", form).await.status, 400, "{form}");
    }
    let json = [("content-type", "application/json")];
    assert_eq!(office.send(None, Method::POST, "/async", &json, "{}").await.status, 415);
    assert_eq!(office.jobs.load(), (0, 0, 1), "nothing was made");
    assert_eq!(office.phase(&path).await, "PENDING");
}

#[tokio::test]
async fn names_that_are_none_are_not_found() {
    let office = Office::new();
    let path = office.made("QUERY=x").await;
    let long = "7".repeat(5000);
    for id in [&long, "..", "%2e%2e", "%00", "%", "a%2Fb", "<x>", &path["/async/".len()..].to_uppercase()] {
        if id.contains(['<', '>']) {
            continue;
        }
        for below in ["", "/phase", "/results/result", "/parameters/QUERY", "/error"] {
            let answer = office.get(&format!("/async/{id}{below}")).await;
            assert_eq!((answer.status, answer.statuses()), (404, vec!["ERROR".to_owned()]), "{id} {below}");
        }
    }
    for below in ["/nothing", "/parameters/MAXREC", "/parameters/%ff", "/phase/x", "//phase"] {
        assert_eq!(office.get(&format!("{path}{below}")).await.status, 404, "{below}");
    }
    for (method, below, allow) in [
        (Method::DELETE, "/phase", "GET, POST, HEAD, OPTIONS"),
        (Method::POST, "/quote", "GET, HEAD, OPTIONS"),
        (Method::PUT, "", "GET, POST, DELETE, HEAD, OPTIONS"),
        (Method::DELETE, "/results/result", "GET, HEAD, OPTIONS"),
    ] {
        let answer = office.send(None, method.clone(), &format!("{path}{below}"), &[], "").await;
        assert_eq!((answer.status, answer.header("allow")), (405, allow), "{method} {below}");
    }
}

#[tokio::test]
async fn nothing_gets_into_a_document_unescaped() {
    let office = Office::new();
    let evil = "%3C/uws:job%3E%22%27%26%00%1F";
    let made = office.post("/async", &format!("{evil}={evil}&RUNID={evil}&UPLOAD=t,param:{evil}")).await;
    let path = made.header("location").strip_prefix(super::ROOT).unwrap().to_owned();
    let job = office.job(&path).await;
    assert!(job.all("parameter").iter().any(|one| one.text.starts_with("</uws:job>\"'&")), "{job:?}");
    assert!(job.texts("runId")[0].starts_with("</uws:job>"));
    let list = office.get("/async").await.xml();
    assert!(list.texts("runId")[0].starts_with("</uws:job>"));
    office.get(&format!("{path}/parameters")).await.xml();
    let owner = office.send(Some("<ada&co>"), Method::POST, "/async", &[], "").await;
    let path = owner.header("location").strip_prefix(super::ROOT).unwrap().to_owned();
    let job = office.send(Some("<ada&co>"), Method::GET, &path, &[], "").await.xml();
    assert_eq!(job.texts("ownerId"), ["<ada&co>"]);
}

#[tokio::test]
async fn a_strange_host_gets_no_links() {
    let office = Office::new();
    let headers = [("host", "second.example")];
    // The first of two is taken by nobody: the shell refuses them, the face alone sees the first.
    assert_eq!(office.send(None, Method::POST, "/async", &headers, "").await.status, 303);
    let mut request = trifid_base_web::Request::new(Method::POST, "/tap/async".parse().unwrap());
    request.headers.insert("host", http::HeaderValue::from_static("evil.example/<x>"));
    let response = trifid_base_web::Face::call(&*office.door.face, request).await;
    assert_eq!(response.status(), 400);
    assert_eq!(office.jobs.load().2, 1, "nothing is made that cannot be told of");
}
