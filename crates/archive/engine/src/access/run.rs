//! One run of a program: from selected rows to batches.
//!
//! Rows are taken up in blocks: a run of a chunk, or rows of a chunk by number. For each block the filter is
//! evaluated over the columns that it uses, and only then the items over the rows that are left. Without an order
//! blocks become batches as they come, and the run ends when there are rows enough. With one, everything is
//! gathered and sorted, unless a value index gives the order and only the first rows are wanted.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow_select::take::take;
use trifid_archive_adql::tree::{ColumnRef, Expr, Kind};
use trifid_archive_model::batch;

use super::program::Program;
use super::selection::Selection;
use super::sort;
use crate::error::QueryError;
use crate::eval::{self, Cells, Context, Input};
use crate::index::Sorted;
use crate::limits::{ORDERED_ROWS, SMALL_RUN_ROWS, SMALL_SCAN_ROWS};
use crate::table::{Row, Table};

/// Rows of a block, and so of a batch.
const BLOCK_ROWS: usize = 8_192;

/// Rows of the first block, so that the first row is on its way soon.
const FIRST_BLOCK_ROWS: usize = 1_024;

/// An order index is walked if the rows wanted are fewer than the selected rows by this factor.
const ORDER_WALK_FACTOR: u64 = 16;

/// Rows that a walk along an index may look at in vain.
const WALK_ROWS: usize = 32_768;

/// How much work a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Well below a millisecond, with everything in memory.
    Small,
    /// More, or with reading.
    Large,
    /// More than this path is made for: rows beyond count to be sorted.
    TooLarge,
}

/// A run under way.
pub struct Running {
    program: Arc<Program>,
    filter: Vec<Expr>,
    items: Option<Vec<Expr>>,
    selection: Selection,
    /// Where in the selection the next block begins: element, and row in it.
    at: (usize, u32),
    offset: u64,
    top: u64,
    first: bool,
    /// Rows gathered to be sorted.
    gathered: Vec<Vec<ArrayRef>>,
}

/// What a step of a run came to.
#[derive(Debug)]
pub enum Step {
    /// Rows of the answer.
    Rows(RecordBatch),
    /// Rows were looked at; there may be more.
    Looked,
    /// The answer is whole.
    Over,
}

impl Running {
    pub(super) fn new(
        program: Arc<Program>,
        selection: Selection,
        filter: Vec<Expr>,
        items: Option<Vec<Expr>>,
    ) -> Self {
        Self {
            program,
            filter,
            items,
            selection,
            at: (0, 0),
            offset: 0,
            top: u64::MAX,
            first: true,
            gathered: Vec::new(),
        }
    }

    /// Leaves out `offset` rows and ends after `top`.
    pub(super) fn cut(mut self, offset: u64, top: u64) -> Self {
        (self.offset, self.top) = (offset, top);
        self
    }

    fn table(&self) -> &Table {
        &self.program.table
    }

    fn items(&self) -> &[Expr] {
        self.items.as_deref().unwrap_or(&self.program.items)
    }

    /// How many conditions are left for the evaluator.
    #[cfg(test)]
    pub(super) fn filters(&self) -> usize {
        self.filter.len()
    }

    /// How much work this is.
    pub fn effort(&self) -> Effort {
        let selected = self.selection.rows();
        let wanted = self.offset.saturating_add(self.top);
        if !self.program.order.is_empty() && self.walked_index().is_none() && selected > ORDERED_ROWS {
            return Effort::TooLarge;
        }
        let (rows, limit) = match &self.selection {
            Selection::Rows(rows) => (rows.len(), SMALL_RUN_ROWS),
            Selection::Runs(_) => (selected, SMALL_SCAN_ROWS),
        };
        let stops = self.filter.is_empty() && self.program.order.is_empty();
        let rows = if stops { rows.min(usize::try_from(wanted).unwrap_or(usize::MAX)) } else { rows };
        let given = wanted.min(rows as u64) <= SMALL_RUN_ROWS as u64 || !self.filter.is_empty();
        if rows <= limit && given && self.is_resident() { Effort::Small } else { Effort::Large }
    }

