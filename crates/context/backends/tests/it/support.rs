//! What the tests share: a file store on a disk, and its content as text.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use trifid_base_log::{DataDir, Disk, Options as LogOptions, Stepper};
use trifid_base_sim::SimDisk;
use trifid_context_backends::file::{Error, FileStore, Options};
use trifid_context_engine::TenantName;
use trifid_context_engine::contexts::{HostedContext, Kind};
use trifid_context_engine::store::{EntityStore, Query};
use trifid_context_engine::testing::{Bench, Step, transcript};
use trifid_context_model::canonical;
use trifid_context_model::query::entity::Filter;
use trifid_context_model::record::Record;
use trifid_context_model::symbol::Symbols;
use trifid_context_model::time::Instant;

/// Small segments, a salt that repeats from run to run, and a failure that is noted rather than fatal.
pub(crate) fn log_options(salt: u64) -> LogOptions {
    let next = AtomicU64::new(salt);
    LogOptions {
        segment_bytes: 6_000,
        preallocate: false,
        idle_after: Duration::from_secs(3600),
        on_fatal: Arc::new(|_| {}),
        salt: Arc::new(move || next.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed)),
        ..LogOptions::default()
    }
}

/// Snapshots only when a test asks for them.
pub(crate) const BY_HAND: Options = Options { snapshot_after_bytes: None };

/// An open store and the contexts that it held.
pub(crate) struct Opened {
    pub(crate) store: FileStore,
    pub(crate) contexts: Vec<HostedContext>,
}

pub(crate) fn open_in(dir: Arc<DataDir>) -> Result<Opened, Error> {
    let (store, contexts) = FileStore::open(dir, &BY_HAND, Arc::new(Symbols::new()), &mut |_| {})?;
    Ok(Opened { store, contexts })
}

pub(crate) fn open(disk: Arc<dyn Disk>) -> Result<Opened, Error> {
    open_in(Arc::new(DataDir::open(disk, log_options(1))?))
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

pub(crate) fn run(store: &FileStore, steps: &[Step]) -> Vec<String> {
    block_on(transcript(store.entities(), steps))
}

/// Every tenant and entity, in canonical form.
pub(crate) fn content(store: &dyn EntityStore) -> BTreeMap<String, Vec<String>> {
    let filter = Filter::default();
    let query =
        Query { filter: &filter, order: None, offset: 0, limit: usize::MAX, count: false, now: Instant(0) };
    let tenants = block_on(store.tenants()).unwrap();
    let entities = |tenant: &TenantName| {
        let mut found = Vec::new();
        let mut sink = |record: &Record| {
            let mut text = Vec::new();
            canonical::write(record, store.symbols(), &mut text);
            found.push(String::from_utf8(text).unwrap());
        };
        block_on(store.query(tenant, query, &mut sink)).unwrap();
        found
    };
    tenants.iter().map(|tenant| (tenant.as_str().to_owned(), entities(tenant))).collect()
}

pub(crate) fn context(id: &str, text: &'static str) -> HostedContext {
    HostedContext {
        tenant: "city".into(),
        local_id: id.into(),
        kind: Kind::Hosted,
        text: text.into(),
        created_at: Instant(1_000_000),
    }
}

/// A store whose committer moves on only while somebody waits for it: the same bytes each time.
pub(crate) struct Stepped {
    pub(crate) opened: Opened,
    stepper: Stepper,
}

impl Stepped {
    pub(crate) fn open(disk: &SimDisk) -> Self {
        let (dir, stepper) = DataDir::open_stepped(Arc::new(disk.clone()), log_options(1)).unwrap();
        Stepped { opened: open_in(Arc::new(dir)).unwrap(), stepper }
    }

    pub(crate) fn run(&mut self, steps: &[Step]) -> Vec<String> {
        let entities = self.opened.store.entities();
        self.until(transcript(entities, steps))
    }

    pub(crate) fn until<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        loop {
            match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(output) => return output,
                Poll::Pending => assert!(self.stepper.step(), "nobody will wake this"),
            }
        }
    }

    pub(crate) fn idle(&mut self) {
        self.stepper.idle();
    }
}

/// A broker over the store.
pub(crate) fn bench(store: &FileStore) -> Bench {
    Bench::new(store.entities())
}
