//! The archive as its face sees it: prepare a query, run it, take its rows.
//!
//! Preparing looks the query's shape up in the plan cache: the text is only cut into tokens, and a cone at a new
//! position finds the plan of the one before. A miss parses, resolves, and compiles for the index path where that
//! is possible. Running takes the index path where it stands if the effort is small; everything else gets a turn
//! in the compute pool and comes back through a short queue, so whoever reads slowly holds two batches back, not
//! a table. Dropping the answer ends the work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use tokio::sync::mpsc;
use trifid_archive_adql::fingerprint::Fingerprint;
use trifid_archive_adql::language::Language;
use trifid_archive_adql::lift::{self, Guard};
use trifid_archive_adql::parser;
use trifid_archive_adql::resolve::{Options as ResolveOptions, resolve};
use trifid_archive_adql::tree::{Query, Slot, Value};
use trifid_archive_adql::types::{Field, Type};

use crate::access::{Effort, Program, Running, Step};
use crate::answer::{Answer, Piece, QUEUE_BATCHES};
use crate::backend::{BatchStream, Cancel, QueryBackend, Run};
use crate::catalogue::{Published, SchemaInfo, Snapshot, Tables};
use crate::compute::{Compute, Ticket};
use crate::error::QueryError;
use crate::table::Table;
use crate::tap_schema;

#[cfg(test)]
mod tests;

/// The archive.
pub struct Archive {
    snapshot: ArcSwap<Snapshot>,
    /// Held while a snapshot is replaced.
    publishing: Mutex<()>,
    plans: Cache<(u64, Box<str>), Arc<Plan>>,
    next_plan: AtomicU64,
    backend: Arc<dyn QueryBackend>,
    compute: Arc<Compute>,
}

/// What a query is, whatever its literals.
pub struct Plan {
    /// The columns of the result.
    pub fields: Arc<[Field]>,
    /// Room for what a face renders of the columns, per format, once.
    pub rendered: Rendered,
    id: u64,
    query: Arc<Query>,
    program: Option<Arc<Program>>,
    /// What literals must fulfil for the tree to be theirs, and the types that their places have.
    guards: Vec<Guard>,
    slots: Vec<(Slot, Type)>,
    generation: u64,
}

/// Bytes that a face keeps with a plan, by the number of a format.
#[derive(Default)]
pub struct Rendered(Mutex<Vec<(usize, Arc<[u8]>)>>);

impl Rendered {
    /// What is kept for `format`, made by `make` the first time.
    pub fn get(&self, format: usize, make: impl FnOnce() -> Arc<[u8]>) -> Arc<[u8]> {
        let mut kept = self.0.lock();
        if let Some((_, bytes)) = kept.iter().find(|(kind, _)| *kind == format) {
            return Arc::clone(bytes);
        }
        let made = make();
        kept.push((format, Arc::clone(&made)));
        made
    }
}

/// A query that is ready to run.
pub struct Prepared {
    /// What it is.
    pub plan: Arc<Plan>,
    literals: Vec<Value>,
    tables: Arc<Tables>,
}

impl Archive {
    /// An archive that publishes `snapshot` and runs what the index path cannot on `backend`; at most `plans` plans
    /// are kept.
    pub fn new(
        snapshot: Snapshot,
        backend: Arc<dyn QueryBackend>,
        compute: Arc<Compute>,
        plans: usize,
    ) -> Self {
        Self {
            snapshot: ArcSwap::from_pointee(snapshot),
            publishing: Mutex::new(()),
            plans: Cache::new(plans),
            next_plan: AtomicU64::new(0),
            backend,
            compute,
        }
    }

    /// What is published now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Publishes what `change` makes of the snapshot; it is given the generation that the new one must have. Running
    /// queries keep what they began with.
    pub fn publish<E>(&self, change: impl FnOnce(&Snapshot, u64) -> Result<Snapshot, E>) -> Result<(), E> {
        let _held = self.publishing.lock();
        let now = self.snapshot.load_full();
        let next = change(&now, now.generation + 1)?;
        self.snapshot.store(Arc::new(next));
        self.plans.clear();
        Ok(())
    }

    /// Publishes these schemas and tables in place of all.
    pub fn replace(&self, schemas: Vec<SchemaInfo>, tables: Vec<Arc<Published>>) -> Result<(), QueryError> {
        self.publish(|_, generation| tap_schema::with_tap_schema(generation, schemas, tables))
    }