    fn is_resident(&self) -> bool {
        let at_hand = |chunk: usize| {
            let mut columns = self.program.columns.iter();
            columns.all(|column| self.table().resident(chunk, *column).is_some())
        };
        self.chunks().into_iter().all(at_hand)
    }

    fn chunks(&self) -> Vec<usize> {
        let mut chunks: Vec<usize> = match &self.selection {
            Selection::Rows(rows) => rows.iter().map(|row| self.table().chunk_of(*row)).collect(),
            Selection::Runs(runs) => runs.iter().map(|run| run.chunk).collect(),
        };
        chunks.dedup();
        chunks
    }

    /// Every row of the answer.
    pub fn all(mut self) -> Result<Vec<RecordBatch>, QueryError> {
        let mut batches = Vec::new();
        loop {
            match self.step()? {
                Step::Rows(batch) if batch.num_rows() > 0 => batches.push(batch),
                Step::Rows(_) => {}
                Step::Looked => {}
                Step::Over => return Ok(batches),
            }
        }
    }

    /// Goes on by one block of rows.
    pub fn step(&mut self) -> Result<Step, QueryError> {
        if self.top == 0 {
            return Ok(Step::Over);
        }
        if self.program.order.is_empty() { self.unordered() } else { self.ordered() }
    }

    fn unordered(&mut self) -> Result<Step, QueryError> {
        let Some(block) = self.next_block() else { return Ok(Step::Over) };
        let kept = self.kept(&block)?;
        let cut = self.cut_block(&kept);
        if cut.rows() == 0 {
            return Ok(Step::Looked);
        }
        self.projected(&cut, self.program.shown).map(Step::Rows)
    }

    /// The rows of a block for which all of the filter is true.
    fn kept(&self, block: &Block) -> Result<Block, QueryError> {
        let mut kept = block.clone();
        for condition in &self.filter {
            if kept.rows() == 0 {
                break;
            }
            let rows = Rows { table: self.table(), block: &kept };
            let truths = eval::filter(condition, &rows, &Context::default())?;
            kept = kept.filtered(&truths);
        }
        Ok(kept)
    }

    /// Offset and top applied to a block that comes next in the answer.
    fn cut_block(&mut self, block: &Block) -> Block {
        let rows = block.rows() as u64;
        let skipped = self.offset.min(rows);
        let given = self.top.min(rows - skipped);
        self.offset -= skipped;
        self.top -= given;
        block.sliced(skipped as usize, given as usize)
    }

    fn projected(&self, block: &Block, shown: usize) -> Result<RecordBatch, QueryError> {
        let rows = Rows { table: self.table(), block };
        let columns = self.evaluated(&rows, shown)?;
        batch::batch_of(Arc::clone(&self.program.schema), columns, block.rows()).map_err(QueryError::internal)
    }

    fn evaluated(&self, rows: &Rows<'_>, count: usize) -> Result<Vec<ArrayRef>, QueryError> {
        let items = self.items().iter().take(count).enumerate();
        let values = |(place, item): (usize, &Expr)| {
            eval::evaluate(item, rows, &Context { place: place as u32, ..Context::default() })
        };
        items.map(values).collect()
    }

    /// The next rows to look at.
    fn next_block(&mut self) -> Option<Block> {
        let most = if std::mem::take(&mut self.first) { FIRST_BLOCK_ROWS } else { BLOCK_ROWS };
        match &self.selection {
            Selection::Runs(runs) => {
                let run = runs.get(self.at.0)?;
                let first = run.rows.start + self.at.1;
                let end = run.rows.end.min(first.saturating_add(most as u32));
                self.at = if end == run.rows.end {
                    (self.at.0 + 1, 0)
                } else {
                    (self.at.0, self.at.1 + (end - first))
                };
                Some(Block { chunk: run.chunk, picked: Picked::Run(first..end) })
            }
            Selection::Rows(rows) => {
                let rows = rows.get(self.at.0..)?;
                let chunk = self.program.table.chunk_of(*rows.first()?);
                let block = same_chunk(&self.program.table, chunk, &rows[..rows.len().min(most)]);
                self.at.0 += block.rows();
                Some(block)
            }
        }
    }

