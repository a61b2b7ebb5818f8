//! The store of `@context`s: those that clients host here, copies of documents elsewhere, and the merged
//! contexts that requests run under (5.13; 4.4, 5.5.5, 6.3.5, 6.3.16).
//!
//! [`Contexts::ready`] is the way of nearly every request: one lock-free look-up, a few counters of this core, no
//! allocation. What it cannot answer, [`Contexts::resolve`] loads: documents are downloaded through the port
//! [`Fetch`], once however many ask, kept as long as HTTP allows, used a while longer when they are stale, and
//! merged anew when any of them changes. Addresses that fail are left alone for some seconds.
//!
//! Hosted contexts belong to a tenant; for every other tenant they do not exist, also as parts of another
//! context. Their URLs are made from the configured public URL, never from what a client sends, and are
//! resolved here without a download. They outlive the process through the port [`HostedContexts`].
//!
//! Memory is bounded: documents and merged contexts that can be had again give way, the longest unused first.

mod entry;
mod error;
mod fetch;
mod flight;
mod freshness;
mod hosted;
pub mod limits;
mod manage;
mod resolve;
#[cfg(test)]
mod tests;

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use trifid_base_runtime::entropy::Entropy;
use trifid_context_model::json::{Kind as JsonKind, Value};
use trifid_context_model::ld::{Announcement, CoreVersion, Cores, Loader, LocalContext};
use trifid_context_model::time::Instant;

pub use entry::{Active, Kind};
use entry::{Document, Entry, Inline, Lanes, Merged, Names};
pub use error::{Error, Origin, Problem};
pub use fetch::{Boxed, CacheHeaders, Fetch, FetchError, FetchRequest, Fetched};
use flight::Flights;
use freshness::Freshness;
pub use hosted::{HostedContext, HostedContexts, InMemory};
use limits::{MAX_CACHE_BYTES, MAX_CACHED, MAX_DOWNLOADS, MAX_INLINE};
pub use manage::{Added, Details};

/// Path of the collection of contexts below a public URL.
const PATH: &str = "/ngsi-ld/v1/jsonldContexts/";

/// The URL of the core context without a version.
const UNVERSIONED_CORE: &str = "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld";

type Map<K, V> = papaya::HashMap<K, V, foldhash::fast::RandomState>;

/// What a request says about its context.
#[derive(Debug, Clone, Copy)]
pub enum ContextRef<'a> {
    /// Nothing: the core alone (5.5.5).
    Default,
    /// A URL: in a `Link` header, or where a document names one.
    Url(&'a str),
    /// The value of a member `@context`: a URL, an object or an array.
    Inline(Value<'a>),
}

/// How the store is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The core that requests without a context get, and contexts that name no core.
    pub core: CoreVersion,
    /// Where this broker is reached, without a trailing slash (`https://broker.example`): the first is the one
    /// that URLs of hosted contexts begin with, all are recognised as this broker.
    pub public_urls: Vec<Box<str>>,
}

/// What the store needs from outside.
#[derive(Clone)]
pub struct Ports {
    /// Downloads documents.
    pub fetch: Arc<dyn Fetch>,
    /// Keeps hosted contexts beyond the process.
    pub hosted: Arc<dyn HostedContexts>,
    /// Makes local identifiers.
    pub entropy: Arc<dyn Entropy>,
}

impl std::fmt::Debug for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ports").finish_non_exhaustive()
    }
}

/// The store. Cheap to clone; all clones are one store.
#[derive(Debug, Clone)]
pub struct Contexts(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: Settings,
    ports: Ports,
    cores: Cores,
    /// The core alone, as requests without a context get it.
    default: Arc<Entry>,
    by_url: Map<Box<str>, Arc<Entry>>,
    by_id: Map<Box<str>, Arc<Entry>>,
    /// By hash of tenant and text.
    inline: Map<u64, Arc<Inline>>,
    hasher: foldhash::fast::RandomState,
    flights: Flights<Result<Arc<Stored>, Error>>,
    downloads: Semaphore,
    failures: Mutex<HashMap<Box<str>, (Instant, Error), foldhash::fast::RandomState>>,
    /// Count and bytes of hosted contexts by tenant.
    quotas: Mutex<HashMap<Box<str>, (usize, usize), foldhash::fast::RandomState>>,
    /// Held while the maps change shape; never while waiting.
    changing: Mutex<()>,
}

/// The outcome of a download.
#[derive(Debug)]
struct Stored {
    /// `None` when the document must not be kept.
    entry: Option<Arc<Entry>>,
    version: u64,
    document: Arc<Document>,
}

/// How much the store holds, for health and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Documents downloaded and kept.
    pub cached: usize,
    /// Contexts of clients, implicitly created ones included.
    pub hosted: usize,
    /// Merged contexts of requests that gave them inside.
    pub inline: usize,
    /// Memory of all that can be had again, in bytes.
    pub cache_bytes: usize,
}