    /// Publishes these schemas and tables beside those that are there, in place of those of the same name.
    pub fn add(&self, schemas: &[SchemaInfo], tables: &[Arc<Published>]) -> Result<(), QueryError> {
        self.publish(|now, generation| {
            let replaced = |old: &&SchemaInfo| schemas.iter().all(|new| new.name != old.name);
            let mut all: Vec<SchemaInfo> = now.schemas.iter().filter(replaced).cloned().collect();
            all.retain(|schema| &*schema.name != tap_schema::SCHEMA);
            all.extend(schemas.iter().cloned());
            let same = |old: &Published, new: &Published| {
                old.table.head.schema == new.table.head.schema && old.table.head.name == new.table.head.name
            };
            let mut kept = now.tables.clone();
            kept.retain(|old| {
                &*old.table.head.schema != tap_schema::SCHEMA && !tables.iter().any(|new| same(old, new))
            });
            kept.extend(tables.iter().cloned());
            tap_schema::with_tap_schema(generation, all, kept)
        })
    }

    /// The pool for work above a millisecond.
    pub fn compute(&self) -> &Arc<Compute> {
        &self.compute
    }

    /// Makes a query ready to run: finds its plan, or parses and resolves it. `uploads` are tables of this query alone.
    /// A mistake is worded with its line, its column, a caret and a hint.
    pub fn prepare(
        &self,
        text: &str,
        language: Language,
        uploads: Vec<Arc<Table>>,
    ) -> Result<Prepared, QueryError> {
        let snapshot = self.snapshot.load_full();
        let generation = snapshot.generation;
        let alone = uploads.is_empty();
        let tables = Arc::new(Tables { snapshot, uploads });
        let mut shape = Fingerprint::new();
        shape.read(text, language).map_err(|error| QueryError::invalid(error.report(text).to_string()))?;
        if alone
            && let Some(plan) = self.plans.get(&Key(generation, shape.key()))
            && plan.holds_for(shape.literals())
        {
            return Ok(Prepared { plan, literals: shape.into_literals(), tables });
        }
        let plan = Arc::new(self.plan(text, language, &tables)?);
        if alone {
            self.plans.insert((generation, shape.key().into()), Arc::clone(&plan));
        }
        Ok(Prepared { plan, literals: shape.into_literals(), tables })
    }

    fn plan(&self, text: &str, language: Language, tables: &Arc<Tables>) -> Result<Plan, QueryError> {
        let parsed = parser::parse(text, language)
            .map_err(|error| QueryError::invalid(error.report(text).to_string()))?;
        let resolved = resolve(&parsed, &**tables, &ResolveOptions::default())
            .map_err(|error| QueryError::invalid(error.report(text).to_string()))?;
        let program = Program::compile(&resolved.query, tables);
        Ok(Plan {
            fields: Arc::clone(&resolved.query.fields),
            rendered: Rendered::default(),
            id: self.next_plan.fetch_add(1, Ordering::Relaxed),
            program: program.map(Arc::new),
            slots: lift::slots(&resolved.query),
            query: resolved.query,
            guards: resolved.guards,
            generation: tables.snapshot.generation,
        })
    }

    /// Runs a query for at most `limit` rows and `time`. Returns at once: small answers are ready, others come from
    /// the compute pool.
    pub fn start(
        &self,
        prepared: &Prepared,
        limit: Option<u64>,
        time: Option<Duration>,
    ) -> Result<Answer, QueryError> {
        self.begin(prepared, limit, time, Compute::queue)
    }

    /// [`Self::start`] that waits for a turn however busy the archive is, for as long as it takes: a job's query. What
    /// bounds them is the number of jobs that run at once.
    pub fn start_patiently(&self, prepared: &Prepared, limit: Option<u64>) -> Result<Answer, QueryError> {
        self.begin(prepared, limit, None, |compute| Ok(compute.queue_patiently()))
    }

