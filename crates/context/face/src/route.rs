//! The resources of clause 6.2 that this door has, and their methods.
//!
//! Matching is on the raw path. An entity id that is missing (`/entities//attrs`) still names the resource, because
//! the standard's answer to it is `BadRequestData` (5.6.2.4 and siblings) and not 404.

use http::Method;
use trifid_base_web::Router;
use trifid_base_web::router::RouteError;

/// Where the resources begin (6.2).
pub(crate) const ROOT: &str = "/ngsi-ld/v1";

/// An operation, by its clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// 5.6.1.
    CreateEntity,
    /// 5.7.2.
    QueryEntities,
    /// 5.6.21.
    PurgeEntities,
    /// 5.7.1.
    RetrieveEntity,
    /// 5.6.18.
    ReplaceEntity,
    /// 5.6.17.
    MergeEntity,
    /// 5.6.6.
    DeleteEntity,
    /// 5.6.3.
    AppendAttributes,
    /// 5.6.2.
    UpdateAttributes,
    /// 5.6.4.
    PartialAttributeUpdate,
    /// 5.6.19.
    ReplaceAttribute,
    /// 5.6.5.
    DeleteAttribute,
    /// 5.6.7 to 5.6.10 and 5.6.20.
    Batch(Batch),
    /// 5.7.2 by POST (6.23).
    QueryByPost,
    /// 5.7.5 and 5.7.6.
    Types,
    /// 5.7.7.
    Type,
    /// 5.7.8 and 5.7.9.
    Attributes,
    /// 5.7.10.
    Attribute,
    /// 5.13.2.
    AddContext,
    /// 5.13.3.
    ListContexts,
    /// 5.13.4.
    ServeContext,
    /// 5.13.5.
    DeleteContext,
    /// 5.15.1.
    SourceIdentity,
}

/// The batch operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Batch {
    /// 5.6.7.
    Create,
    /// 5.6.8.
    Upsert,
    /// 5.6.9.
    Update,
    /// 5.6.20.
    Merge,
    /// 5.6.10.
    Delete,
}

impl Operation {
    /// Whether the operation only reads, by whatever method it is called.
    pub(crate) fn is_reading(self) -> bool {
        use Operation as O;
        match self {
            O::QueryEntities
            | O::RetrieveEntity
            | O::QueryByPost
            | O::Types
            | O::Type
            | O::Attributes
            | O::Attribute
            | O::ListContexts
            | O::ServeContext
            | O::SourceIdentity => true,
            O::CreateEntity
            | O::PurgeEntities
            | O::ReplaceEntity
            | O::MergeEntity
            | O::DeleteEntity
            | O::AppendAttributes
            | O::UpdateAttributes
            | O::PartialAttributeUpdate
            | O::ReplaceAttribute
            | O::DeleteAttribute
            | O::Batch(_)
            | O::AddContext
            | O::DeleteContext => false,
        }
    }
}

/// The name of the path parameter that holds an entity, type, attribute or context.
pub(crate) const ID: &str = "id";

/// The name of the path parameter that holds an attribute of an entity.
pub(crate) const ATTR: &str = "attr";

