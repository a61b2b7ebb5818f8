//! Our errors through DataFusion and back, without its words in front of a user.

use std::error::Error;

use datafusion::error::DataFusionError;
use trifid_archive_engine::QueryError;

/// An error of ours on its way through DataFusion.
pub(crate) fn inward(error: QueryError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// What a failure of DataFusion is to us.
pub(crate) fn outward(error: &DataFusionError) -> QueryError {
    find(error).unwrap_or_else(|| QueryError::internal(error.strip_backtrace()))
}

/// The first thing in the chain of causes that we know.
fn find(error: &DataFusionError) -> Option<QueryError> {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(one) = cause {
        if let Some(ours) = one.downcast_ref::<QueryError>() {
            return Some(ours.clone());
        }
        match one.downcast_ref::<DataFusionError>() {
            Some(DataFusionError::ResourcesExhausted(_)) => return Some(exhausted()),
            Some(DataFusionError::Collection(all)) => return all.iter().find_map(find),
            // Its source is what the shared error says is its source, not the error itself.
            Some(DataFusionError::Shared(shared)) => return find(shared),
            _ => {}
        }
        cause = one.source();
    }
    None
}

fn exhausted() -> QueryError {
    QueryError::TooLarge(
        "the query needs more memory than one query may have here; read fewer rows or columns, or group and sort less"
            .into(),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::ArrowError;

    use super::*;

    fn invalid() -> QueryError {
        QueryError::invalid("division by zero")
    }

    fn is_invalid(error: &DataFusionError) -> bool {
        matches!(outward(error), QueryError::Invalid(words) if &*words == "division by zero")
    }

    #[test]
    fn our_errors_pass_through_unchanged() {
        let inner = || inward(invalid());
        assert!(is_invalid(&inner()));
        assert!(is_invalid(&DataFusionError::Context("while".into(), Box::new(inner()))));
        assert!(is_invalid(&DataFusionError::Shared(Arc::new(inner()))));
        assert!(is_invalid(&DataFusionError::Collection(vec![inner()])));
        let arrow = ArrowError::ExternalError(Box::new(inner()));
        assert!(is_invalid(&DataFusionError::ArrowError(Box::new(arrow), None)));
    }

    #[test]
    fn exhausted_memory_is_a_bound_and_the_rest_internal() {
        let full = DataFusionError::ResourcesExhausted("pool of 3 bytes".into());
        assert!(matches!(outward(&full), QueryError::TooLarge(words) if !words.contains("pool")));
        let other = DataFusionError::Internal("a bug".into());
        assert!(matches!(outward(&other), QueryError::Internal(_)));
    }
}
