//! The context door in `/q/health` and `/q/metrics`.

use std::sync::Arc;

use serde_json::{Value, json};
use trifid_base_web::HealthSource;
use trifid_base_web::metrics::{Exposition, Kind};
use trifid_context_backends::file::{FileStats, FileStore};
use trifid_context_engine::contexts::Contexts;
use trifid_context_engine::limits::{MAX_BATCH, MAX_NAMES_PER_TENANT, MAX_TENANTS};
use trifid_context_engine::{Broker, store::StoreStats};

pub(crate) struct Health {
    pub(crate) broker: Arc<Broker>,
    pub(crate) contexts: Contexts,
    /// Present where entities are durable.
    pub(crate) file: Option<Arc<FileStore>>,
}

impl Health {
    fn store(&self) -> StoreStats {
        self.broker.store().stats()
    }
}

/// The journal and the snapshots beside it.
fn file_section(stats: &FileStats) -> Value {
    let journal = &stats.journal;
    json!({
        "durable": journal.durable.get(),
        "segments": journal.segments,
        "inflightBytes": journal.inflight_bytes,
        "batches": journal.batches,
        "bytes": journal.bytes,
        "refusedOverload": journal.refused_overload,
        "refusedSpace": journal.refused_space,
        "snapshots": stats.snapshots,
        "snapshotPosition": stats.snapshot_position,
        "snapshotBytes": stats.snapshot_bytes,
    })
}

fn file_metrics(stats: &FileStats, out: &mut Exposition) {
    let journal = &stats.journal;
    let counters = [
        ("trifid_context_journal_batches_total", "Batches made durable, each by one flush.", journal.batches),
        ("trifid_context_journal_bytes_total", "Bytes made durable.", journal.bytes),
        (
            "trifid_context_journal_overloaded_total",
            "Writes refused because too much waited for the disk.",
            journal.refused_overload,
        ),
        (
            "trifid_context_journal_full_total",
            "Writes refused because the disk was full.",
            journal.refused_space,
        ),
        ("trifid_context_snapshots_total", "Snapshots written.", stats.snapshots),
    ];
    for (name, help, value) in counters {
        out.family(Kind::Counter, name, help).sample(&[], value);
    }
    out.family(Kind::Gauge, "trifid_context_journal_inflight_bytes", "Bytes that wait for the disk.")
        .sample(&[], journal.inflight_bytes);
}

impl HealthSource for Health {
    fn name(&self) -> &'static str {
        "context"
    }

    fn section(&self) -> Value {
        let (store, contexts) = (self.store(), self.contexts.stats());
        json!({
            "store": {
                "tenants": store.tenants,
                "entities": store.entities,
                "recordBytes": store.record_bytes,
                "position": store.position,
            },
            "file": self.file.as_ref().map(|file| file_section(&file.stats())),
            "contexts": {
                "hosted": contexts.hosted,
                "cached": contexts.cached,
                "inline": contexts.inline,
                "cacheBytes": contexts.cache_bytes,
            },
            "limits": {
                "tenants": MAX_TENANTS,
                "namesPerTenant": MAX_NAMES_PER_TENANT,
                "batchEntities": MAX_BATCH,
            },
        })
    }

    fn metrics(&self, out: &mut Exposition) {
        let (store, contexts) = (self.store(), self.contexts.stats());
        let gauges = [
            ("trifid_context_tenants", "Tenants that exist.", store.tenants as u64),
            ("trifid_context_entities", "Entities in all tenants.", store.entities as u64),
            ("trifid_context_record_bytes", "Bytes of all current records.", store.record_bytes),
            ("trifid_context_hosted_contexts", "Contexts that clients keep here.", contexts.hosted as u64),
            ("trifid_context_cached_contexts", "Contexts downloaded and kept.", contexts.cached as u64),
            (
                "trifid_context_cache_bytes",
                "Memory of contexts that can be had again.",
                contexts.cache_bytes as u64,
            ),
        ];
        for (name, help, value) in gauges {
            out.family(Kind::Gauge, name, help).sample(&[], value);
        }
        out.family(Kind::Counter, "trifid_context_changes_total", "Changes applied and seen by readers.")
            .sample(&[], store.position);
        if let Some(file) = &self.file {
            file_metrics(&file.stats(), out);
        }
    }
}
