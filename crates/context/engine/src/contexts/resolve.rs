//! Loading: what [`Contexts::ready`](super::Contexts::ready) has not got.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::task::Poll;

use trifid_context_model::ld::{
    Announcement, Context, Loader, LocalContext, Step, parse_context, parse_document,
};
use trifid_context_model::time::Instant;

use super::entry::{Active, Document, Entry, Inline, Kind, Lanes, Merged, Names};
use super::error::Error;
use super::fetch::{CacheHeaders, FetchRequest, Fetched};
use super::freshness::Freshness;
use super::limits::{FAILURE_TTL, MAX_FAILURES, RESOLVE_DEADLINE, STALE_RECHECK};
use super::{ContextRef, Contexts, Shared, Stored, only_url};

/// A document that takes part in a context being merged.
struct Part {
    url: Box<str>,
    stored: Arc<Stored>,
    valid_until: Instant,
}

/// What a merged context depends on.
struct Parts {
    entries: Vec<(Arc<Entry>, u64)>,
    owner: Option<Box<str>>,
    valid_until: Instant,
    /// All parts may be kept, and so may what is made of them.
    store: bool,
}

impl Contexts {
    /// Loads what `tenant` names, and keeps it.
    pub(super) async fn load(
        &self,
        tenant: &str,
        named: ContextRef<'_>,
        now: Instant,
    ) -> Result<Active, Error> {
        match named {
            ContextRef::Default => Ok(self.core(now)),
            ContextRef::Url(url) => self.load_url(tenant, url, now).await,
            ContextRef::Inline(value) => match only_url(value).and_then(|url| url.as_str()) {
                Some(url) => self.load_url(tenant, &url, now).await,
                None => {
                    let local = parse_context(value, None).map_err(Error::in_request)?;
                    if local.is_empty() {
                        return Ok(self.core(now));
                    }
                    let announcement = Announcement::json(value);
                    let text = value.raw();
                    self.load_inline(tenant, text, Arc::new(local), announcement, now).await
                }
            },
        }
    }

    async fn load_url(&self, tenant: &str, url: &str, now: Instant) -> Result<Active, Error> {
        let local = Arc::new(LocalContext::remote(url).map_err(Error::in_request)?);
        let own = self.0.own_id(url).map(|id| self.0.own_url(&id));
        let announcement = Announcement::url(own.as_deref().unwrap_or(url));
        let (context, mut parts) = self.merge(tenant, local, announcement, now).await?;
        let context = Arc::new(context);
        if !parts.store || parts.entries.is_empty() {
            return Ok(Active::new(context));
        }
        // The first part is the document at `url` itself; it holds the outcome and must not hold itself.
        let (root, version) = parts.entries.remove(0);
        let merged = Merged { version, ..merged(&context, parts) };
        merged.parts.iter().for_each(|(part, _)| part.usage.touch(now));
        root.usage.touch(now);
        let active = merged.lanes.get();
        root.merged.store(Some(Arc::new(merged)));
        self.0.trim();
        Ok(active)
    }

    async fn load_inline(
        &self,
        tenant: &str,
        text: &str,
        local: Arc<LocalContext>,
        announcement: Announcement,
        now: Instant,
    ) -> Result<Active, Error> {
        let (context, parts) = self.merge(tenant, local, announcement, now).await?;
        let context = Arc::new(context);
        if !parts.store {
            return Ok(Active::new(context));
        }
        let merged = merged(&context, parts);
        merged.parts.iter().for_each(|(part, _)| part.usage.touch(now));
        let active = merged.lanes.get();
        let inline =
            Inline { tenant: tenant.into(), text: text.into(), merged, last_use: AtomicI64::new(now.0) };
        self.0.inline.pin().insert(self.0.inline_key(tenant, text), Arc::new(inline));
        self.0.trim();
        Ok(active)
    }

    /// Gets all documents that `local` needs and merges them.
    async fn merge(
        &self,
        tenant: &str,
        local: Arc<LocalContext>,
        announcement: Announcement,
        now: Instant,
    ) -> Result<(Context, Parts), Error> {
        let mut loader = Loader::new(local);
        let gathering = self.gather(&mut loader, tenant, now);
        let parts = tokio::time::timeout(RESOLVE_DEADLINE, gathering).await.map_err(|_| {
            let url = announcement_name(&announcement);
            Error::not_available(&url, format!("its documents took longer than {RESOLVE_DEADLINE:?}"))
        })??;
        let shared = &self.0;
        let context =
            loader.finish(&shared.cores, shared.settings.core, announcement).map_err(Error::in_request)?;
        Ok((context, parts))
    }

