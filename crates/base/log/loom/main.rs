//! The commit path, tried in every order in which its threads may take turns.
//!
//! The modules are those of the log; only `sync` is another. What stands for a log is its queue cut down to
//! counting: what is queued, what is being written, and whose ticket hears of it. Each model ends when nothing
//! can go on, so a lost wake-up shows as a deadlock, and a ticket answered wrongly as a failed assertion.

#![allow(dead_code)] // the models use a part of what the modules offer

#[path = "../src/handoff.rs"]
mod handoff;
#[path = "../src/latch.rs"]
mod latch;
#[path = "../src/outcome.rs"]
mod outcome;
#[path = "../src/signal.rs"]
mod signal;
mod sync;

mod error {
    /// As in the log.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CommitError {
        NoSpace,
        Removed,
        Failed,
    }
}

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;

use error::CommitError;
use handoff::{Listed, Rouse};
use latch::Latch;
use loom::future::block_on;
use loom::thread;
use outcome::{Durable, Outcome};
use signal::{Roused, Signal};
use sync::{AtomicBool, Mutex};

/// A batch of the queue: how many payloads it holds, and their fate.
struct Batch {
    payloads: usize,
    outcome: Arc<Outcome>,
}

struct Queue {
    open: bool,
    /// Payloads that a batch takes.
    batch_max: usize,
    batches: VecDeque<Batch>,
    flying: bool,
    written: usize,
}

struct Log {
    queue: Mutex<Queue>,
    listed: AtomicBool,
    signal: Arc<Signal<Log>>,
}

impl Listed for Log {
    type Queue = Queue;

    fn queue(&self) -> &Mutex<Queue> {
        &self.queue
    }

    fn listed(&self) -> &AtomicBool {
        &self.listed
    }

    fn signal(&self) -> &Signal<Log> {
        &self.signal
    }
}

impl Log {
    fn new(signal: &Arc<Signal<Log>>, batch_max: usize) -> Arc<Self> {
        let queue = Queue { open: true, batch_max, batches: VecDeque::new(), flying: false, written: 0 };
        Arc::new(Log { queue: Mutex::new(queue), listed: AtomicBool::new(false), signal: signal.clone() })
    }

    /// The ticket, unless the queue is closed.
    fn append(self: &Arc<Self>) -> Option<Durable> {
        let outcome = handoff::append(self, |queue| match queue.open {
            false => (None, Rouse::No),
            true => {
                if queue.batches.back().is_none_or(|batch| batch.payloads == queue.batch_max) {
                    queue.batches.push_back(Batch { payloads: 0, outcome: Arc::default() });
                }
                let queued: usize = queue.batches.iter().map(|batch| batch.payloads).sum();
                let last = queue.batches.back_mut().expect("one was pushed");
                last.payloads += 1;
                (Some(last.outcome.clone()), if queued == 0 { Rouse::Ready } else { Rouse::No })
            }
        });
        outcome.map(Durable::new)
    }

    /// As the committer does with a log of its wave.
    fn commit(self: &Arc<Self>) {
        let taken = handoff::take(&**self, |queue| {
            let batch = queue.batches.pop_front()?;
            assert!(!std::mem::replace(&mut queue.flying, true), "one batch flies at a time");
            Some(batch)
        });
        let Some(batch) = taken else { return };
        handoff::done(self, |queue| {
            queue.flying = false;
            queue.written += batch.payloads;
            !queue.batches.is_empty()
        });
        batch.outcome.decide(Ok(()));
    }

    fn close(&self) {
        self.queue.lock().open = false;
    }

    /// As the committer does when the disk failed.
    fn fail(&self) {
        let batches = {
            let mut queue = self.queue.lock();
            queue.open = false;
            std::mem::take(&mut queue.batches)
        };
        batches.iter().for_each(|batch| batch.outcome.decide(Err(CommitError::Failed)));
    }

    fn is_empty(&self) -> bool {
        self.queue.lock().batches.is_empty()
    }

    fn written(&self) -> usize {
        self.queue.lock().written
    }
}

/// The committer: until it is closed, and then what is queued.
fn committer(signal: &Signal<Log>, logs: &[Arc<Log>]) {
    while let Roused::Ready(ready) = signal.wait(None) {
        ready.iter().for_each(Log::commit);
    }
    while let Some(log) = logs.iter().find(|log| !log.is_empty()) {
        log.commit();
    }
}

fn start(signal: &Arc<Signal<Log>>, logs: &[Arc<Log>]) -> thread::JoinHandle<()> {
    let (signal, logs) = (signal.clone(), logs.to_vec());
    thread::spawn(move || committer(&signal, &logs))
}

