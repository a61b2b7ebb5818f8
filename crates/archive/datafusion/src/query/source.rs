//! A table of ours in a logical plan: its columns, and which conditions its scan decides by itself.
//!
//! Columns are called `c0`, `c1`, ... by their place, whatever their names are: a plan is full of columns, and a place
//! cannot be mistaken.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{Field as ArrowField, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    BinaryExpr, Expr as Logical, Operator, TableProviderFilterPushDown, TableSource,
};
use trifid_archive_adql::lift;
use trifid_archive_adql::tree::{ColumnRef, Expr, Kind, Literal, Value};
use trifid_archive_adql::types::Type;
use trifid_archive_engine::table::Table;
use trifid_archive_model::batch::physical;

use super::fallible::is_fallible;
use super::scalar::{Failure, Scalar};
use super::walk;

/// The name of a column by its place.
pub(crate) fn column_name(place: usize) -> String {
    format!("c{place}")
}

/// A table in a logical plan.
pub(crate) struct Source {
    /// The table.
    pub(crate) table: Arc<Table>,
    schema: SchemaRef,
}

impl Source {
    /// A table in a plan.
    pub(crate) fn new(table: Arc<Table>) -> Self {
        let fields = table.head.fields.iter().enumerate();
        let fields = fields.map(|(at, field)| ArrowField::new(column_name(at), physical(field.ty), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Self { table, schema }
    }

    /// The conditions as the scan evaluates them; `None` if it cannot.
    pub(crate) fn filters(&self, conditions: &[Logical]) -> Option<Filters> {
        let mut import = Import { source: self, constants: Vec::new(), seed: 0 };
        let (mut exact, mut lenient) = (Vec::new(), Vec::new());
        for condition in conditions {
            let deferred = function(condition).is_some_and(|one| one.failure == Failure::Defer);
            let expr = import.expr(condition, Type::Boolean)?;
            if deferred { &mut lenient } else { &mut exact }.push(expr);
        }
        // What cannot fail decides first; the evaluator then leaves the others the rows that are undecided.
        exact.sort_by_key(is_fallible);
        Some(Filters { exact, lenient, constants: import.constants, seed: import.seed })
    }
}

impl TableSource for Source {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn supports_filters_pushdown(&self, filters: &[&Logical]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Logical| match self.filters(std::slice::from_ref(*filter)) {
            Some(_) => TableProviderFilterPushDown::Exact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }
}

/// Conditions of a scan over the columns of its table, which are relation 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filters {
    /// A row stays only if all are true.
    pub(crate) exact: Vec<Expr>,
    /// Rows for which one cannot be computed stay: somebody above looks at them again.
    pub(crate) lenient: Vec<Expr>,
    /// Values that the tree has no literal for: the columns of relation 1, one row each.
    pub(crate) constants: Vec<ArrayRef>,
    /// Where random numbers come from.
    pub(crate) seed: u64,
}

impl Filters {
    /// Whether all rows stay.
    pub(crate) const fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.lenient.is_empty()
    }

    /// All conditions, as an index may use them.
    pub(crate) fn all(&self) -> Vec<Expr> {
        self.exact.iter().flat_map(lift::conjuncts).cloned().collect()
    }
}

/// The function of ours that an expression calls.
pub(crate) fn function(expr: &Logical) -> Option<&Scalar> {
    match expr {
        Logical::ScalarFunction(call) => Scalar::of(&call.func),
        Logical::Alias(alias) => function(&alias.expr),
        _ => None,
    }
}

struct Import<'a> {
    source: &'a Source,
    constants: Vec<ArrayRef>,
    seed: u64,
}

impl Import<'_> {
    fn expr(&mut self, expr: &Logical, ty: Type) -> Option<Expr> {
        match expr {
            Logical::Alias(alias) => self.expr(&alias.expr, ty),
            Logical::Column(column) => self.column(&column.name),
            Logical::Literal(value, _) => Some(self.constant(value, ty)),
            // Asked before values are known, whether it could be; the value makes no difference.
            Logical::Placeholder(_) => Some(Expr { kind: literal(Value::Null), ty }),
            Logical::BinaryExpr(BinaryExpr { left, op, right }) => {
                let sides = vec![self.expr(left, Type::Boolean)?, self.expr(right, Type::Boolean)?];
                let kind = match op {
                    Operator::And => Kind::And(sides),
                    Operator::Or => Kind::Or(sides),
                    _ => return None,
                };
                Some(Expr { kind, ty: Type::Boolean })
            }
            Logical::ScalarFunction(call) => self.call(Scalar::of(&call.func)?, &call.args),
            _ => None,
        }
    }

    fn column(&self, name: &str) -> Option<Expr> {
        let place: u32 = name.strip_prefix('c')?.parse().ok()?;
        let field = self.source.table.head.fields.get(place as usize)?;
        let column = ColumnRef { depth: 0, relation: 0, column: place };
        Some(Expr { kind: Kind::Column(column), ty: field.ty })
    }

    fn call(&mut self, function: &Scalar, arguments: &[Logical]) -> Option<Expr> {
        self.seed = self.seed.max(function.context.seed);
        let mut types: HashMap<u32, Type> = HashMap::new();
        argument_types(&function.expr, &mut types);
        let mut values = Vec::with_capacity(arguments.len());
        for (at, argument) in (0u32..).zip(arguments) {
            let ty = types.get(&at).copied().unwrap_or(Type::Null);
            values.push(self.expr(argument, ty)?);
        }
        substitute(&function.expr, &values)
    }

    fn constant(&mut self, value: &ScalarValue, ty: Type) -> Expr {
        if let Some(value) = tree_value(value) {
            return Expr { kind: literal(value), ty };
        }
        let column = ColumnRef { depth: 0, relation: 1, column: self.constants.len() as u32 };
        match value.to_array() {
            Ok(array) => self.constants.push(array),
            Err(_) => return Expr { kind: literal(Value::Null), ty },
        }
        Expr { kind: Kind::Column(column), ty }
    }
}

fn argument_types(expr: &Expr, types: &mut HashMap<u32, Type>) {
    if let Kind::Column(column) = &expr.kind {
        types.insert(column.column, expr.ty);
    }
    lift::each_child(expr, &mut |one| argument_types(one, types));
}

/// The expression with its arguments in place.
fn substitute(expr: &Expr, arguments: &[Expr]) -> Option<Expr> {
    if let Kind::Column(column) = &expr.kind {
        return arguments.get(column.column as usize).cloned();
    }
    walk::map_operands(expr, &mut |one| substitute(one, arguments).ok_or(())).ok()
}

const fn literal(value: Value) -> Kind {
    Kind::Literal(Literal { value, slot: None })
}

/// A value that the tree has a literal for.
pub(crate) fn tree_value(value: &ScalarValue) -> Option<Value> {
    Some(match value {
        value if value.is_null() => Value::Null,
        ScalarValue::Boolean(Some(value)) => Value::Boolean(*value),
        ScalarValue::UInt8(Some(value)) => Value::Integer((*value).into()),
        ScalarValue::Int16(Some(value)) => Value::Integer((*value).into()),
        ScalarValue::Int32(Some(value)) => Value::Integer((*value).into()),
        ScalarValue::Int64(Some(value)) => Value::Integer(*value),
        ScalarValue::Float32(Some(value)) => Value::Double((*value).into()),
        ScalarValue::Float64(Some(value)) => Value::Double(*value),
        ScalarValue::Utf8(Some(value)) => Value::Text(value.as_str().into()),
        _ => return None,
    })
}
