//! A context as written: parsed, checked for shape, references resolved, not yet merged with anything.

use super::context::keyword_like;
use super::core::CoreVersion;
use super::error::{ContextError, TermError};
use super::iri;
use super::limits::{MAX_DOCUMENT_BYTES, MAX_IRI_BYTES, MAX_PIECES};
use crate::json::{Doc, Kind, Value};

/// A parsed `@context` value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalContext {
    pub(super) pieces: Vec<Piece>,
}

/// One item of a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// `null`: forget what stands before.
    Reset,
    /// A built-in core context.
    Core(CoreVersion),
    /// Another document.
    Remote(Box<str>),
    /// Definitions.
    Terms(Terms),
}

/// The members of one context object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Terms {
    /// `Some(None)` is an explicit null.
    pub(super) vocab: Option<Option<Box<str>>>,
    pub(super) protected: bool,
    pub(super) entries: Vec<(Box<str>, Written)>,
}

/// The definition of a term as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) id: Id,
    /// A plain string, which may make the term a prefix.
    pub(super) simple: bool,
    pub(super) prefix: bool,
    pub(super) protected: Option<bool>,
}

/// The member `@id` of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Id {
    /// Not given: the term itself tells.
    Own,
    /// Null, or a reverse property: the term is taken out of use.
    Null,
    Is(Box<str>),
}

/// Parses the value of a member `@context`. Relative references are resolved against `base`, the URL of the
/// document; a request body has none, so references in it must be absolute.
pub fn parse_context(value: Value<'_>, base: Option<&str>) -> Result<LocalContext, ContextError> {
    let mut pieces = Vec::new();
    collect(value, base, &mut pieces)?;
    Ok(LocalContext { pieces })
}

/// Parses a context document fetched from `url`: an object with a member `@context`, all other members of
/// which are ignored (JSON-LD 1.1 3.1).
pub fn parse_document(bytes: &[u8], url: &str) -> Result<LocalContext, ContextError> {
    if bytes.len() > MAX_DOCUMENT_BYTES {
        return Err(ContextError::Large);
    }
    let doc = Doc::parse(bytes).map_err(ContextError::Json)?;
    let value = doc.root().get("@context").ok_or(ContextError::Missing)?;
    parse_context(value, Some(url))
}

impl LocalContext {
    /// A context that is one reference.
    pub fn remote(url: &str) -> Result<LocalContext, ContextError> {
        Ok(LocalContext { pieces: vec![reference(url, None)?] })
    }

    /// True for an array without items.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The documents that this one refers to, built-in ones aside.
    pub fn remotes(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Remote(url) => Some(&**url),
            Piece::Reset | Piece::Core(_) | Piece::Terms(_) => None,
        })
    }
}

/// Appends the pieces of `value`; arrays in arrays are flattened, to the depth that the JSON parser allows.
fn collect(value: Value<'_>, base: Option<&str>, pieces: &mut Vec<Piece>) -> Result<(), ContextError> {
    if value.is_array() {
        return value.items().try_for_each(|item| collect(item, base, pieces));
    }
    if pieces.len() >= MAX_PIECES {
        return Err(ContextError::TooManyPieces);
    }
    pieces.push(piece(value, base)?);
    Ok(())
}

fn piece(value: Value<'_>, base: Option<&str>) -> Result<Piece, ContextError> {
    match value.kind() {
        Kind::Null => Ok(Piece::Reset),
        Kind::String => reference(&value.as_str().unwrap_or_default(), base),
        Kind::Object => Ok(Piece::Terms(terms(value)?)),
        Kind::Bool => Err(ContextError::Kind("boolean")),
        Kind::Number => Err(ContextError::Kind("number")),
        Kind::Array => Err(ContextError::Kind("array")),
    }
}

fn reference(written: &str, base: Option<&str>) -> Result<Piece, ContextError> {
    let fail = |reason| Err(ContextError::Reference { reference: written.into(), reason });
    let url = match base {
        Some(base) => iri::resolve(base, written),
        None => written.split('#').next().unwrap_or_default().to_owned(),
    };
    if url.len() > MAX_IRI_BYTES {
        return fail("is too long");
    }
    if let Some(version) = CoreVersion::from_url(&url) {
        return Ok(Piece::Core(version));
    }
    if !iri::is_http(&url) {
        return fail("is not an absolute http or https URL");
    }
    Ok(Piece::Remote(url.into()))
}

fn terms(object: Value<'_>) -> Result<Terms, ContextError> {
    let mut terms = Terms::default();
    for (name, value) in object.members() {
        if name.starts_with('@') {
            keyword_member(&mut terms, &name, value)?;
        } else {
            let definition = definition(&name, value)
                .map_err(|reason| ContextError::Term { term: (&*name).into(), reason })?;
            terms.entries.push((name.into(), definition));
        }
    }
    Ok(terms)
}

