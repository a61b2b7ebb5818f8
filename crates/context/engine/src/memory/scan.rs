//! Walks the entities of a query: candidates from the best index, each decided by the filter itself.
//!
//! Candidates come in order of identifier whatever the index: exact identifiers sorted, one type's index,
//! or several merged. An index may over-select; [`trifid_context_model::query::entity::Filter`] decides.
//!
//! A walk lets the other requests of its core run after every [`STEP`] candidates, and sooner when they are large or
//! costly, so that a query over a million entities delays nobody by more than a step. A sorted answer keeps the
//! entities up to the end of its page and no others, however many match.

use trifid_context_model::query::entity::{Filter, Hints};
use trifid_context_model::query::order::{Ordering, SortKey};
use trifid_context_model::query::q::{Env, GaveUp};
use trifid_context_model::record::Record;
use trifid_context_model::symbol::Symbols;

use super::cells::{Borrowed, Cells};
use super::ordered::Cursor;
use super::tenant::Tenant;
use crate::action::is_expired;
use crate::limits::MAX_HELD;
use crate::store::{Page, Query, Sink, StoreError};

/// Candidates decided before others run: a fraction of a millisecond of most filters. One that takes more work than
/// most counts for several.
const STEP: u32 = 1024;
/// Work of evaluating `q` that counts as one candidate.
const WORK_OF_ONE: u32 = 32;
/// Bytes of a record that count as one candidate: what relations between shapes cost goes by them.
const BYTES_OF_ONE: u32 = 1024;
/// Entities beyond the page that a sort gathers before it throws the greatest away.
const SLACK: usize = 4096;

/// Decides about a match: false ends the walk.
type Visit<'v> = &'v mut (dyn FnMut(&Record) -> bool + Send);

/// One query at work on one tenant.
pub(super) struct Scan<'s> {
    tenant: &'s Tenant,
    query: &'s Query<'s>,
    symbols: &'s Symbols,
    hints: Hints,
}

impl<'s> Scan<'s> {
    pub(super) fn new(tenant: &'s Tenant, query: &'s Query<'s>, symbols: &'s Symbols) -> Self {
        Scan { tenant, query, symbols, hints: query.filter.hints(symbols) }
    }

    /// Gives one page.
    pub(super) async fn page(&self, sink: Sink<'_>) -> Result<Page, StoreError> {
        match self.query.order {
            None => self.page_by_id(sink).await,
            Some(order) => self.page_sorted(order, sink).await,
        }
    }

    /// The number of matches where an index knows it: nothing is asked and nothing can expire.
    fn counted(&self) -> Option<usize> {
        let known = *self.query.filter == Filter::default() && self.tenant.is_durable_only();
        (self.query.count && known).then(|| self.tenant.len())
    }

    /// Where the page ends among the matches.
    fn end(&self) -> usize {
        self.query.offset.saturating_add(self.query.limit)
    }

    async fn page_by_id(&self, sink: Sink<'_>) -> Result<Page, StoreError> {
        let (offset, end, known) = (self.query.offset, self.end(), self.counted());
        let walk_all = self.query.count && known.is_none();
        let mut seen = 0_usize;
        self.for_each(&mut |record| {
            if seen >= offset && seen < end {
                sink(record);
            }
            seen += 1;
            walk_all || seen <= end
        })
        .await?;
        Ok(Page { total: known.or_else(|| self.query.count.then_some(seen)), more: seen > end })
    }

    async fn page_sorted(&self, order: &Ordering, sink: Sink<'_>) -> Result<Page, StoreError> {
        let end = self.end();
        if end > MAX_HELD {
            return Err(StoreError::TooComplex(
                "a sorted answer cannot be paged this deep; narrow the query",
            ));
        }
        let mut seen = 0_usize;
        let mut best = Best { order, end, held: Vec::new() };
        self.for_each(&mut |record| {
            seen += 1;
            best.add(order.key(record, self.symbols), record);
            true
        })
        .await?;
        for (_, record) in best.sorted().iter().skip(self.query.offset) {
            sink(record);
        }
        Ok(Page { total: self.query.count.then_some(seen), more: seen > end })
    }

    /// Visits the matches in order of identifier until `visit` answers false.
    async fn for_each(&self, visit: Visit<'_>) -> Result<(), StoreError> {
        let mut walk = self.walk();
        let mut left = STEP;
        while let Some(record) = walk.next(self.tenant) {
            if !self.visit(&record, &mut left, visit)? {
                return Ok(());
            }
            if left == 0 {
                left = STEP;
                walk.passed(record);
                tokio::task::yield_now().await;
            } else {
                walk.passed(record);
            }
        }
        Ok(())
    }