    async fn gather(&self, loader: &mut Loader, tenant: &str, now: Instant) -> Result<Parts, Error> {
        let mut all = Parts { entries: Vec::new(), owner: None, valid_until: Instant(i64::MAX), store: true };
        while let Step::Need(urls) = loader.step().map_err(Error::in_request)? {
            let parts = join(urls.into_iter().map(|url| self.part(tenant, url, now))).await;
            for part in parts {
                let part = part?;
                loader.supply(&part.url, part.stored.document.local.clone());
                all.add(&part);
            }
        }
        Ok(all)
    }

    /// One document: hosted here, kept and fresh, kept and stale, or downloaded.
    async fn part(&self, tenant: &str, url: Box<str>, now: Instant) -> Result<Part, Error> {
        if let Some(id) = self.0.own_id(&url) {
            let entry = self.0.by_id.pin().get(&*id).cloned();
            let entry = entry.filter(|entry| entry.kind != Kind::Cached && entry.is_visible_to(tenant));
            // Never asked for over the network: the answer would come from here.
            let entry =
                entry.ok_or_else(|| Error::not_available(&url, "this broker hosts no such @context"))?;
            return Ok(Part { url, stored: Arc::new(Stored::of(entry)), valid_until: Instant(i64::MAX) });
        }
        let kept = self.0.by_url.pin().get(&*url).cloned();
        match kept {
            Some(entry) => self.kept_part(url, entry, now).await,
            None => {
                let stored = self.download(&url, now).await?;
                let valid_until = stored.document.freshness.fresh_until;
                Ok(Part { url, stored, valid_until })
            }
        }
    }

    async fn kept_part(&self, url: Box<str>, entry: Arc<Entry>, now: Instant) -> Result<Part, Error> {
        let stored = Arc::new(Stored::of(entry));
        let freshness = stored.document.freshness;
        if now < freshness.fresh_until {
            return Ok(Part { url, stored, valid_until: freshness.fresh_until });
        }
        let recheck = Instant(now.0.saturating_add(STALE_RECHECK));
        if now < freshness.stale_until {
            self.refresh_behind(&url, now);
            return Ok(Part { url, stored, valid_until: recheck });
        }
        match self.download(&url, now).await {
            Ok(stored) => {
                // Already past for a document without any freshness: it serves this request.
                let valid_until = stored.document.freshness.fresh_until;
                Ok(Part { url, stored, valid_until })
            }
            // Better old than nothing, unless the server forbids it (RFC 9111 4.2.4).
            Err(Error::NotAvailable { reason, .. }) if !freshness.strict => {
                tracing::warn!(%url, %reason, "a stale @context is used: it cannot be fetched again");
                Ok(Part { url, stored, valid_until: recheck })
            }
            Err(error) => Err(error),
        }
    }

    /// Starts a download that nobody waits for, unless one runs or has just failed.
    fn refresh_behind(&self, url: &str, now: Instant) {
        if self.0.flights.is_running(url) || self.0.recent_failure(url, now).is_some() {
            return;
        }
        let (contexts, url) = (self.clone(), Box::<str>::from(url));
        tokio::spawn(async move {
            if let Err(error) = contexts.download(&url, now).await {
                tracing::warn!(%error, "a stale @context could not be fetched again");
            }
        });
    }

    /// Downloads a document, or waits for the download that runs.
    async fn download(&self, url: &str, now: Instant) -> Result<Arc<Stored>, Error> {
        if let Some(error) = self.0.recent_failure(url, now) {
            return Err(error);
        }
        let work = || async {
            let outcome = self.fetch(url, true, now).await;
            if let Err(error) = &outcome {
                self.0.remember_failure(url, error, now);
            }
            outcome
        };
        self.0.flights.run(url, work).await
    }

    /// Fetches and keeps a document. With `conditional`, an older copy may be confirmed instead.
    pub(super) async fn fetch(
        &self,
        url: &str,
        conditional: bool,
        now: Instant,
    ) -> Result<Arc<Stored>, Error> {
        let kept = self.0.by_url.pin().get(url).cloned();
        let older = kept.map(|entry| entry.document.load_full()).filter(|_| conditional);
        let older = older.as_deref();
        let request = FetchRequest {
            url,
            etag: older.and_then(|older| older.etag.as_deref()),
            last_modified: older.and_then(|older| older.last_modified.as_deref()),
        };
        let permit = self.0.downloads.acquire().await;
        let fetched = self.0.ports.fetch.fetch(request).await;
        drop(permit);
        let fetched = fetched.map_err(|error| Error::not_available(url, error.reason))?;
        let document = document(url, fetched, older, now)?;
        Ok(Arc::new(self.0.keep(url, document)))
    }
}

