//! What the listener counts, and how `/q/metrics` shows it.

use std::sync::atomic::{AtomicU64, Ordering};

use trifid_base_web::metrics::{Counter, Exposition, Histogram, Kind};

/// How acknowledgements bunch: in one write, up to so many.
const ACK_BOUNDS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 1024];

macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident: $name:literal, $help:literal;)*) => {
        /// Counters with a cell per worker.
        #[derive(Debug)]
        pub(crate) struct Stats {
            $($(#[$doc])* pub(crate) $field: Counter,)*
            /// Acknowledgements that left in one write.
            pub(crate) acks_per_write: Histogram,
            /// What QUIC measured, a place per worker.
            pub(crate) quic: Box<[QuicStats]>,
        }

        impl Stats {
            /// All at zero.
            pub(crate) fn new(workers: usize) -> Self {
                Self {
                    $($field: Counter::new(workers),)*
                    acks_per_write: Histogram::new(workers, ACK_BOUNDS),
                    quic: (0..workers).map(|_| QuicStats::default()).collect(),
                }
            }

            fn counters(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$(($name, $help, self.$field.value())),*].into_iter()
            }
        }
    };
}

counters! {
    tcp_accepted: "trifid_stream_tcp_connections_total", "Connections over TLS on TCP.";
    quic_accepted: "trifid_stream_quic_connections_total", "Connections over QUIC.";
    lanes: "trifid_stream_lanes_total", "Byte streams of all connections.";
    turned_away: "trifid_stream_turned_away_total", "Connections refused over the limit.";
    accept_errors: "trifid_stream_accept_errors_total", "Connections that the system could not give.";
    handshakes_failed: "trifid_stream_handshakes_failed_total", "Handshakes that failed or took too long.";
    refused_tokens: "trifid_stream_refused_tokens_total", "Greetings without a token that is known.";
    malformed: "trifid_stream_malformed_total", "Connections ended because of bytes that are no frames.";
    half_open: "trifid_stream_half_open_total", "Connections ended because nothing was heard any more.";
    stuck: "trifid_stream_stuck_total", "Connections ended because nobody read what was sent.";
    cut: "trifid_stream_cut_total", "Connections cut at the end of the drain.";
    frames_in: "trifid_stream_frames_received_total", "Frames read.";
    bytes_in: "trifid_stream_received_bytes_total", "Bytes read, without TLS and QUIC.";
    frames_out: "trifid_stream_frames_sent_total", "Frames written.";
    bytes_out: "trifid_stream_sent_bytes_total", "Bytes written, without TLS and QUIC.";
    acked: "trifid_stream_acknowledged_total", "Publishes acknowledged.";
    refused: "trifid_stream_refused_total", "Requests answered with an error.";
    overloaded: "trifid_stream_overloaded_total", "Publishes refused because too much was in flight.";
    shed: "trifid_stream_shed_total", "Unacknowledged publishes dropped, and told.";
    pushed: "trifid_stream_pushed_total", "Batches pushed to subscribers.";
    lost: "trifid_stream_lost_records_total", "Records that subscriptions skipped by their policy, and were told of.";
    disk_reads: "trifid_stream_disk_reads_total", "Pages read from the disk for subscribers that lag.";
}

/// What QUIC measured on one worker.
#[derive(Debug, Default)]
pub(crate) struct QuicStats {
    /// The least packet size among open connections; zero without any.
    pub(crate) mtu_least: AtomicU64,
    /// Black holes of connections that have ended, and of open ones as last seen.
    pub(crate) black_holes: AtomicU64,
    /// Lost packets, likewise.
    pub(crate) lost_packets: AtomicU64,
    /// Packets sent, likewise.
    pub(crate) sent_packets: AtomicU64,
    /// Datagrams sent, likewise.
    pub(crate) datagrams: AtomicU64,
    /// System calls that they took, likewise.
    pub(crate) ios: AtomicU64,
}

impl Stats {
    fn quic_sum(&self, pick: impl Fn(&QuicStats) -> &AtomicU64) -> u64 {
        self.quic.iter().map(|worker| pick(worker).load(Ordering::Relaxed)).sum()
    }

    /// The least packet size of any open QUIC connection.
    fn mtu_least(&self) -> u64 {
        let sizes = self.quic.iter().map(|worker| worker.mtu_least.load(Ordering::Relaxed));
        sizes.filter(|size| *size > 0).min().unwrap_or(0)
    }

    /// Writes everything.
    pub(crate) fn expose(&self, out: &mut Exposition) {
        for (name, help, value) in self.counters() {
            out.family(Kind::Counter, name, help).sample(&[], value);
        }
        let quic = [
            ("trifid_stream_quic_black_holes_total", "Paths that seemed to swallow large packets.", {
                self.quic_sum(|worker| &worker.black_holes)
            }),
            ("trifid_stream_quic_lost_packets_total", "QUIC packets taken for lost.", {
                self.quic_sum(|worker| &worker.lost_packets)
            }),
            ("trifid_stream_quic_sent_packets_total", "QUIC packets sent.", {
                self.quic_sum(|worker| &worker.sent_packets)
            }),
            ("trifid_stream_quic_datagrams_total", "UDP datagrams sent.", {
                self.quic_sum(|worker| &worker.datagrams)
            }),
            ("trifid_stream_quic_sends_total", "System calls that sent them.", {
                self.quic_sum(|worker| &worker.ios)
            }),
        ];
        for (name, help, value) in quic {
            out.family(Kind::Counter, name, help).sample(&[], value);
        }
        out.gauge(
            "trifid_stream_quic_mtu_bytes",
            "Least UDP payload of an open connection.",
            self.mtu_least(),
        );
        out.histogram(
            "trifid_stream_acks_per_write",
            "Acknowledgements that left in one write.",
            &self.acks_per_write,
            1,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_shown_and_workers_add_up() {
        let stats = Stats::new(2);
        stats.frames_in.add(0, 2);
        stats.frames_in.add(1, 3);
        stats.quic[0].mtu_least.store(6000, Ordering::Relaxed);
        stats.quic[1].lost_packets.store(4, Ordering::Relaxed);
        let mut out = Exposition::default();
        stats.expose(&mut out);
        let text = out.into_text();
        for line in [
            "trifid_stream_frames_received_total 5",
            "trifid_stream_quic_mtu_bytes 6000",
            "trifid_stream_quic_lost_packets_total 4",
            "trifid_stream_acks_per_write_count 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
