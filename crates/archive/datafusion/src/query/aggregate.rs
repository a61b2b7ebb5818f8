//! Aggregates of the tree as aggregate functions of DataFusion's.
//!
//! What an aggregate is computed as is [`trifid_archive_engine::eval::aggregate`]; here it gets the shapes that
//! DataFusion's operators call. Only COUNT without DISTINCT is DataFusion's own: there is nothing to differ in, and
//! statistics answer it.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, BooleanArray, new_empty_array};
use arrow_schema::{DataType, Field as ArrowField, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, Expr as Logical, GroupsAccumulator, Signature,
    TypeSignature, Volatility, lit,
};
use parking_lot::Mutex;
use trifid_archive_adql::functions::Aggregator;
use trifid_archive_adql::tree::Aggregate;
use trifid_archive_engine::eval::aggregate::{self, Emit};
use trifid_archive_model::batch::physical;

use super::error::inward;

/// The call of an aggregate over these columns.
pub(crate) fn call(aggregate: &Aggregate, arguments: Vec<Logical>) -> Logical {
    let (function, arguments) = if aggregate.aggregator == Aggregator::Count && !aggregate.distinct {
        (count_udaf(), if arguments.is_empty() { vec![lit(1i64)] } else { arguments })
    } else {
        (Arc::new(AggregateUDF::new_from_impl(Aggregated::new(aggregate.clone()))), arguments)
    };
    Logical::AggregateFunction(AggregateFunction::new_udf(function, arguments, false, None, Vec::new(), None))
}

/// An aggregate as a function.
#[derive(Debug)]
struct Aggregated {
    aggregate: Aggregate,
    signature: Signature,
}

impl Aggregated {
    fn new(aggregate: Aggregate) -> Self {
        Self { aggregate, signature: Signature::new(TypeSignature::UserDefined, Volatility::Immutable) }
    }

    fn accumulate(&self) -> Result<Accumulating> {
        let state = aggregate::accumulator(&self.aggregate).map_err(inward)?;
        Ok(Accumulating { aggregate: self.aggregate.clone(), state })
    }

    /// What the function is, whatever its arguments are.
    fn identity(&self) -> impl Eq + Hash + use<> {
        let types: Vec<_> = self.aggregate.arguments.iter().map(|one| one.ty).collect();
        (self.aggregate.aggregator, self.aggregate.distinct, self.aggregate.ty, types)
    }
}

impl PartialEq for Aggregated {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Aggregated {}

impl Hash for Aggregated {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl AggregateUDFImpl for Aggregated {
    fn name(&self) -> &str {
        "adql_aggregate"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(physical(self.aggregate.ty))
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let types = aggregate::state_types(&self.aggregate).into_iter().enumerate();
        let field = |(at, ty)| Arc::new(ArrowField::new(format!("{}[{at}]", args.name), ty, true));
        Ok(types.map(field).collect())
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Alone { state: Mutex::new(self.accumulate()?), groups: Vec::new() }))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(self.accumulate()?))
    }
}

/// The state in all groups.
struct Accumulating {
    aggregate: Aggregate,
    state: Box<dyn aggregate::Accumulator>,
}

const fn emitted(emit: EmitTo) -> Emit {
    match emit {
        EmitTo::All => Emit::All,
        EmitTo::First(count) => Emit::First(count),
    }
}

impl GroupsAccumulator for Accumulating {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        let Some(filter) = filter else {
            return self.state.update(groups, total, values).map_err(inward);
        };
        let (values, groups) = filtered(values, groups, filter)?;
        self.state.update(&groups, total, &values).map_err(inward)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        self.state.finish(emitted(emit)).map_err(inward)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        self.state.state(emitted(emit)).map_err(inward)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.state.merge(groups, total, values).map_err(inward)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let mut each = aggregate::accumulator(&self.aggregate).map_err(inward)?;
        let rows = values.first().map(|one| one.len()).or(filter.map(|one| one.len())).unwrap_or(0);
        let groups: Vec<usize> = (0..rows).collect();
        match filter {
            None => each.update(&groups, rows, values).map_err(inward)?,
            Some(filter) => {
                let (values, groups) = filtered(values, &groups, filter)?;
                each.update(&groups, rows, &values).map_err(inward)?;
            }
        }
        each.state(Emit::All).map_err(inward)
    }

    fn size(&self) -> usize {
        self.state.bytes()
    }
}

fn filtered(
    values: &[ArrayRef],
    groups: &[usize],
    filter: &BooleanArray,
) -> Result<(Vec<ArrayRef>, Vec<usize>)> {
    let values = values.iter().map(|one| arrow_select::filter::filter(one, filter));
    let values = values.collect::<std::result::Result<Vec<_>, _>>()?;
    let kept = |(row, group): (usize, &usize)| (filter.is_valid(row) && filter.value(row)).then_some(*group);
    Ok((values, groups.iter().enumerate().filter_map(kept).collect()))
}

/// The state of a single group. The lock is there because DataFusion shares what nobody uses at once.
struct Alone {
    state: Mutex<Accumulating>,
    /// Kept from batch to batch: all rows are of the one group.
    groups: Vec<usize>,
}

impl std::fmt::Debug for Alone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Alone({:?})", self.state.lock().aggregate.aggregator)
    }
}

impl Alone {
    /// The state, with the group named, which without a row nobody has done.
    fn begun(&mut self) -> Result<&mut Accumulating> {
        let all = self.state.get_mut();
        let nothing = all.aggregate.arguments.iter().map(|one| new_empty_array(&physical(one.ty)));
        let nothing: Vec<_> = nothing.collect();
        all.state.update(&[], 1, &nothing).map_err(inward)?;
        Ok(all)
    }
}

impl Accumulator for Alone {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.groups.resize(values.first().map_or(0, |one| one.len()), 0);
        self.state.get_mut().state.update(&self.groups, 1, values).map_err(inward)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let array = self.begun()?.state.finish(Emit::All).map_err(inward)?;
        ScalarValue::try_from_array(&array, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let arrays = self.begun()?.state.state(Emit::All).map_err(inward)?;
        arrays.iter().map(|array| ScalarValue::try_from_array(array, 0)).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.groups.resize(states.first().map_or(0, |one| one.len()), 0);
        self.state.get_mut().state.merge(&self.groups, 1, states).map_err(inward)
    }

    fn size(&self) -> usize {
        self.state.lock().state.bytes()
    }
}
