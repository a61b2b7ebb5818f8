//! The engine's ports on a log: changes of entities, and hosted contexts, in one order.

use std::cell::RefCell;
use std::ops::Range;
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
use super::payload::{put_change, put_forgotten, put_kept};

thread_local! {
    /// Where a change is encoded before it is copied into the log; kept, so that encoding allocates nothing.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The largest buffer that a thread keeps between two changes, in bytes.
const SCRATCH_BYTES_MAX: usize = 1 << 20;

/// Hears from the log and tells the engine.
#[derive(Default)]
pub(super) struct Publisher {
    /// Set before the first append. Weak: the engine owns the journal, which owns the log, which owns this.
    pub(super) memory: OnceLock<Weak<MemoryStore>>,
}

impl Publisher {
    fn memory(&self) -> Option<Arc<MemoryStore>> {
        self.memory.get().and_then(Weak::upgrade)
    }
}

impl Sink for Publisher {
    fn durable(&self, positions: Range<Position>) {
        if let Some(memory) = self.memory() {
            memory.publish(positions.end.get());
        }
    }

    /// The disk is full. The log has refused all that waits and takes nothing before this returns.
    fn refused(&self, positions: Range<Position>) {
        if let Some(memory) = self.memory() {
            memory.withdraw(engine_position(positions.start)..engine_position(positions.end));
        }
    }
}

/// The engine counts from one, the log from zero.
fn engine_position(position: Position) -> u64 {
    position.get() + 1
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
    kept: Mutex<Kept>,
}

impl FileJournal {
    pub(super) fn new(log: Log, symbols: Arc<Symbols>, contexts: Hosted) -> Self {
        FileJournal { log, symbols, kept: Mutex::new(Kept { contexts, last: None }) }
    }

    pub(super) fn log(&self) -> &Log {
        &self.log
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
        let Some(position) = position.checked_sub(1) else { return Ok(()) };
        self.log.durable_at(Position::new(position)).await.map_err(lost)
    }
}

impl Journal for FileJournal {
    fn admit(&self) -> Result<(), StoreError> {
        self.log.admit().map_err(refused)
    }

    fn append(&self, entry: &Entry<'_>) -> Result<u64, StoreError> {
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.clear();
            put_change(entry, &self.symbols, scratch);
            let appended = self.log.append_admitted(&[scratch]);
            if scratch.capacity() > SCRATCH_BYTES_MAX {
                *scratch = Vec::new();
            }
            appended.map(|ticket| engine_position(ticket.position)).map_err(refused)
        })
    }

    fn durable(&self, position: u64) -> Answer<'_, ()> {
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
    StoreError::Failed("the disk is full; reading goes on, writing does when there is room".to_owned())
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
