//! Which of a door's operations a method and a raw path name.
//!
//! The table is the crate `matchit` over the path as it was sent: nothing is decoded or normalised before the
//! match, so a percent-encoded slash stays inside its segment and `//` matches nothing. One trailing slash is
//! tolerated. A parameter is the raw text of its segment; decoding it is the door's business.
//!
//! A lookup allocates nothing. The `Allow` list of each path is rendered once, when the table is built.

use std::fmt;

use http::{HeaderValue, Method};

/// Why a table of routes cannot be built. It is written in the program, so this is for its author.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// The path is malformed, or shadows another one.
    #[error("route {path}: {source}")]
    Path {
        /// The path as it was given.
        path: String,
        /// What is wrong with it.
        source: matchit::InsertError,
    },
    /// The same method twice on one path.
    #[error("route {path}: {method} is there twice")]
    Twice {
        /// The path.
        path: String,
        /// The method.
        method: Method,
    },
}

/// Collects routes, then builds a [`Router`].
#[derive(Debug)]
pub struct Builder<T>(Vec<(String, Vec<(Method, T)>)>);

impl<T> Builder<T> {
    /// Adds an operation; `path` may hold parameters, as in `/entities/{id}` and `/static/{*rest}`.
    #[must_use]
    pub fn route(mut self, method: Method, path: &str, value: T) -> Self {
        let path = without_trailing_slash(path);
        match self.0.iter_mut().find(|(known, _)| known == path) {
            Some((_, methods)) => methods.push((method, value)),
            None => self.0.push((path.to_owned(), vec![(method, value)])),
        }
        self
    }

    /// The finished table.
    pub fn build(self) -> Result<Router<T>, RouteError> {
        let mut paths = matchit::Router::new();
        for (path, methods) in self.0 {
            if let Some(method) = repeated(&methods) {
                return Err(RouteError::Twice { path, method });
            }
            let resource = Resource { allow: allow_of(&methods), methods };
            paths.insert(path.clone(), resource).map_err(|source| RouteError::Path { path, source })?;
        }
        Ok(Router { paths })
    }
}

fn repeated<T>(methods: &[(Method, T)]) -> Option<Method> {
    let twice = |(at, (method, _)): (usize, &(Method, T))| {
        methods[..at].iter().any(|(before, _)| before == method).then(|| method.clone())
    };
    methods.iter().enumerate().find_map(twice)
}

/// The methods as they were added, then HEAD where GET is (RFC 9110 9.3.2), then OPTIONS.
fn allow_of<T>(methods: &[(Method, T)]) -> HeaderValue {
    let mut names: Vec<&str> = methods.iter().map(|(method, _)| method.as_str()).collect();
    if names.contains(&"GET") && !names.contains(&"HEAD") {
        names.push("HEAD");
    }
    if !names.contains(&"OPTIONS") {
        names.push("OPTIONS");
    }
    HeaderValue::try_from(names.join(", ")).expect("method names are tokens, which are header values")
}

fn without_trailing_slash(path: &str) -> &str {
    match path.strip_suffix('/') {
        Some("") | None => path,
        Some(rest) => rest,
    }
}

/// The operations of one path.
#[derive(Debug)]
struct Resource<T> {
    methods: Vec<(Method, T)>,
    allow: HeaderValue,
}

/// A table of operations by method and path.
pub struct Router<T> {
    paths: matchit::Router<Resource<T>>,
}

impl<T> fmt::Debug for Router<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").finish_non_exhaustive()
    }
}

impl<T> Router<T> {
    /// An empty table to add routes to.
    pub fn builder() -> Builder<T> {
        Builder(Vec::new())
    }

    /// The operation that `method` on the raw `path` names. HEAD is not taken for GET, and OPTIONS is not
    /// answered: both are the door's to decide, with the `Allow` list at hand.
    pub fn get<'r, 'p>(&'r self, method: &Method, path: &'p str) -> Outcome<'r, 'p, T> {
        let Ok(found) = self.paths.at(without_trailing_slash(path)) else { return Outcome::NotFound };
        let resource = found.value;
        match resource.methods.iter().find(|(known, _)| known == method) {
            Some((_, value)) => {
                Outcome::Found(Match { value, params: Params(found.params), allow: &resource.allow })
            }
            None => Outcome::MethodNotAllowed { allow: &resource.allow },
        }
    }

    /// The `Allow` list of the raw `path`, if it is one.
    pub fn allow(&self, path: &str) -> Option<&HeaderValue> {
        self.paths.at(without_trailing_slash(path)).ok().map(|found| &found.value.allow)
    }
}

