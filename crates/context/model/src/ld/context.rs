//! An active context: names to IRIs and back.
//!
//! The core takes part in every context and nothing can stand in front of it (4.4, 5.5.7): its terms are
//! looked up first, and what no term covers falls into its default namespace. A user's `@vocab` therefore
//! serves that user's own definitions only; as JSON-LD says of a context before the last one.
//!
//! Compaction is the exact inverse of expansion: whatever `expand` can yield, `compact` gives a name for which
//! `expand` yields it again. Order: core term, shortest user term, bare name in the default namespace,
//! shortest prefixed form, the IRI itself; each form is taken only when it expands back.

use std::borrow::Cow;
use std::sync::Arc;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::core::{CoreTable, CoreVersion, DEFAULT_VOCAB};
use super::error::{ContextError, NameError};
use super::iri;
use super::keys::Keys;
use super::limits::{MAX_CONFLICTS, MAX_PREFIX_LENGTHS};
use crate::json::{quoted, write_string};
use crate::symbol::{Symbol, Symbols};

pub(super) type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// What a term stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// An IRI.
    Iri(Box<str>),
    /// A keyword: the term is an alias of it.
    Keyword(&'static str),
    /// Nothing: mapped to null, or a reverse property.
    Unusable,
}

/// The definition of one term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Definition {
    pub(super) target: Target,
    /// May stand in front of a colon.
    pub(super) prefix: bool,
    pub(super) protected: bool,
}

/// How a context is named to whoever reads an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    url: Option<Box<str>>,
    json: Box<str>,
}

impl Announcement {
    /// A context that one URL names.
    pub fn url(url: &str) -> Announcement {
        Announcement { url: Some(url.into()), json: quoted(url).into() }
    }

    /// The URL, if one names the context.
    pub fn link(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// A context given as this JSON text: the value of a member `@context`. Text that is one URL, also as the
    /// only item of an array, names it by that URL.
    pub fn json(value: crate::json::Value<'_>) -> Announcement {
        let mut items = value.items();
        let only = match (items.next(), items.next()) {
            (Some(item), None) => item,
            _ => value,
        };
        Announcement { url: only.as_str().map(|url| url.into()), json: value.minified().into() }
    }
}

/// An active context. Immutable and shared; the table of compacted names fills up as they are used.
#[derive(Debug)]
pub struct Context {
    /// The core; the identity context has none.
    core: Option<Arc<CoreTable>>,
    terms: Map<Box<str>, Definition>,
    /// IRI to its shortest user term.
    names: Map<Box<str>, Box<str>>,
    /// IRI to the prefixes that stand for it.
    prefixes: Map<Box<str>, SmallVec<[Box<str>; 1]>>,
    /// The lengths that the IRIs in `prefixes` have.
    prefix_lengths: Vec<usize>,
    announcement: Announcement,
    keys: Keys,
}

impl Context {
    /// Every name is its own IRI: the context of the canonical form that stores keep.
    pub fn identity() -> Context {
        Context::new(None, Map::default(), Announcement { url: None, json: "[]".into() })
    }

    pub(super) fn of_core(core: Arc<CoreTable>) -> Context {
        let announcement = Announcement::url(core.version.url());
        Context::new(Some(core), Map::default(), announcement)
    }

    /// User `terms` over the core.
    pub(super) fn new(
        core: Option<Arc<CoreTable>>,
        mut terms: Map<Box<str>, Definition>,
        announcement: Announcement,
    ) -> Context {
        if let Some(core) = &core {
            terms.retain(|term, _| core.iri(term).is_none());
        }
        terms.shrink_to_fit();
        let mut context = Context {
            core,
            terms,
            names: Map::default(),
            prefixes: Map::default(),
            prefix_lengths: Vec::new(),
            announcement,
            keys: Keys::new(),
        };
        context.index();
        context
    }