/// The table of operations.
pub(crate) fn table() -> Result<Router<Operation>, RouteError> {
    use Operation as O;
    let rows = [
        (Method::GET, "/entities", O::QueryEntities),
        (Method::POST, "/entities", O::CreateEntity),
        (Method::DELETE, "/entities", O::PurgeEntities),
        (Method::GET, "/entities/{id}", O::RetrieveEntity),
        (Method::PUT, "/entities/{id}", O::ReplaceEntity),
        (Method::PATCH, "/entities/{id}", O::MergeEntity),
        (Method::DELETE, "/entities/{id}", O::DeleteEntity),
        (Method::POST, "/entities/{id}/attrs", O::AppendAttributes),
        (Method::PATCH, "/entities/{id}/attrs", O::UpdateAttributes),
        (Method::PATCH, "/entities/{id}/attrs/{attr}", O::PartialAttributeUpdate),
        (Method::PUT, "/entities/{id}/attrs/{attr}", O::ReplaceAttribute),
        (Method::DELETE, "/entities/{id}/attrs/{attr}", O::DeleteAttribute),
        (Method::POST, "/entities//attrs", O::AppendAttributes),
        (Method::PATCH, "/entities//attrs", O::UpdateAttributes),
        (Method::PATCH, "/entities//attrs/{attr}", O::PartialAttributeUpdate),
        (Method::PUT, "/entities//attrs/{attr}", O::ReplaceAttribute),
        (Method::DELETE, "/entities//attrs/{attr}", O::DeleteAttribute),
        (Method::POST, "/entityOperations/create", O::Batch(Batch::Create)),
        (Method::POST, "/entityOperations/upsert", O::Batch(Batch::Upsert)),
        (Method::POST, "/entityOperations/update", O::Batch(Batch::Update)),
        (Method::POST, "/entityOperations/merge", O::Batch(Batch::Merge)),
        (Method::POST, "/entityOperations/delete", O::Batch(Batch::Delete)),
        (Method::POST, "/entityOperations/query", O::QueryByPost),
        (Method::GET, "/types", O::Types),
        (Method::GET, "/types/{id}", O::Type),
        (Method::GET, "/attributes", O::Attributes),
        (Method::GET, "/attributes/{id}", O::Attribute),
        (Method::GET, "/jsonldContexts", O::ListContexts),
        (Method::POST, "/jsonldContexts", O::AddContext),
        (Method::GET, "/jsonldContexts/{id}", O::ServeContext),
        (Method::DELETE, "/jsonldContexts/{id}", O::DeleteContext),
        (Method::GET, "/info/sourceIdentity", O::SourceIdentity),
    ];
    let mut builder = Router::builder();
    for (method, path, operation) in rows {
        builder = builder.route(method, &[ROOT, path].concat(), operation);
    }
    builder.build()
}

/// Whether the request addresses one entity whose id is missing: `PUT` and `PATCH` of `/entities/`.
pub(crate) fn lacks_entity_id(method: &Method, path: &str) -> bool {
    (method == Method::PUT || method == Method::PATCH) && path.strip_prefix(ROOT) == Some("/entities/")
}

#[cfg(test)]
mod tests {
    use trifid_base_web::router::Outcome;

    use super::*;

    fn find(method: &Method, path: &str) -> String {
        let table = table().unwrap();
        match table.get(method, &format!("{ROOT}{path}")) {
            Outcome::Found(found) => {
                let id = found.params.get(ID).unwrap_or("-");
                format!("{:?} {id} {}", found.value, found.params.get(ATTR).unwrap_or("-"))
            }
            Outcome::NotFound => "404".into(),
            Outcome::MethodNotAllowed { allow } => format!("405 {}", allow.to_str().unwrap()),
        }
    }

    #[test]
    fn paths_name_operations() {
        for (method, path, expected) in [
            (Method::GET, "/entities/", "QueryEntities - -"),
            (Method::DELETE, "/entities", "PurgeEntities - -"),
            (Method::PATCH, "/entities/urn:a:1", "MergeEntity urn:a:1 -"),
            (Method::PATCH, "/entities/urn:a:1/attrs/", "UpdateAttributes urn:a:1 -"),
            (Method::PUT, "/entities/a%2Fb/attrs/c%2Fd", "ReplaceAttribute a%2Fb c%2Fd"),
            (Method::POST, "/entities//attrs/", "AppendAttributes - -"),
            (Method::DELETE, "/entities//attrs/speed", "DeleteAttribute - speed"),
            (Method::DELETE, "/entities/urn:a:1/attrs/", "405 POST, PATCH, OPTIONS"),
            (Method::PUT, "/entities", "405 GET, POST, DELETE, HEAD, OPTIONS"),
            (Method::POST, "/entityOperations/upsert/", "Batch(Upsert) - -"),
            (Method::GET, "/types/https%3A%2F%2Fa%23b", "Type https%3A%2F%2Fa%23b -"),
            (Method::GET, "/info/sourceIdentity", "SourceIdentity - -"),
            (Method::GET, "/subscriptions", "404"),
            (Method::POST, "/temporal/entities", "404"),
            (Method::GET, "/entityMaps/x", "404"),
        ] {
            assert_eq!(find(&method, path), expected, "{path}");
        }
    }

    #[test]
    fn a_missing_entity_id_is_told_from_the_collection() {
        assert!(lacks_entity_id(&Method::PUT, "/ngsi-ld/v1/entities/"));
        assert!(!lacks_entity_id(&Method::PUT, "/ngsi-ld/v1/entities"));
        assert!(!lacks_entity_id(&Method::GET, "/ngsi-ld/v1/entities/"));
    }
}
