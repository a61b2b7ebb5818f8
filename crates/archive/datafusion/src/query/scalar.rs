//! Expressions of the tree as one function of DataFusion's.
//!
//! Everything but a bare column is computed by [`trifid_archive_engine::eval`], so that an answer does not depend
//! on who computed it. A [`Scalar`] holds the whole expression; its columns are renumbered to the function's
//! arguments, so that a planner may move it, rename what it reads and ask which columns those are, and has
//! nothing to misunderstand.

use std::any::Any;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{Array as _, ArrayRef, BooleanArray, new_empty_array, new_null_array};
use arrow_schema::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr as Logical, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use trifid_archive_adql::lift;
use trifid_archive_adql::tree::{ColumnRef, Expr, Kind, Value};
use trifid_archive_adql::types::Type;
use trifid_archive_engine::QueryError;
use trifid_archive_engine::eval::{self, Cells, Context, Input};
use trifid_archive_model::batch::physical;

use super::error::inward;

/// What happens to a row whose value cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Failure {
    /// It ends the query.
    Raise,
    /// A condition keeps the row, for somebody later to look at again; any other value is NULL.
    Defer,
}

/// An expression over the arguments of the function.
#[derive(Debug)]
pub(crate) struct Scalar {
    /// The expression: [`argument`] stands for the arguments.
    pub(crate) expr: Arc<Expr>,
    /// What its failures do.
    pub(crate) failure: Failure,
    /// Where its random numbers come from.
    pub(crate) context: Context,
    hash: u64,
    /// Tells it from every other: DataFusion calls columns by the functions that they come from.
    name: String,
    signature: Signature,
    rows: AtomicU64,
}

/// The column that stands for an argument.
pub(crate) const fn argument(index: u32) -> ColumnRef {
    ColumnRef { depth: 0, relation: 0, column: index }
}

impl Scalar {
    /// The function that computes an expression over its arguments.
    pub(crate) fn new(expr: Arc<Expr>, failure: Failure, context: Context) -> Self {
        let volatility = if lift::is_volatile(&expr) { Volatility::Volatile } else { Volatility::Immutable };
        let hash = hash(&expr);
        let name = format!("adql_{hash:016x}_{}_{}", failure as u8, context.place);
        let signature = Signature::new(TypeSignature::UserDefined, volatility);
        Self { expr, failure, context, hash, name, signature, rows: AtomicU64::new(0) }
    }

    /// The same, where no planner moves it.
    pub(crate) fn pinned(mut self) -> Self {
        self.signature = Signature::new(TypeSignature::UserDefined, Volatility::Volatile);
        self
    }

    /// The same with another expression of the same form, and with random numbers from elsewhere.
    pub(crate) fn with(&self, expr: Expr, seed: u64) -> Self {
        let context = Context { seed, ..self.context };
        let signature = self.signature.clone();
        Self { signature, ..Self::new(Arc::new(expr), self.failure, context) }
    }

    /// A call of it.
    pub(crate) fn call(self, arguments: Vec<Logical>) -> Logical {
        ScalarUDF::new_from_impl(self).call(arguments)
    }

    /// The expression that a function of DataFusion's is, if it is one of ours.
    pub(crate) fn of(function: &ScalarUDF) -> Option<&Self> {
        let inner: &dyn Any = function.inner().as_ref();
        inner.downcast_ref()
    }

    fn compute(&self, arguments: &Arguments<'_>) -> Result<Cells, QueryError> {
        let cells = eval::cells(&self.expr, arguments, &self.context);
        match (self.failure, cells) {
            (Failure::Defer, Err(QueryError::Invalid(_))) => self.one_by_one(arguments),
            (_, cells) => cells,
        }
    }

    /// Row by row, to find those that cannot be computed.
    fn one_by_one(&self, arguments: &Arguments<'_>) -> Result<Cells, QueryError> {
        let ty = physical(self.expr.ty);
        let mut pieces: Vec<ArrayRef> = Vec::with_capacity(arguments.rows);
        for row in 0..arguments.rows {
            let one = Arguments { row, rows: 1, ..*arguments };
            pieces.push(match eval::evaluate(&self.expr, &one, &self.context) {
                Ok(array) => array,
                Err(QueryError::Invalid(_)) if ty == DataType::Boolean => {
                    Arc::new(BooleanArray::from(vec![true]))
                }
                Err(QueryError::Invalid(_)) => new_null_array(&ty, 1),
                Err(other) => return Err(other),
            });
        }
        let pieces: Vec<&dyn arrow_array::Array> = pieces.iter().map(AsRef::as_ref).collect();
        if pieces.is_empty() {
            return Ok(Cells::from(new_null_array(&ty, 0)));
        }
        arrow_select::concat::concat(&pieces).map(Cells::from).map_err(QueryError::internal)
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
            && self.failure == other.failure
            && self.context.place == other.context.place
            && (Arc::ptr_eq(&self.expr, &other.expr) || self.expr == other.expr)
    }
}

