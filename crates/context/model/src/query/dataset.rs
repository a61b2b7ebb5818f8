//! The parameter `datasetId` (4.5.5): which instances of an attribute a request is about.

use super::error::{Error, Reason};
use super::limits::{MAX_LIST, MAX_TEXT};
use crate::name;

/// A set of dataset identifiers, and whether the default instance belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DatasetIds {
    ids: Vec<Box<str>>,
    default: bool,
}

impl DatasetIds {
    /// Reads a comma separated list of URIs and `@none`.
    pub fn parse(parameter: &'static str, text: &str) -> Result<Self, Error> {
        if text.len() > MAX_TEXT {
            return Err(Error::whole(parameter, Reason::TooLong(MAX_TEXT)));
        }
        Self::from_items(parameter, text.split(',').map(str::trim))
    }

    /// The same from a list, as in the body of a query.
    pub fn from_items<'t>(
        parameter: &'static str,
        items: impl IntoIterator<Item = &'t str>,
    ) -> Result<Self, Error> {
        let mut datasets = DatasetIds::default();
        for item in items {
            if datasets.ids.len() == MAX_LIST {
                return Err(Error::whole(parameter, Reason::TooMany("identifiers", MAX_LIST)));
            }
            match item {
                name::DEFAULT_DATASET => datasets.default = true,
                _ if name::is_uri(item) => datasets.ids.push(item.into()),
                _ => {
                    return Err(Error::invalid(
                        parameter,
                        format!("\"{item}\" is neither a URI nor \"@none\""),
                    ));
                }
            }
        }
        Ok(datasets)
    }

    /// True when the instance with this `datasetId` (`None`: the default instance) is selected.
    pub fn selects(&self, dataset: Option<&str>) -> bool {
        dataset.map_or(self.default, |own| self.ids.iter().any(|id| **id == *own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clause_4_5_5_none_selects_the_default_instance() {
        let datasets = DatasetIds::parse("datasetId", "urn:a:1,@none").unwrap();
        assert!(datasets.selects(None));
        assert!(datasets.selects(Some("urn:a:1")));
        assert!(!datasets.selects(Some("urn:a:2")));
        assert!(!DatasetIds::parse("datasetId", "urn:a:1").unwrap().selects(None));
        let error = DatasetIds::parse("datasetId", "nothing").unwrap_err();
        assert_eq!(error.to_string(), "datasetId: \"nothing\" is neither a URI nor \"@none\"");
    }
}
