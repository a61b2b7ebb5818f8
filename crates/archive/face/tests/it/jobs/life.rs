//! From creation to deletion.

use http::Method;

use super::{ENDLESS, Limits, Office, ROOT, hours, parameter, stores};
use crate::harness::encoded;

const QUERY: &str = "SELECT id, name FROM demo.stars WHERE id < 3 ORDER BY id";
const CSV: &str = "id,name\n1,a\n2,\"<b>, \"\"c\"\"\"\n";

#[tokio::test]
async fn a_job_is_made_filled_run_read_and_deleted() {
    for (store, _folder) in stores() {
        let office = Office::over(store, Limits::default(), |_| ());
        // No parameters at all are legal (TAP 1.1 2.7).
        let path = office.made("").await;
        let job = office.job(&path).await;
        assert_eq!(job.0[0].path, "/job");
        assert_eq!(job.0[0].get("version"), "1.1");
        assert_eq!(job.texts("phase"), ["PENDING"]);
        let posted = office.post(&format!("{path}/parameters"), &format!("QUERY={}", encoded(QUERY))).await;
        assert_eq!((posted.status, posted.header("location")), (303, format!("{ROOT}{path}").as_str()));
        office.post(&path, "RESPONSEFORMAT=csv&runid=night+7").await;
        office.post(&path, "RUNID=night+8").await;
        assert_eq!(office.job(&path).await.texts("runId"), ["night 8"]);
        assert_eq!(office.told(&path, "parameters/query").await, QUERY);
        assert_eq!(office.phase(&path).await, "PENDING");
        let run = office.post(&format!("{path}/phase"), "PHASE=RUN").await;
        assert_eq!((run.status, run.header("location")), (303, format!("{ROOT}{path}").as_str()));
        let job = office.ended(&path).await;
        assert_eq!(job.texts("phase"), ["COMPLETED"]);
        let result = &job.all("result")[0];
        assert_eq!(result.get("id"), "result");
        assert_eq!(result.get("xlink:href"), format!("{ROOT}{path}/results/result"));
        assert_eq!(result.get("size"), CSV.len().to_string());
        assert_eq!((job.texts("rows"), job.all("rows")[0].get("overflow")), (vec!["2".into()], "false"));
        let answer = office.result(&path).await;
        assert_eq!((answer.status, answer.text()), (200, CSV));
        assert_eq!(answer.header("content-type"), result.get("mime-type"));
        assert!(result.get("mime-type").starts_with("text/csv"), "{result:?}");
        let deleted = office.delete(&path).await;
        assert_eq!((deleted.status, deleted.header("location")), (303, format!("{ROOT}/async").as_str()));
        for gone in ["", "/phase", "/results/result", "/error"] {
            let answer = office.get(&format!("{path}{gone}")).await;
            assert_eq!((answer.status, answer.statuses()), (404, vec!["ERROR".to_owned()]), "{gone}");
        }
    }
}

/// UWS 1.1 appendix B: the schema is a sequence.
#[tokio::test]
async fn a_job_tells_everything_in_the_order_of_the_schema() {
    let office = Office::new();
    let path = office.run("SELECT nothing FROM demo.stars", "RUNID=r").await;
    let names: Vec<String> = office.ended(&path).await.0.into_iter().map(|element| element.path).collect();
    let top: Vec<&str> = names.iter().filter_map(|path| path.strip_prefix("/job/")).collect();
    let expected = [
        "jobId",
        "runId",
        "ownerId",
        "phase",
        "quote",
        "creationTime",
        "startTime",
        "endTime",
        "executionDuration",
        "destruction",
        "parameters",
        "parameters/parameter",
        "parameters/parameter",
        "parameters/parameter",
        "results",
        "errorSummary",
        "errorSummary/message",
    ];
    assert_eq!(top, expected);
}

#[tokio::test]
async fn small_things_are_text() {
    let office = Office::new();
    let path = office.made("QUERY=x&RUNID=r").await;
    assert_eq!(office.told(&path, "phase").await, "PENDING");
    assert_eq!(office.told(&path, "executionduration").await, "3600");
    assert_eq!(office.told(&path, "destruction").await, "2026-01-08T00:00:00Z");
    assert_eq!(
        (office.told(&path, "quote").await, office.told(&path, "owner").await),
        ("".into(), "".into())
    );
    assert_eq!(office.told(&path, "parameters/runid").await, "r");
    let job = office.job(&path).await;
    assert_eq!(job.texts("creationTime"), ["2026-01-01T00:00:00Z"]);
    for nil in ["ownerId", "quote", "startTime", "endTime"] {
        assert_eq!(job.all(nil)[0].get("xsi:nil"), "true", "{nil}");
    }
    assert_eq!(office.get(&format!("{path}/parameters")).await.xml().0[0].path, "/parameters");
    assert_eq!(office.get(&format!("{path}/results")).await.xml().0[0].path, "/results");
    let error = office.get(&format!("{path}/error")).await;
    assert_eq!((error.status, error.statuses()), (200, vec!["OK".to_owned()]));
}