    /// Decides one candidate and takes its cost off `left`; false ends the walk.
    fn visit(&self, record: &Borrowed, left: &mut u32, visit: Visit<'_>) -> Result<bool, StoreError> {
        *left -= 1;
        let Some(record) = record.as_ref() else { return Ok(true) };
        if is_expired(record, self.query.now) {
            return Ok(true);
        }
        let linked = |id: &str| self.tenant.get(id).and_then(|record| record.as_ref().cloned());
        let env = Env::linked(self.symbols, &linked);
        let matches = self.query.filter.matches(record, &env);
        match env.gave_up() {
            // What was found by then proves nothing (4.9).
            Some(GaveUp::Links) => Err(StoreError::TooComplex("the query follows too many links; narrow it")),
            Some(GaveUp::Work) => Err(StoreError::TooComplex(
                "q compares too much in one entity; ask for fewer values, patterns or terms",
            )),
            None => {
                let bytes = u32::try_from(record.size()).unwrap_or(u32::MAX);
                *left = left.saturating_sub(env.work() / WORK_OF_ONE + bytes / BYTES_OF_ONE);
                Ok(!matches || visit(record))
            }
        }
    }

    fn walk(&self) -> Walk {
        let (tenant, hints) = (self.tenant, &self.hints);
        let source = match (&hints.ids, hints.types.as_deref()) {
            _ if hints.nothing => Source::Ids(Vec::new().into_iter()),
            (Some(ids), _) => Source::Ids(ids.clone().into_iter()),
            (None, None) => Source::One(tenant.all().cursor()),
            (None, Some([one])) => match tenant.of_type(*one) {
                Some(cursor) => Source::One(cursor),
                None => Source::Ids(Vec::new().into_iter()),
            },
            (None, Some(types)) => {
                let cursors = types.iter().filter_map(|own| tenant.of_type(*own));
                Source::Many(Merge::new(cursors.collect(), tenant.cells()))
            }
        };
        Walk { source, last: None }
    }
}

/// A walk over candidates in order of identifier.
struct Walk {
    source: Source,
    /// The candidate before: what does not stand behind it is a reused slot, or stands in two indexes.
    last: Option<Borrowed>,
}

enum Source {
    /// Sorted and distinct, as hints give them.
    Ids(std::vec::IntoIter<Box<str>>),
    One(Cursor),
    Many(Merge),
}

impl Walk {
    fn next(&mut self, tenant: &Tenant) -> Option<Borrowed> {
        loop {
            let record = self.source.next(tenant)?;
            let last = self.last.as_ref().and_then(|last| last.as_ref());
            let out_of_order =
                last.is_some_and(|last| record.as_ref().is_none_or(|own| own.id() <= last.id()));
            if !out_of_order {
                return Some(record);
            }
        }
    }

    fn passed(&mut self, record: Borrowed) {
        self.last = Some(record);
    }
}

impl Source {
    fn next(&mut self, tenant: &Tenant) -> Option<Borrowed> {
        match self {
            Source::Ids(ids) => ids.find_map(|id| tenant.get(&id)),
            Source::One(cursor) => cursor.next(tenant.cells()),
            Source::Many(merge) => merge.next(tenant.cells()),
        }
    }
}

/// The indexes of several types, walked together.
struct Merge {
    cursors: Vec<Cursor>,
    heads: Vec<Option<Borrowed>>,
}

fn id(head: &Option<Borrowed>) -> Option<&str> {
    head.as_ref()?.as_ref().map(Record::id)
}

impl Merge {
    fn new(mut cursors: Vec<Cursor>, cells: &Cells) -> Self {
        let heads = cursors.iter_mut().map(|cursor| cursor.next(cells)).collect();
        Merge { cursors, heads }
    }

    /// The head with the least identifier; an entity of several types comes once for each.
    fn next(&mut self, cells: &Cells) -> Option<Borrowed> {
        let waiting = (0..self.heads.len()).filter(|at| self.heads[*at].is_some());
        let least = waiting.min_by(|a, b| id(&self.heads[*a]).cmp(&id(&self.heads[*b])))?;
        std::mem::replace(&mut self.heads[least], self.cursors[least].next(cells))
    }
}

/// The entities up to the end of a sorted page.
struct Best<'o> {
    order: &'o Ordering,
    end: usize,
    held: Vec<(SortKey, Record)>,
}

impl Best<'_> {
    fn add(&mut self, key: SortKey, record: &Record) {
        self.held.push((key, record.clone()));
        if self.held.len() >= self.end + self.end.max(SLACK) {
            self.cut();
        }
    }

    /// Throws away what cannot be on the page.
    fn cut(&mut self) {
        if self.held.len() > self.end {
            let order = self.order;
            self.held.select_nth_unstable_by(self.end, |a, b| compare(order, a, b));
            self.held.truncate(self.end);
        }
    }

    fn sorted(mut self) -> Vec<(SortKey, Record)> {
        self.cut();
        let order = self.order;
        self.held.sort_unstable_by(|a, b| compare(order, a, b));
        self.held
    }
}

/// Entities that the keys leave equal stand in order of identifier, so that pages fit together.
fn compare(order: &Ordering, a: &(SortKey, Record), b: &(SortKey, Record)) -> std::cmp::Ordering {
    order.compare(&a.0, &b.0).then_with(|| a.1.id().cmp(b.1.id()))
}
