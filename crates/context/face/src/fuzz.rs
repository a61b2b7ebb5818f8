//! Entry points for fuzzing: any input is answered, none panics.

use http::Method;
use trifid_base_web::router::Outcome;

use crate::params::{OptionsOf, Param, Params, Set};
use crate::percent::{self, Place, Plus};
use crate::route;

/// Reads `target` as a request's path and query: routed by every method, its path parameters decoded, its query
/// parsed and each value read as what its parameter is.
///
/// # Panics
/// When what was decoded does not survive being encoded and decoded again, which is a defect.
pub fn url(target: &str) {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let table = route::table().expect("the table of routes does not contradict itself");
    for method in [Method::GET, Method::POST, Method::PATCH, Method::PUT, Method::DELETE] {
        let _ = route::lacks_entity_id(&method, path);
        if let Outcome::Found(found) = table.get(&method, path) {
            found.params.iter().for_each(|(_, raw)| segment(raw));
        }
    }
    if let Ok(params) = Params::parse(query, Set::ALL) {
        values(&params);
    }
}

fn segment(raw: &str) {
    let Ok(decoded) = percent::decode(raw, Plus::Literal) else { return };
    let mut encoded = Vec::new();
    percent::encode(&mut encoded, &decoded, Place::Segment);
    let encoded = String::from_utf8(encoded).expect("encoding yields ASCII");
    assert_eq!(
        percent::decode(&encoded, Plus::Literal).as_deref(),
        Ok(&*decoded),
        "decoding inverts encoding"
    );
}

fn values(params: &Params<'_>) {
    let _ = params.paging();
    let _ = params.join_level();
    for of in [OptionsOf::Reading, OptionsOf::Merging, OptionsOf::Appending, OptionsOf::Upserting] {
        let _ = params.options(of);
    }
    for param in Set::ALL.iter() {
        let _ = (params.list(param), params.optional_boolean(param), params.number(param));
    }
    let _ = params.get(Param::Q).map(trifid_context_model::query::q::parse);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_target_is_answered(
            target in "(/ngsi-ld/v1)?(/(entities|attrs|types|urn:a:1|%2f|%[0-9a-f]{2})){0,4}/?(\\?([a-zA-Z]{1,8}=[ -~]{0,8}&){0,4})?",
        ) {
            super::url(&target);
        }

        #[test]
        fn any_text_is_answered(target in "\\PC{0,60}") {
            super::url(&target);
        }
    }
}
