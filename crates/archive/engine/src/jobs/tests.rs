use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use trifid_base_runtime::{ManualClock, SeededEntropy};

use super::*;
use crate::compute::Size;

/// Runs what the parameter DO says: `ok`, `fail`, or `hang` until the test lets it go.
#[derive(Default)]
struct Script {
    let_go: Notify,
    runs: AtomicUsize,
}

impl JobRunner for Script {
    fn run(&self, job: Job, store: Arc<dyn JobStore>) -> Running<'_> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            match job.parameter("do") {
                Some("fail") => return Err(Fault { message: "no".into(), transient: false }),
                Some("hang") => self.let_go.notified().await,
                Some("panic") => panic!("as the test wants it"),
                _ => {}
            }
            let mut sink = store.create_result(&job.id, "result").unwrap();
            std::io::Write::write_all(&mut sink, b"done").unwrap();
            let bytes = sink.finish().unwrap();
            Ok(vec![JobResult {
                name: "result".into(),
                media_type: "text/plain".into(),
                bytes,
                rows: 0,
                overflow: false,
            }])
        })
    }
}

struct Fixture {
    jobs: Jobs,
    script: Arc<Script>,
    clock: Arc<ManualClock>,
    ports: Ports,
}

fn fixture(limits: Limits) -> Fixture {
    let script = Arc::new(Script::default());
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_000_000)));
    let ports = Ports {
        store: Arc::new(MemoryJobs::default()),
        runner: script.clone(),
        compute: Arc::new(Compute::start(Size { threads: 1, running: 1, waiting: 1 }).unwrap()),
        clock: clock.clone(),
        entropy: Arc::new(SeededEntropy::new(7)),
    };
    Fixture { jobs: Jobs::open(ports.clone(), limits).unwrap(), script, clock, ports }
}

fn asked(what: &str) -> Vec<(String, String)> {
    vec![("DO".into(), what.into())]
}

const LONG: Duration = Duration::from_secs(30);

impl Fixture {
    async fn made(&self, what: &str) -> Job {
        self.jobs.create(None, asked(what), Vec::new()).await.unwrap()
    }

    async fn run(&self, what: &str) -> Job {
        let job = self.made(what).await;
        self.jobs.run(job.id.as_str(), &None).await.unwrap();
        job
    }

    /// Waits until the job is in a phase that stays.
    async fn ended(&self, job: &Job) -> Job {
        let mut now = self.jobs.get(job.id.as_str(), &None).unwrap();
        while now.phase.may_change() {
            now = self.jobs.wait(job.id.as_str(), &None, Some(now.phase), LONG).await.unwrap();
        }
        now
    }

    async fn executing(&self, job: &Job) {
        let mut now = self.jobs.get(job.id.as_str(), &None).unwrap();
        while now.phase != Phase::Executing {
            now = self.jobs.wait(job.id.as_str(), &None, Some(now.phase), LONG).await.unwrap();
        }
    }
}

#[test]
fn the_port_behaves() {
    testing::suite(&MemoryJobs::default());
}

#[tokio::test]
async fn a_job_runs_to_its_result() {
    let all = fixture(Limits::default());
    let job = all.made("ok").await;
    assert_eq!(job.phase, Phase::Pending);
    all.jobs.run(job.id.as_str(), &None).await.unwrap();
    let done = all.ended(&job).await;
    assert_eq!((done.phase, done.results.len()), (Phase::Completed, 1));
    assert!(done.started.is_some() && done.ended.is_some());
    let (result, length, mut bytes) = all.jobs.result(job.id.as_str(), &None, "result").await.unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut bytes, &mut text).unwrap();
    assert_eq!((result.bytes, length, text.as_str()), (4, 4, "done"));
    let again = all.jobs.run(job.id.as_str(), &None).await.unwrap_err();
    assert_eq!(again.to_string(), "a job that is COMPLETED cannot be run");
}

#[tokio::test]
async fn a_job_may_run_from_its_beginning() {
    let all = fixture(Limits::default());
    let new = NewJob {
        parameters: asked("ok"),
        parts: vec![("p".into(), Bytes::from_static(b"x"))],
        execution: Some(Duration::from_secs(7)),
        destruction: Some(all.clock.now().plus(Duration::from_secs(9))),
        run: true,
        ..NewJob::default()
    };
    let job = all.jobs.submit(new).await.unwrap();
    assert_eq!(job.phase, Phase::Queued);
    assert_eq!((job.execution.as_secs(), job.destruction.since(all.clock.now()).as_secs()), (7, 9));
    assert_eq!(all.ended(&job).await.phase, Phase::Completed);
    let id = job.id.as_str();
    assert_eq!(&all.jobs.part(id, &None, "p").await.unwrap()[..], b"x");
    assert!(matches!(all.jobs.part(id, &Some("ada".into()), "p").await, Err(JobError::Unknown)));
    let mut rest = String::new();
    let mut bytes = all.jobs.result_from(id, &None, "result", 2).await.unwrap();
    std::io::Read::read_to_string(&mut bytes, &mut rest).unwrap();
    assert_eq!(rest, "ne");
}

