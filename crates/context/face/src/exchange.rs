//! One request on its way through the binding: what handlers take from it, each check at its place.

use std::borrow::Cow;

use http::{HeaderValue, Method, StatusCode};
use trifid_base_web::{Framing, Request};
use trifid_context_engine::contexts::{Active, ContextRef, Contexts};
use trifid_context_engine::{Broker, Call, TenantName};
use trifid_context_model::json::{Doc, Value};
use trifid_context_model::ld::Context;
use trifid_context_model::time::Instant;

use crate::link::{self, ContextLink};
use crate::media::{self, BodyMedia, Media};
use crate::params::{Params, Set};
use crate::percent::{self, Plus};
use crate::prefer::Prefer;
use crate::problem::{Refusal, bad_data, invalid};

/// A request with its tenant and path parameters.
#[derive(Debug)]
pub(crate) struct Exchange<'r> {
    pub(crate) broker: &'r Broker,
    pub(crate) contexts: &'r Contexts,
    pub(crate) settings: &'r crate::Resolved,
    /// The `Link` header that names the core context.
    pub(crate) core_link: Option<&'r HeaderValue>,
    pub(crate) request: &'r Request,
    pub(crate) tenant: &'r TenantName,
    /// The time of the request.
    pub(crate) now: Instant,
    /// When this face began to answer.
    pub(crate) started: Instant,
    /// The path parameters, decoded; empty where the path has none.
    pub(crate) id: Cow<'r, str>,
    pub(crate) attribute: Cow<'r, str>,
}

/// The context of a request, and how an answer may name it.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) context: Active,
    /// The client's own header, when it can be sent back.
    link: Option<HeaderValue>,
}

impl Asked {
    /// The `Link` header of an answer whose body has no `@context` (6.3.5); none when no URL names the context.
    pub(crate) fn link(&self) -> Option<HeaderValue> {
        self.link.clone().or_else(|| link::to_context(self.context.link()?))
    }
}

/// A request's body.
#[derive(Debug)]
pub(crate) struct Body<'r> {
    pub(crate) doc: Doc<'r>,
    pub(crate) media: BodyMedia,
}

impl<'r> Exchange<'r> {
    /// For the engine: whose request it is, under which context.
    pub(crate) fn call<'c>(&'c self, context: &'c Context) -> Call<'c> {
        Call { tenant: self.tenant, context }
    }

