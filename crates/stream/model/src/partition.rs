//! Which shard a key belongs to: the default partitioner of Kafka's Java client, so that keys keep their shard
//! whichever client writes them.
//!
//! The hash is MurmurHash2 (32 bits) with Kafka's seed; its sign bit is dropped before the remainder is taken. A
//! record without a key goes where its producer likes; keeping to one shard until a batch is full (KIP-480) makes
//! the largest batches, and needs a memory, which is the caller's.

use std::num::NonZeroU32;

/// The shard of a key among so many.
pub fn shard_of(key: &[u8], shards: NonZeroU32) -> u32 {
    (murmur2(key) & 0x7fff_ffff) % shards
}

/// MurmurHash2 of 32 bits over little endian words, with the seed of Kafka's clients.
pub fn murmur2(data: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    let mut hash = SEED ^ (data.len() as u32);
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !rest.is_empty() {
        let mut tail = [0; 4];
        tail[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u32::from_le_bytes(tail)).wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors that Kafka's clients in several languages are tested with.
    #[test]
    fn known_hashes() {
        let vectors: [(&[u8], i32); 7] = [
            (b"21", -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
            (b"", 275_646_681),
        ];
        for (key, hash) in vectors {
            assert_eq!(murmur2(key) as i32, hash, "{}", key.escape_ascii());
        }
    }

    #[test]
    fn a_shard_is_among_the_shards() {
        for shards in 1..50 {
            let shards = NonZeroU32::new(shards).unwrap();
            for key in 0..200_u32 {
                assert!(shard_of(&key.to_be_bytes(), shards) < shards.get());
            }
        }
    }
}