#[tokio::test]
async fn a_failure_says_why() {
    let all = fixture(Limits::default());
    let done = all.ended(&all.run("fail").await).await;
    assert_eq!((done.phase, done.fault.unwrap().message.as_ref()), (Phase::Error, "no"));
}

#[tokio::test]
async fn a_panic_is_a_failure_too() {
    let all = fixture(Limits::default());
    let done = all.ended(&all.run("panic").await).await;
    assert_eq!(done.phase, Phase::Error);
    assert!(!done.fault.unwrap().message.contains("test"));
    assert_eq!(all.ended(&all.run("ok").await).await.phase, Phase::Completed, "its turn is free again");
}

#[tokio::test]
async fn jobs_wait_for_their_turn_and_can_be_aborted_while_they_run() {
    let all = fixture(Limits { running: 1, ..Limits::default() });
    let first = all.run("hang").await;
    all.executing(&first).await;
    let second = all.run("ok").await;
    assert_eq!(all.jobs.load(), (1, 1, 2));
    all.jobs.abort(first.id.as_str(), &None).await.unwrap();
    assert_eq!(all.ended(&first).await.phase, Phase::Aborted);
    assert_eq!(all.ended(&second).await.phase, Phase::Completed);
    let late = all.jobs.abort(first.id.as_str(), &None).await.unwrap_err();
    assert_eq!(late.to_string(), "a job that is ABORTED cannot be aborted");
}

#[tokio::test]
async fn a_queued_job_that_was_aborted_never_runs() {
    let all = fixture(Limits { running: 1, ..Limits::default() });
    let first = all.run("hang").await;
    all.executing(&first).await;
    let second = all.run("ok").await;
    all.jobs.abort(second.id.as_str(), &None).await.unwrap();
    all.script.let_go.notify_one();
    assert_eq!(all.ended(&first).await.phase, Phase::Completed);
    assert_eq!(all.ended(&all.run("ok").await).await.phase, Phase::Completed);
    assert_eq!(all.script.runs.load(Ordering::SeqCst), 2);
    assert_eq!(all.jobs.get(second.id.as_str(), &None).unwrap().phase, Phase::Aborted);
}

#[tokio::test]
async fn a_job_belongs_to_its_owner() {
    let all = fixture(Limits::default());
    let ada: Owner = Some("ada".into());
    let job = all.jobs.create(ada.clone(), asked("ok"), Vec::new()).await.unwrap();
    for stranger in [None, Some("bob".into())] {
        assert!(matches!(all.jobs.get(job.id.as_str(), &stranger), Err(JobError::Unknown)));
        assert!(matches!(all.jobs.delete(job.id.as_str(), &stranger).await, Err(JobError::Unknown)));
        assert!(all.jobs.list(&stranger, &Filter::default()).is_empty());
    }
    assert_eq!(all.jobs.list(&ada, &Filter::default()).len(), 1);
}

#[tokio::test]
async fn lists_are_filtered() {
    let all = fixture(Limits::default());
    let mut made = Vec::new();
    for _ in 0..3 {
        all.clock.advance(Duration::from_secs(1));
        made.push(all.made("ok").await);
    }
    all.jobs.run(made[1].id.as_str(), &None).await.unwrap();
    all.ended(&made[1]).await;
    let ids = |filter: &Filter| -> Vec<JobId> {
        all.jobs.list(&None, filter).into_iter().map(|job| job.id).collect()
    };
    let [a, b, c] = [0, 1, 2].map(|at: usize| made[at].id.clone());
    assert_eq!(ids(&Filter::default()), [a.clone(), b.clone(), c.clone()]);
    assert_eq!(
        ids(&Filter { phases: vec![Phase::Completed], ..Filter::default() }),
        std::slice::from_ref(&b)
    );
    assert_eq!(ids(&Filter { after: Some(made[0].created), ..Filter::default() }), [b, c.clone()]);
    assert_eq!(ids(&Filter { last: Some(1), ..Filter::default() }), [c]);
}

