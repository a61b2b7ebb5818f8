//! How QUIC is set up, and the traps around the size of its packets.
//!
//! Cost a byte falls with the size of packets: sending 64 KiB batches to ten subscribers over loopback takes
//! a server 1.09 ms of CPU a megabyte at 1,452 bytes, 0.63 at 4,096, 0.58 at 6,000, and 0.94 at 8,900 without
//! segmentation. So loopback, which carries anything, is pinned to 6,000, an operator who knows the network
//! pins what it carries, and elsewhere the path is probed. Three traps:
//! - *Segmentation*: the kernel takes one send of up to 65,535 bytes and cuts it; quinn sends ten packets a
//!   time. Above 6,500 bytes a packet such a send fails with EMSGSIZE, is taken for loss, and the connection
//!   starves. So packets stay at or below [`MTU_SEGMENTED_MAX`], or segmentation is off.
//! - *Black holes*: a burst of ordinary loss is taken for a path that swallows large packets, and the
//!   connection falls to the least size for a minute. A pinned size cannot fall; elsewhere the punishment
//!   lasts [`BLACK_HOLE_COOLDOWN`].
//! - *The first window*: quinn's is 12,000 bytes whatever the size of packets. Above 6,000 a second packet
//!   does not fit into it, and the handshake never ends. RFC 9002 7.2 has ten packets, and so have we.
//!
//! Windows are sized from one budget, since everything within them is memory that a slow peer can hold.

use std::fmt;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use quinn::congestion::CubicConfig;
use quinn::{AckFrequencyConfig, ConnectionId, ConnectionIdGenerator, Endpoint, EndpointConfig, IdleTimeout};
use quinn::{MtuDiscoveryConfig, ServerConfig, TokioRuntime, TransportConfig, VarInt};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use trifid_base_runtime::{Entropy as _, SystemEntropy};

use crate::limits::{
    BLACK_HOLE_COOLDOWN, LANES_MAX, MTU_DISCOVERED_MAX, MTU_LEAST, MTU_LOOPBACK, MTU_MAX, MTU_SEGMENTED_MAX,
};
use crate::options::{Limits, Resolved};
use crate::tls::Configs;

/// How large packets are on a kind of path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packets {
    /// Carried for certain: the size never falls below.
    least: u16,
    /// Looked for, if above.
    most: u16,
    /// Whether the kernel cuts large sends into packets.
    is_segmented: bool,
}

impl Packets {
    /// For paths over which an operator's `mtu` (0: none given) is known to go, or not.
    fn new(mtu: u16, gso: bool, is_loopback: bool) -> Self {
        let (least, most) = match mtu {
            0 if is_loopback => (MTU_LOOPBACK, MTU_LOOPBACK),
            0 => (MTU_LEAST, MTU_DISCOVERED_MAX),
            mtu => (mtu, mtu),
        };
        // A size beyond what can be segmented was asked for by name: it is worth more than segmentation.
        Self { least, most, is_segmented: gso && most <= MTU_SEGMENTED_MAX }
    }
}

/// The two ways in which connections are set up, and what the endpoints of all workers share.
pub(crate) struct Transports {
    loopback: Arc<TransportConfig>,
    elsewhere: Arc<TransportConfig>,
    is_segmented: bool,
    /// Made of the certificate as last seen.
    greeting: ArcSwapOption<Greeting>,
}

/// What connections are greeted with, while a certificate is in use.
struct Greeting {
    tls: Arc<Configs>,
    loopback: Arc<ServerConfig>,
    elsewhere: Arc<ServerConfig>,
}

impl fmt::Debug for Transports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transports").field("is_segmented", &self.is_segmented).finish_non_exhaustive()
    }
}

impl Transports {
    pub(crate) fn new(resolved: &Resolved) -> Self {
        let packets = |is_loopback| Packets::new(resolved.mtu, resolved.gso, is_loopback);
        let made = |is_loopback| Arc::new(transport(packets(is_loopback), &resolved.limits));
        Self {
            loopback: made(true),
            elsewhere: made(false),
            is_segmented: packets(resolved.listen.ip().is_loopback()).is_segmented,
            greeting: ArcSwapOption::empty(),
        }
    }

    /// Whether sends on the listener's usual path are segmented by the kernel.
    pub(crate) fn is_segmented(&self) -> bool {
        self.is_segmented
    }

    /// What to answer a client from `peer` with.
    pub(crate) fn server_config(&self, tls: &Arc<Configs>, peer: IpAddr) -> Arc<ServerConfig> {
        let greeting = self.greeting(tls);
        Arc::clone(if is_loopback(peer) { &greeting.loopback } else { &greeting.elsewhere })
    }

    fn greeting(&self, tls: &Arc<Configs>) -> Arc<Greeting> {
        if let Some(known) = self.greeting.load_full().filter(|known| Arc::ptr_eq(&known.tls, tls)) {
            return known;
        }
        let base = ServerConfig::with_crypto(Arc::clone(&tls.quic) as _);
        let over = |transport: &Arc<TransportConfig>| {
            let mut config = base.clone();
            config.transport_config(Arc::clone(transport));
            Arc::new(config)
        };
        let (loopback, elsewhere) = (over(&self.loopback), over(&self.elsewhere));
        let greeting = Arc::new(Greeting { tls: Arc::clone(tls), loopback, elsewhere });
        self.greeting.store(Some(Arc::clone(&greeting)));
        greeting
    }

