//! The archive door in `/q/health` and `/q/metrics`.

use std::sync::Arc;

use serde_json::{Value, json};
use trifid_archive_engine::archive::Archive;
use trifid_archive_engine::jobs::Jobs;
use trifid_archive_face::ArchiveFace;
use trifid_base_web::HealthSource;
use trifid_base_web::metrics::{Exposition, Kind};

pub(crate) struct Health {
    pub(crate) archive: Arc<Archive>,
    pub(crate) face: Arc<ArchiveFace>,
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
        let stats = self.face.stats();
        let counters = [
            ("trifid_archive_results_whole_total", "Results sent in one piece.", stats.whole),
            ("trifid_archive_results_streamed_total", "Results sent while they were made.", stats.streamed),
            (
                "trifid_archive_results_overflowed_total",
                "Results of which rows were withheld.",
                stats.overflowed,
            ),
            ("trifid_archive_results_failed_total", "Results that broke off.", stats.failed),
            ("trifid_archive_results_abandoned_total", "Results whose client left.", stats.abandoned),
            ("trifid_archive_uploads_total", "Tables that came with queries.", stats.uploads),
            (
                "trifid_archive_results_spooled_total",
                "Results that waited on disk for their client.",
                stats.spooled,
            ),
        ];
        for (name, help, value) in counters {
            out.family(Kind::Counter, name, help).sample(&[], value);
        }
        out.family(Kind::Gauge, "trifid_archive_spool_bytes", "Bytes of results that wait on disk.")
            .sample(&[], stats.spool_bytes);
    }
}
