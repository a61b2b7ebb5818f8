//! A broker that keeps a list of what it was promised, on a disk whose power is cut: the engine of the power-cut
//! tests.
//!
//! Everything follows from a seed, the committer is moved on by hand and snapshots are written on the same
//! thread, so a failing seed and cut show the same failure again.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use fastrand::Rng;
use trifid_base_log::{DataDir, Stepper};
use trifid_base_sim::SimDisk;
use trifid_context_backends::file::Error;
use trifid_context_engine::testing::Step;

use crate::support::{Opened, bench, content, context, log_options, open_in};

const ACTIONS: usize = 40;
const ENTITIES: u32 = 12;

/// A change in the order of the journal: which entity, and what it holds then.
type Change = (String, Option<u64>);

/// What was promised: kept outside the machine whose power is cut.
#[derive(Default)]
pub(crate) struct Ledger {
    /// All changes that were made, acknowledged or under way.
    changes: Vec<Change>,
    /// So many were acknowledged.
    acknowledged: usize,
    serial: u64,
}

type Pending<'a> = Pin<Box<dyn Future<Output = bool> + 'a>>;

impl Ledger {
    /// Opens the store and holds it to the ledger.
    fn open(&mut self, disk: &SimDisk, rng: &mut Rng) -> Result<Option<(Opened, Stepper)>, String> {
        let opened = DataDir::open_stepped(Arc::new(disk.clone()), log_options(rng.u64(..)))
            .map_err(Error::from)
            .and_then(|(dir, stepper)| Ok((open_in(Arc::new(dir))?, stepper)));
        let opened = match opened {
            Ok(opened) => opened,
            Err(_) if disk.is_dead() => return Ok(None),
            Err(error) => {
                return Err(format!("does not open: {error}: {:?}", std::error::Error::source(&error)));
            }
        };
        self.check(&opened.0)?;
        Ok(Some(opened))
    }

    /// The store holds what some number of changes leave, all acknowledged ones among them.
    fn check(&mut self, opened: &Opened) -> Result<(), String> {
        let found = state(opened);
        let mut state = self.after(self.acknowledged);
        for count in self.acknowledged..=self.changes.len() {
            if found == state {
                self.changes.truncate(count);
                self.acknowledged = count;
                return Ok(());
            }
            self.changes.get(count).into_iter().for_each(|change| make(&mut state, change));
        }
        let acknowledged = self.after(self.acknowledged);
        Err(format!("{} acknowledged: {acknowledged:?}, found: {found:?}", self.acknowledged))
    }

    fn after(&self, count: usize) -> BTreeMap<String, u64> {
        let mut state = BTreeMap::new();
        self.changes[..count].iter().for_each(|change| make(&mut state, change));
        state
    }

    /// One operation as a request and as the changes it makes.
    fn operation(&mut self, rng: &mut Rng) -> (Operation, Vec<Change>) {
        self.serial += 1;
        let serial = self.serial;
        let now = self.after(self.changes.len());
        match rng.u8(..10) {
            0 | 1 => {
                let id = format!("urn:x:{}", rng.u32(..ENTITIES));
                let changes = now.contains_key(&id).then(|| (id.clone(), None)).into_iter().collect();
                (Operation::Entities(Step::Delete("", id)), changes)
            }
            2 => {
                let id = format!("context {serial}");
                (Operation::Keep(id.clone()), vec![(id, Some(0))])
            }
            3 => match now.keys().find(|id| id.starts_with("context")) {
                Some(id) => (Operation::Forget(id.clone()), vec![(id.clone(), None)]),
                None => self.upsert(rng, serial),
            },
            _ => self.upsert(rng, serial),
        }
    }