/// Two tasks append to one log and wait; each is answered.
fn appends_to_one_log(batch_max: usize) {
    let signal = Arc::default();
    let log = Log::new(&signal, batch_max);
    let committing = start(&signal, std::slice::from_ref(&log));
    let other = thread::spawn({
        let log = log.clone();
        move || assert_eq!(block_on(log.append().expect("the queue is open")), Ok(()))
    });
    assert_eq!(block_on(log.append().expect("the queue is open")), Ok(()));
    other.join().expect("the other task was answered");
    assert_eq!(log.written(), 2);
    log.close();
    signal.close();
    committing.join().expect("the committer ends");
}

/// Two appends in a row by one task, whose first may fly while the second comes.
fn appends_in_a_row() {
    let signal = Arc::default();
    let log = Log::new(&signal, 1);
    let committing = start(&signal, std::slice::from_ref(&log));
    let (first, second) = (log.append(), log.append());
    assert_eq!(block_on(second.expect("the queue is open")), Ok(()));
    assert_eq!(block_on(first.expect("the queue is open")), Ok(()));
    log.close();
    signal.close();
    committing.join().expect("the committer ends");
}

/// Two logs, one append each.
fn appends_to_two_logs() {
    let signal = Arc::default();
    let logs = [Log::new(&signal, 1), Log::new(&signal, 1)];
    let committing = start(&signal, &logs);
    let other = thread::spawn({
        let log = logs[1].clone();
        move || assert_eq!(block_on(log.append().expect("the queue is open")), Ok(()))
    });
    assert_eq!(block_on(logs[0].append().expect("the queue is open")), Ok(()));
    other.join().expect("the other task was answered");
    logs.iter().for_each(|log| log.close());
    signal.close();
    committing.join().expect("the committer ends");
}

/// The directory is closed while a task appends: what was taken is answered.
fn closing_beside_an_append() {
    let signal: Arc<Signal<Log>> = Arc::default();
    let log = Log::new(&signal, 1);
    let committing = start(&signal, std::slice::from_ref(&log));
    let closing = thread::spawn({
        let (signal, log) = (signal.clone(), log.clone());
        move || {
            log.close();
            signal.close();
        }
    });
    if let Some(ticket) = log.append() {
        assert_eq!(block_on(ticket), Ok(()));
        assert_eq!(log.written(), 1);
    }
    closing.join().expect("closing ends");
    committing.join().expect("the committer ends");
}

/// The disk fails while a task appends: the task is refused, or its ticket is.
fn failing_beside_an_append() {
    let signal: Arc<Signal<Log>> = Arc::default();
    let log = Log::new(&signal, 1);
    let failing = thread::spawn({
        let log = log.clone();
        move || log.fail()
    });
    if let Some(ticket) = log.append() {
        assert_eq!(block_on(ticket), Err(CommitError::Failed));
    }
    failing.join().expect("failing ends");
}

/// A fate is decided while one task waits for it and another asks.
fn a_fate_beside_its_waiters() {
    let outcome = Arc::new(Outcome::default());
    let waiting = thread::spawn({
        let outcome = outcome.clone();
        move || block_on(Durable::new(outcome))
    });
    let deciding = thread::spawn({
        let outcome = outcome.clone();
        move || outcome.decide(Err(CommitError::NoSpace))
    });
    outcome.decide(Ok(()));
    let fate = waiting.join().expect("the waiter was woken");
    deciding.join().expect("deciding ends");
    assert_eq!(outcome.decided(), Some(fate), "the first decision stands");
}

/// Two flush side by side while the committer waits for both.
fn a_wave_of_flushes() {
    let latch = Arc::new(Latch::new(2));
    let helper = thread::spawn({
        let latch = latch.clone();
        move || latch.arrive(Err("the disk failed"))
    });
    latch.arrive(Ok(()));
    assert_eq!(latch.wait(), Err("the disk failed"));
    helper.join().expect("the helper ends");
}

fn main() {
    let models: [(&str, fn()); 8] = [
        ("two appends to one log, one batch each", || appends_to_one_log(1)),
        ("two appends to one log, one batch for both", || appends_to_one_log(2)),
        ("two appends in a row", appends_in_a_row),
        ("appends to two logs", appends_to_two_logs),
        ("closing beside an append", closing_beside_an_append),
        ("failing beside an append", failing_beside_an_append),
        ("a fate beside its waiters", a_fate_beside_its_waiters),
        ("a wave of flushes", a_wave_of_flushes),
    ];
    for (name, model) in models {
        let orders = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = orders.clone();
        let mut builder = loom::model::Builder::new();
        // More than two forced switches of threads find nothing new in practice, and take for ever.
        builder.preemption_bound = Some(3);
        builder.check(move || {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            model();
        });
        let count = orders.load(std::sync::atomic::Ordering::Relaxed);
        writeln!(std::io::stdout(), "{name}: {count} orders").expect("standard output is open");
    }
}