#[tokio::test]
async fn made_and_run_in_one_request() {
    let office = Office::new();
    let answer = office.post("/async?PHASE=RUN", &format!("QUERY={}&FORMAT=csv", encoded(QUERY))).await;
    let path = answer.header("location").strip_prefix(ROOT).unwrap().to_owned();
    let job = office.ended(&path).await;
    assert_eq!(job.texts("phase"), ["COMPLETED"]);
    assert!(parameter(&job, "PHASE").is_none(), "what steers the job is no parameter of the query");
    assert_eq!(office.result(&path).await.text(), CSV);
}

/// The result of a job is the one that would have been answered at once, in every format.
#[tokio::test]
async fn a_job_answers_as_a_synchronous_query_does() {
    let office = Office::new();
    for format in ["votable", "votable/td", "csv", "tsv", "json", "text", "html", "fits", "text/xml"] {
        for (most, overflow) in [(5, false), (2, true)] {
            let query = "SELECT id, ra, mag, name FROM demo.stars ORDER BY id";
            let rest = format!("MAXREC={most}&RESPONSEFORMAT={}", encoded(format));
            let path = office.run(query, &rest).await;
            let job = office.ended(&path).await;
            assert_eq!(job.texts("phase"), ["COMPLETED"], "{format}");
            assert_eq!(job.texts("rows"), [most.to_string()], "{format}");
            assert_eq!(job.all("rows")[0].get("overflow"), overflow.to_string(), "{format}");
            let (kept, sent) = (office.result(&path).await, office.door.query(query, &rest).await);
            assert_eq!(kept.bytes, sent.bytes, "{format}");
            for header in
                ["content-type", "content-disposition", "tap-query-status", "content-security-policy"]
            {
                assert_eq!(kept.header(header), sent.header(header), "{format} {header}");
            }
        }
    }
}

#[tokio::test]
async fn a_failure_is_worded_as_that_of_a_synchronous_query() {
    let office = Office::new();
    for (query, rest) in [
        ("SELEC 1", ""),
        ("SELECT nothing FROM demo.stars", "RESPONSEFORMAT=csv"),
        ("SELECT 1", "LANG=PQL"),
        ("SELECT 1", "MAXREC=many"),
        ("SELECT 1", "FORMAT=punchcard"),
        ("SELECT 1", "UPLOAD=t,param:f"),
        ("", ""),
        ("SELECT id / (id - id) AS q FROM demo.stars", ""),
    ] {
        let form = format!("QUERY={}&{rest}", encoded(query));
        let path = office.made(&format!("{form}&PHASE=RUN")).await;
        let job = office.ended(&path).await;
        assert_eq!(job.texts("phase"), ["ERROR"], "{query} {rest}");
        let sync = office.get(&format!("/sync?{form}&RESPONSEFORMAT=")).await;
        let expected = if rest.contains("RESPONSEFORMAT") || rest.contains("FORMAT") {
            None
        } else {
            Some(sync.xml().all("INFO")[0].text.clone())
        };
        let told = job.texts("message")[0].clone();
        if let Some(expected) = expected {
            assert_eq!(told, expected, "{query} {rest}");
        }
        assert_eq!(job.all("errorSummary")[0].get("type"), "fatal");
        assert_eq!(job.all("errorSummary")[0].get("hasDetail"), "true");
        let error = office.get(&format!("{path}/error")).await;
        assert_eq!((error.status, error.header("content-type")), (200, "application/x-votable+xml"));
        assert_eq!((error.statuses(), error.xml().all("INFO")[0].text.clone()), (vec!["ERROR".into()], told));
        assert!(job.all("result").is_empty());
        assert_eq!(office.result(&path).await.status, 404);
    }
}