    /// The query string.
    pub(crate) fn params(&self, allowed: Set) -> Result<Params<'r>, Refusal> {
        Params::parse(self.request.query(), allowed)
    }

    /// The representation to answer in (6.3.4).
    pub(crate) fn media(&self, offered: &'static [Media]) -> Result<Media, Refusal> {
        media::negotiate(&self.request.headers, offered).ok_or(Refusal::NotAcceptable(offered))
    }

    /// What the client prefers (6.3.6).
    pub(crate) fn prefer(&self) -> Prefer {
        Prefer::of(&self.request.headers)
    }

    /// How the body is written (6.3.4).
    pub(crate) fn check_body_media(&self) -> Result<BodyMedia, Refusal> {
        let is_patch = self.request.method == Method::PATCH;
        let media = media::of_body(&self.request.headers, is_patch);
        media.ok_or(Refusal::Bare(StatusCode::UNSUPPORTED_MEDIA_TYPE))
    }

    /// The body as JSON (6.3.4, 5.5.4).
    pub(crate) fn body(&self) -> Result<Body<'r>, Refusal> {
        let media = self.check_body_media()?;
        let request: &'r Request = self.request;
        let doc = Doc::parse(&request.body)?;
        Ok(Body { doc, media })
    }

    /// The context of a request without a body: that of the `Link` header, else the core (6.3.5).
    pub(crate) async fn header_context(&self) -> Result<Asked, Refusal> {
        self.linked(link::context(&self.request.headers)?).await
    }

    /// The context of a request whose body is one document (6.3.5).
    pub(crate) async fn body_context(&self, body: &Body<'_>) -> Result<Asked, Refusal> {
        let root = body.doc.root();
        if !root.is_object() {
            // 5.5.4: what is no JSON object is no JSON-LD document either.
            return Err(invalid("the body is not a JSON object"));
        }
        let link = self.link_beside(body.media)?;
        self.document_context(root, body.media, link).await
    }

    /// The `Link` header beside a body; JSON-LD has its context inside and nowhere else.
    pub(crate) fn link_beside(&self, media: BodyMedia) -> Result<Option<ContextLink>, Refusal> {
        let link = link::context(&self.request.headers)?;
        if media == BodyMedia::LdJson && link.is_some() {
            return Err(bad_data(
                "a body of type application/ld+json has its @context inside; the header `Link` must not name \
                 another one (6.3.5)",
            ));
        }
        Ok(link)
    }

    /// The context of one document: a body, or an item of a batch.
    pub(crate) async fn document_context(
        &self,
        document: Value<'_>,
        media: BodyMedia,
        link: Option<ContextLink>,
    ) -> Result<Asked, Refusal> {
        match (media, document.get("@context")) {
            (BodyMedia::Json, None) => self.linked(link).await,
            (BodyMedia::Json, Some(_)) => Err(bad_data(
                "a body of type application/json must not have a member `@context`; name the context in the header \
                 `Link`, or send application/ld+json (6.3.5)",
            )),
            (BodyMedia::LdJson, Some(value)) => {
                let context = self.resolve(ContextRef::Inline(value)).await?;
                Ok(Asked { context, link: None })
            }
            (BodyMedia::LdJson, None) => {
                Err(bad_data("a body of type application/ld+json needs a member `@context` (6.3.5)"))
            }
        }
    }

    async fn linked(&self, link: Option<ContextLink>) -> Result<Asked, Refusal> {
        let Some(link) = link else {
            let context = self.resolve(ContextRef::Default).await?;
            return Ok(Asked { context, link: self.core_link.cloned() });
        };
        let context = self.resolve(ContextRef::Url(&link.target)).await?;
        Ok(Asked { context, link: link.header })
    }

    async fn resolve(&self, named: ContextRef<'_>) -> Result<Active, Refusal> {
        let tenant = self.tenant.as_str();
        match self.contexts.ready(tenant, named, self.now) {
            Some(active) => Ok(active),
            // Loading is rare and its future is large: it stays out of the future of every request.
            None => Ok(Box::pin(self.contexts.resolve(tenant, named, self.now)).await?),
        }
    }

    /// `asked` with a link for an answer whose body has no `@context`: when no URL names the context that the
    /// request gave inside, this broker serves it from now on (6.3.5, 5.13.1).
    pub(crate) async fn with_link(&self, asked: Asked, body: &Body<'_>, media: Media) -> Asked {
        let value = body.doc.root().get("@context");
        let (Some(value), None, false) = (value, asked.link(), media == Media::LdJson) else { return asked };
        let hosted = Box::pin(self.contexts.host_implicitly(self.tenant.as_str(), value, self.now)).await;
        // A tenant that may host no more gets its answer all the same, without the link.
        Asked { link: hosted.ok().and_then(|url| link::to_context(&url)), ..asked }
    }
}

/// 6.3.4: POST, PATCH and PUT state the length of their body, also when there is none. HTTP/2 frames carry it.
pub(crate) fn states_length(request: &Request) -> bool {
    let needs = matches!(request.method, Method::POST | Method::PATCH | Method::PUT);
    let is_http1 = request.version < http::Version::HTTP_2;
    !needs || !is_http1 || matches!(request.body_framing, Framing::ContentLength(_))
}

/// A path parameter, decoded after routing.
pub(crate) fn segment<'p>(raw: Option<&'p str>, what: &str) -> Result<Cow<'p, str>, Refusal> {
    percent::decode(raw.unwrap_or_default(), Plus::Literal)
        .map_err(|error| bad_data(format!("the {what} in the path: {error}")))
}
