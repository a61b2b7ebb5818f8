//! What can be wrong with a context: each case names the place, and all are the caller's mistake
//! (`BadRequestData`, 5.5.4 and 5.5.7). A document that cannot be had at all is the fetching layer's error.

use super::limits::{
    MAX_CHAIN, MAX_CONFLICTS, MAX_CONTEXT_BYTES, MAX_DOCUMENT_BYTES, MAX_DOCUMENTS, MAX_PIECES,
    MAX_PREFIX_LENGTHS, MAX_TERMS,
};
use crate::json;
use crate::name::shown;

/// Why a context is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContextError {
    /// The document is not JSON.
    #[error("the @context document is not valid JSON: {0}")]
    Json(json::Error),
    /// The document is longer than [`MAX_DOCUMENT_BYTES`].
    #[error("the @context document is longer than {MAX_DOCUMENT_BYTES} bytes")]
    Large,
    /// The document is no JSON object with a member `@context`.
    #[error("the document has no member @context")]
    Missing,
    /// The value, or an item of the array, is neither a URL nor an object nor an array of these.
    #[error("an @context is a URL, an object or an array of these, not a {0}")]
    Kind(&'static str),
    /// A reference to another document that cannot be followed.
    #[error("the @context reference \"{}\" {reason}", shown(.reference))]
    Reference {
        /// The reference as written.
        reference: Box<str>,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A keyword such as `@vocab` with a value that it cannot have.
    #[error("in the @context, {} {reason}", shown(.keyword))]
    Keyword {
        /// The keyword.
        keyword: Box<str>,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A term with a definition that is not acceptable.
    #[error("in the @context, the term \"{}\" {reason}", shown(.term))]
    Term {
        /// The term.
        term: Box<str>,
        /// What is wrong with its definition.
        reason: TermError,
    },
    /// A document includes itself.
    #[error("the @context {} includes itself", shown(.0))]
    Cycle(Box<str>),
    /// More than [`MAX_DOCUMENTS`] remote documents.
    #[error("the @context needs more than {MAX_DOCUMENTS} remote documents")]
    TooManyDocuments,
    /// More than [`MAX_PIECES`] parts to merge.
    #[error("the @context has more than {MAX_PIECES} parts")]
    TooManyPieces,
    /// More than [`MAX_TERMS`] terms.
    #[error("the @context defines more than {MAX_TERMS} terms")]
    TooManyTerms,
    /// More than [`MAX_PREFIX_LENGTHS`] lengths of prefixes.
    #[error("the prefixes of the @context have IRIs of more than {MAX_PREFIX_LENGTHS} different lengths")]
    TooManyPrefixes,
    /// More than [`MAX_CONFLICTS`] compact IRIs that do not mean what their prefix says.
    #[error("the @context defines more than {MAX_CONFLICTS} compact IRIs against its own prefixes")]
    TooManyConflicts,
    /// Terms and IRIs longer than [`MAX_CONTEXT_BYTES`] in sum.
    #[error("the terms of the @context are longer than {MAX_CONTEXT_BYTES} bytes in sum")]
    TooMuchText,
}

/// What is wrong with one term.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
pub enum TermError {
    #[error("has a scoped @context, which a user @context cannot have (5.5.7)")]
    Scoped,
    #[error("is defined by itself")]
    Cyclic,
    #[error("hangs on a chain of more than {MAX_CHAIN} definitions")]
    Chain,
    #[error("is defined neither by a string nor by an object nor by null")]
    Shape,
    #[error("is a keyword of JSON-LD")]
    KeywordTerm,
    #[error("is empty")]
    Empty,
    #[error("is too long, or its IRI is")]
    Length,
    #[error("stands for \"{}\", which is no IRI", shown(.0))]
    Iri(Box<str>),
    #[error("cannot stand for {0}")]
    Alias(&'static str),
    #[error("looks like an IRI but stands for another one")]
    Disguised,
    #[error("is protected by an earlier @context and cannot be redefined")]
    Protected,
    #[error("has a member {0} of the wrong kind")]
    Member(&'static str),
}

/// Why a name cannot be expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// An empty name.
    #[error("an empty name cannot be expanded")]
    Empty,
    /// Text of the form of a keyword that is none (`@foo`).
    #[error("\"{}\" has the form of a JSON-LD keyword", shown(.0))]
    Keyword(Box<str>),
    /// A blank node identifier (`_:b0`).
    #[error("\"{}\" is a blank node identifier, which cannot be a name", shown(.0))]
    Blank(Box<str>),
    /// The context takes the term out of use: maps it to null, or reverses it.
    #[error("the @context takes the term \"{}\" out of use", shown(.0))]
    Unusable(Box<str>),
}