impl Eq for Scalar {}

impl Hash for Scalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

/// A hash of the whole expression.
fn hash(expr: &Expr) -> u64 {
    let mut hasher = DefaultHasher::new();
    form(expr, &mut hasher);
    hasher.finish()
}

fn form(expr: &Expr, hasher: &mut DefaultHasher) {
    std::mem::discriminant(&expr.kind).hash(hasher);
    expr.ty.hash(hasher);
    match &expr.kind {
        Kind::Column(column) => column.hash(hasher),
        Kind::Call(function, _) => function.hash(hasher),
        Kind::Arithmetic(operator, ..) => operator.hash(hasher),
        Kind::Compare(comparison, ..) => comparison.hash(hasher),
        Kind::Literal(literal) => {
            literal.slot.hash(hasher);
            value(&literal.value, hasher);
        }
        Kind::Like { ignore_case, .. } => ignore_case.hash(hasher),
        _ => {}
    }
    lift::each_child(expr, &mut |one| form(one, hasher));
}

fn value(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Null => {}
        Value::Boolean(truth) => truth.hash(hasher),
        Value::Integer(number) => number.hash(hasher),
        Value::Double(number) => number.to_bits().hash(hasher),
        Value::Text(text) => text.hash(hasher),
    }
}

impl ScalarUDFImpl for Scalar {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(physical(self.expr.ty))
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        if rows == 0 {
            // A constant that cannot be computed is nobody's mistake where there is no row to compute it for.
            return Ok(ColumnarValue::Array(new_empty_array(&physical(self.expr.ty))));
        }
        let first = self.rows.fetch_add(rows as u64, Ordering::Relaxed);
        let arguments = Arguments { values: &args.args, row: 0, rows, first };
        match self.compute(&arguments).map_err(inward)? {
            Cells::Array(array) => Ok(ColumnarValue::Array(array)),
            Cells::Constant(array, _)
                if args.args.iter().all(|one| matches!(one, ColumnarValue::Scalar(_))) =>
            {
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
            constant => Ok(ColumnarValue::Array(constant.spread().map_err(inward)?)),
        }
    }
}

/// What DataFusion hands to a function, as the evaluator wants it.
struct Arguments<'a> {
    values: &'a [ColumnarValue],
    /// The first of the rows that matter.
    row: usize,
    rows: usize,
    /// The number of the batch's first row, for random numbers.
    first: u64,
}

impl Input for Arguments<'_> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn column(&self, at: ColumnRef) -> Result<Cells, QueryError> {
        let value = self.values.get(at.column as usize);
        match value.ok_or_else(|| QueryError::internal(format_args!("no argument {}", at.column)))? {
            ColumnarValue::Array(array) if array.len() == self.rows && self.row == 0 => {
                Ok(Cells::Array(array.clone()))
            }
            ColumnarValue::Array(array) => Ok(Cells::Array(array.slice(self.row, self.rows))),
            ColumnarValue::Scalar(value) => {
                let array = value.to_array().map_err(QueryError::internal)?;
                Ok(Cells::Constant(array, self.rows))
            }
        }
    }

    fn row(&self, place: usize) -> u64 {
        self.first + (self.row + place) as u64
    }
}

/// Whether values of the type hold reals, which have several forms of one value.
pub(crate) const fn holds_reals(ty: Type) -> bool {
    use trifid_archive_adql::types::Element;
    match ty {
        Type::Float | Type::Double | Type::FloatComplex | Type::DoubleComplex => true,
        Type::Point | Type::Circle | Type::Polygon => true,
        Type::Array(element) => matches!(
            element,
            Element::Float | Element::Double | Element::FloatComplex | Element::DoubleComplex
        ),
        _ => false,
    }
}
