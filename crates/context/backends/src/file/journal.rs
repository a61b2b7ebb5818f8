//! The engine's ports on a log: changes of entities, and hosted contexts, in one order.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use trifid_base_log::{AppendError, CommitError, Log, Position, Sink};
use trifid_context_engine::contexts::{Boxed, HostedContext, HostedContexts};
use trifid_context_engine::journal::{Entry, Journal};
use trifid_context_engine::memory::MemoryStore;
use trifid_context_engine::store::{Answer, StoreError};
use trifid_context_model::symbol::Symbols;

use super::limits::RETRY_AFTER_S;
use super::loader::Hosted;
use super::noting::{self, Noting};
use super::payload::{put_change, put_forgotten, put_kept};

/// A position that never becomes durable.
const NEVER: u64 = u64::MAX;

thread_local! {
    /// Where a change is encoded before it is copied into the log; kept, so that encoding allocates nothing.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The largest buffer that a thread keeps between two changes, in bytes.
const SCRATCH_BYTES_MAX: usize = 1 << 20;

/// Writing has stopped for good; what was written before is served.
#[derive(Debug, Default)]
pub(super) struct Halt(AtomicBool);

impl Halt {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Hears from the log and tells the engine.
#[derive(Default)]
pub(super) struct Publisher {
    /// Set before the first append. Weak: the engine owns the journal, which owns the log, which owns this.
    pub(super) memory: OnceLock<Weak<MemoryStore>>,
    pub(super) halt: Arc<Halt>,
    pub(super) noting: Arc<Noting>,
}

impl Sink for Publisher {
    fn durable(&self, positions: Range<Position>) {
        // After a refusal the engine still holds what was refused: nothing behind it may become visible.
        if self.halt.is_set() {
            return;
        }
        self.noting.wait();
        if let Some(memory) = self.memory.get().and_then(Weak::upgrade) {
            memory.publish(positions.end.get());
        }
    }

    fn refused(&self, _positions: Range<Position>) {
        self.halt.set();
        tracing::error!("the disk is full: writing has stopped, reading goes on; make room and restart");
    }
}

/// What is known of hosted contexts: the newest state, durable or about to be.
#[derive(Default)]
struct Kept {
    contexts: Hosted,
    /// The position of the last change.
    last: Option<Position>,
}

/// The journal.
pub(super) struct FileJournal {
    log: Log,
    symbols: Arc<Symbols>,
    halt: Arc<Halt>,
    noting: Arc<Noting>,
    kept: Mutex<Kept>,
}

impl FileJournal {
    pub(super) fn new(log: Log, symbols: Arc<Symbols>, publisher: &Publisher, contexts: Hosted) -> Self {
        let (halt, noting) = (publisher.halt.clone(), publisher.noting.clone());
        FileJournal { log, symbols, halt, noting, kept: Mutex::new(Kept { contexts, last: None }) }
    }

    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    pub(super) fn is_halted(&self) -> bool {
        self.halt.is_set()
    }

    /// All hosted contexts, and the position that must be durable before anybody may rely on them.
    pub(super) fn contexts(&self) -> (Vec<HostedContext>, Option<Position>) {
        let kept = self.kept.lock();
        (kept.contexts.values().cloned().collect(), kept.last)
    }

    /// Appends a change of the hosted contexts and makes it, in one order with all others.
    async fn change_contexts(
        &self,
        payload: Vec<u8>,
        change: impl FnOnce(&mut Hosted) -> Option<HostedContext>,
    ) -> Result<(), (Box<str>, Option<HostedContext>)> {
        let (ticket, before) = {
            let mut kept = self.kept.lock();
            if self.halt.is_set() {
                return Err((text(&full()), None));
            }
            let ticket = match self.log.append(&[&payload]) {
                Ok(ticket) => ticket,
                Err(error) => return Err((text(&refused(error)), None)),
            };
            kept.last = Some(ticket.position);
            (ticket, change(&mut kept.contexts))
        };
        match ticket.durable().await {
            Ok(()) => Ok(()),
            Err(error) => Err((text(&lost(error)), before)),
        }
    }

    async fn keep(&self, context: &HostedContext) -> Result<(), Box<str>> {
        let mut payload = Vec::new();
        put_kept(context, &mut payload);
        let key = (context.tenant.clone(), context.local_id.clone());
        let added = key.clone();
        let done = self.change_contexts(payload, |all| all.insert(added, context.clone())).await;
        done.map_err(|(error, _)| {
            self.kept.lock().contexts.remove(&key);
            error
        })
    }

    async fn forget(&self, tenant: &str, local_id: &str) -> Result<(), Box<str>> {
        let mut payload = Vec::new();
        put_forgotten(tenant, local_id, &mut payload);
        let key = (tenant.into(), local_id.into());
        let done = self.change_contexts(payload, |all| all.remove(&key)).await;
        done.map_err(|(error, before)| {
            self.kept.lock().contexts.extend(before.map(|context| (key.clone(), context)));
            error
        })
    }

    async fn until_durable(&self, position: u64) -> Result<(), StoreError> {
        let position = position.checked_sub(1).filter(|position| *position < NEVER - 1);
        let position = position.ok_or_else(full)?;
        let fate = self.log.durable_at(Position::new(position)).await;
        match fate {
            // What became durable after the halt was not published, and may rest on what was refused.
            Ok(()) if self.halt.is_set() => Err(full()),
            Ok(()) => Ok(()),
            Err(error) => Err(lost(error)),
        }
    }
}

impl Journal for FileJournal {
    fn admit(&self) -> Result<(), StoreError> {
        if self.halt.is_set() {
            return Err(full());
        }
        self.log.admit().map_err(refused)
    }

    fn append(&self, entry: &Entry<'_>) -> u64 {
        if self.halt.is_set() {
            // The engine may rest on what was refused; none of it may come back after a restart.
            return NEVER;
        }
        noting::next(&self.noting);
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.clear();
            put_change(entry, &self.symbols, scratch);
            let appended = self.log.append_admitted(&[scratch]);
            if scratch.capacity() > SCRATCH_BYTES_MAX {
                *scratch = Vec::new();
            }
            match appended {
                Ok(ticket) => ticket.position.get() + 1,
                Err(error) => {
                    // The engine has made the change already: without its record nothing after it may be seen.
                    self.halt.set();
                    tracing::error!(%error, "a change could not be journaled: writing has stopped");
                    NEVER
                }
            }
        })
    }

    fn durable(&self, position: u64) -> Answer<'_, ()> {
        noting::end();
        Box::pin(self.until_durable(position))
    }
}

impl HostedContexts for FileJournal {
    fn save<'a>(&'a self, context: &'a HostedContext) -> Boxed<'a, Result<(), Box<str>>> {
        Box::pin(self.keep(context))
    }

    fn remove<'a>(&'a self, tenant: &'a str, local_id: &'a str) -> Boxed<'a, Result<(), Box<str>>> {
        Box::pin(self.forget(tenant, local_id))
    }
}

fn text(error: &StoreError) -> Box<str> {
    error.to_string().into()
}

fn full() -> StoreError {
    StoreError::Failed("the disk is full; what was stored before is served".to_owned())
}

fn refused(error: AppendError) -> StoreError {
    match error {
        AppendError::Overloaded { .. } => StoreError::Overloaded { retry_after_s: RETRY_AFTER_S },
        AppendError::NoSpace => full(),
        AppendError::TooLarge { .. } | AppendError::Closed | AppendError::Failed => {
            StoreError::Failed(error.to_string())
        }
        _ => StoreError::Failed(error.to_string()),
    }
}

fn lost(error: CommitError) -> StoreError {
    match error {
        CommitError::NoSpace => full(),
        _ => StoreError::Failed(error.to_string()),
    }
}
