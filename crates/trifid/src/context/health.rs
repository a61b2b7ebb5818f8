//! The context door in `/q/health` and `/q/metrics`.

use std::sync::Arc;

use serde_json::{Value, json};
use trifid_base_web::HealthSource;
use trifid_base_web::metrics::{Exposition, Kind};
use trifid_context_engine::contexts::Contexts;
use trifid_context_engine::limits::{MAX_BATCH, MAX_NAMES_PER_TENANT, MAX_TENANTS};
use trifid_context_engine::{Broker, store::StoreStats};

pub(crate) struct Health {
    broker: Arc<Broker>,
    contexts: Contexts,
}

impl Health {
    pub(crate) fn new(broker: Arc<Broker>, contexts: Contexts) -> Self {
        Self { broker, contexts }
    }

    fn store(&self) -> StoreStats {
        self.broker.store().stats()
    }
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
    }
}