    /// Builds the way back from the way there.
    fn index(&mut self) {
        for (term, definition) in &self.terms {
            let Target::Iri(iri) = &definition.target else { continue };
            let known = self.names.entry(iri.clone()).or_insert_with(|| term.clone());
            if shorter(term, known) {
                known.clone_from(term);
            }
            if definition.prefix {
                self.prefixes.entry(iri.clone()).or_default().push(term.clone());
            }
        }
        for (term, iri) in self.core.iter().flat_map(|core| core.prefixes()) {
            self.prefixes.entry(iri.into()).or_default().push(term.into());
        }
        self.prefixes.values_mut().for_each(|terms| terms.sort_by(|a, b| order(a, b)));
        self.prefix_lengths = self.prefixes.keys().map(|iri| iri.len()).collect();
        self.prefix_lengths.sort_unstable();
        self.prefix_lengths.dedup();
    }

    /// Refuses what would make compaction dear.
    pub(super) fn check(self) -> Result<Context, ContextError> {
        if self.prefix_lengths.len() > MAX_PREFIX_LENGTHS {
            return Err(ContextError::TooManyPrefixes);
        }
        let contradicts = |term: &&str| {
            let Some((prefix, suffix)) = compact_parts(term) else { return false };
            let said = self.prefix(prefix).map(|iri| [iri, suffix].concat());
            said.is_some_and(|iri| !self.expands_to(term, &iri))
        };
        if self.terms().filter(contradicts).count() > MAX_CONFLICTS {
            return Err(ContextError::TooManyConflicts);
        }
        Ok(self)
    }

    /// The IRI of a type, an attribute or a vocabulary value: of a term, of a compact IRI (`prefix:suffix`), of
    /// an absolute IRI (itself), else of the name in the default namespace (5.5.7). An alias of a keyword
    /// yields the keyword (`id` is `@id`).
    pub fn expand<'a>(&'a self, name: &'a str) -> Result<Cow<'a, str>, NameError> {
        let Some(core) = &self.core else { return Ok(Cow::Borrowed(name)) };
        if let Some(iri) = core.iri(name) {
            return Ok(Cow::Borrowed(iri));
        }
        if let Some(definition) = self.terms.get(name) {
            return match &definition.target {
                Target::Iri(iri) => Ok(Cow::Borrowed(iri)),
                Target::Keyword(keyword) => Ok(Cow::Borrowed(keyword)),
                Target::Unusable => Err(NameError::Unusable(name.into())),
            };
        }
        self.expand_undefined(name)
    }

    fn expand_undefined<'a>(&'a self, name: &'a str) -> Result<Cow<'a, str>, NameError> {
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if keyword(name).is_some() {
            return Ok(Cow::Borrowed(name));
        }
        if keyword_like(name) {
            return Err(NameError::Keyword(name.into()));
        }
        if name.starts_with("_:") {
            return Err(NameError::Blank(name.into()));
        }
        if let Some((prefix, suffix)) = compact_parts(name)
            && let Some(iri) = self.prefix(prefix)
        {
            return Ok(Cow::Owned([iri, suffix].concat()));
        }
        if iri::is_absolute(name) {
            return Ok(Cow::Borrowed(name));
        }
        Ok(Cow::Owned([DEFAULT_VOCAB, name].concat()))
    }

    /// The IRI that `prefix` stands for.
    fn prefix(&self, prefix: &str) -> Option<&str> {
        if let Some(core) = &self.core
            && core.iri(prefix).is_some()
        {
            return core.prefix(prefix);
        }
        match self.terms.get(prefix) {
            Some(Definition { target: Target::Iri(iri), prefix: true, .. }) => Some(iri),
            _ => None,
        }
    }

    /// The name by which this context knows `iri`; the inverse of [`Context::expand`]. An IRI that begins like a
    /// prefix of this context and has no other name comes back as it is.
    pub fn compact<'a>(&'a self, iri: &'a str) -> Cow<'a, str> {
        let Some(core) = &self.core else { return Cow::Borrowed(iri) };
        if let Some(term) = core.term(iri) {
            return Cow::Borrowed(term);
        }
        if let Some(term) = self.names.get(iri) {
            return Cow::Borrowed(term);
        }
        if let Some(bare) = iri.strip_prefix(DEFAULT_VOCAB)
            && self.expands_to(bare, iri)
        {
            return Cow::Borrowed(bare);
        }
        self.shortest_prefixed(iri).map_or(Cow::Borrowed(iri), Cow::Owned)
    }

