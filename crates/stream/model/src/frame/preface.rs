//! The first sixteen bytes of a byte stream, from each side.

use super::field::FrameError;

/// Bytes of a preface.
pub const PREFACE_LEN: usize = 16;
/// The name of the protocol in TLS (ALPN, RFC 7301).
pub const ALPN: &[u8] = b"trifid-stream/1";
/// The version of the protocol that is spoken here.
pub const VERSION: u16 = 1;

/// `TRIFID`, so that what speaks another protocol is told apart by its first bytes.
const MAGIC: [u8; 6] = *b"TRIFID";

/// What a side can do, one bit each. A bit that the other side does not know is not used: both speak what both know
/// ([`Capabilities::and`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// Streams: publish, subscribe, administration. Every side of version 1 has it.
    pub const STREAMS: Self = Self(1);
    /// Consumer groups with leases, and committed offsets.
    pub const GROUPS: Self = Self(1 << 1);
    /// Caches.
    pub const CACHES: Self = Self(1 << 2);
    /// Idempotent producers.
    pub const IDEMPOTENCE: Self = Self(1 << 3);
    /// All that this version of the crate knows.
    pub const ALL: Self = Self(0b1111);

    /// What both have.
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Both together.
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of the other's bits are here.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What each side says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preface {
    /// The newest version that it speaks.
    pub version: u16,
    /// What it can do.
    pub capabilities: Capabilities,
}

impl Preface {
    /// Ours, with these capabilities.
    pub fn new(capabilities: Capabilities) -> Self {
        Self { version: VERSION, capabilities }
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; PREFACE_LEN] {
        let mut bytes = [0; PREFACE_LEN];
        bytes[..6].copy_from_slice(&MAGIC);
        bytes[6..8].copy_from_slice(&self.version.to_le_bytes());
        bytes[8..].copy_from_slice(&self.capabilities.0.to_le_bytes());
        bytes
    }

    /// Reads the other side's. A newer version is one that also speaks ours, by the rule of the protocol; version 0
    /// does not exist.
    pub fn decode(bytes: &[u8; PREFACE_LEN]) -> Result<Self, FrameError> {
        let [m0, m1, m2, m3, m4, m5, v0, v1, capabilities @ ..] = *bytes;
        if [m0, m1, m2, m3, m4, m5] != MAGIC {
            return Err(FrameError::Preface);
        }
        match u16::from_le_bytes([v0, v1]) {
            0 => Err(FrameError::Version(0)),
            version => Ok(Self { version, capabilities: Capabilities(u64::from_le_bytes(capabilities)) }),
        }
    }
}
