//! A context door without sockets: requests are values, the clock stands still, documents come from a table.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use trifid_base_runtime::{ManualClock, SeededEntropy, Timestamp};
use trifid_base_web::{Face, Framing, Request};
use trifid_context_engine::Broker;
use trifid_context_engine::contexts::{
    Boxed, CacheHeaders, Contexts, Fetch, FetchError, FetchRequest, Fetched, InMemory, Ports, Settings,
};
use trifid_context_engine::memory::MemoryStore;
use trifid_context_engine::time::Now;
use trifid_context_face::{ContextFace, Options};
use trifid_context_model::ld::CoreVersion;
use trifid_context_model::symbol::Symbols;

/// A context that maps a few terms.
pub(crate) const CITY: &str = "https://example.org/city.jsonld";
/// What the terms of [`CITY`] stand for, before the term.
pub(crate) const VOCAB: &str = "https://example.org/city#";
/// The core that requests without a context are answered under.
pub(crate) const CORE: &str = "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.8.jsonld";

pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");
pub(crate) const LD_JSON: (&str, &str) = ("content-type", "application/ld+json");

/// A `Link` header that names the context at `url`.
pub(crate) fn link(url: &str) -> String {
    format!("<{url}>; rel=\"http://www.w3.org/ns/json-ld#context\"; type=\"application/ld+json\"")
}

struct Documents(HashMap<&'static str, &'static str>);

impl Fetch for Documents {
    fn fetch<'a>(&'a self, request: FetchRequest<'a>) -> Boxed<'a, Result<Fetched, FetchError>> {
        let found = self.0.get(request.url).map(|text| Fetched::Document {
            url: request.url.into(),
            bytes: Bytes::from_static(text.as_bytes()),
            cache: CacheHeaders::default(),
        });
        Box::pin(std::future::ready(found.ok_or_else(|| FetchError::new("the server answered 404"))))
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The value of a header; empty when it is not there.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// All values of a header.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
    }

    /// The last part of the error type's URI.
    pub(crate) fn problem(&self) -> String {
        let body = self.json();
        assert_eq!(body["status"], self.status, "{}", self.body);
        assert_eq!(self.header("content-type"), "application/json", "errors are json (6.3.6)");
        assert_ne!(body["title"], body["detail"]);
        assert!(!body["detail"].as_str().unwrap().is_empty());
        body["type"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
    }

    /// Status and problem in one, for tables.
    pub(crate) fn outcome(&self) -> String {
        if self.body.is_empty() || self.status < 400 {
            return self.status.to_string();
        }
        format!("{} {}", self.status, self.problem())
    }
}

/// A door with its clock.
pub(crate) struct Door {
    face: ContextFace,
    pub(crate) clock: Arc<ManualClock>,
}

impl Door {
    pub(crate) fn new() -> Self {
        let documents = Documents(HashMap::from([
            (
                CITY,
                r#"{"@context":{"Building":"https://example.org/city#Building","name":"https://example.org/city#name",
                    "height":"https://example.org/city#height","kind":"https://example.org/city#kind"}}"#,
            ),
            ("https://example.org/broken.jsonld", "not { json"),
        ]));
        // 2026-01-01T00:00:00Z
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_767_225_600_000_000)));
        let store = Arc::new(MemoryStore::new(Arc::new(Symbols::new())));
        let broker = Arc::new(Broker::new(store, Now::new(clock.clone())));
        let ports = Ports {
            fetch: Arc::new(documents),
            hosted: Arc::new(InMemory),
            entropy: Arc::new(SeededEntropy::new(7)),
        };
        let settings =
            Settings { core: CoreVersion::V1_8, public_urls: vec!["https://broker.example".into()] };
        let resolved = Options::default().resolve().unwrap();
        Door { face: ContextFace::new(broker, Contexts::new(settings, ports), resolved), clock }
    }

    /// A door with these entities.
    pub(crate) async fn with(entities: &[&str]) -> Self {
        let door = Door::new();
        for entity in entities {
            let answer = door.post("/entities", entity).await;
            assert_eq!(answer.status, 201, "{}", answer.body);
        }
        door
    }

    /// Sends a request whose path is below the root, its body framed by its length.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let body = body.into();
        let framing = match method {
            "GET" | "HEAD" | "DELETE" | "OPTIONS" => Framing::None,
            _ => Framing::ContentLength(body.len() as u64),
        };
        self.send_framed(method, path, headers, body, framing).await
    }

    pub(crate) async fn send_framed(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
        framing: Framing,
    ) -> Answer {
        let uri = format!("/ngsi-ld/v1{path}").parse().unwrap();
        let mut request = Request::new(Method::from_bytes(method.as_bytes()).unwrap(), uri);
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            request.headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        request.body = body;
        request.body_framing = framing;
        let response = self.face.call(request).await;
        let body = String::from_utf8(response.body().bytes().unwrap().to_vec()).unwrap();
        Answer { status: response.status().as_u16(), headers: response.headers().clone(), body }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.send("GET", path, &[("accept", accept)], "").await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        self.send("POST", path, &[JSON], body.to_owned()).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &str) -> Answer {
        self.send("PATCH", path, &[JSON], body.to_owned()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &str) -> Answer {
        self.send("PUT", path, &[JSON], body.to_owned()).await
    }

    /// The identifiers that a query answers with.
    pub(crate) async fn ids(&self, path: &str) -> Vec<String> {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        let list = answer.json();
        list.as_array().unwrap().iter().map(|entity| entity["id"].as_str().unwrap().to_owned()).collect()
    }
}
