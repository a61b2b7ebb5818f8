//! CRC32C (Castagnoli), by the processor's instruction where there is one.

/// The checksum of `bytes`.
pub(crate) fn of(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// The checksum of pieces as if they were one run of bytes.
pub(crate) fn of_pieces(pieces: &[&[u8]]) -> u32 {
    pieces.iter().fold(0, |crc, piece| crc32c::crc32c_append(crc, piece))
}

/// The checksum of `bytes`, started from `seed`.
pub(crate) fn seeded(seed: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(seed, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_vectors_of_rfc_3720_b4() {
        assert_eq!(of(&[0; 32]), 0x8a91_36aa);
        assert_eq!(of(&[0xff; 32]), 0x62a8_ab43);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(of(&rising), 0x46dd_794e);
        assert_eq!(of_pieces(&[&rising[..5], &[], &rising[5..]]), 0x46dd_794e);
    }
}