    /// A worker's endpoint. All of them, and those of the server's next life, share a reset key: a client
    /// whose address has changed may reach another worker, and one whose server was killed a server that
    /// knows nothing of it; both are told at once that their connection is not known (RFC 9000 10.3), and
    /// make a new one instead of waiting.
    pub(crate) fn endpoint(
        &self,
        worker: usize,
        socket: UdpSocket,
        tls: &Arc<Configs>,
        listen: IpAddr,
    ) -> io::Result<Endpoint> {
        let mut config = EndpointConfig::new(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &tls.secret)));
        // Quinn's own would not do: an endpoint takes the ids of all others for forged, and answers them with
        // silence.
        let worker = u8::try_from(worker).unwrap_or(u8::MAX);
        config.cid_generator(move || Box::new(Ids { worker }));
        // Without this clients would keep to Ethernet's packets.
        config.max_udp_payload_size(MTU_MAX).map_err(io::Error::other)?;
        let first = (*self.server_config(tls, listen)).clone();
        Endpoint::new(config, Some(first), socket, Arc::new(TokioRuntime))
    }
}

/// Connection ids of eight bytes: the worker, for whoever steers packets by it, and chance.
struct Ids {
    worker: u8,
}

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut bytes = SystemEntropy.next_u64().to_le_bytes();
        // A system that has no chance to give yet gets ids that can be guessed.
        let _ = SystemRandom::new().fill(&mut bytes);
        bytes[0] = self.worker;
        ConnectionId::new(&bytes)
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// Also where IPv4 comes in mapped into IPv6.
fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

fn transport(packets: Packets, limits: &Limits) -> TransportConfig {
    let window = limits.quic_window_bytes;
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(LANES_MAX))
        // Nothing here is sent by datagram or by one-way stream.
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None)
        .receive_window(VarInt::from_u32(window))
        .stream_receive_window(VarInt::from_u32(window))
        .send_window(u64::from(window))
        .max_idle_timeout(IdleTimeout::try_from(limits.idle_timeout).ok())
        .keep_alive_interval(Some(limits.idle_timeout / 3))
        .initial_mtu(packets.least)
        .min_mtu(packets.least)
        .mtu_discovery_config(discovery(packets))
        .congestion_controller_factory(Arc::new(congestion(packets)))
        .enable_segmentation_offload(packets.is_segmented)
        .ack_frequency_config(Some(ack_frequency()));
    config
}

fn discovery(packets: Packets) -> Option<MtuDiscoveryConfig> {
    let mut config = MtuDiscoveryConfig::default();
    config.upper_bound(packets.most).black_hole_cooldown(BLACK_HOLE_COOLDOWN);
    (packets.most > packets.least).then_some(config)
}

/// A first window of ten packets (RFC 9002 7.2).
fn congestion(packets: Packets) -> CubicConfig {
    let mut config = CubicConfig::default();
    config.initial_window(u64::from(packets.least) * 10);
    config
}

/// Acknowledgements a tenth as often as RFC 9000 13.2.2 has them, where the peer knows the extension
/// (draft-ietf-quic-ack-frequency): each costs both sides a packet.
fn ack_frequency() -> AckFrequencyConfig {
    let mut config = AckFrequencyConfig::default();
    config.ack_eliciting_threshold(VarInt::from_u32(ACK_EVERY_PACKETS)).max_ack_delay(Some(ACK_DELAY_MAX));
    config
}

/// Packets for which one acknowledgement is enough.
const ACK_EVERY_PACKETS: u32 = 10;

/// How long an acknowledgement may wait for more packets.
const ACK_DELAY_MAX: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_never_too_large_to_be_segmented() {
        for (mtu, gso, is_loopback, expected) in [
            (0, true, true, (MTU_LOOPBACK, MTU_LOOPBACK, true)),
            (0, true, false, (MTU_LEAST, MTU_DISCOVERED_MAX, true)),
            (0, false, false, (MTU_LEAST, MTU_DISCOVERED_MAX, false)),
            (1452, true, false, (1452, 1452, true)),
            (6000, true, false, (6000, 6000, true)),
            (8192, true, true, (8192, 8192, false)),
            (8900, true, false, (8900, 8900, false)),
        ] {
            let packets = Packets::new(mtu, gso, is_loopback);
            let found = (packets.least, packets.most, packets.is_segmented);
            assert_eq!(found, expected, "mtu {mtu}, gso {gso}, loopback {is_loopback}");
            assert!(!packets.is_segmented || u32::from(packets.most) * 10 < 65_535);
        }
    }

    #[test]
    fn ids_tell_their_worker_and_differ() {
        let mut ids = Ids { worker: 7 };
        let (one, two) = (ids.generate_cid(), ids.generate_cid());
        assert_eq!((one.len(), one[0], two[0]), (ids.cid_len(), 7, 7));
        assert_ne!(one, two);
    }

    #[test]
    fn a_pinned_size_is_not_probed() {
        assert!(discovery(Packets::new(0, true, true)).is_none());
        assert!(discovery(Packets::new(4096, true, false)).is_none());
        assert!(discovery(Packets::new(0, true, false)).is_some());
    }

    #[test]
    fn loopback_is_told_also_when_mapped() {
        for (address, expected) in
            [("127.0.0.1", true), ("::1", true), ("::ffff:127.0.0.1", true), ("10.0.0.1", false)]
        {
            assert_eq!(is_loopback(address.parse().unwrap()), expected, "{address}");
        }
    }
}