impl Stored {
    fn of(entry: Arc<Entry>) -> Stored {
        let version = entry.version();
        Stored { document: entry.document.load_full(), version, entry: Some(entry) }
    }
}

impl Parts {
    fn add(&mut self, part: &Part) {
        self.valid_until = self.valid_until.min(part.valid_until);
        let Some(entry) = &part.stored.entry else {
            self.store = false;
            return;
        };
        if entry.owner.is_some() {
            self.owner.clone_from(&entry.owner);
        }
        self.entries.push((entry.clone(), part.stored.version));
    }
}

impl Shared {
    /// Puts a downloaded document in its place.
    fn keep(&self, url: &str, document: Document) -> Stored {
        let document = Arc::new(document);
        self.failures.lock().remove(url);
        let _changing = self.changing.lock();
        let kept = self.by_url.pin().get(url).cloned();
        if !document.freshness.store {
            // What may not be kept replaces what was.
            if let Some(entry) = &kept {
                self.remove(entry);
            }
            return Stored { entry: None, version: 0, document };
        }
        let Some(entry) = kept else {
            let names = Names { url: url.into(), local_id: self.new_id(), kind: Kind::Cached, owner: None };
            let entry = Arc::new(Entry::new(names, document.clone()));
            self.insert(&entry);
            return Stored { version: entry.version(), entry: Some(entry), document };
        };
        let before = entry.document.swap(document.clone());
        if before.text != document.text {
            entry.outdate();
        }
        Stored { version: entry.version(), entry: Some(entry), document }
    }

    fn recent_failure(&self, url: &str, now: Instant) -> Option<Error> {
        let failures = self.failures.lock();
        let (at, error) = failures.get(url)?;
        (now.0.saturating_sub(at.0) < FAILURE_TTL).then(|| error.clone())
    }

    fn remember_failure(&self, url: &str, error: &Error, now: Instant) {
        let mut failures = self.failures.lock();
        if failures.len() >= MAX_FAILURES {
            failures.retain(|_, (at, _)| now.0.saturating_sub(at.0) < FAILURE_TTL);
        }
        if failures.len() >= MAX_FAILURES {
            failures.clear();
        }
        failures.insert(url.into(), (now, error.clone()));
    }

    pub(super) fn forget_failure(&self, url: &str) {
        self.failures.lock().remove(url);
    }
}

/// The document that a download brought.
fn document(url: &str, fetched: Fetched, older: Option<&Document>, now: Instant) -> Result<Document, Error> {
    let (local, text, cache) = match (fetched, older) {
        (Fetched::Document { url: base, bytes, cache }, _) => {
            let local = parse_document(&bytes, &base).map_err(|error| Error::in_document(url, error))?;
            (Arc::new(local), bytes, cache)
        }
        (Fetched::NotModified { cache }, Some(older)) => {
            let cache = CacheHeaders {
                etag: cache.etag.or_else(|| older.etag.clone()),
                last_modified: cache.last_modified.or_else(|| older.last_modified.clone()),
                ..cache
            };
            (older.local.clone(), older.text.clone(), cache)
        }
        (Fetched::NotModified { .. }, None) => {
            return Err(Error::not_available(url, "the server answered 304 to a request without conditions"));
        }
    };
    let freshness = Freshness::of(&cache, now);
    Ok(Document {
        local,
        text,
        created_at: now,
        freshness,
        etag: cache.etag,
        last_modified: cache.last_modified,
    })
}

fn merged(context: &Arc<Context>, parts: Parts) -> Merged {
    Merged {
        lanes: Lanes::new(context),
        parts: parts.entries,
        version: 0,
        owner: parts.owner,
        valid_until: parts.valid_until,
        weight: context.weight(),
    }
}

fn announcement_name(announcement: &Announcement) -> String {
    announcement.link().unwrap_or("of the request").to_owned()
}

/// Awaits all futures at once, in order of their outcome's place. Their number is bounded by the loader.
async fn join<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    let all = poll_fn(|cx| {
        for (future, slot) in running.iter_mut().zip(&mut done).filter(|(_, slot)| slot.is_none()) {
            if let Poll::Ready(outcome) = future.as_mut().poll(cx) {
                *slot = Some(outcome);
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(std::mem::take(&mut done)) } else { Poll::Pending }
    });
    pin!(all).await.into_iter().flatten().collect()
}
