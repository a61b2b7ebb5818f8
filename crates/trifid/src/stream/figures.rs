//! The broker's figures as metrics: sums, and for each stream what tells whether it is well.
//!
//! A series a stream is kept for the [`STREAMS_MAX`] streams with the most traffic; the sum over all of them is always
//! there, so what has no series of its own is still counted.

use trifid_base_web::metrics::{Exposition, Kind};
use trifid_stream_engine::{BrokerStats, ShardStats, StreamStats};
use trifid_stream_kafka as kafka;

/// Streams that have series of their own.
const STREAMS_MAX: usize = 100;

/// A figure of a shard or of shards together.
type Figure = (Kind, &'static str, &'static str, fn(&ShardStats) -> u64);

const FIGURES: &[Figure] = &[
    (Kind::Counter, "trifid_stream_batches_in_total", "Batches published.", |sum| sum.batches_in),
    (Kind::Counter, "trifid_stream_records_in_total", "Records published.", |sum| sum.records_in),
    (Kind::Counter, "trifid_stream_bytes_in_total", "Bytes of batches published.", |sum| sum.bytes_in),
    (Kind::Counter, "trifid_stream_records_out_total", "Records handed to readers.", |sum| sum.records_out),
    (Kind::Counter, "trifid_stream_bytes_out_total", "Bytes handed to readers.", |sum| sum.bytes_out),
    (Kind::Counter, "trifid_stream_pages_total", "Pages read from the disk for readers.", |sum| sum.pages),
    (Kind::Counter, "trifid_stream_duplicates_total", "Batches that producers sent again.", |sum| {
        sum.duplicates
    }),
    (Kind::Counter, "trifid_stream_dropped_total", "Records that subscribers lost by their policy.", |sum| {
        sum.dropped
    }),
    (Kind::Counter, "trifid_stream_trimmed_total", "Records gone before a subscriber came to them.", |sum| {
        sum.trimmed
    }),
    (Kind::Counter, "trifid_stream_rejected_total", "Publishes refused.", |sum| sum.rejected.total()),
    (Kind::Counter, "trifid_stream_commits_total", "Waves of the committer with something of it.", |sum| {
        sum.commits
    }),
    (Kind::Counter, "trifid_stream_log_bytes_total", "Bytes written to logs.", |sum| sum.log_written),
    (Kind::Gauge, "trifid_stream_subscribers", "Subscribers.", |sum| sum.subscribers as u64),
    (Kind::Gauge, "trifid_stream_lag_records", "Records that the slowest subscriber is behind.", |sum| {
        sum.lag_max
    }),
    (Kind::Gauge, "trifid_stream_tail_bytes", "Bytes of recent batches in memory.", |sum| {
        sum.tail_bytes as u64
    }),
    (Kind::Gauge, "trifid_stream_pending_batches", "Batches that wait for the disk.", |sum| {
        sum.pending_batches as u64
    }),
    (Kind::Gauge, "trifid_stream_segments", "Segments of logs.", |sum| sum.segments as u64),
];

/// Why publishes were refused.
type Reason = (&'static str, fn(&ShardStats) -> u64);

const REASONS: &[Reason] = &[
    ("overloaded", |sum| sum.rejected.overloaded),
    ("held", |sum| sum.rejected.held),
    ("too_large", |sum| sum.rejected.too_large),
    ("out_of_sequence", |sum| sum.rejected.out_of_sequence),
    ("fenced", |sum| sum.rejected.fenced),
    ("unknown_producer", |sum| sum.rejected.unknown_producer),
    ("no_space", |sum| sum.rejected.no_space),
    ("shutting_down", |sum| sum.rejected.shutting_down),
    ("gone", |sum| sum.rejected.gone),
];

/// Everything that the broker knows of itself.
pub(super) fn expose(stats: &BrokerStats, out: &mut Exposition) {
    let busiest = busiest(&stats.streams);
    let sum = stats.streams.iter().fold(ShardStats::default(), |sum, stream| sum.plus(stream.sum));
    out.gauge("trifid_stream_streams", "Streams of all tenants.", stats.streams.len());
    out.gauge(
        "trifid_stream_inflight_bytes",
        "Bytes published and not yet acknowledged.",
        stats.inflight_bytes,
    );
    out.gauge("trifid_stream_memory_bytes", "Bytes that streams in memory keep.", stats.memory_bytes.0);
    let refused = "trifid_stream_refused_total";
    out.counter(refused, "Publishes refused because the whole process had enough.", stats.refused);
    for (kind, name, help, figure) in FIGURES {
        family(out, (*kind, name, help), &busiest, *figure);
    }
    let mut rejected = out.family(
        Kind::Counter,
        "trifid_stream_rejected_by_reason_total",
        "Publishes refused on all streams, by reason.",
    );
    for (reason, figure) in REASONS {
        rejected.sample(&[("reason", reason)], figure(&sum));
    }
}

fn family(
    out: &mut Exposition,
    (kind, name, help): (Kind, &'static str, &'static str),
    streams: &[&StreamStats],
    figure: fn(&ShardStats) -> u64,
) {
    let mut family = out.family(kind, name, help);
    for stream in streams {
        let (tenant, name) = (stream.tenant.to_string(), stream.name.to_string());
        family.sample(&[("tenant", &tenant), ("stream", &name)], figure(&stream.sum));
    }
}

/// The streams with the most traffic, in the order of their names.
fn busiest(streams: &[StreamStats]) -> Vec<&StreamStats> {
    let mut busiest: Vec<&StreamStats> = streams.iter().collect();
    if busiest.len() > STREAMS_MAX {
        let traffic = |stream: &&StreamStats| stream.sum.bytes_in.saturating_add(stream.sum.bytes_out);
        busiest.sort_by_key(|stream| std::cmp::Reverse(traffic(stream)));
        busiest.truncate(STREAMS_MAX);
    }
    busiest.sort_by(|one, other| (&one.tenant, &one.name).cmp(&(&other.tenant, &other.name)));
    busiest
}

/// What the listener for clients of Kafka counts.
pub(super) fn expose_kafka(stats: &kafka::Stats, out: &mut Exposition) {
    out.gauge("trifid_kafka_connections", "Connections of Kafka's clients.", stats.connections);
    let mut events = out.family(Kind::Counter, "trifid_kafka_events_total", "What Kafka's clients did.");
    for (event, _, value) in stats.counters() {
        events.sample(&[("event", event)], value);
    }
}