    /// The index that gives the order, if there is one and a walk along it is cheaper than a sort.
    fn walked_index(&self) -> Option<(&Sorted, bool)> {
        let [key] = self.program.order.as_slice() else { return None };
        let Kind::Column(at) = self.program.items.get(key.item)?.kind else { return None };
        let index = self.table().indexes.sorted(at.column as usize)?;
        let wanted = self.offset.saturating_add(self.top);
        let worth = wanted.saturating_mul(ORDER_WALK_FACTOR) < self.selection.rows() as u64;
        worth.then_some((index, key.descending))
    }

    fn ordered(&mut self) -> Result<Step, QueryError> {
        let wanted = usize::try_from(self.offset.saturating_add(self.top)).unwrap_or(usize::MAX);
        let walked = match self.walked_index() {
            Some((index, descending)) if self.first => self.walk(index, descending, wanted)?,
            _ => None,
        };
        let made = match walked {
            Some(rows) => self.in_order(&rows)?,
            None => {
                if self.gather()? {
                    return Ok(Step::Looked);
                }
                sort::sorted(&self.program.fields, &self.program.order, &self.gathered, wanted)?
            }
        };
        let skipped = usize::try_from(self.offset).unwrap_or(usize::MAX).min(made.num_rows());
        self.top = 0;
        Ok(Step::Rows(made.slice(skipped, made.num_rows() - skipped)))
    }

    /// Takes up one more block to be sorted; whether there was one.
    fn gather(&mut self) -> Result<bool, QueryError> {
        let Some(block) = self.next_block() else { return Ok(false) };
        let kept = self.kept(&block)?;
        if kept.rows() > 0 {
            let rows = Rows { table: self.table(), block: &kept };
            let piece = self.evaluated(&rows, self.items().len())?;
            self.gathered.push(piece);
        }
        Ok(true)
    }

    /// The first rows along an index that fulfil the filter, in its order.
    /// `None` if too few of those looked at do: a scan is cheaper then.
    fn walk(&self, index: &Sorted, descending: bool, wanted: usize) -> Result<Option<Vec<Row>>, QueryError> {
        let (count, mut found) = (index.rows.len(), Vec::new());
        let mut looked = 0;
        // What is looked at grows with every miss, so that a common condition costs few rows.
        let mut size = wanted.clamp(64, BLOCK_ROWS);
        while found.len() < wanted && looked < count {
            if looked > WALK_ROWS.max(wanted.saturating_mul(ORDER_WALK_FACTOR as usize)) {
                return Ok(None);
            }
            let end = (looked + size).min(count);
            let block: Vec<Row> = match descending {
                true => index.rows[count - end..count - looked].iter().rev().copied().collect(),
                false => index.rows[looked..end].to_vec(),
            };
            found.extend(self.fulfilling(&block)?);
            looked = end;
            size = (size * 2).min(BLOCK_ROWS);
        }
        found.truncate(wanted);
        Ok(Some(found))
    }

    /// Those of some rows that fulfil the filter, in the order given.
    fn fulfilling(&self, rows: &[Row]) -> Result<Vec<Row>, QueryError> {
        if self.filter.is_empty() {
            return Ok(rows.to_vec());
        }
        let mut ascending = rows.to_vec();
        ascending.sort_unstable();
        let mut kept: Vec<Row> = Vec::new();
        let mut rest = ascending.as_slice();
        while let Some(first) = rest.first() {
            let block = same_chunk(self.table(), self.table().chunk_of(*first), rest);
            rest = &rest[block.rows()..];
            kept.extend(self.kept(&block)?.numbers(self.table()));
        }
        Ok(rows.iter().copied().filter(|row| kept.binary_search(row).is_ok()).collect())
    }