    fn upsert(&mut self, rng: &mut Rng, serial: u64) -> (Operation, Vec<Change>) {
        let first = rng.u32(..ENTITIES);
        let ids: Vec<String> =
            (first..first + rng.u32(1..4)).map(|n| format!("urn:x:{}", n % ENTITIES)).collect();
        let padding = "x".repeat(rng.usize(..600));
        let body = |id: &String| format!(r#"{{"id":"{id}","type":"T","n":{serial},"z":"{padding}"}}"#);
        let bodies: Vec<String> = ids.iter().map(body).collect();
        let step = Step::Batch("", "upsert", format!("[{}]", bodies.join(",")));
        (Operation::Entities(step), ids.into_iter().map(|id| (id, Some(serial))).collect())
    }

    /// Works until the power is cut or the actions are used up.
    pub(crate) fn work(&mut self, disk: &SimDisk, rng: &mut Rng) -> Result<(), String> {
        let Some((opened, mut stepper)) = self.open(disk, rng)? else { return Ok(()) };
        let bench = bench(&opened.store);
        let hosted = opened.store.hosted();
        let mut pending: Vec<(usize, Pending<'_>)> = Vec::new();
        for _ in 0..ACTIONS {
            match rng.u8(..20) {
                _ if disk.is_dead() => break,
                0..10 => {
                    let (operation, changes) = self.operation(rng);
                    self.changes.extend(changes);
                    let (bench, hosted) = (&bench, &*hosted);
                    pending.push((self.changes.len(), Box::pin(operation.run(bench, hosted))));
                }
                10..16 => {
                    stepper.step();
                }
                16 => stepper.idle(),
                _ => {
                    // A snapshot waits for hosted contexts that are under way, and nobody else moves the committer.
                    while stepper.step() {}
                    let _ = opened.store.snapshot();
                }
            }
            self.settle(&mut pending);
        }
        Ok(())
    }

    /// Polls what is pending; a new operation makes its changes at its first poll.
    fn settle(&mut self, pending: &mut Vec<(usize, Pending<'_>)>) {
        pending.retain_mut(|(changes, future)| {
            match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(true) => {
                    self.acknowledged = self.acknowledged.max(*changes);
                    false
                }
                Poll::Ready(false) => false,
                Poll::Pending => true,
            }
        });
    }
}

fn make(state: &mut BTreeMap<String, u64>, (id, value): &Change) {
    match value {
        Some(value) => state.insert(id.clone(), *value),
        None => state.remove(id),
    };
}

enum Operation {
    Entities(Step),
    Keep(String),
    Forget(String),
}

impl Operation {
    /// Whether it was acknowledged.
    async fn run(
        self,
        bench: &trifid_context_engine::testing::Bench,
        hosted: &dyn trifid_context_engine::contexts::HostedContexts,
    ) -> bool {
        match self {
            Operation::Entities(step) => {
                let answer = bench.run(&step).await;
                answer.ends_with("done") || answer.contains("-> created")
            }
            Operation::Keep(id) => hosted.save(&context(&id, "{}")).await.is_ok(),
            Operation::Forget(id) => hosted.remove("city", &id).await.is_ok(),
        }
    }
}

/// What the store holds, by identifier.
fn state(opened: &Opened) -> BTreeMap<String, u64> {
    let mut state = BTreeMap::new();
    for text in content(&*opened.store.entities()).into_values().flatten() {
        let (_, rest) = text.split_once(r#""id":""#).unwrap();
        let id = rest.split('"').next().unwrap().to_owned();
        let (_, rest) =
            text.split_once(r#"":n":{"type":"Property","value":"#).unwrap_or_else(|| panic!("{text}"));
        let value = rest.split(',').next().unwrap().parse().unwrap();
        state.insert(id, value);
    }
    state.extend(opened.contexts.iter().map(|context| (context.local_id.to_string(), 0)));
    state
}

/// One seed: how many operations of the disk its work takes.
pub(crate) fn length(seed: u64) -> u64 {
    let disk = SimDisk::new();
    Ledger::default().work(&disk, &mut Rng::with_seed(seed)).unwrap();
    disk.ops()
}

/// One seed and one cut: work until the cut; open with the power cut again while opening or soon after; open.
pub(crate) fn run(seed: u64, cut: u64, prepare: &dyn Fn(&SimDisk)) -> Result<(), String> {
    let mut ledger = Ledger::default();
    let disk = SimDisk::new();
    prepare(&disk);
    disk.cut_at(cut);
    ledger.work(&disk, &mut Rng::with_seed(seed))?;

    let mut rng = Rng::with_seed(seed ^ cut << 32);
    let disk = disk.power_cut(rng.u64(..));
    prepare(&disk);
    disk.cut_at(rng.u64(..40));
    ledger.work(&disk, &mut rng)?;

    let disk = if rng.bool() { disk.power_cut(rng.u64(..)) } else { disk.kill() };
    prepare(&disk);
    ledger.work(&disk, &mut rng)
}
