//! The stream door in `/q/health` and `/q/ready`.

use serde_json::{Value, json};
use trifid_base_web::metrics::Exposition;
use trifid_base_web::{HealthSource, Readiness};
use trifid_stream_engine::Broker;
use trifid_stream_kafka as kafka;

use super::figures;

pub(super) struct Health {
    pub(super) broker: Broker,
    pub(super) kafka: Option<kafka::Counters>,
}

impl HealthSource for Health {
    fn name(&self) -> &'static str {
        "stream"
    }

    fn readiness(&self) -> Readiness {
        let health = self.broker.health();
        if health.is_ready() { Readiness::Ready } else { Readiness::Failed("draining".to_owned()) }
    }

    fn section(&self) -> Value {
        let (health, stats) = (self.broker.health(), self.broker.stats());
        json!({
            "streams": stats.streams.len(),
            "inflightBytes": stats.inflight_bytes,
            "tailBytes": stats.tail_bytes.0,
            "memoryBytes": stats.memory_bytes.0,
            "withoutSpace": health.full,
            "orphanedLogs": health.orphans,
            "problem": health.problem,
        })
    }

    fn metrics(&self, out: &mut Exposition) {
        figures::expose(&self.broker.stats(), out);
        if let Some(kafka) = &self.kafka {
            figures::expose_kafka(&kafka.read(), out);
        }
    }
}
