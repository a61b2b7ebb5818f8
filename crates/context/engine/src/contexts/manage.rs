//! The operations of 5.13.2 to 5.13.5: add, list, serve, delete and reload.

use std::sync::Arc;

use bytes::Bytes;
use trifid_context_model::json::{Doc, Value, write_string};
use trifid_context_model::ld::{
    Announcement, Loader, LocalContext, Step, is_http, parse_context, parse_document,
};
use trifid_context_model::time::Instant;

use super::entry::{Document, Entry, Kind, Names};
use super::error::Error;
use super::freshness::Freshness;
use super::hosted::HostedContext;
use super::limits::{
    MAX_HOSTED_BYTES, MAX_HOSTED_BYTES_PER_TENANT, MAX_HOSTED_PER_TENANT, MAX_IMPLICIT_PER_TENANT, RETENTION,
};
use super::{Contexts, PATH, Shared};

/// A context that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// Its identifier in this broker.
    pub local_id: Box<str>,
    /// Its path, for `Location` (6.29.3.1).
    pub path: Box<str>,
    /// Its URL, by which requests can name it.
    pub url: Box<str>,
}

/// What is told about a stored context (5.13.3.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Details {
    /// Where it can be downloaded.
    pub url: Box<str>,
    /// Its identifier in this broker.
    pub local_id: Box<str>,
    /// Its kind.
    pub kind: Kind,
    /// When it was added or last downloaded.
    pub created_at: Instant,
    /// When it goes stale; hosted ones never do.
    pub expires_at: Option<Instant>,
    /// When a request last used it.
    pub last_usage: Option<Instant>,
    /// How often it was found in the store.
    pub number_of_hits: u64,
    /// What else is to be said.
    pub extra_info: Option<&'static str>,
}

impl Details {
    fn of(entry: &Entry) -> Details {
        let document = entry.document.load();
        Details {
            url: entry.url.clone(),
            local_id: entry.local_id.clone(),
            kind: entry.kind,
            created_at: document.created_at,
            expires_at: Some(document.freshness.fresh_until).filter(|until| until.0 < i64::MAX),
            last_usage: entry.usage.last(),
            number_of_hits: entry.usage.hits(),
            extra_info: entry.core.then_some("core @context, part of the broker"),
        }
    }

    /// Appends the JSON object of 5.13.3.5.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut text = |name: &str, value: &str| {
            out.push(if name == "URL" { b'{' } else { b',' });
            write_string(out, name);
            out.push(b':');
            write_string(out, value);
        };
        text("URL", &self.url);
        text("localId", &self.local_id);
        text("kind", self.kind.as_str());
        text("createdAt", &self.created_at.to_string());
        if let Some(expires_at) = self.expires_at {
            text("expiresAt", &expires_at.to_string());
        }
        if let Some(last_usage) = self.last_usage {
            text("lastUsage", &last_usage.to_string());
        }
        if let Some(extra_info) = self.extra_info {
            text("extraInfo", extra_info);
        }
        out.extend_from_slice(format!(",\"numberOfHits\":{}}}", self.number_of_hits).as_bytes());
    }
}

impl Contexts {
    /// Adds the context in `body`, a JSON object with a member `@context`; other members are dropped (5.13.2).
    pub async fn add(&self, tenant: &str, body: &[u8], now: Instant) -> Result<Added, Error> {
        let doc = Doc::parse(body)
            .map_err(|error| Error::NoContextObject(format!("the body is not valid JSON: {error}").into()))?;
        let value = doc.root().get("@context").ok_or_else(|| {
            Error::NoContextObject("the body is not a JSON object with a member @context".into())
        })?;
        self.host(tenant, value, Kind::Hosted, now).await
    }

