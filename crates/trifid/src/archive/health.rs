//! The archive door in `/q/health` and `/q/metrics`.

use std::sync::Arc;

use serde_json::{Value, json};
use trifid_archive_engine::archive::Archive;
use trifid_archive_engine::jobs::Jobs;
use trifid_base_web::HealthSource;
use trifid_base_web::metrics::{Exposition, Kind};

pub(crate) struct Health {
    pub(crate) archive: Arc<Archive>,
    pub(crate) jobs: Jobs,
}

impl HealthSource for Health {
    fn name(&self) -> &'static str {
        "archive"
    }

    fn section(&self) -> Value {
        let snapshot = self.archive.snapshot();
        let (running, waiting) = self.archive.compute().load();
        let (queued, executing, kept) = self.jobs.load();
        let rows: u64 = snapshot.tables.iter().map(|published| published.table.rows()).sum();
        json!({
            "tables": snapshot.tables.len(),
            "rows": rows,
            "plans": self.archive.plans(),
            "queriesRunning": running,
            "queriesWaiting": waiting,
            "jobs": { "queued": queued, "executing": executing, "kept": kept },
        })
    }

    fn metrics(&self, out: &mut Exposition) {
        let snapshot = self.archive.snapshot();
        let (running, waiting) = self.archive.compute().load();
        let (queued, executing, kept) = self.jobs.load();
        let gauges = [
            ("trifid_archive_tables", "Tables that are published.", snapshot.tables.len()),
            ("trifid_archive_plans", "Query plans that are kept.", self.archive.plans()),
            ("trifid_archive_queries_running", "Queries in the compute pool.", running),
            ("trifid_archive_queries_waiting", "Queries that wait for a turn.", waiting),
            ("trifid_archive_jobs_queued", "Jobs that wait for their turn.", queued),
            ("trifid_archive_jobs_executing", "Jobs that run.", executing),
            ("trifid_archive_jobs_kept", "Jobs that are kept.", kept),
        ];
        for (name, help, value) in gauges {
            out.family(Kind::Gauge, name, help).sample(&[], value as u64);
        }
    }
}