    /// The shown items of some rows, in the order given.
    fn in_order(&self, rows: &[Row]) -> Result<RecordBatch, QueryError> {
        let mut places: Vec<u32> = (0..rows.len() as u32).collect();
        places.sort_unstable_by_key(|place| rows[*place as usize]);
        let ascending: Vec<Row> = places.iter().map(|place| rows[*place as usize]).collect();
        let mut batches = Vec::new();
        let mut rest = ascending.as_slice();
        while let Some(first) = rest.first() {
            let block = same_chunk(self.table(), self.table().chunk_of(*first), rest);
            rest = &rest[block.rows()..];
            batches.push(self.projected(&block, self.program.shown)?);
        }
        let mut back = vec![0u32; rows.len()];
        places.iter().zip(0..).for_each(|(place, at)| back[*place as usize] = at);
        sort::taken(&self.program.fields, &batches, &UInt32Array::from(back))
    }
}

/// The leading rows of `rows` (ascending) that lie in `chunk`.
fn same_chunk(table: &Table, chunk: usize, rows: &[Row]) -> Block {
    let first = table.chunks[chunk].first;
    let end = u64::from(first) + u64::from(table.chunks[chunk].rows);
    let count = rows.partition_point(|row| u64::from(*row) < end);
    let rows = &rows[..count];
    let from = rows[0] - first;
    let consecutive = rows[count - 1] - rows[0] + 1 == count as u32;
    let picked = if consecutive {
        Picked::Run(from..from + count as u32)
    } else {
        Picked::Single(UInt32Array::from_iter_values(rows.iter().map(|row| row - first)))
    };
    Block { chunk, picked }
}

/// Some rows of a chunk.
#[derive(Clone)]
struct Block {
    chunk: usize,
    picked: Picked,
}

#[derive(Clone)]
enum Picked {
    /// In a run.
    Run(Range<u32>),
    /// By number in the chunk, ascending.
    Single(UInt32Array),
}

impl Block {
    fn rows(&self) -> usize {
        match &self.picked {
            Picked::Run(rows) => rows.len(),
            Picked::Single(rows) => rows.len(),
        }
    }

    fn filtered(&self, truths: &BooleanArray) -> Self {
        let kept = truths.true_count();
        if kept == truths.len() {
            return self.clone();
        }
        let places = truths.values().set_indices();
        let picked = match &self.picked {
            Picked::Run(rows) => UInt32Array::from_iter_values(places.map(|place| rows.start + place as u32)),
            Picked::Single(rows) => UInt32Array::from_iter_values(places.map(|place| rows.value(place))),
        };
        Self { chunk: self.chunk, picked: Picked::Single(picked) }
    }

    fn sliced(&self, from: usize, count: usize) -> Self {
        let picked = match &self.picked {
            Picked::Run(rows) => {
                let start = rows.start + from as u32;
                Picked::Run(start..start + count as u32)
            }
            Picked::Single(rows) => Picked::Single(rows.slice(from, count)),
        };
        Self { chunk: self.chunk, picked }
    }

    /// The rows by their number in the table.
    fn numbers(&self, table: &Table) -> Vec<Row> {
        let first = table.chunks[self.chunk].first;
        match &self.picked {
            Picked::Run(rows) => rows.clone().map(|row| first + row).collect(),
            Picked::Single(rows) => rows.values().iter().map(|row| first + row).collect(),
        }
    }
}

/// A block as the evaluator sees it.
struct Rows<'a> {
    table: &'a Table,
    block: &'a Block,
}

impl Input for Rows<'_> {
    fn rows(&self) -> usize {
        self.block.rows()
    }

    fn column(&self, at: ColumnRef) -> Result<Cells, QueryError> {
        let column = self.table.column(self.block.chunk, at.column as usize)?;
        Ok(Cells::Array(match &self.block.picked {
            Picked::Run(rows) => column.slice(rows.start as usize, rows.len()),
            Picked::Single(rows) => take(&column, rows, None).map_err(QueryError::internal)?,
        }))
    }

    fn row(&self, place: usize) -> u64 {
        let in_chunk = match &self.block.picked {
            Picked::Run(rows) => rows.start + place as u32,
            Picked::Single(rows) => rows.value(place),
        };
        u64::from(self.table.chunks[self.block.chunk].first) + u64::from(in_chunk)
    }
}