/// TAP 1.1 2.7.6: a table in the request, and tables that come later.
#[tokio::test]
async fn a_job_takes_tables_along() {
    let office = Office::new();
    let part = |name: &str, more: &str, content: &str| {
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n{content}\r\n")
    };
    let file = |name: &str, content: &str| part(name, "; filename=\"f\"\r\nContent-Type: text/csv", content);
    let media = [("content-type", "multipart/form-data; boundary=b")];
    let join = "SELECT s.id, a.word, b.word AS other FROM demo.stars AS s \
                JOIN TAP_UPLOAD.a AS a ON s.id = a.id JOIN TAP_UPLOAD.b AS b ON s.id = b.id ORDER BY s.id";
    let body = [
        part("QUERY", "", join),
        part("FORMAT", "", "csv"),
        part("UPLOAD", "", "a,param:First"),
        file("first", "id,word\n1,one\n3,three\n"),
        "--b--".into(),
    ];
    let answer = office.send(None, Method::POST, "/async", &media, body.concat()).await;
    let path = answer.header("location").strip_prefix(ROOT).unwrap().to_owned();
    // The table first, what refers to it later.
    let later = [file("second", "id,word\n3,drei\n"), "--b--".into()].concat();
    let answer = office.send(None, Method::POST, &format!("{path}/parameters"), &media, later).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    office.post(&format!("{path}/parameters"), "UPLOAD=b,param:second").await;
    let job = office.job(&path).await;
    assert_eq!(job.all("parameter").len(), 6, "QUERY, FORMAT, UPLOAD twice, two tables");
    let by_reference = job.all("parameter").into_iter().find(|one| one.get("id") == "second").unwrap();
    assert_eq!(by_reference.get("byReference"), "true");
    assert_eq!(by_reference.text, format!("{ROOT}{path}/parameters/second"));
    let table = office.get(&format!("{path}/parameters/second")).await;
    assert_eq!((table.text(), table.header("content-type")), ("id,word\n3,drei\n", "text/csv"));
    assert_eq!(table.header("content-disposition"), "attachment");
    assert_eq!(office.told(&path, "parameters/UPLOAD").await, "a,param:First;b,param:second");
    office.post(&format!("{path}/phase"), "PHASE=RUN").await;
    assert_eq!(office.ended(&path).await.texts("phase"), ["COMPLETED"]);
    assert_eq!(office.result(&path).await.text(), "id,word,other\n3,three,drei\n");
}

#[tokio::test]
async fn a_part_without_a_file_name_is_a_table_if_it_is_referred_to() {
    let office = Office::new();
    let part = |name: &str, content: &str| {
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{content}\r\n")
    };
    let body = [
        part("QUERY", "SELECT COUNT(*) AS c FROM TAP_UPLOAD.t"),
        part("RESPONSEFORMAT", "csv"),
        part("UPLOAD", "t,param:data"),
        part("data", "n,m\n1,2\n2,3\n"),
        part("PHASE", "RUN"),
        "--b--".into(),
    ];
    let media = [("content-type", "multipart/form-data; boundary=b")];
    let answer = office.send(None, Method::POST, "/async", &media, body.concat()).await;
    let path = answer.header("location").strip_prefix(ROOT).unwrap().to_owned();
    let job = office.ended(&path).await;
    assert_eq!(job.texts("phase"), ["COMPLETED"], "{job:?}");
    assert_eq!(parameter(&job, "data").unwrap(), format!("{ROOT}{path}/parameters/data"));
    assert_eq!(office.result(&path).await.text(), "c\n2\n");
}

#[tokio::test]
async fn a_job_is_aborted_while_it_runs() {
    let office = Office::new();
    let path = office.run(ENDLESS, "").await;
    office.running(&path).await;
    let aborted = office.post(&format!("{path}/phase"), "PHASE=ABORT").await;
    assert_eq!((aborted.status, aborted.header("location")), (303, format!("{ROOT}{path}").as_str()));
    let job = office.job(&path).await;
    assert_eq!(job.texts("phase"), ["ABORTED"]);
    assert!(!job.texts("endTime")[0].is_empty());
    // The engine has a turn free again.
    let next = office.run("SELECT n FROM demo.many WHERE x < 0", "FORMAT=csv").await;
    assert_eq!(office.ended(&next).await.texts("phase"), ["COMPLETED"]);
    assert_eq!(office.get(&path).await.status, 200, "an aborted job stays");
}

#[tokio::test]
async fn a_job_is_deleted_by_a_form_too_and_while_it_runs() {
    let office = Office::new();
    let path = office.run(ENDLESS, "").await;
    office.running(&path).await;
    let deleted = office.post(&path, "ACTION=DELETE").await;
    assert_eq!((deleted.status, deleted.header("location")), (303, format!("{ROOT}/async").as_str()));
    assert_eq!(office.get(&path).await.status, 404);
    assert_eq!(office.jobs.load(), (0, 0, 0));
}

#[tokio::test]
async fn what_does_not_fit_the_phase_is_forbidden() {
    let office = Office::new();
    let path = office.run("SELECT 1 AS one", "FORMAT=csv").await;
    office.ended(&path).await;
    for (resource, form) in [
        ("/phase", "PHASE=RUN"),
        ("/phase", "PHASE=ABORT"),
        ("/parameters", "QUERY=x"),
        ("", "MAXREC=1"),
        ("/executionduration", "EXECUTIONDURATION=1"),
    ] {
        let answer = office.post(&format!("{path}{resource}"), form).await;
        assert_eq!((answer.status, answer.statuses()), (403, vec!["ERROR".to_owned()]), "{resource} {form}");
        assert!(answer.text().contains("COMPLETED"), "{}", answer.text());
    }
    assert_eq!(office.result(&path).await.text(), "one\n1\n");
}