    fn expands_to(&self, name: &str, iri: &str) -> bool {
        self.expand(name).is_ok_and(|expanded| expanded == iri)
    }

    fn shortest_prefixed(&self, iri: &str) -> Option<String> {
        let mut best: Option<String> = None;
        for &length in self.prefix_lengths.iter().take_while(|length| **length < iri.len()) {
            let Some((head, suffix)) = iri.split_at_checked(length) else { continue };
            for prefix in self.prefixes.get(head).into_iter().flatten() {
                let name = [prefix, ":", suffix].concat();
                if best.as_ref().is_some_and(|best| !shorter(&name, best)) {
                    break;
                }
                if self.expands_to(&name, iri) {
                    best = Some(name);
                    break;
                }
            }
        }
        best
    }

    /// The compacted name of `symbol` as a JSON string, quotes included. Made once for each context and symbol;
    /// `symbols` must be the same table in every call.
    #[inline]
    pub fn key(&self, symbols: &Symbols, symbol: Symbol) -> &[u8] {
        self.keys
            .get_or_init(symbol.index() as usize, || self.make_key(symbols.name(symbol)))
            .expect("the numbers of symbols stay below the capacity of this table")
    }

    #[cold]
    fn make_key(&self, iri: &str) -> Box<[u8]> {
        let mut key = Vec::new();
        write_string(&mut key, &self.compact(iri));
        key.into()
    }

    /// The URL that names this context in a `Link` header (6.3.5); `None` when no single URL does, and somebody
    /// must host it first.
    pub fn link(&self) -> Option<&str> {
        self.announcement.link()
    }

    /// The value of the member `@context` of an answer, as JSON text: what the client named, the core being
    /// implicit (4.4).
    pub fn json(&self) -> &str {
        &self.announcement.json
    }

    /// The version of the core in this context; the identity context has none.
    pub fn version(&self) -> Option<CoreVersion> {
        self.core.as_ref().map(|core| core.version)
    }

    /// The terms that user contexts define, in no order.
    pub fn terms(&self) -> impl Iterator<Item = &str> {
        self.terms.keys().map(|term| &**term)
    }

    /// About how many bytes the terms of user contexts occupy; for caches that are bounded by size.
    pub fn weight(&self) -> usize {
        const ENTRY: usize = 160;
        let text = |definition: &Definition| match &definition.target {
            Target::Iri(iri) => 2 * iri.len(),
            Target::Keyword(_) | Target::Unusable => 0,
        };
        let terms = self.terms.iter().map(|(term, definition)| ENTRY + 2 * term.len() + text(definition));
        size_of::<Self>() + self.announcement.json.len() + terms.sum::<usize>()
    }

    /// Number of terms that user contexts define.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// True when no user context takes part.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }
}

/// Shorter first, then in the order of the bytes: the order of preference among names of one IRI.
fn order(a: &str, b: &str) -> std::cmp::Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

fn shorter(a: &str, b: &str) -> bool {
    order(a, b).is_lt()
}

/// Splits `prefix:suffix`. Text like `http://...` is an IRI whatever `http` is defined as.
pub(super) fn compact_parts(name: &str) -> Option<(&str, &str)> {
    name.split_once(':').filter(|(prefix, suffix)| !prefix.is_empty() && !suffix.starts_with("//"))
}

const KEYWORDS: [&str; 23] = [
    "@base",
    "@container",
    "@context",
    "@direction",
    "@graph",
    "@id",
    "@import",
    "@included",
    "@index",
    "@json",
    "@language",
    "@list",
    "@nest",
    "@none",
    "@prefix",
    "@propagate",
    "@protected",
    "@reverse",
    "@set",
    "@type",
    "@value",
    "@version",
    "@vocab",
];

/// The keyword of JSON-LD 1.1 that `text` is.
pub(super) fn keyword(text: &str) -> Option<&'static str> {
    if !text.starts_with('@') {
        return None;
    }
    KEYWORDS.into_iter().find(|keyword| *keyword == text)
}

/// True for `@` and letters alone: reserved by JSON-LD 1.1 for keywords to come.
pub(super) fn keyword_like(text: &str) -> bool {
    text.strip_prefix('@')
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphabetic()))
}
