//! UWS 1.1 over an archive in memory: the whole life of jobs, clause by clause.

mod bounds;
mod hostile;
mod life;
mod list;
mod restart;
mod results;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use http_body_util::BodyExt as _;
use trifid_archive_backends::jobs::FileJobs;
use trifid_archive_engine::jobs::{JobStore, Jobs, Limits, MemoryJobs, Ports};
use trifid_archive_face::Options;
use trifid_base_runtime::{ManualClock, SeededEntropy, Timestamp};
use trifid_base_web::auth::{Principal, Role, TenantScope};
use trifid_base_web::{Face as _, Request};

use crate::harness::{Answer, Door, Xml, encoded};

/// The door's root as its clients use it.
const ROOT: &str = "http://archive.example:9090/tap";

/// 2026-01-01T00:00:00Z
const NEW_YEAR: i64 = 1_767_225_600_000_000;

/// A query that goes on for longer than any test.
const ENDLESS: &str = "SELECT COUNT(*) AS c FROM demo.many AS a, demo.many AS b";

/// A door with jobs.
struct Office {
    door: Door,
    jobs: Jobs,
    clock: Arc<ManualClock>,
}

impl Office {
    fn new() -> Self {
        Self::with(Limits::default(), |_| ())
    }

    fn with(limits: Limits, change: impl FnOnce(&mut Options)) -> Self {
        Self::over(Arc::new(MemoryJobs::default()), limits, change)
    }

    fn over(store: Arc<dyn JobStore>, limits: Limits, change: impl FnOnce(&mut Options)) -> Self {
        let mut door = Door::with(change);
        let face = Arc::into_inner(door.face).unwrap();
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(NEW_YEAR)));
        let ports = Ports {
            store,
            runner: face.runner(),
            compute: Arc::clone(door.archive.compute()),
            clock: Arc::clone(&clock) as _,
            entropy: Arc::new(SeededEntropy::new(seed())),
        };
        let jobs = Jobs::open(ports, limits).unwrap();
        door.face = Arc::new(face.with_jobs(jobs.clone()));
        Self { door, jobs, clock }
    }

    /// Sends a request of `owner` whose path is below the root.
    async fn send(
        &self,
        owner: Option<&str>,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let mut request = Request::new(method, format!("/tap{path}").parse().unwrap());
        request.headers.insert(HOST, HeaderValue::from_static("archive.example:9090"));
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            request.headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        request.principal =
            Principal { tenant: TenantScope::Any, role: Role::Read, name: owner.map(Into::into) };
        request.body = body.into();
        let (head, body) = self.door.face.call(request).await.into_parts();
        let body = body.collect().await.unwrap();
        Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            trailers: HeaderMap::new(),
            bytes: body.to_bytes(),
        }
    }

    async fn get(&self, path: &str) -> Answer {
        self.send(None, Method::GET, path, &[], "").await
    }

    async fn post(&self, path: &str, form: &str) -> Answer {
        let media = [(CONTENT_TYPE.as_str(), "application/x-www-form-urlencoded")];
        self.send(None, Method::POST, path, &media, form.to_owned()).await
    }

    async fn delete(&self, path: &str) -> Answer {
        self.send(None, Method::DELETE, path, &[], "").await
    }

    /// Makes a job; its path.
    async fn made(&self, form: &str) -> String {
        let answer = self.post("/async", form).await;
        assert_eq!(answer.status, 303, "{}", answer.text());
        let path = answer.header("location").strip_prefix(ROOT).unwrap().to_owned();
        assert!(path.starts_with("/async/"));
        path
    }

    /// Makes a job that runs a query; its path.
    async fn run(&self, query: &str, rest: &str) -> String {
        self.made(&format!("LANG=ADQL&QUERY={}&PHASE=RUN&{rest}", encoded(query))).await
    }

    /// The job's document.
    async fn job(&self, path: &str) -> Xml {
        let answer = self.get(path).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, "text/xml"), "{}", answer.text());
        answer.xml()
    }

    /// What a resource of the job says.
    async fn told(&self, path: &str, resource: &str) -> String {
        let answer = self.get(&format!("{path}/{resource}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
        answer.text().to_owned()
    }

    async fn phase(&self, path: &str) -> String {
        self.told(path, "phase").await
    }

    /// Waits, as clients do, until the job's phase is none of these; its document then.
    async fn after(&self, path: &str, phases: &[&str]) -> Xml {
        let mut job = self.job(path).await;
        while phases.contains(&job.texts("phase")[0].as_str()) {
            let known = &job.texts("phase")[0];
            job = self.job(&format!("{path}?WAIT=20&PHASE={known}")).await;
        }
        job
    }

    /// Waits until the job has ended.
    async fn ended(&self, path: &str) -> Xml {
        self.after(path, &["QUEUED", "EXECUTING"]).await
    }

    /// Waits until the job runs.
    async fn running(&self, path: &str) {
        let job = self.after(path, &["QUEUED"]).await;
        assert_eq!(job.texts("phase"), ["EXECUTING"]);
    }

    /// The bytes of the job's result.
    async fn result(&self, path: &str) -> Answer {
        self.get(&format!("{path}/results/result")).await
    }
}

/// Jobs of different offices have different names, so that one is not taken for the other.
fn seed() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Every store there is, with the folder that it needs.
fn stores() -> Vec<(Arc<dyn JobStore>, Option<tempfile::TempDir>)> {
    let folder = tempfile::tempdir().unwrap();
    let files = FileJobs::open(folder.path()).unwrap();
    vec![(Arc::new(MemoryJobs::default()), None), (Arc::new(files), Some(folder))]
}

fn hours(count: u64) -> Duration {
    Duration::from_secs(count * 3600)
}

/// What a parameter of a job's document says.
fn parameter(job: &Xml, id: &str) -> Option<String> {
    job.all("parameter").into_iter().find(|one| one.get("id") == id).map(|one| one.text)
}
