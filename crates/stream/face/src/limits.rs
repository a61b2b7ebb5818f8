//! Every bound of the native protocol's listener that is not an option, with its unit.

use std::time::Duration;

/// Workers, at most: past so many the kernel's spreading by address pays no more.
pub(crate) const WORKERS_MAX: usize = 8;

/// Connections that wait in one TCP listener's accept queue.
pub(crate) const ACCEPT_BACKLOG: i32 = 1024;

/// How often a free port is looked for that is free for UDP and TCP both.
pub(crate) const BIND_ATTEMPTS: usize = 16;

/// Bytes of kernel memory asked for in each direction of a UDP socket; the kernel may give less.
pub(crate) const UDP_BUFFER_BYTES: usize = 4 << 20;

/// Less than this many bytes of UDP socket memory lose packets under a burst: told at start.
pub(crate) const UDP_BUFFER_BYTES_LEAST: usize = 1 << 20;

/// How long a worker waits after the system refused it a connection for want of descriptors or memory.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How often a worker looks for connections that are overdue: the precision of every time limit here.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// Bytes of a UDP payload that every path carries (RFC 9000 14).
pub(crate) const MTU_LEAST: u16 = 1200;

/// Bytes of a UDP payload on loopback, where the interface carries 65,536.
pub(crate) const MTU_LOOPBACK: u16 = 6000;

/// Bytes of a UDP payload up to which discovery looks on other paths: Ethernet's 1,500 less the headers of
/// IPv6.
pub(crate) const MTU_DISCOVERED_MAX: u16 = 1452;

/// Bytes of a UDP payload while the kernel segments: ten segments have to fit into 65,535 bytes, or the send
/// fails with EMSGSIZE and the connection starves.
pub(crate) const MTU_SEGMENTED_MAX: u16 = 6000;

/// Bytes of a UDP payload at most (jumbo frames).
pub(crate) const MTU_MAX: u16 = 8900;

/// How long a path that seemed to swallow large packets is spared them.
pub(crate) const BLACK_HOLE_COOLDOWN: Duration = Duration::from_secs(5);

/// Names of a development certificate, at most.
pub(crate) const CERTIFICATE_NAMES_MAX: usize = 32;

const _: () = assert!(MTU_LOOPBACK <= MTU_SEGMENTED_MAX && (MTU_SEGMENTED_MAX as u32) * 10 < 65_535);

/// Byte streams that a client may open on one QUIC connection; each is answered in its own order.
pub(crate) const LANES_MAX: u32 = 64;

/// Bytes that a worker reads from a TCP socket at a time.
pub(crate) const READ_BYTES: usize = 256 << 10;

/// Packets' worth of data taken from a QUIC stream at a time.
pub(crate) const PIECES_MAX: usize = 64;

/// Bytes that are encrypted before they are written to a TCP socket.
pub(crate) const TLS_WRITE_BYTES: usize = 256 << 10;

/// Pieces of the outbox that are encrypted in one pass.
pub(crate) const SLICES_MAX: usize = 64;

/// Bytes of the buffer that small frames are gathered in, at first; it grows with what is gathered.
pub(crate) const OPEN_BYTES_FIRST: usize = 1 << 10;

/// Bytes of that buffer at most.
pub(crate) const OPEN_BYTES_MAX: usize = 16 << 10;

/// Bytes of a body from where on sharing it is cheaper than copying it.
pub(crate) const SHARED_BYTES_LEAST: usize = 1024;

/// Threads of one worker that read pages from the disk and make and delete streams, at most. They end when
/// idle.
pub(crate) const BLOCKING_THREADS_MAX: usize = 4;

/// Rounds of reading, answering and writing that a connection has in a row before others have their turn.
pub(crate) const ROUNDS_MAX: usize = 4;

/// Milliseconds for which a connection that said goodbye waits for its peer to close.
pub(crate) const LINGER_MS: u64 = 1000;

/// Bytes of a frame from where on it gets a buffer of its own.
pub(crate) const FRAME_ALONE_BYTES: usize = 32 << 10;

/// The smallest limit that a client may put on the frames that it takes.
pub(crate) const FRAME_BYTES_LEAST: u32 = 64 << 10;

/// Requests of one byte stream whose answers take their time, at most; more are refused.
pub(crate) const TASKS_MAX: usize = 1024;

/// Acknowledgements that one byte stream waits for, at most; until some have come, no more requests are read.
pub(crate) const ACKS_MAX: usize = 16_384;

/// Streams that are open for publishing on one byte stream.
pub(crate) const HANDLES_MAX: usize = 4096;

/// What a publish counts for beside its bytes: the books that are kept until its acknowledgement.
pub(crate) const PUBLISH_OVERHEAD_BYTES: usize = 256;

/// Cursors of one byte stream: one for each shard of each subscription.
pub(crate) const CURSORS_MAX: usize = 65_536;

/// Pages that are read from the disk for one byte stream at a time.
pub(crate) const DISK_READS_MAX: usize = 2;

/// Bytes of changes that a watch is told in one frame, unless a single one is larger.
pub(crate) const WATCH_BYTES_MAX: usize = 32 << 10;

/// Memberships of groups of one byte stream.
pub(crate) const MEMBERS_MAX: usize = 256;

/// How often a member that leaves looks whether the last of its pulls has ended.
pub(crate) const LEAVE_STEP: Duration = Duration::from_millis(1);

/// Bytes of a frame that get their memory on the word of its length alone. Untouched, it is not taken from
/// anybody.
pub(crate) const RESERVED_AT_ONCE_BYTES: usize = 512 << 10;

/// Bytes beyond the end of a frame that a transport reads at most, before it looks: one packet's.
pub(crate) const READ_BEYOND_BYTES: usize = 9 << 10;