/// A member whose name begins with `@`. Those that concern values or relative IRIs in documents change nothing
/// for names and are passed over (`@base`, `@language`, `@direction`, `@propagate`).
fn keyword_member(terms: &mut Terms, name: &str, value: Value<'_>) -> Result<(), ContextError> {
    let fail = |reason| Err(ContextError::Keyword { keyword: name.into(), reason });
    match name {
        "@vocab" => match value.kind() {
            Kind::Null => terms.vocab = Some(None),
            Kind::String => terms.vocab = Some(Some(value.as_str().unwrap_or_default().into())),
            _ => return fail("is neither a string nor null"),
        },
        "@protected" => match value.as_bool() {
            Some(protected) => terms.protected = protected,
            None => return fail("is not a boolean"),
        },
        "@version" if value.as_f64() != Some(1.1) => return fail("is not 1.1"),
        "@import" => return fail("is not supported; name the document in the array instead"),
        "@version" | "@base" | "@language" | "@direction" | "@propagate" => {}
        // An alias of nothing: `@type` may carry `{"@container": "@set"}`, which is about values.
        "@type" if value.is_object() => {}
        _ if super::context::keyword(name).is_some() => {
            return Err(ContextError::Term { term: name.into(), reason: TermError::KeywordTerm });
        }
        // Reserved for later versions of JSON-LD and passed over, as 1.1 says.
        _ if keyword_like(name) => {}
        _ => {
            let definition =
                definition(name, value).map_err(|reason| ContextError::Term { term: name.into(), reason })?;
            terms.entries.push((name.into(), definition));
        }
    }
    Ok(())
}

fn definition(term: &str, value: Value<'_>) -> Result<Written, TermError> {
    if term.is_empty() {
        return Err(TermError::Empty);
    }
    if term.len() > MAX_IRI_BYTES {
        return Err(TermError::Length);
    }
    let (id, simple) = match value.kind() {
        Kind::Null => (Id::Null, false),
        Kind::String => (id(term, value)?, true),
        Kind::Object => return object_definition(term, value),
        Kind::Bool | Kind::Number | Kind::Array => return Err(TermError::Shape),
    };
    Ok(Written { id, simple, prefix: false, protected: None })
}

fn object_definition(term: &str, object: Value<'_>) -> Result<Written, TermError> {
    let mut written = Written { id: Id::Own, simple: false, prefix: false, protected: None };
    let mut reverse = false;
    for (name, value) in object.members() {
        match &*name {
            "@id" => written.id = id(term, value)?,
            "@context" => return Err(TermError::Scoped),
            "@prefix" => written.prefix = value.as_bool().ok_or(TermError::Member("@prefix"))?,
            "@protected" => {
                written.protected = Some(value.as_bool().ok_or(TermError::Member("@protected"))?);
            }
            "@reverse" => reverse = value.as_str().map(|_| true).ok_or(TermError::Member("@reverse"))?,
            "@type" if value.kind() != Kind::String => return Err(TermError::Member("@type")),
            "@container" => check_container(value)?,
            // `@type`, `@language`, `@direction`, `@index`, `@nest`: about values, which NGSI-LD keeps as they are.
            _ => {}
        }
    }
    if reverse {
        written.id = Id::Null;
    }
    if written.prefix && term.contains([':', '/']) {
        return Err(TermError::Member("@prefix"));
    }
    Ok(written)
}

fn id(term: &str, value: Value<'_>) -> Result<Id, TermError> {
    match value.kind() {
        Kind::Null => Ok(Id::Null),
        Kind::String => {
            let text = value.as_str().unwrap_or_default();
            if text.len() > MAX_IRI_BYTES {
                return Err(TermError::Length);
            }
            // JSON-LD 1.1 API 4.2.2, 14: a term that stands for itself tells its IRI by its own form.
            Ok(if text == term { Id::Own } else { Id::Is(text.into()) })
        }
        Kind::Bool | Kind::Number | Kind::Array | Kind::Object => Err(TermError::Member("@id")),
    }
}

fn check_container(value: Value<'_>) -> Result<(), TermError> {
    const KNOWN: [&str; 7] = ["@graph", "@id", "@index", "@language", "@list", "@set", "@type"];
    let known = |value: Value<'_>| value.as_str().is_some_and(|text| KNOWN.contains(&&*text));
    let good = match value.kind() {
        Kind::Null => true,
        Kind::Array => value.items().all(known),
        _ => known(value),
    };
    good.then_some(()).ok_or(TermError::Member("@container"))
}