    /// The URL under which the context `value` is served, created when there is none yet: for a context without
    /// a URL of its own that must be named by one (5.13.1, `ImplicitlyCreated`).
    pub async fn host_implicitly(
        &self,
        tenant: &str,
        value: Value<'_>,
        now: Instant,
    ) -> Result<Box<str>, Error> {
        let text = document_text(value);
        let same = |entry: &&Arc<Entry>| {
            entry.kind == Kind::ImplicitlyCreated
                && entry.owner.as_deref() == Some(tenant)
                && entry.document.load().text == text
        };
        let known = self.0.by_id.pin().values().find(same).map(|entry| entry.url.clone());
        if let Some(url) = known {
            return Ok(url);
        }
        for id in self.implicit_in_excess(tenant) {
            match self.delete(tenant, &id).await {
                // Somebody else was faster.
                Ok(()) | Err(Error::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.host(tenant, value, Kind::ImplicitlyCreated, now).await?.url)
    }

    /// The implicitly created contexts of `tenant` that give way to one more: the longest unused.
    fn implicit_in_excess(&self, tenant: &str) -> Vec<Box<str>> {
        let entries = self.0.by_id.pin();
        let own = entries
            .values()
            .filter(|entry| entry.kind == Kind::ImplicitlyCreated && entry.owner.as_deref() == Some(tenant));
        let used = |entry: &Entry| entry.usage.last().unwrap_or(entry.document.load().created_at);
        let mut own: Vec<(Instant, Box<str>)> =
            own.map(|entry| (used(entry), entry.local_id.clone())).collect();
        let excess = (own.len() + 1).saturating_sub(MAX_IMPLICIT_PER_TENANT);
        own.sort_unstable();
        own.into_iter().take(excess).map(|(_, id)| id).collect()
    }

    async fn host(&self, tenant: &str, value: Value<'_>, kind: Kind, now: Instant) -> Result<Added, Error> {
        let local_id = self.0.new_id();
        let url = self.0.own_url(&local_id);
        let local = parse_context(value, Some(&url)).map_err(Error::in_request)?;
        self.check(&local)?;
        let record = HostedContext {
            tenant: tenant.into(),
            local_id: local_id.clone(),
            kind,
            text: document_text(value),
            created_at: now,
        };
        let quota = Reserved::take(&self.0, tenant, record.text.len())?;
        self.0.ports.hosted.save(&record).await.map_err(Error::Storage)?;
        quota.keep();
        self.0.insert_hosted(record, url.clone(), local);
        Ok(Added { path: [PATH, &local_id].concat().into(), local_id, url })
    }

    /// Finds at once what can be found without downloading anything: a context that needs no other document
    /// must merge.
    fn check(&self, local: &LocalContext) -> Result<(), Error> {
        let loader = Loader::new(Arc::new(local.clone()));
        if loader.step().map_err(Error::in_request)? == Step::Ready {
            let core = self.0.settings.core;
            loader.finish(&self.0.cores, core, Announcement::url("")).map_err(Error::in_request)?;
        }
        Ok(())
    }

    /// The stored contexts that `tenant` may see, the oldest first (5.13.3). Core versions are listed once they
    /// have been used.
    pub fn list(&self, tenant: &str, kind: Option<Kind>) -> Vec<Details> {
        let entries = self.0.by_id.pin();
        let listed = entries.values().filter(|entry| {
            entry.is_visible_to(tenant)
                && kind.is_none_or(|kind| kind == entry.kind)
                && (!entry.core || entry.usage.hits() > 0)
        });
        let mut details: Vec<Details> = listed.map(|entry| Details::of(entry)).collect();
        details.sort_by(|a, b| (a.created_at, &a.local_id).cmp(&(b.created_at, &b.local_id)));
        details
    }

    /// The full document of a hosted context (5.13.4). Being found counts as a hit.
    pub fn serve(&self, tenant: &str, id: &str, now: Instant) -> Result<Bytes, Error> {
        let entry = self.0.find(tenant, id)?;
        entry.usage.touch(now);
        match entry.kind {
            Kind::Cached => Err(Error::NotServed(id.into())),
            Kind::Hosted | Kind::ImplicitlyCreated => Ok(entry.document.load().text.clone()),
        }
    }

    /// What is told about a stored context (5.13.4 with details). Being found counts as a hit, of which the
    /// next answer tells.
    pub fn details(&self, tenant: &str, id: &str, now: Instant) -> Result<Details, Error> {
        let entry = self.0.find(tenant, id)?;
        let details = Details::of(&entry);
        entry.usage.touch(now);
        Ok(details)
    }

    /// Deletes a stored context (5.13.5 without reload).
    pub async fn delete(&self, tenant: &str, id: &str) -> Result<(), Error> {
        let entry = self.0.find(tenant, id)?;
        if entry.core {
            return Err(Error::Core(id.into()));
        }
        if let Some(owner) = &entry.owner {
            self.0.ports.hosted.remove(owner, &entry.local_id).await.map_err(Error::Storage)?;
        }
        let _changing = self.0.changing.lock();
        self.0.forget_failure(&entry.url);
        if !self.0.remove(&entry) {
            return Err(Error::NotFound(id.into()));
        }
        if let Some(owner) = &entry.owner {
            self.0.release(owner, entry.document.load().text.len());
        }
        Ok(())
    }

    /// Downloads a cached context anew (5.13.5 with reload). When that fails, the copy at hand stays.
    pub async fn reload(&self, tenant: &str, id: &str, now: Instant) -> Result<(), Error> {
        let entry = match self.0.find(tenant, id) {
            // What is no URL cannot be the address of a cached context.
            Err(Error::NotFound(_)) if !is_http(id) => return Err(Error::NotReloadable(id.into())),
            found => found?,
        };
        if entry.core {
            return Ok(());
        }
        if entry.kind != Kind::Cached {
            return Err(Error::NotReloadable(id.into()));
        }
        match self.fetch(&entry.url, false, now).await {
            Ok(_) => Ok(()),
            // 5.13.5.4: a document that is no context is as good as none.
            Err(error @ Error::Malformed { .. }) => Err(Error::not_available(&entry.url, error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// Forgets copies that have been stale and unused for long (5.13.1).
    pub fn sweep(&self, now: Instant) {
        let old = |entry: &&Arc<Entry>| {
            let until = entry.document.load().freshness.stale_until;
            let used = entry.usage.last().unwrap_or(until).max(until);
            entry.kind == Kind::Cached && !entry.core && now.0.saturating_sub(used.0) > RETENTION
        };
        let old: Vec<Arc<Entry>> = self.0.by_id.pin().values().filter(old).cloned().collect();
        let _changing = self.0.changing.lock();
        for entry in &old {
            self.0.remove(entry);
        }
    }

    /// All hosted contexts, for a snapshot.
    pub fn export(&self) -> Vec<HostedContext> {
        let entries = self.0.by_id.pin();
        let hosted = entries.values().filter_map(|entry| {
            let document = entry.document.load();
            Some(HostedContext {
                tenant: entry.owner.clone()?,
                local_id: entry.local_id.clone(),
                kind: entry.kind,
                text: document.text.clone(),
                created_at: document.created_at,
            })
        });
        hosted.collect()
    }

    /// Takes over contexts that a store has kept. Quotas do not apply: they applied when each was added.
    pub fn import(&self, contexts: impl IntoIterator<Item = HostedContext>) -> Result<(), Error> {
        for record in contexts {
            let url = self.0.own_url(&record.local_id);
            let local =
                parse_document(&record.text, &url).map_err(|error| Error::in_document(&url, error))?;
            let mut quotas = self.0.quotas.lock();
            let (count, bytes) = quotas.entry(record.tenant.clone()).or_default();
            *count += 1;
            *bytes += record.text.len();
            drop(quotas);
            self.0.insert_hosted(record, url, local);
        }
        Ok(())
    }
}

/// A context document with nothing but the context (5.13.2.3).
fn document_text(value: Value<'_>) -> Bytes {
    ["{\"@context\":", &value.minified(), "}"].concat().into()
}

impl Shared {
    fn insert_hosted(&self, record: HostedContext, url: Box<str>, local: LocalContext) {
        let document = Document {
            local: Arc::new(local),
            text: record.text,
            created_at: record.created_at,
            freshness: Freshness::FOREVER,
            etag: None,
            last_modified: None,
        };
        let names = Names { url, local_id: record.local_id, kind: record.kind, owner: Some(record.tenant) };
        let _changing = self.changing.lock();
        self.insert(&Arc::new(Entry::new(names, Arc::new(document))));
    }

    /// The stored context with this local identifier, or with this URL.
    fn find(&self, tenant: &str, id: &str) -> Result<Arc<Entry>, Error> {
        let entries = self.by_id.pin();
        let found = entries.get(id).cloned();
        let found = found.or_else(|| self.by_url.pin().get(id).cloned());
        let found = found.or_else(|| entries.get(&*self.own_id(id)?).cloned());
        found.filter(|entry| entry.is_visible_to(tenant)).ok_or_else(|| Error::NotFound(id.into()))
    }

    fn release(&self, tenant: &str, bytes: usize) {
        let mut quotas = self.quotas.lock();
        if let Some((count, held)) = quotas.get_mut(tenant) {
            *count = count.saturating_sub(1);
            *held = held.saturating_sub(bytes);
            if *count == 0 {
                quotas.remove(tenant);
            }
        }
    }
}

/// Room in a tenant's quota, given back unless kept.
struct Reserved<'s> {
    shared: &'s Shared,
    tenant: &'s str,
    bytes: usize,
}

impl<'s> Reserved<'s> {
    fn take(shared: &'s Shared, tenant: &'s str, bytes: usize) -> Result<Reserved<'s>, Error> {
        let mut quotas = shared.quotas.lock();
        let (count, held) = quotas.get(tenant).copied().unwrap_or_default();
        if count >= MAX_HOSTED_PER_TENANT || held + bytes > MAX_HOSTED_BYTES_PER_TENANT {
            return Err(Error::TooManyHosted);
        }
        let all: usize = quotas.values().map(|(_, held)| held).sum();
        if all + bytes > MAX_HOSTED_BYTES {
            return Err(Error::TooMuchHosted);
        }
        quotas.insert(tenant.into(), (count + 1, held + bytes));
        Ok(Reserved { shared, tenant, bytes })
    }

    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.shared.release(self.tenant, self.bytes);
    }
}