#[tokio::test]
async fn a_job_takes_parameters_until_it_runs() {
    let all = fixture(Limits::default());
    let job = all.made("fail").await;
    let more = vec![("do".into(), "ok".into()), ("UPLOAD".into(), "a,param:p".into())];
    all.jobs.amend(job.id.as_str(), &None, more, vec![("p".into(), Bytes::from_static(b"x"))]).await.unwrap();
    all.jobs
        .amend(job.id.as_str(), &None, vec![("UPLOAD".into(), "b,param:q".into())], Vec::new())
        .await
        .unwrap();
    let now = all.jobs.get(job.id.as_str(), &None).unwrap();
    assert_eq!(now.parameters.len(), 3);
    assert_eq!(now.parameter("DO"), Some("ok"));
    assert_eq!(&all.ports.store.part(&job.id, "p").unwrap()[..], b"x");
    all.jobs.run(job.id.as_str(), &None).await.unwrap();
    all.ended(&job).await;
    let late = vec![("p".into(), Bytes::from_static(b"y"))];
    assert!(all.jobs.amend(job.id.as_str(), &None, asked("fail"), late).await.is_err());
    assert_eq!(&all.ports.store.part(&job.id, "p").unwrap()[..], b"x", "refused as a whole");
}

#[tokio::test]
async fn times_are_kept_within_the_limits() {
    let limits = Limits {
        retention: Duration::from_secs(100),
        execution: Duration::from_secs(10),
        ..Limits::default()
    };
    let all = fixture(limits);
    let job = all.made("ok").await;
    assert_eq!(job.execution, Duration::from_secs(10));
    all.jobs.set_execution(job.id.as_str(), &None, Duration::from_secs(3)).await.unwrap();
    all.jobs.set_destruction(job.id.as_str(), &None, Timestamp::from_micros(i64::MAX)).await.unwrap();
    let now = all.jobs.get(job.id.as_str(), &None).unwrap();
    assert_eq!(now.execution, Duration::from_secs(3));
    assert_eq!(now.destruction, all.clock.now().plus(limits.retention));
    all.clock.advance(Duration::from_secs(100));
    assert!(matches!(all.jobs.get(job.id.as_str(), &None), Err(JobError::Unknown)));
    all.jobs.destroy_expired().await;
    assert!(all.ports.store.all().unwrap().is_empty());
}

#[tokio::test]
async fn a_job_that_takes_too_long_is_ended() {
    let all = fixture(Limits { execution: Duration::from_millis(20), ..Limits::default() });
    let done = all.ended(&all.run("hang").await).await;
    assert_eq!(done.phase, Phase::Aborted);
    assert!(done.fault.unwrap().message.contains("execution duration"));
}

#[tokio::test]
async fn what_had_not_ended_runs_again_after_a_restart() {
    let all = fixture(Limits::default());
    let job = all.run("hang").await;
    all.executing(&job).await;
    // The process dies: its memory is gone, the store is not.
    let second = Jobs::open(all.ports.clone(), Limits::default()).unwrap();
    all.script.let_go.notify_one();
    all.script.let_go.notify_one();
    let mut now = second.get(job.id.as_str(), &None).unwrap();
    while now.phase.may_change() {
        all.script.let_go.notify_waiters();
        now = second.wait(job.id.as_str(), &None, Some(now.phase), Duration::from_millis(20)).await.unwrap();
    }
    assert_eq!(now.phase, Phase::Completed);
}

#[tokio::test]
async fn waiting_ends_with_its_time_and_with_the_job() {
    let all = fixture(Limits::default());
    let job = all.made("ok").await;
    let short = Duration::from_millis(1);
    assert_eq!(all.jobs.wait(job.id.as_str(), &None, None, short).await.unwrap().phase, Phase::Pending);
    let other = all.jobs.wait(job.id.as_str(), &None, Some(Phase::Queued), LONG).await.unwrap();
    assert_eq!(other.phase, Phase::Pending, "another phase than the reference: at once");
    let waiting = all.jobs.wait(job.id.as_str(), &None, None, LONG);
    let (waited, deleted) = tokio::join!(waiting, all.jobs.delete(job.id.as_str(), &None));
    deleted.unwrap();
    assert_eq!(waited.unwrap().phase, Phase::Aborted);
}

#[tokio::test]
async fn there_is_a_bound_to_everything() {
    let all = fixture(Limits { per_owner: 2, total: 3, queued: 0, ..Limits::default() });
    let first = all.made("ok").await;
    all.made("ok").await;
    assert!(matches!(all.jobs.create(None, asked("ok"), Vec::new()).await, Err(JobError::TooMany(_))));
    all.jobs.create(Some("ada".into()), asked("ok"), Vec::new()).await.unwrap();
    assert!(matches!(
        all.jobs.create(Some("bob".into()), asked("ok"), Vec::new()).await,
        Err(JobError::TooMany(_))
    ));
    assert!(matches!(all.jobs.run(first.id.as_str(), &None).await, Err(JobError::TooMany(_))));
}
