//! The value of a subquery of which each row has its own: NULL without rows, an error with several.

use arrow_array::Array as _;
use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr as Logical, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use trifid_archive_engine::QueryError;

use super::error::inward;

/// What a scalar subquery with several rows is told.
pub(crate) fn several() -> QueryError {
    QueryError::invalid("a subquery that stands for a value has more than one row")
}

/// The value, of so many rows (NULL for none), or what it is without rows.
pub(crate) fn only(value: Logical, rows: Logical, without: Option<Logical>) -> Logical {
    let mut arguments = vec![value, rows];
    arguments.extend(without);
    let signature = Signature::new(TypeSignature::UserDefined, Volatility::Immutable);
    ScalarUDF::new_from_impl(Only { signature }).call(arguments)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Only {
    signature: Signature,
}

impl ScalarUDFImpl for Only {
    fn name(&self) -> &str {
        "adql_only"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let rows = arrays[1].as_primitive::<Int64Type>();
        if rows.iter().flatten().any(|rows| rows > 1) {
            return Err(inward(several()));
        }
        let Some(without) = arrays.get(2).filter(|_| rows.null_count() > 0) else {
            return Ok(ColumnarValue::Array(arrays[0].clone()));
        };
        let there = arrow_array::BooleanArray::from_iter((0..rows.len()).map(|row| Some(rows.is_valid(row))));
        Ok(ColumnarValue::Array(arrow_select::zip::zip(&there, &arrays[0], without)?))
    }
}
