//! One form for each real: what grouping, joining and sorting compare by their bits.
//!
//! -0 is 0 and every NaN is one NaN above all numbers, as the tree says; Arrow's total order knows better. So
//! keys that hold reals pass through this function first.

use arrow_schema::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr as Logical, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use trifid_archive_adql::types::Type;

use super::scalar::holds_reals;

pub(crate) use trifid_archive_engine::eval::normalise;

/// The expression, in one form for each value.
pub(crate) fn normal(expr: Logical, ty: Type) -> Logical {
    if holds_reals(ty) { ScalarUDF::new_from_impl(Normal::new()).call(vec![expr]) } else { expr }
}

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Normal {
    signature: Signature,
}

impl Normal {
    fn new() -> Self {
        Self { signature: Signature::new(TypeSignature::UserDefined, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Normal {
    fn name(&self) -> &str {
        "adql_normal"
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
        let scalar = args.args.iter().all(|one| matches!(one, ColumnarValue::Scalar(_)));
        let array = normalise(&arrays[0]);
        if scalar {
            return Ok(ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }
}
