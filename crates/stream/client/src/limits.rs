//! Every bound of the client that is not an option, with its unit.

use std::time::Duration;

/// Addresses of one host that are tried.
pub(crate) const ADDRESSES_TRIED_MAX: usize = 4;

/// How long an address may take to answer before the next one is tried beside it.
pub(crate) const ADDRESS_LEAD: Duration = Duration::from_millis(250);

/// How long QUIC may take before TLS over TCP is tried beside it.
pub(crate) const QUIC_LEAD: Duration = Duration::from_millis(150);

/// Bytes of kernel memory asked for in each direction of a UDP socket; the kernel may give less.
pub(crate) const UDP_BUFFER_BYTES: usize = 4 << 20;

/// Bytes read from a socket at a time.
pub(crate) const READ_BYTES: usize = 128 << 10;

/// Bytes of a UDP payload that every path carries (RFC 9000 14).
pub(crate) const MTU_LEAST: u16 = 1200;

/// Bytes of a UDP payload on loopback.
pub(crate) const MTU_LOOPBACK: u16 = 6000;

/// Bytes of a UDP payload up to which discovery looks on other paths.
pub(crate) const MTU_DISCOVERED_MAX: u16 = 1452;

/// Bytes of a UDP payload while the kernel segments: ten segments have to fit into 65,535 bytes.
pub(crate) const MTU_SEGMENTED_MAX: u16 = 6000;

/// Bytes of a UDP payload that is received at most (jumbo frames).
pub(crate) const MTU_MAX: u16 = 8900;

/// How long a path that seemed to swallow large packets is spared them.
pub(crate) const BLACK_HOLE_COOLDOWN: Duration = Duration::from_secs(5);

/// Bytes that a QUIC connection may have on its way in each direction.
pub(crate) const QUIC_WINDOW_BYTES: u32 = 8 << 20;

/// Packets for which one acknowledgement of QUIC's is enough.
pub(crate) const ACK_EVERY_PACKETS: u32 = 10;

/// How long an acknowledgement of QUIC's may wait for more packets.
pub(crate) const ACK_DELAY_MAX: Duration = Duration::from_millis(5);

const _: () = assert!(MTU_LOOPBACK <= MTU_SEGMENTED_MAX && (MTU_SEGMENTED_MAX as u32) * 10 < 65_535);

/// Bytes of the buffer that small frames are gathered in.
pub(crate) const OPEN_BYTES: usize = 16 << 10;

/// Bytes of a piece from where on sharing it is cheaper than copying it.
pub(crate) const SHARED_BYTES_LEAST: usize = 1024;

/// Pieces that are encrypted in one pass.
pub(crate) const SLICES_MAX: usize = 64;

/// Batches of one shard that are under way at a time: as many as a broker remembers of a producer (KIP-98).
pub(crate) const BATCHES_UNDER_WAY_MAX: usize = 5;

/// How long the task of a shard without work stays.
pub(crate) const PUMP_IDLE: Duration = Duration::from_secs(10);

/// How long what is left may take to be written and received when a line ends, and a connection to be closed.
pub(crate) const END_GRACE: Duration = Duration::from_secs(1);