    fn begin(
        &self,
        prepared: &Prepared,
        limit: Option<u64>,
        time: Option<Duration>,
        queue: impl FnOnce(&Compute) -> Result<Ticket, QueryError>,
    ) -> Result<Answer, QueryError> {
        let fields = Arc::clone(&prepared.plan.fields);
        if limit == Some(0) {
            return Ok(Answer::withheld(fields));
        }
        // One row more than may be given tells whether any was withheld.
        let wanted = limit.map(|limit| limit.saturating_add(1));
        if let Some(program) = &prepared.plan.program
            && let Some(running) = program.begin(&prepared.literals, wanted, false)?
            && running.effort() == Effort::Small
        {
            return Ok(Answer::ready(fields, running.all()?, limit));
        }
        let ticket = queue(&self.compute)?;
        let (sender, queue) = mpsc::channel(QUEUE_BATCHES);
        let cancel = Cancel::after(time);
        let work = Work {
            program: prepared.plan.program.clone(),
            literals: prepared.literals.clone(),
            run: prepared.run(wanted, cancel.clone())?,
            backend: Arc::clone(&self.backend),
            wanted,
        };
        let task = self.compute.spawn(work.produce(ticket, sender, time));
        Ok(Answer::streamed(fields, queue, task.abort_handle(), cancel, limit))
    }

    /// How many plans are kept.
    pub fn plans(&self) -> usize {
        self.plans.len()
    }
}

/// A plan's place in the cache, borrowed.
#[derive(Hash)]
struct Key<'a>(u64, &'a str);

impl quick_cache::Equivalent<(u64, Box<str>)> for Key<'_> {
    fn equivalent(&self, key: &(u64, Box<str>)) -> bool {
        self.0 == key.0 && *self.1 == *key.1
    }
}

impl Plan {
    /// Whether the literals that shaped the tree are the same ones.
    fn holds_for(&self, literals: &[Value]) -> bool {
        self.guards.iter().all(|guard| guard.holds(literals)) && lift::fits(&self.slots, literals)
    }

    /// Whether the index path may run it.
    pub fn is_indexed(&self) -> bool {
        self.program.is_some()
    }

    /// The tree, for explanations.
    pub fn query(&self) -> &Arc<Query> {
        &self.query
    }
}

impl Prepared {
    fn run(&self, limit: Option<u64>, cancel: Cancel) -> Result<Run, QueryError> {
        let strange = || QueryError::internal("a literal does not fit its place");
        let query = lift::bind(&self.plan.query, &self.literals).ok_or_else(strange)?;
        let plan = self.tables.uploads.is_empty().then_some(self.plan.id);
        debug_assert_eq!(self.plan.generation, self.tables.snapshot.generation);
        Ok(Run { query, plan, tables: Arc::clone(&self.tables), limit, cancel })
    }
}

/// A query on its way through the pool.
struct Work {
    program: Option<Arc<Program>>,
    literals: Vec<Value>,
    run: Run,
    backend: Arc<dyn QueryBackend>,
    wanted: Option<u64>,
}

impl Work {
    async fn produce(self, ticket: Ticket, sender: mpsc::Sender<Piece>, time: Option<Duration>) {
        let whole = async {
            let turn = ticket.turn().await?;
            let done = self.rows(&sender).await;
            drop(turn);
            done
        };
        let outcome = match time {
            Some(time) => tokio::time::timeout(time, whole)
                .await
                .unwrap_or(Err(QueryError::TimedOut { seconds: time.as_secs() })),
            None => whole.await,
        };
        if let Err(error) = outcome {
            // A reader that left does not hear it.
            let _ = sender.send(Err(error)).await;
        }
    }

    async fn rows(self, sender: &mpsc::Sender<Piece>) -> Result<(), QueryError> {
        if let Some(program) = &self.program
            && let Some(running) = program.begin(&self.literals, self.wanted, true)?
            && running.effort() != Effort::TooLarge
        {
            return indexed(running, sender).await;
        }
        let stream = self.backend.run(self.run).await?;
        forwarded(stream, sender).await
    }
}

async fn indexed(mut running: Running, sender: &mpsc::Sender<Piece>) -> Result<(), QueryError> {
    loop {
        match running.step()? {
            Step::Over => return Ok(()),
            Step::Rows(batch) => {
                if sender.send(Ok(batch)).await.is_err() {
                    return Ok(());
                }
            }
            // A scan that finds nothing for long must still let others have their turn, and hear of its end.
            Step::Looked => tokio::task::yield_now().await,
        }
    }
}

async fn forwarded(mut stream: BatchStream, sender: &mpsc::Sender<Piece>) -> Result<(), QueryError> {
    while let Some(piece) = std::future::poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
        if sender.send(Ok(piece?)).await.is_err() {
            break;
        }
    }
    Ok(())
}