/// What a lookup found.
#[derive(Debug)]
pub enum Outcome<'r, 'p, T> {
    /// The operation and the parameters of its path.
    Found(Match<'r, 'p, T>),
    /// No such path.
    NotFound,
    /// The path exists, without this method.
    MethodNotAllowed {
        /// The methods that it has: the value of `Allow` (RFC 9110 15.5.6).
        allow: &'r HeaderValue,
    },
}

/// A found operation.
#[derive(Debug)]
pub struct Match<'r, 'p, T> {
    /// The operation.
    pub value: &'r T,
    /// The path's parameters.
    pub params: Params<'r, 'p>,
    /// The methods of this path.
    pub allow: &'r HeaderValue,
}

/// The raw parameters of a path.
#[derive(Debug)]
pub struct Params<'r, 'p>(matchit::Params<'r, 'p>);

impl<'p> Params<'_, 'p> {
    /// The raw text of the parameter `name`.
    pub fn get(&self, name: &str) -> Option<&'p str> {
        self.0.get(name)
    }

    /// The parameters in the order of the path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'p str)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table() -> Router<&'static str> {
        Router::builder()
            .route(Method::GET, "/v1/entities", "query")
            .route(Method::POST, "/v1/entities/", "create")
            .route(Method::GET, "/v1/entities/{id}", "retrieve")
            .route(Method::DELETE, "/v1/entities/{id}", "delete")
            .route(Method::PATCH, "/v1/entities/{id}/attrs/{attr}", "patch")
            .route(Method::GET, "/v1/files/{*rest}", "file")
            .build()
            .unwrap()
    }

    /// The operation with its parameters, or the status that would be answered.
    fn find(method: &Method, path: &str) -> String {
        match table().get(method, path) {
            Outcome::Found(found) => {
                let params: String =
                    found.params.iter().map(|(name, value)| format!(" {name}={value}")).collect();
                format!("{}{params}", found.value)
            }
            Outcome::NotFound => "404".into(),
            Outcome::MethodNotAllowed { allow } => format!("405 {}", allow.to_str().unwrap()),
        }
    }

    #[test]
    fn methods_and_paths_find_their_operation() {
        for (method, path, found) in [
            (Method::GET, "/v1/entities", "query"),
            (Method::GET, "/v1/entities/", "query"),
            (Method::POST, "/v1/entities", "create"),
            (Method::GET, "/v1/entities/urn:a:1", "retrieve id=urn:a:1"),
            (Method::GET, "/v1/entities/urn:a:1/", "retrieve id=urn:a:1"),
            (Method::PATCH, "/v1/entities/a/attrs/b", "patch id=a attr=b"),
            (Method::GET, "/v1/files/a/b/c", "file rest=a/b/c"),
        ] {
            assert_eq!(find(&method, path), found, "{path}");
        }
    }

    #[test]
    fn nothing_is_decoded_or_normalised() {
        for (path, found) in [
            ("/v1/entities/a%2Fb", "retrieve id=a%2Fb"),
            ("/v1/entities/%2e%2e", "retrieve id=%2e%2e"),
            ("/v1/entities/..", "retrieve id=.."),
            ("/v1//entities", "404"),
            ("/v1/entities//", "404"),
            ("/V1/entities", "404"),
            ("/v1/%65ntities", "404"),
            ("/v1/entities/a/attrs", "404"),
            ("", "404"),
            ("*", "404"),
        ] {
            assert_eq!(find(&Method::GET, path), found, "{path}");
        }
    }

    #[test]
    fn a_path_without_the_method_lists_those_it_has() {
        assert_eq!(find(&Method::PUT, "/v1/entities"), "405 GET, POST, HEAD, OPTIONS");
        assert_eq!(find(&Method::OPTIONS, "/v1/entities/a/attrs/b"), "405 PATCH, OPTIONS");
        assert_eq!(table().allow("/v1/entities/a/").unwrap(), "GET, DELETE, HEAD, OPTIONS");
        assert!(table().allow("/nothing").is_none());
    }

    #[test]
    fn a_table_that_contradicts_itself_is_refused() {
        let twice = Router::builder().route(Method::GET, "/a", 1).route(Method::GET, "/a/", 2).build();
        assert!(matches!(twice, Err(RouteError::Twice { .. })));
        let shadow = Router::builder().route(Method::GET, "/{a}", 1).route(Method::GET, "/{b}", 2).build();
        assert!(matches!(shadow, Err(RouteError::Path { .. })));
    }

    proptest! {
        #[test]
        fn any_path_is_answered(path in "\\PC{0,60}") {
            let _ = table().get(&Method::GET, &path);
        }

        #[test]
        fn a_segment_comes_back_as_it_was_sent(id in "[^/{}]{1,40}", slash in any::<bool>()) {
            let path = format!("/v1/entities/{id}{}", if slash { "/" } else { "" });
            prop_assert_eq!(find(&Method::GET, &path), format!("retrieve id={id}"));
        }
    }
}
