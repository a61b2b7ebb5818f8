//! What the file store costs beside the store in memory: the same updates by the same tasks, and how long a
//! snapshot and a start take.
//!
//! `cargo run --release -p trifid-context-backends --example store_cost -- [entities] [tasks] [folder]`

#![allow(clippy::unwrap_used)] // a measuring program: a failure ends it

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use trifid_base_log::{DataDir, Options as LogOptions, RealDisk};
use trifid_base_runtime::clock::SystemClock;
use trifid_context_backends::file::{FileStore, Options};
use trifid_context_engine::memory::MemoryStore;
use trifid_context_engine::store::EntityStore;
use trifid_context_engine::time::Now;
use trifid_context_engine::{Broker, Call, TenantName};
use trifid_context_model::json::Doc;
use trifid_context_model::ld::Context;
use trifid_context_model::symbol::Symbols;

const ROUND: Duration = Duration::from_secs(3);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (entities, tasks) = (number(100_000), number(256));
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(folder).unwrap();

    let memory = measured(Arc::new(MemoryStore::new(Arc::new(Symbols::new()))), entities, tasks);
    say(&format!("memory: {:8.0} updates/s, {:.2} us CPU each", memory.0, memory.1));

    let open = || {
        let disk = Arc::new(RealDisk::open(folder.path()).unwrap());
        let dir = Arc::new(DataDir::open(disk, LogOptions::default()).unwrap());
        let options = Options { snapshot_after_bytes: None };
        FileStore::open(dir, &options, Arc::new(Symbols::new()), &mut |_| {}).unwrap().0
    };
    let store = open();
    let file = measured(store.entities(), entities, tasks);
    let journal = store.stats().journal;
    let per_flush = journal.frames as f64 / journal.batches as f64;
    say(&format!("file:   {:8.0} updates/s, {:.2} us CPU each, {per_flush:.1} a flush", file.0, file.1));
    say(&format!("file / memory: {:.2}", file.0 / memory.0));

    let (started, journal_bytes) = (Instant::now(), journal.bytes);
    let written = store.snapshot().unwrap().unwrap();
    say(&format!("snapshot: {:.2} s, {} MiB", started.elapsed().as_secs_f64(), written.bytes >> 20));
    drop(store);
    let started = Instant::now();
    let found = open().entities().stats().entities;
    say(&format!(
        "start from it: {:.2} s for {found} entities (the journal had {} MiB)",
        started.elapsed().as_secs_f64(),
        journal_bytes >> 20
    ));
}

fn say(text: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{text}").unwrap();
}

/// Updates a second, and processor time per update in microseconds.
fn measured(store: Arc<dyn EntityStore>, entities: usize, tasks: usize) -> (f64, f64) {
    let broker = Arc::new(Broker::new(store, Now::new(Arc::new(SystemClock))));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(each(tasks, |task| create(broker.clone(), task, tasks, entities)));
    let (started, cpu) = (Instant::now(), cpu_micros());
    let counts = runtime.block_on(each(tasks, |task| update(broker.clone(), task, tasks, entities, started)));
    let updates = counts.into_iter().sum::<u64>() as f64;
    (updates / started.elapsed().as_secs_f64(), (cpu_micros() - cpu) / updates)
}

async fn each<T: 'static, F: Future<Output = T> + 'static>(
    tasks: usize,
    start: impl Fn(usize) -> F,
) -> Vec<T> {
    let local = tokio::task::LocalSet::new();
    let handles: Vec<_> = (0..tasks).map(|task| local.spawn_local(start(task))).collect();
    local.await;
    let mut answers = Vec::new();
    for handle in handles {
        answers.push(handle.await.unwrap());
    }
    answers
}

async fn create(broker: Arc<Broker>, task: usize, tasks: usize, entities: usize) {
    let (tenant, context) = (TenantName::default_tenant(), Arc::new(Context::identity()));
    let call = Call { tenant: &tenant, context: &context };
    for n in (task..entities).step_by(tasks) {
        let body = format!(
            r#"{{"id":"urn:cost:{n}","type":"Vehicle","speed":{n},"brand":"Mercedes","isParked":true,
            "location":{{"type":"Point","coordinates":[13.3,52.5]}},"street":{{"object":"urn:street:{n}"}}}}"#
        );
        broker.create_entity(call, Doc::parse(body.as_bytes()).unwrap().root()).await.unwrap();
    }
}

async fn update(broker: Arc<Broker>, task: usize, tasks: usize, entities: usize, started: Instant) -> u64 {
    let (tenant, context) = (TenantName::default_tenant(), Arc::new(Context::identity()));
    let call = Call { tenant: &tenant, context: &context };
    let (mut count, mut n) = (0, task);
    while started.elapsed() < ROUND {
        let body = format!(r#"{{"speed":{count}}}"#);
        let doc = Doc::parse(body.as_bytes()).unwrap();
        broker.update_attributes(call, &format!("urn:cost:{n}"), doc.root(), None).await.unwrap();
        count += 1;
        n = if n + tasks < entities { n + tasks } else { task };
        if count % 16 == 0 {
            tokio::task::yield_now().await;
        }
    }
    count
}

/// Processor time of this process so far, in the kernel's ticks of 10 ms.
fn cpu_micros() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() * 10_000.0
}