#[tokio::test]
async fn times_can_be_changed_within_limits() {
    let limits = Limits { execution: hours(2), retention: hours(100), ..Limits::default() };
    let office = Office::with(limits, |_| ());
    let path = office.made("EXECUTIONDURATION=60&DESTRUCTION=2026-01-02T00:00:00Z").await;
    assert_eq!(office.told(&path, "executionduration").await, "60");
    assert_eq!(office.told(&path, "destruction").await, "2026-01-02T00:00:00Z");
    for (wanted, got) in [("90", "90"), ("0", "7200"), ("99999999999999999999999", "7200")] {
        let answer =
            office.post(&format!("{path}/executionduration"), &format!("EXECUTIONDURATION={wanted}")).await;
        assert_eq!(answer.status, 303);
        assert_eq!(office.told(&path, "executionduration").await, got);
    }
    for (wanted, got) in [
        ("2026-01-03T04:05:06.7Z", "2026-01-03T04:05:06.700Z"),
        ("2026-01-03T04:05:06", "2026-01-03T04:05:06Z"),
        ("9999-12-31T00:00:00Z", "2026-01-05T04:00:00Z"),
    ] {
        let answer = office.post(&format!("{path}/destruction"), &format!("DESTRUCTION={wanted}")).await;
        assert_eq!((answer.status, answer.header("location")), (303, format!("{ROOT}{path}").as_str()));
        assert_eq!(office.told(&path, "destruction").await, got);
    }
    office.clock.advance(hours(101));
    assert_eq!(office.get(&path).await.status, 404, "destroyed when its time has come");
    office.jobs.destroy_expired().await;
    assert_eq!(office.jobs.load(), (0, 0, 0));
}

#[tokio::test]
async fn a_job_past_its_time_is_aborted() {
    let office = Office::new();
    let path = office.run(ENDLESS, "EXECUTIONDURATION=1").await;
    let job = office.ended(&path).await;
    assert_eq!(job.texts("phase"), ["ABORTED"]);
    assert!(job.texts("message")[0].contains("execution duration"));
}

/// A busy archive refuses synchronous queries; a job waits for its turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_waits_for_a_busy_engine() {
    let office = Office::new();
    let compute = office.door.archive.compute();
    let held: Vec<_> = (0..2).map(|_| compute.queue().unwrap()).collect();
    let mut turns = Vec::new();
    for ticket in held {
        turns.push(ticket.turn().await.unwrap());
    }
    let waiting: Vec<_> = std::iter::from_fn(|| compute.queue().ok()).collect();
    let many = "SELECT n FROM demo.many WHERE x < 0.5";
    assert_eq!(office.door.query(many, "FORMAT=csv").await.status, 503);
    let path = office.run(many, "FORMAT=csv").await;
    office.running(&path).await;
    drop((turns, waiting));
    assert_eq!(office.ended(&path).await.texts("phase"), ["COMPLETED"]);
    assert_eq!(office.result(&path).await.text().lines().count(), 5);
}

/// Queries that compute for long keep every thread of the pool; nobody is to wait for them who only asks.
#[tokio::test]
async fn jobs_are_told_and_steered_however_busy_the_pool_is() {
    let office = Office::new();
    let done = office.run("SELECT n, x FROM demo.many", "FORMAT=csv").await;
    office.ended(&done).await;
    let compute = office.door.archive.compute();
    let threads = compute.size().threads;
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Arc::new(std::sync::Mutex::new(held));
    let (told, mut busy) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..threads {
        let (held, told) = (std::sync::Arc::clone(&held), told.clone());
        compute.spawn(async move {
            told.send(()).unwrap();
            // Until the test has seen what it wants to see.
            let _ = held.lock().map(|held| held.recv());
        });
    }
    for _ in 0..threads {
        busy.recv().await.unwrap();
    }
    let path = office.run("SELECT 1 AS one", "FORMAT=csv").await;
    assert_eq!(office.phase(&path).await, "QUEUED");
    assert_eq!(office.post(&format!("{path}/phase"), "PHASE=ABORT").await.status, 303);
    assert_eq!(office.phase(&path).await, "ABORTED");
    assert_eq!(office.result(&done).await.text().lines().count() as i64, crate::harness::MANY + 1);
    assert_eq!(office.delete(&done).await.status, 303);
    let later = office.run("SELECT 2 AS two", "FORMAT=csv").await;
    drop(let_go);
    assert_eq!(office.ended(&later).await.texts("phase"), ["COMPLETED"]);
}