impl Contexts {
    /// A store that knows the core contexts alone.
    pub fn new(mut settings: Settings, ports: Ports) -> Contexts {
        settings.public_urls.iter_mut().for_each(|url| *url = url.trim_end_matches('/').into());
        let cores = Cores::new();
        let entries: Vec<Arc<Entry>> = std::iter::once(UNVERSIONED_CORE)
            .chain(CoreVersion::ALL.into_iter().map(CoreVersion::url))
            .map(|url| Arc::new(core_entry(&cores, url)))
            .collect();
        let default = entries[1 + settings.core as usize].clone();
        let shared = Shared {
            settings,
            ports,
            cores,
            default,
            by_url: Map::default(),
            by_id: Map::default(),
            inline: Map::default(),
            hasher: foldhash::fast::RandomState::default(),
            flights: Flights::default(),
            downloads: Semaphore::new(MAX_DOWNLOADS),
            failures: Mutex::default(),
            quotas: Mutex::default(),
            changing: Mutex::default(),
        };
        entries.iter().for_each(|entry| shared.insert(entry));
        Contexts(Arc::new(shared))
    }

    /// The core alone: what a request without a context runs under (5.5.5).
    pub fn core(&self, now: Instant) -> Active {
        self.ready("", ContextRef::Default, now).expect("the core is merged when the store is made")
    }

    /// The context that `tenant` names, if it is at hand. Takes no lock and allocates nothing.
    pub fn ready(&self, tenant: &str, named: ContextRef<'_>, now: Instant) -> Option<Active> {
        match named {
            ContextRef::Default => take(&self.0.default, tenant, now),
            ContextRef::Url(url) => self.0.ready_url(url, tenant, now),
            ContextRef::Inline(value) => match only_url(value) {
                Some(url) => self.0.ready_url(&url.as_str()?, tenant, now),
                None => self.0.ready_inline(value, tenant, now),
            },
        }
    }

    /// The context that `tenant` names, loaded if need be.
    pub async fn resolve(&self, tenant: &str, named: ContextRef<'_>, now: Instant) -> Result<Active, Error> {
        match self.ready(tenant, named, now) {
            Some(active) => Ok(active),
            None => self.load(tenant, named, now).await,
        }
    }

    /// How much the store holds.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        for entry in self.0.by_id.pin().values().filter(|entry| !entry.core) {
            stats.cache_bytes += entry.weight();
            *if entry.kind == Kind::Cached { &mut stats.cached } else { &mut stats.hosted } += 1;
        }
        for inline in self.0.inline.pin().values() {
            stats.cache_bytes += inline.weight();
            stats.inline += 1;
        }
        stats
    }
}

