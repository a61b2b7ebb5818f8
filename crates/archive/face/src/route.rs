//! Which resource a path names (TAP 1.1 2, VOSI 1.1 3, DALI 1.1 2).

use http::Method;
use trifid_base_web::Router;
use trifid_base_web::router::RouteError;

use crate::uws;

/// The path prefix under which the face is mounted.
pub(crate) const ROOT: &str = "/tap";

/// The parameter of a path that names a table.
pub(crate) const TABLE: &str = "table";
/// The parameter of a path that names a file of the page.
pub(crate) const ASSET: &str = "asset";

/// A resource and what is done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// The page for people.
    Page,
    /// A file of the page.
    Asset,
    /// A query answered at once (TAP 1.1 2.1).
    Sync,
    /// What the service can do (VOSI 1.1 3.1).
    Capabilities,
    /// Whether it is there (VOSI 1.1 3.2).
    Availability,
    /// Its tables (VOSI 1.1 3.3).
    Tables,
    /// One table.
    Table,
    /// Queries to learn from (DALI 1.1 2.3).
    Examples,
    /// A cone around a position (SCS 1.03).
    Cone,
    /// Jobs (UWS 1.1 2.2.1).
    Uws(uws::Resource),
}

/// The table of routes.
pub(crate) fn table() -> Result<Router<Operation>, RouteError> {
    use Operation as O;
    let gets = [
        ("", O::Page),
        ("/assets/{asset}", O::Asset),
        ("/sync", O::Sync),
        ("/capabilities", O::Capabilities),
        ("/availability", O::Availability),
        ("/tables", O::Tables),
        ("/tables/{*table}", O::Table),
        ("/examples", O::Examples),
        ("/scs/{*table}", O::Cone),
    ];
    let posts = [("/sync", O::Sync), ("/scs/{*table}", O::Cone)];
    let path = |path: &str| format!("{ROOT}{path}");
    let builder = gets.iter().fold(Router::builder(), |all, (at, op)| all.route(Method::GET, &path(at), *op));
    let builder = posts.iter().fold(builder, |all, (at, op)| all.route(Method::POST, &path(at), *op));
    let jobs =
        uws::ROUTES.iter().flat_map(|(at, methods, op)| methods.iter().map(move |method| (at, method, *op)));
    jobs.fold(builder, |all, (at, method, op)| all.route(method.clone(), &path(at), O::Uws(op))).build()
}

#[cfg(test)]
mod tests {
    use trifid_base_web::router::Outcome;

    use super::*;

    fn find(method: &Method, path: &str) -> String {
        match table().unwrap().get(method, path) {
            Outcome::Found(found) => {
                let params: Vec<_> = found.params.iter().map(|(_, value)| value).collect();
                format!("{:?} {}", found.value, params.join(" ")).trim_end().to_owned()
            }
            Outcome::NotFound => "404".into(),
            Outcome::MethodNotAllowed { allow } => format!("405 {}", allow.to_str().unwrap()),
        }
    }

    #[test]
    fn every_resource_is_found() {
        for (method, path, expected) in [
            (Method::GET, "/tap", "Page"),
            (Method::GET, "/tap/", "Page"),
            (Method::GET, "/tap/sync", "Sync"),
            (Method::POST, "/tap/sync/", "Sync"),
            (Method::GET, "/tap/tables", "Tables"),
            (Method::GET, "/tap/tables/ivoa.obscore", "Table ivoa.obscore"),
            (Method::GET, "/tap/tables/%22I/355%22.x", "Table %22I/355%22.x"),
            (Method::GET, "/tap/scs/a.b", "Cone a.b"),
            (Method::POST, "/tap/async/", "Uws(List)"),
            (Method::DELETE, "/tap/async/7f", "Uws(Job) 7f"),
            (Method::GET, "/tap/async/7f/results/result", "Uws(Result) 7f result"),
            (Method::GET, "/tap/async/7f/results/a/b", "404"),
            (Method::PUT, "/tap/async/7f/phase", "405 GET, POST, HEAD, OPTIONS"),
            (Method::GET, "/tap/nothing", "404"),
            (Method::GET, "/tap//sync", "404"),
            (Method::DELETE, "/tap/sync", "405 GET, POST, HEAD, OPTIONS"),
            (Method::POST, "/tap/capabilities", "405 GET, HEAD, OPTIONS"),
        ] {
            assert_eq!(find(&method, path), expected, "{method} {path}");
        }
    }
}
