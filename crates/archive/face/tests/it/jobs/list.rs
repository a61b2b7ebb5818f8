//! The list of jobs, and whose they are.

use std::time::Duration;

use http::Method;

use super::{Office, ROOT};
use crate::harness::Xml;

fn ids(list: &Xml) -> Vec<String> {
    list.all("jobref").iter().map(|job| format!("/async/{}", job.get("id"))).collect()
}

impl Office {
    async fn listed(&self, query: &str) -> Vec<String> {
        let answer = self.get(&format!("/async{query}")).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
        ids(&answer.xml())
    }
}

#[tokio::test]
async fn the_list_leads_to_the_jobs() {
    let office = Office::new();
    let empty = office.get("/async").await;
    assert_eq!((empty.status, empty.header("content-type")), (200, "text/xml"));
    let list = empty.xml();
    assert_eq!((list.0.len(), list.0[0].path.as_str(), list.0[0].get("version")), (1, "/jobs", "1.1"));
    let path = office.made("RUNID=a+%3Cb%3E").await;
    let list = office.get("/async").await.xml();
    let job = &list.all("jobref")[0];
    assert_eq!(job.get("xlink:href"), format!("{ROOT}{path}"));
    let names: Vec<&str> = list.0[2..].iter().map(|one| one.path.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["phase", "runId", "ownerId", "creationTime"], "the order of the schema");
    assert_eq!((list.texts("phase"), list.texts("runId")), (vec!["PENDING".into()], vec!["a <b>".into()]));
    assert_eq!(list.all("ownerId")[0].get("xsi:nil"), "true");
    assert_eq!(list.texts("creationTime"), ["2026-01-01T00:00:00Z"]);
}

#[tokio::test]
async fn filters_are_joined() {
    let office = Office::new();
    let mut made = Vec::new();
    for _ in 0..4 {
        made.push(office.made("QUERY=SELECT+1+AS+one").await);
        office.clock.advance(Duration::from_secs(10));
    }
    office.post(&format!("{}/phase", made[1]), "PHASE=RUN").await;
    office.ended(&made[1]).await;
    office.post(&format!("{}/phase", made[2]), "PHASE=ABORT").await;
    let [a, b, c, d] = [0, 1, 2, 3].map(|at: usize| made[at].clone());
    for (query, expected) in [
        ("", vec![&a, &b, &c, &d]),
        ("?PHASE=PENDING", vec![&a, &d]),
        ("?phase=COMPLETED&PHASE=ABORTED", vec![&b, &c]),
        ("?PHASE=ARCHIVED", vec![]),
        ("?PHASE=UNKNOWN", vec![]),
        ("?AFTER=2026-01-01T00:00:10Z", vec![&c, &d]),
        ("?AFTER=2026-01-01T00:00:09.999Z", vec![&b, &c, &d]),
        ("?AFTER=2025-01-01&AFTER=2026-01-01T00:00:20Z", vec![&d]),
        ("?LAST=2", vec![&d, &c]),
        ("?LAST=2&LAST=1", vec![&d]),
        ("?LAST=99999999999999999999999", vec![&d, &c, &b, &a]),
        ("?PHASE=PENDING&LAST=1", vec![&d]),
        ("?PHASE=PENDING&AFTER=2026-01-01T00:00:01Z&LAST=5", vec![&d]),
        ("?PHASE=&AFTER=&LAST=&other=x", vec![&a, &b, &c, &d]),
    ] {
        assert_eq!(office.listed(query).await.iter().collect::<Vec<_>>(), expected, "{query}");
    }
}

#[tokio::test]
async fn a_job_is_its_owners_alone() {
    let office = Office::new();
    let ada = |method: Method, path: String, body: &'static str| {
        let office = &office;
        async move { office.send(Some("ada"), method, &path, &[], body).await }
    };
    let made = ada(Method::POST, "/async".into(), "QUERY=SELECT+1+AS+one&FORMAT=csv&PHASE=RUN").await;
    let path = made.header("location").strip_prefix(ROOT).unwrap().to_owned();
    let job = ada(Method::GET, format!("{path}?WAIT=20&PHASE=QUEUED"), "").await.xml();
    assert_eq!(job.texts("ownerId"), ["ada"]);
    assert_eq!(ada(Method::GET, format!("{path}/owner"), "").await.text(), "ada");
    assert_eq!(ids(&ada(Method::GET, "/async".into(), "").await.xml()), std::slice::from_ref(&path));
    for stranger in [None, Some("bob"), Some("")] {
        let list = office.send(stranger, Method::GET, "/async", &[], "").await;
        assert!(ids(&list.xml()).is_empty(), "{stranger:?}");
        for below in [
            "",
            "/phase",
            "/parameters",
            "/parameters/QUERY",
            "/results",
            "/results/result",
            "/error",
            "/owner",
        ] {
            let answer = office.send(stranger, Method::GET, &format!("{path}{below}"), &[], "").await;
            assert_eq!(answer.status, 404, "{stranger:?} {below}");
        }
        for (below, body) in [
            ("", "ACTION=DELETE"),
            ("", "MAXREC=1"),
            ("/phase", "PHASE=ABORT"),
            ("/destruction", "DESTRUCTION=2020-01-01T00:00:00Z"),
        ] {
            let answer = office.send(stranger, Method::POST, &format!("{path}{below}"), &[], body).await;
            assert_eq!(answer.status, 404, "{stranger:?} {below} {body}");
        }
        assert_eq!(office.send(stranger, Method::DELETE, &path, &[], "").await.status, 404);
    }
    assert_eq!(ada(Method::GET, path, "").await.status, 200);
}