/// The URL in `value` if it is one, also as the only item of an array.
fn only_url(value: Value<'_>) -> Option<Value<'_>> {
    let mut items = value.items();
    let only = if value.is_array() { items.next().filter(|_| items.next().is_none())? } else { value };
    (only.kind() == JsonKind::String).then_some(only)
}

fn take(entry: &Entry, tenant: &str, now: Instant) -> Option<Active> {
    let merged = entry.merged.load();
    let merged = merged.as_ref().filter(|merged| merged.version == entry.version())?;
    let active = merged.take(tenant, now)?;
    entry.usage.touch(now);
    Some(active)
}

fn core_entry(cores: &Cores, url: &str) -> Entry {
    let version = CoreVersion::from_url(url).expect("called with URLs of the core alone");
    let local = Arc::new(LocalContext::remote(url).expect("the URL of a core is absolute"));
    let context = Loader::new(local.clone())
        .finish(cores, version, Announcement::url(url))
        .expect("a core alone defines nothing anew");
    let merged = Merged {
        lanes: Lanes::new(&Arc::new(context)),
        parts: Vec::new(),
        owner: None,
        version: 0,
        valid_until: Instant(i64::MAX),
        weight: 0,
    };
    let document = Document {
        local,
        text: Bytes::new(),
        created_at: Instant(0),
        freshness: Freshness::FOREVER,
        etag: None,
        last_modified: None,
    };
    let local_id = format!("urn:ngsi-ld:Context:core{}", &url[UNVERSIONED_CORE.len() - ".jsonld".len()..]);
    let names = Names {
        url: url.into(),
        local_id: local_id.trim_end_matches(".jsonld").into(),
        kind: Kind::Cached,
        owner: None,
    };
    let mut entry = Entry::new(names, Arc::new(document));
    entry.core = true;
    entry.merged.store(Some(Arc::new(merged)));
    entry
}

impl Shared {
    fn insert(&self, entry: &Arc<Entry>) {
        self.by_url.pin().insert(entry.url.clone(), entry.clone());
        self.by_id.pin().insert(entry.local_id.clone(), entry.clone());
    }

    /// Forgets an entry, once; what was merged with it is merged again.
    fn remove(&self, entry: &Entry) -> bool {
        self.by_url.pin().remove(&*entry.url);
        let known = self.by_id.pin().remove(&*entry.local_id).is_some();
        entry.outdate();
        known
    }

    /// The local identifier in a URL that names this broker.
    fn own_id<'u>(&self, url: &'u str) -> Option<std::borrow::Cow<'u, str>> {
        let roots = self.settings.public_urls.iter();
        let id = roots.filter_map(|root| url.strip_prefix(&**root)?.strip_prefix(PATH)).next()?;
        Some(if id.contains('%') { id.replace("%3A", ":").replace("%3a", ":").into() } else { id.into() })
    }

    /// The URL under which a hosted context is served.
    fn own_url(&self, local_id: &str) -> Box<str> {
        let root = self.settings.public_urls.first().map_or("", |root| &**root);
        [root, PATH, local_id].concat().into()
    }

    fn new_id(&self) -> Box<str> {
        let (high, low) = (self.ports.entropy.next_u64(), self.ports.entropy.next_u64());
        format!("urn:ngsi-ld:Context:{high:016x}{low:016x}").into()
    }

    fn ready_url(&self, url: &str, tenant: &str, now: Instant) -> Option<Active> {
        let entries = self.by_url.pin();
        if let Some(entry) = entries.get(url) {
            return entry.is_visible_to(tenant).then(|| take(entry, tenant, now))?;
        }
        let id = self.own_id(url)?;
        let entries = self.by_id.pin();
        let entry = entries.get(&*id).filter(|entry| entry.is_visible_to(tenant))?;
        take(entry, tenant, now)
    }

    fn ready_inline(&self, value: Value<'_>, tenant: &str, now: Instant) -> Option<Active> {
        let entries = self.inline.pin();
        let inline = entries.get(&self.inline_key(tenant, value.raw()))?;
        if *inline.tenant != *tenant || *inline.text != *value.raw() {
            return None;
        }
        inline.touch(now);
        inline.merged.take(tenant, now)
    }

    fn inline_key(&self, tenant: &str, text: &str) -> u64 {
        self.hasher.hash_one((tenant, text))
    }

    /// Gives back memory when the store holds too much: the longest unused first, down to nine tenths, so that
    /// the work is not done for each addition.
    fn trim(&self) {
        let _changing = self.changing.lock();
        let mut cached = self.evictable();
        let mut inline = self.evictable_inline();
        let total: usize = cached
            .iter()
            .map(|(_, weight, _)| weight)
            .chain(inline.iter().map(|(_, weight, _)| weight))
            .sum();
        if cached.len() <= MAX_CACHED && inline.len() <= MAX_INLINE && total <= MAX_CACHE_BYTES {
            return;
        }
        cached.sort_by_key(|(used, _, _)| *used);
        inline.sort_by_key(|(used, _, _)| *used);
        let excess = |count: usize, max: usize| count.saturating_sub(max - max / 10);
        let mut bytes = total.saturating_sub(MAX_CACHE_BYTES - MAX_CACHE_BYTES / 10);
        self.drop_inline(&inline, excess(inline.len(), MAX_INLINE), &mut bytes);
        self.drop_cached(&cached, excess(cached.len(), MAX_CACHED), &mut bytes);
    }

    /// Entries that hold something, with last use and weight. Hosted ones lose only what is merged.
    fn evictable(&self) -> Vec<(Option<Instant>, usize, Arc<Entry>)> {
        let entries = self.by_id.pin();
        let weighed = entries.values().filter(|entry| !entry.core).map(|entry| (entry.weight(), entry));
        let heavy = weighed.filter(|(weight, entry)| *weight > 0 || entry.kind == Kind::Cached);
        heavy.map(|(weight, entry)| (entry.usage.last(), weight, entry.clone())).collect()
    }

    fn evictable_inline(&self) -> Vec<(i64, usize, u64)> {
        let entries = self.inline.pin();
        entries
            .iter()
            .map(|(key, inline)| (inline.last_use.load(Ordering::Relaxed), inline.weight(), *key))
            .collect()
    }

    fn drop_inline(&self, oldest_first: &[(i64, usize, u64)], mut count: usize, bytes: &mut usize) {
        for (_, weight, key) in oldest_first {
            if count == 0 && *bytes == 0 {
                return;
            }
            self.inline.pin().remove(key);
            count = count.saturating_sub(1);
            *bytes = bytes.saturating_sub(*weight);
        }
    }

    fn drop_cached(
        &self,
        oldest_first: &[(Option<Instant>, usize, Arc<Entry>)],
        mut count: usize,
        bytes: &mut usize,
    ) {
        for (_, weight, entry) in oldest_first {
            if count == 0 && *bytes == 0 {
                return;
            }
            entry.merged.store(None);
            if entry.kind == Kind::Cached {
                self.remove(entry);
            }
            count = count.saturating_sub(1);
            *bytes = bytes.saturating_sub(*weight);
        }
    }
}
