//! Joins: the left side streams past the right one, which is held.
//!
//! Conditions `left = right` find candidates by a hash of the right rows' values; without any, all pairs are
//! candidates. Whatever found them, the whole ON is then computed for the candidates, so a hash can only save
//! work. In a FROM that has inner joins only, conditions of WHERE may serve too: they are computed again later.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use arrow_array::UInt32Array;
use trifid_archive_adql::lift::{any, conjuncts, is_volatile, subquery};
use trifid_archive_adql::tree::{Comparison, Expr, Join, JoinKind, Kind, Relation};

use super::block::{Block, leaves};
use super::run::{Flow, Rows};
use super::scope::{Scope, Source};
use super::select::Selecting;
use crate::error::QueryError;
use crate::eval::keys::{Interner, Keys};
use crate::eval::{self, Context};

/// Pairs that are tested at once.
const PAIRS: usize = 8192;

/// Receives blocks.
pub(super) type BlockSink<'s> = dyn FnMut(Block) -> Result<Flow, QueryError> + 's;

impl<'a> Selecting<'a> {
    /// The rows of a join. `also` are conditions that every row must satisfy in the end.
    pub(super) fn join(
        &self,
        join: &'a Join,
        also: &[&'a Expr],
        sink: &mut BlockSink<'_>,
    ) -> Result<Flow, QueryError> {
        match join {
            Join::Leaf(relation) => self.leaf(*relation, also, sink),
            Join::Pair { kind, left, right, on } => self.pair(*kind, left, right, on.as_ref(), also, sink),
        }
    }

    fn leaf(&self, relation: usize, also: &[&'a Expr], sink: &mut BlockSink<'_>) -> Result<Flow, QueryError> {
        let own = |condition: &&&Expr| {
            relations(condition).is_some_and(|needed| needed.iter().eq([&(relation as u16)]))
        };
        let own: Vec<&Expr> = also.iter().filter(own).copied().collect();
        let mut narrowed = |mut block: Block| {
            self.run.check()?;
            for condition in &own {
                // A condition that fails may do so for rows that no other condition lets through.
                if let Ok(mask) = eval::filter(condition, &self.scope(&block, 0), &Context::default()) {
                    block = block.filter(&mask)?;
                }
            }
            sink(block)
        };
        match self.select.relations.get(relation) {
            Some(Relation::Table(table)) => {
                let table = self.run.table(table)?;
                for (place, chunk) in table.chunks.iter().enumerate() {
                    let read = |column| table.column(place, column);
                    let block = Block::of_relation(&self.layout, relation, chunk.rows as usize, read)?;
                    if narrowed(block)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
            Some(Relation::Query(query)) => self.run.derived(query, &mut |rows: Rows| {
                let read = |column: usize| {
                    let absent = || QueryError::internal("a derived table lacks a column");
                    rows.columns.get(column).cloned().ok_or_else(absent)
                };
                narrowed(Block::of_relation(&self.layout, relation, rows.count, read)?)
            }),
            None => Err(QueryError::internal(format_args!("no relation {relation} here"))),
        }
    }

    fn scope<'s>(&'s self, block: &'s Block, first: u64) -> Scope<'s> {
        Scope { run: self.run, outer: self.outer, source: Source::Rows(block), first }
    }

    fn pair(
        &self,
        kind: JoinKind,
        left: &'a Join,
        right: &'a Join,
        on: Option<&'a Expr>,
        also: &[&'a Expr],
        sink: &mut BlockSink<'_>,
    ) -> Result<Flow, QueryError> {
        // Where rows stay without a partner, a condition on the result says nothing of the sides alone.
        let mut conditions: Vec<&Expr> = on.map(conjuncts).unwrap_or_default();
        if kind == JoinKind::Inner {
            conditions.extend(also);
        }
        let below: &[&Expr] = if kind == JoinKind::Inner { &conditions } else { &[] };
        let held = self.held(right, below)?;
        let mut partners = Partners::new(self, left, right, &conditions, held, kind)?;
        let flow = self.join(left, below, &mut |block| partners.probe(&block, on, sink))?;
        if flow.is_break() {
            return Ok(flow);
        }
        partners.lonely_right(left, sink)
    }

    /// All rows of the right side.
    fn held(&self, join: &'a Join, below: &[&'a Expr]) -> Result<Block, QueryError> {
        let mut blocks = Vec::new();
        let (mut bytes, mut rows) = (0, 0);
        let _ = self.join(join, below, &mut |block| {
            bytes += block.bytes();
            rows += block.rows;
            self.run.bounded(bytes, rows)?;
            blocks.push(block);
            Ok(ControlFlow::Continue(()))
        })?;
        Block::concat(&blocks, Block::nulls(self.select, &self.layout, join, 0))
    }
}

/// The right side of a join, and what finds the partners of a left row in it.
struct Partners<'a, 'j> {
    selecting: &'j Selecting<'a>,
    block: Block,
    kind: JoinKind,
    right: &'j Join,
    finder: Finder<'a>,
    /// The right rows that have had a partner.
    matched: Vec<bool>,
}

/// How candidates are found.
enum Finder<'a> {
    /// Every row is one.
    All,
    /// By the values of these expressions over left rows.
    Hash { probes: Vec<&'a Expr>, keys: Interner, rows: Vec<Vec<u32>> },
}

impl<'a, 'j> Partners<'a, 'j> {
    fn new(
        selecting: &'j Selecting<'a>,
        left: &'j Join,
        right: &'j Join,
        conditions: &[&'a Expr],
        block: Block,
        kind: JoinKind,
    ) -> Result<Self, QueryError> {
        if u32::try_from(block.rows).is_err() {
            return Err(QueryError::TooLarge("a side of a join has fewer than 2^32 rows".into()));
        }
        let finder = Finder::new(selecting, left, right, conditions, &block)?;
        let matched = vec![false; block.rows];
        Ok(Self { selecting, block, kind, right, finder, matched })
    }

    /// Pairs of a left block's rows, and the left rows that stay alone.
    fn probe(
        &mut self,
        left: &Block,
        on: Option<&Expr>,
        sink: &mut BlockSink<'_>,
    ) -> Result<Flow, QueryError> {
        let candidates = self.finder.candidates(self.selecting, left)?;
        let (held, matched) = (&self.block, &mut self.matched);
        let mut meeting = Meeting::new(self.selecting, left, held, matched, on);
        for row in 0..left.rows {
            for partner in candidates.of(row, held.rows) {
                if meeting.pair(row as u32, partner, sink)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        if meeting.test(sink)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if !matches!(self.kind, JoinKind::Left | JoinKind::Full) {
            return Ok(ControlFlow::Continue(()));
        }
        let alone = left.take(&unset(&meeting.met))?;
        let rows = alone.rows;
        sink(alone.beside(Block::nulls(self.selecting.select, &self.selecting.layout, self.right, rows)))
    }

    /// The right rows that stay alone, where they count.
    fn lonely_right(&self, left: &Join, sink: &mut BlockSink<'_>) -> Result<Flow, QueryError> {
        if !matches!(self.kind, JoinKind::Right | JoinKind::Full) {
            return Ok(ControlFlow::Continue(()));
        }
        let alone = self.block.take(&unset(&self.matched))?;
        let (select, layout) = (self.selecting.select, &self.selecting.layout);
        sink(Block::nulls(select, layout, left, alone.rows).beside(alone))
    }
}

/// The places where no flag is set.
fn unset(flags: &[bool]) -> UInt32Array {
    let places = flags.iter().enumerate().filter(|(_, flag)| !**flag);
    UInt32Array::from_iter_values(places.map(|(place, _)| place as u32))
}

/// Rows of a left block that meet rows of the right side, pair by pair.
struct Meeting<'m, 'a> {
    selecting: &'m Selecting<'a>,
    left: &'m Block,
    held: &'m Block,
    on: Option<&'m Expr>,
    /// The candidates that are not tested yet.
    pairs: (Vec<u32>, Vec<u32>),
    /// The left rows that have had a partner.
    met: Vec<bool>,
    /// The right rows that have had one.
    matched: &'m mut [bool],
}

impl<'m, 'a> Meeting<'m, 'a> {
    fn new(
        selecting: &'m Selecting<'a>,
        left: &'m Block,
        held: &'m Block,
        matched: &'m mut [bool],
        on: Option<&'m Expr>,
    ) -> Self {
        Self { selecting, left, held, on, pairs: Default::default(), met: vec![false; left.rows], matched }
    }

    /// One more candidate.
    fn pair(&mut self, left: u32, right: u32, sink: &mut BlockSink<'_>) -> Result<Flow, QueryError> {
        self.pairs.0.push(left);
        self.pairs.1.push(right);
        if self.pairs.0.len() < PAIRS { Ok(ControlFlow::Continue(())) } else { self.test(sink) }
    }

    /// Passes on the pairs for which ON is true.
    fn test(&mut self, sink: &mut BlockSink<'_>) -> Result<Flow, QueryError> {
        self.selecting.run.check()?;
        let (left, right) = std::mem::take(&mut self.pairs);
        if left.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let (left, right) = (UInt32Array::from(left), UInt32Array::from(right));
        let mut block = self.left.take(&left)?.beside(self.held.take(&right)?);
        let mut mask = None;
        if let Some(on) = self.on {
            let context = self.selecting.run.context(0);
            let true_for = eval::filter(on, &self.selecting.scope(&block, 0), &context)?;
            block = block.filter(&true_for)?;
            mask = Some(true_for);
        }
        for pair in (0..left.len()).filter(|pair| mask.as_ref().is_none_or(|mask| mask.value(*pair))) {
            self.met[left.value(pair) as usize] = true;
            self.matched[right.value(pair) as usize] = true;
        }
        sink(block)
    }
}

impl<'a> Finder<'a> {
    fn new(
        selecting: &Selecting<'a>,
        left: &Join,
        right: &Join,
        conditions: &[&'a Expr],
        block: &Block,
    ) -> Result<Self, QueryError> {
        let mut probes = Vec::new();
        let mut columns = Vec::new();
        for condition in conditions {
            let Some((probe, build)) = sides(condition, &leaves(left), &leaves(right)) else { continue };
            // What fails here may not be reached at all by the pairs: they will tell.
            if let Ok(values) = eval::evaluate(build, &selecting.scope(block, 0), &Context::default()) {
                probes.push(probe);
                columns.push(values);
            }
        }
        if probes.is_empty() {
            return Ok(Self::All);
        }
        let mut keys = Interner::default();
        let mut rows: Vec<Vec<u32>> = Vec::new();
        let written = Keys::new(&columns)?;
        let mut key = Vec::new();
        for row in (0..block.rows).filter(|row| !written.any_null(*row)) {
            key.clear();
            written.write(row, &mut key);
            let (number, new) = keys.intern(&key)?;
            if new {
                rows.push(Vec::new());
            }
            rows[number].push(row as u32);
        }
        Ok(Self::Hash { probes, keys, rows })
    }

    /// The candidates for each row of a left block.
    fn candidates(&self, selecting: &Selecting<'_>, left: &Block) -> Result<Candidates<'_>, QueryError> {
        let Self::Hash { probes, keys, rows } = self else { return Ok(Candidates::All) };
        let scope = selecting.scope(left, 0);
        let columns = probes.iter().map(|probe| eval::evaluate(probe, &scope, &Context::default()));
        let columns = match columns.collect::<Result<Vec<_>, _>>() {
            Ok(columns) => columns,
            Err(QueryError::Invalid(_)) => return Ok(Candidates::All),
            Err(error) => return Err(error),
        };
        let written = Keys::new(&columns)?;
        let mut key = Vec::new();
        let found = (0..left.rows).map(|row| {
            key.clear();
            written.write(row, &mut key);
            let number = if written.any_null(row) { None } else { keys.find(&key) };
            number.map_or(&[][..], |number| &rows[number])
        });
        Ok(Candidates::Some(found.collect()))
    }
}

/// Right rows that may be partners of each left row.
enum Candidates<'f> {
    All,
    Some(Vec<&'f [u32]>),
}

impl Candidates<'_> {
    fn of(&self, row: usize, right_rows: usize) -> Box<dyn Iterator<Item = u32> + '_> {
        match self {
            Self::All => Box::new(0..right_rows as u32),
            Self::Some(found) => Box::new(found[row].iter().copied()),
        }
    }
}

/// The sides of a condition `one = other` of which one needs the left relations only, the other the right ones
/// only; the left one first.
fn sides<'a>(condition: &'a Expr, left: &[usize], right: &[usize]) -> Option<(&'a Expr, &'a Expr)> {
    let Kind::Compare(Comparison::Equal, a, b) = &condition.kind else { return None };
    let within = |expr: &Expr, among: &[usize]| {
        relations(expr).is_some_and(|needed| {
            !needed.is_empty() && needed.iter().all(|relation| among.contains(&usize::from(*relation)))
        })
    };
    if within(a, left) && within(b, right) {
        Some((a, b))
    } else if within(b, left) && within(a, right) {
        Some((b, a))
    } else {
        None
    }
}

/// The relations of its select whose columns an expression needs, if these and literals are all that it needs.
fn relations(expr: &Expr) -> Option<BTreeSet<u16>> {
    let mut found = BTreeSet::new();
    let needs_more = any(expr, &mut |node| match node.kind {
        Kind::Column(at) => {
            found.insert(at.relation);
            at.depth > 0
        }
        _ => subquery(node).is_some(),
    });
    (!needs_more && !is_volatile(expr)).then_some(found)
}
