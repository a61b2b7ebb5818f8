//! Walks the entities of a query: candidates from the best index, each decided by the filter itself.
//!
//! Candidates come in order of identifier whatever the index: exact identifiers sorted, one type's index,
//! or several merged. An index may over-select; [`trifid_context_model::query::entity::Filter`] decides.

use std::cell::Cell;

use trifid_context_model::query::entity::{Filter, Hints};
use trifid_context_model::query::q::Env;
use trifid_context_model::record::Record;
use trifid_context_model::symbol::Symbols;

use super::cells::Borrowed;
use super::ordered::Cursor;
use super::tenant::Tenant;
use crate::action::is_expired;
use crate::store::{Page, Query, Sink};

/// One query at work on one tenant.
pub(super) struct Scan<'s> {
    tenant: &'s Tenant,
    query: &'s Query<'s>,
    symbols: &'s Symbols,
    hints: Hints,
    /// A linked query asked for more entities than it may (4.9); what was found so far proves nothing.
    exhausted: Cell<bool>,
}

impl<'s> Scan<'s> {
    pub(super) fn new(tenant: &'s Tenant, query: &'s Query<'s>, symbols: &'s Symbols) -> Self {
        Scan { tenant, query, symbols, hints: query.filter.hints(symbols), exhausted: Cell::new(false) }
    }

    fn matches(&self, record: &Record) -> bool {
        let linked = |id: &str| self.tenant.get(id).and_then(|record| record.as_ref().cloned());
        let env = Env::linked(self.symbols, &linked);
        let matches = !is_expired(record, self.query.now) && self.query.filter.matches(record, &env);
        self.exhausted.set(self.exhausted.get() || env.links.exhausted());
        matches
    }

    /// True when the query was given up.
    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted.get()
    }

    /// Gives one page in order of identifier.
    pub(super) fn page(&self, sink: Sink<'_>) -> Page {
        if let Some(total) = self.counted() {
            return self.page_of(sink, Some(total));
        }
        self.page_of(sink, None)
    }

    /// The number of matches where an index knows it: nothing is asked and nothing can expire.
    fn counted(&self) -> Option<usize> {
        let known = *self.query.filter == Filter::default() && self.tenant.is_durable_only();
        (self.query.count && known).then(|| self.tenant.len())
    }

    fn page_of(&self, sink: Sink<'_>, known: Option<usize>) -> Page {
        let (offset, limit) = (self.query.offset, self.query.limit);
        let end = offset.saturating_add(limit);
        let walk_all = self.query.count && known.is_none();
        let mut seen = 0_usize;
        self.for_each(&mut |record| {
            if seen >= offset && seen < end {
                sink(record);
            }
            seen += 1;
            walk_all || seen <= end
        });
        Page { total: known.or_else(|| self.query.count.then_some(seen)), more: seen > end }
    }

    /// Visits the matches in order until `visit` answers false.
    pub(super) fn for_each(&self, visit: &mut dyn FnMut(&Record) -> bool) {
        if self.hints.nothing {
            return;
        }
        if let Some(ids) = &self.hints.ids {
            return self.exact(ids, visit);
        }
        match self.hints.types.as_deref() {
            None => self.walk(self.tenant.all().cursor(), visit),
            Some([one]) => {
                if let Some(index) = self.tenant.of_type(*one) {
                    self.walk(index.cursor(), visit);
                }
            }
            Some(types) => {
                let cursors = types.iter().filter_map(|own| Some(self.tenant.of_type(*own)?.cursor()));
                self.merge(cursors.collect(), visit);
            }
        }
    }

    fn exact(&self, ids: &[Box<str>], visit: &mut dyn FnMut(&Record) -> bool) {
        let mut ids: Vec<&str> = ids.iter().map(|id| &**id).collect();
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            let found = self.tenant.get(id);
            if let Some(record) = found.as_ref().and_then(|record| record.as_ref())
                && self.matches(record)
                && !visit(record)
            {
                return;
            }
        }
    }

    fn walk(&self, mut cursor: Cursor, visit: &mut dyn FnMut(&Record) -> bool) {
        let mut last = None;
        while let Some((_, record)) = cursor.next(self.tenant.cells()) {
            if !self.step(&mut last, record, visit) {
                return;
            }
        }
    }

    /// Visits one candidate; false ends the walk. A slot reused since the index was read shows an entity out
    /// of its place: it is passed over, so that a page never repeats one or goes backwards.
    fn step(
        &self,
        last: &mut Option<Borrowed>,
        record: Borrowed,
        visit: &mut dyn FnMut(&Record) -> bool,
    ) -> bool {
        let Some(own) = record.as_ref() else { return true };
        let before = last.as_ref().and_then(|last| last.as_ref());
        if before.is_some_and(|last| last.id() >= own.id()) {
            return true;
        }
        let go_on = (!self.matches(own) || visit(own)) && !self.is_exhausted();
        *last = Some(record);
        go_on
    }

    /// Merges the indexes of several types; an entity of two of them is visited once.
    fn merge(&self, mut cursors: Vec<Cursor>, visit: &mut dyn FnMut(&Record) -> bool) {
        let cells = self.tenant.cells();
        let mut last = None;
        let mut heads: Vec<Option<(u32, Borrowed)>> = cursors.iter_mut().map(|own| own.next(cells)).collect();
        while let Some(slot) = least(&heads) {
            let mut record = None;
            for (cursor, head) in cursors.iter_mut().zip(&mut heads) {
                if head.as_ref().is_some_and(|(own, _)| *own == slot) {
                    record = std::mem::replace(head, cursor.next(cells));
                }
            }
            if let Some((_, record)) = record
                && !self.step(&mut last, record, visit)
            {
                return;
            }
        }
    }
}

/// The slot of the head with the least identifier.
fn least(heads: &[Option<(u32, Borrowed)>]) -> Option<u32> {
    let id = |head: &Option<(u32, Borrowed)>| {
        let (slot, record) = head.as_ref()?;
        Some((record.as_ref()?.id().to_owned(), *slot))
    };
    heads.iter().filter_map(id).min().map(|(_, slot)| slot)
}
