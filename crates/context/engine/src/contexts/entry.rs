//! One stored context, and what requests hold of it.
//!
//! A request must not write to memory that other cores write to. Each merged context is therefore handed out
//! through one of a few lanes, each with a reference count and counters on a cache line of its own; a thread
//! stays on its lane.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use crossbeam_utils::CachePadded;
use trifid_context_model::ld::{Context, LocalContext};
use trifid_context_model::time::Instant;

use super::freshness::Freshness;

/// Lanes of each context; threads beyond that share.
const LANES: usize = 8;

/// The lane of this thread: threads take lanes in turn.
fn lane() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static LANE: Cell<Option<usize>> = const { Cell::new(None) });
    LANE.with(|lane| {
        lane.get().unwrap_or_else(|| {
            let own = NEXT.fetch_add(1, Ordering::Relaxed) % LANES;
            lane.set(Some(own));
            own
        })
    })
}

/// An active context in use by a request; behaves as a `&Context`. Cloning one touches this core's memory only.
#[derive(Debug, Clone)]
pub struct Active(Arc<CachePadded<Arc<Context>>>);

impl Active {
    /// Holds a context that no store keeps.
    pub fn new(context: Arc<Context>) -> Active {
        Active(Arc::new(CachePadded::new(context)))
    }

    /// The context itself, to be kept for long: by a subscription, for example.
    pub fn context(&self) -> &Arc<Context> {
        &self.0
    }
}

impl Deref for Active {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.0
    }
}

/// One context behind all lanes.
#[derive(Debug)]
pub(super) struct Lanes(Box<[Active]>);

impl Lanes {
    pub(super) fn new(context: &Arc<Context>) -> Lanes {
        Lanes((0..LANES).map(|_| Active::new(context.clone())).collect())
    }

    pub(super) fn get(&self) -> Active {
        self.0[lane()].clone()
    }
}

/// How often and when something was used.
#[derive(Debug)]
pub(super) struct Usage(Box<[CachePadded<(AtomicU64, AtomicI64)>]>);

impl Usage {
    const NEVER: i64 = i64::MIN;

    pub(super) fn new() -> Usage {
        Usage(
            (0..LANES).map(|_| CachePadded::new((AtomicU64::new(0), AtomicI64::new(Usage::NEVER)))).collect(),
        )
    }

    pub(super) fn touch(&self, now: Instant) {
        let (hits, last) = &*self.0[lane()];
        hits.fetch_add(1, Ordering::Relaxed);
        last.store(now.0, Ordering::Relaxed);
    }

    pub(super) fn hits(&self) -> u64 {
        self.0.iter().map(|lane| lane.0.load(Ordering::Relaxed)).sum()
    }

    pub(super) fn last(&self) -> Option<Instant> {
        let last = self.0.iter().map(|lane| lane.1.load(Ordering::Relaxed)).max();
        last.filter(|last| *last != Usage::NEVER).map(Instant)
    }
}

/// The kinds of stored contexts (5.13.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A copy of a document elsewhere. The built-in core contexts count as such.
    Cached,
    /// Added by a client.
    Hosted,
    /// Made by the broker because it needed a URL for a context that has none.
    ImplicitlyCreated,
}

impl Kind {
    /// The kind of this name.
    pub fn parse(text: &str) -> Option<Kind> {
        [Kind::Cached, Kind::Hosted, Kind::ImplicitlyCreated].into_iter().find(|kind| kind.as_str() == text)
    }

    /// The name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Cached => "Cached",
            Kind::Hosted => "Hosted",
            Kind::ImplicitlyCreated => "ImplicitlyCreated",
        }
    }
}

/// A version of a document.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) local: Arc<LocalContext>,
    /// What was downloaded or posted, to tell whether a new version differs, and to serve hosted ones.
    pub(super) text: Bytes,
    pub(super) created_at: Instant,
    pub(super) freshness: Freshness,
    pub(super) etag: Option<Box<str>>,
    pub(super) last_modified: Option<Box<str>>,
}

/// What an entry is called, and whose it is.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) url: Box<str>,
    pub(super) local_id: Box<str>,
    pub(super) kind: Kind,
    pub(super) owner: Option<Box<str>>,
}

/// A stored document under its URL.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) url: Box<str>,
    pub(super) local_id: Box<str>,
    pub(super) kind: Kind,
    pub(super) core: bool,
    /// The tenant that a hosted context belongs to; cached ones belong to nobody.
    pub(super) owner: Option<Box<str>>,
    pub(super) document: ArcSwap<Document>,
    /// This document merged with all it refers to and the core.
    pub(super) merged: ArcSwapOption<Merged>,
    /// Grows when the document changes, and when the entry is forgotten: what was merged with it before is
    /// merged anew.
    version: AtomicU64,
    pub(super) usage: Usage,
}

impl Entry {
    /// An entry for `document`, not merged yet.
    pub(super) fn new(names: Names, document: Arc<Document>) -> Entry {
        let Names { url, local_id, kind, owner } = names;
        Entry {
            url,
            local_id,
            kind,
            core: false,
            owner,
            document: ArcSwap::new(document),
            merged: ArcSwapOption::empty(),
            version: AtomicU64::new(0),
            usage: Usage::new(),
        }
    }

    /// To be read before the document: then an older version never goes with a newer document unnoticed.
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// To be called after the document was changed.
    pub(super) fn outdate(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// True when `tenant` may use it.
    pub(super) fn is_visible_to(&self, tenant: &str) -> bool {
        self.owner.as_deref().is_none_or(|owner| owner == tenant)
    }

    /// Bytes that the cache holds for it and could give back.
    pub(super) fn weight(&self) -> usize {
        // The parsed form of a document is about as large as its text.
        let document = if self.kind == Kind::Cached { 2 * self.document.load().text.len() } else { 0 };
        document + self.merged.load().as_ref().map_or(0, |merged| merged.weight)
    }
}

/// A merged context and what it depends on.
#[derive(Debug)]
pub(super) struct Merged {
    pub(super) lanes: Lanes,
    /// The stored documents in it, each used whenever this is, with the versions that were merged. The entry
    /// that holds this is not among them.
    pub(super) parts: Vec<(Arc<Entry>, u64)>,
    /// The version of the entry that holds this.
    pub(super) version: u64,
    /// A tenant whose hosted context is among the parts; nobody else may use it.
    pub(super) owner: Option<Box<str>>,
    /// When a part goes stale.
    pub(super) valid_until: Instant,
    pub(super) weight: usize,
}

impl Merged {
    /// The context, if it may still be used as it is; counts the use.
    pub(super) fn take(&self, tenant: &str, now: Instant) -> Option<Active> {
        let usable = now < self.valid_until
            && self.owner.as_deref().is_none_or(|owner| owner == tenant)
            && self.parts.iter().all(|(part, version)| part.version() == *version);
        usable.then(|| {
            self.parts.iter().for_each(|(part, _)| part.usage.touch(now));
            self.lanes.get()
        })
    }
}

/// A context given inside a request, merged.
#[derive(Debug)]
pub(super) struct Inline {
    pub(super) tenant: Box<str>,
    pub(super) text: Box<str>,
    pub(super) merged: Merged,
    /// Written once a second at most: a hint for what to drop first.
    pub(super) last_use: AtomicI64,
}

impl Inline {
    pub(super) fn touch(&self, now: Instant) {
        if now.0.saturating_sub(self.last_use.load(Ordering::Relaxed)) > 1_000_000 {
            self.last_use.store(now.0, Ordering::Relaxed);
        }
    }

    pub(super) fn weight(&self) -> usize {
        self.merged.weight + self.text.len()
    }
}
