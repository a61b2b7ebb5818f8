//! Definitions become IRIs: the "create term definition" of JSON-LD 1.1 (API 4.2), cut down to what names need.
//!
//! A term may be defined by another one that stands later in the same object, so each is defined on demand;
//! the depth of that recursion, the length of each IRI and the sum of all are bounded.

use super::context::{Definition, Map, Target, compact_parts, keyword, keyword_like};
use super::core::{CoreTable, DEFAULT_VOCAB};
use super::error::{ContextError, TermError};
use super::iri;
use super::limits::{MAX_CHAIN, MAX_CONTEXT_BYTES, MAX_IRI_BYTES, MAX_TERMS};
use super::local::{Id, Terms, Written};

/// The active context while documents are merged into it.
pub(super) struct Builder<'c> {
    core: &'c CoreTable,
    terms: Map<Box<str>, Definition>,
    vocab: Box<str>,
    bytes: usize,
}

/// One context object being merged.
struct Scope<'t> {
    terms: &'t Terms,
    /// Where each term stands in `terms.entries`.
    index: Map<&'t str, usize>,
    states: Vec<State>,
    depth: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Defining,
    Done,
}

impl<'c> Builder<'c> {
    pub(super) fn new(core: &'c CoreTable) -> Builder<'c> {
        Builder { core, terms: Map::default(), vocab: DEFAULT_VOCAB.into(), bytes: 0 }
    }

    pub(super) fn finish(self) -> Map<Box<str>, Definition> {
        self.terms
    }

    /// A null context: forgets everything, which protected terms forbid (JSON-LD 1.1 API 4.1.2, 5.1).
    pub(super) fn reset(&mut self) -> Result<(), ContextError> {
        if let Some((term, _)) = self.terms.iter().find(|(_, definition)| definition.protected) {
            return Err(ContextError::Term { term: term.clone(), reason: TermError::Protected });
        }
        self.terms.clear();
        self.vocab = DEFAULT_VOCAB.into();
        Ok(())
    }

    /// Merges one context object.
    pub(super) fn apply(&mut self, terms: &Terms) -> Result<(), ContextError> {
        if self.terms.len() + terms.entries.len() > MAX_TERMS {
            return Err(ContextError::TooManyTerms);
        }
        let index = terms.entries.iter().enumerate().map(|(at, (term, _))| (&**term, at)).collect();
        let mut scope = Scope { terms, index, states: vec![State::Open; terms.entries.len()], depth: 0 };
        if let Some(vocab) = &terms.vocab {
            self.vocab = self.new_vocab(vocab.as_deref())?;
        }
        (0..terms.entries.len()).try_for_each(|at| self.define(&mut scope, at))
    }

    /// `@vocab` sees the terms of earlier contexts only (JSON-LD 1.1 API 4.1.2, 5.8).
    fn new_vocab(&self, written: Option<&str>) -> Result<Box<str>, ContextError> {
        let Some(written) = written else { return Ok(DEFAULT_VOCAB.into()) };
        let vocab = self.known(written).unwrap_or_else(|| {
            if iri::is_absolute(written) { written.into() } else { [&*self.vocab, written].concat() }
        });
        if vocab.len() > MAX_IRI_BYTES || !iri::is_absolute(&vocab) {
            return Err(ContextError::Keyword { keyword: "@vocab".into(), reason: "is no IRI" });
        }
        Ok(vocab.into())
    }

    /// The IRI of a defined term or of a compact IRI with a defined prefix.
    fn known(&self, name: &str) -> Option<String> {
        if let Some(Target::Iri(iri)) = self.terms.get(name).map(|definition| &definition.target) {
            return Some(iri.clone().into());
        }
        if let Some(iri) = self.core.iri(name) {
            return Some(iri.to_owned());
        }
        let (prefix, suffix) = compact_parts(name)?;
        self.prefix(prefix).map(|iri| [iri, suffix].concat())
    }

    fn prefix(&self, prefix: &str) -> Option<&str> {
        match self.terms.get(prefix) {
            Some(Definition { target: Target::Iri(iri), prefix: true, .. }) => Some(iri),
            Some(_) => None,
            None => self.core.prefix(prefix),
        }
    }

    fn define(&mut self, scope: &mut Scope<'_>, at: usize) -> Result<(), ContextError> {
        let terms = scope.terms;
        let (term, written) = &terms.entries[at];
        match scope.states[at] {
            State::Done => return Ok(()),
            State::Defining => return Err(fail(term, TermError::Cyclic)),
            State::Open if scope.depth >= MAX_CHAIN => return Err(fail(term, TermError::Chain)),
            State::Open => {}
        }
        scope.states[at] = State::Defining;
        scope.depth += 1;
        let target = self.target(scope, term, written)?;
        scope.depth -= 1;
        scope.states[at] = State::Done;
        let prefix = written.prefix || (written.simple && is_prefix(term, &target));
        let protected = written.protected.unwrap_or(terms.protected);
        self.insert(term, Definition { target, prefix, protected })
    }

    fn insert(&mut self, term: &str, definition: Definition) -> Result<(), ContextError> {
        if let Some(old) = self.terms.get(term).filter(|old| old.protected) {
            let same = old.target == definition.target && old.prefix == definition.prefix;
            return if same { Ok(()) } else { Err(fail(term, TermError::Protected)) };
        }
        self.bytes += term.len();
        if let Target::Iri(iri) = &definition.target {
            self.bytes += iri.len();
        }
        if self.bytes > MAX_CONTEXT_BYTES {
            return Err(ContextError::TooMuchText);
        }
        self.terms.insert(term.into(), definition);
        Ok(())
    }

    fn target(
        &mut self,
        scope: &mut Scope<'_>,
        term: &str,
        written: &Written,
    ) -> Result<Target, ContextError> {
        let target = match &written.id {
            Id::Null => return Ok(Target::Unusable),
            Id::Own => Target::Iri(self.own_iri(scope, term)?.into()),
            Id::Is(id) => self.expand(scope, term, id)?,
        };
        if let Target::Iri(iri) = &target {
            self.check(scope, term, iri)?;
        }
        Ok(target)
    }

    /// The IRI must be one, of bounded length, and a term that looks like an IRI must stand for that very IRI
    /// (JSON-LD 1.1 API 4.2.2, 14.2.5).
    fn check(&mut self, scope: &mut Scope<'_>, term: &str, iri: &str) -> Result<(), ContextError> {
        if iri.len() > MAX_IRI_BYTES {
            return Err(fail(term, TermError::Length));
        }
        if !iri::is_absolute(iri) {
            let written = iri.strip_prefix(&*self.vocab).unwrap_or(iri);
            return Err(fail(term, TermError::Iri(written.into())));
        }
        let inner = term.char_indices().skip(1).any(|(at, c)| c == ':' && at + 1 < term.len());
        if (inner || term.contains('/')) && self.own_iri(scope, term)? != iri {
            return Err(fail(term, TermError::Disguised));
        }
        Ok(())
    }

    /// What a term stands for by its form alone: a compact IRI, an IRI, else a name in the vocabulary.
    fn own_iri(&mut self, scope: &mut Scope<'_>, term: &str) -> Result<String, ContextError> {
        if let Some((prefix, suffix)) = compact_parts(term) {
            self.define_first(scope, prefix)?;
            if let Some(iri) = self.prefix(prefix) {
                return Ok([iri, suffix].concat());
            }
        }
        Ok(if iri::is_absolute(term) { term.to_owned() } else { [&*self.vocab, term].concat() })
    }

    /// What the `@id` of `term` stands for.
    fn expand(&mut self, scope: &mut Scope<'_>, term: &str, id: &str) -> Result<Target, ContextError> {
        if let Some(keyword) = keyword(id) {
            return match keyword {
                "@context" => Err(fail(term, TermError::Alias("@context"))),
                _ => Ok(Target::Keyword(keyword)),
            };
        }
        if id.is_empty() || keyword_like(id) || id.starts_with("_:") {
            return Err(fail(term, TermError::Iri(id.into())));
        }
        self.define_first(scope, id)?;
        match self.terms.get(id).map(|definition| definition.target.clone()) {
            Some(Target::Unusable) => return Err(fail(term, TermError::Iri(id.into()))),
            Some(target) => return Ok(target),
            None => {}
        }
        if let Some(iri) = self.core.iri(id) {
            return Ok(keyword(iri).map_or_else(|| Target::Iri(iri.into()), Target::Keyword));
        }
        Ok(Target::Iri(self.own_iri(scope, id)?.into()))
    }

    /// Defines `name` first if it is a term of the same object.
    fn define_first(&mut self, scope: &mut Scope<'_>, name: &str) -> Result<(), ContextError> {
        match scope.index.get(name) {
            Some(&at) => self.define(scope, at),
            None => Ok(()),
        }
    }
}

/// A simple term is a prefix when its IRI ends in a delimiter (JSON-LD 1.1 API 4.2.2, 14.2.6).
fn is_prefix(term: &str, target: &Target) -> bool {
    let Target::Iri(iri) = target else { return false };
    !term.contains([':', '/']) && iri.ends_with([':', '/', '?', '#', '[', ']', '@'])
}

fn fail(term: &str, reason: TermError) -> ContextError {
    ContextError::Term { term: term.into(), reason }
}
