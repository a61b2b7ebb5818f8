//! The four compressions of Kafka, in memory and within a bound.

use std::io::{self, Read, Write};

use super::error::BatchError;
use super::header::Compression;

/// The header of the Java library's Snappy stream: magic, version 1, compatible with version 1.
const SNAPPY_STREAM: [u8; 16] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1];
/// Bytes in one block of such a stream, uncompressed: the Java library's default.
const SNAPPY_BLOCK: usize = 32 * 1024;
/// Zstandard's default, and that of Kafka's producer.
const ZSTD_LEVEL: i32 = 3;

/// The records as they were before they were compressed.
pub(super) fn inflate(compression: Compression, input: &[u8], max: usize) -> Result<Vec<u8>, BatchError> {
    match compression {
        Compression::None => Ok(input.to_vec()),
        Compression::Gzip => read(compression, flate2::read::MultiGzDecoder::new(input), input.len(), max),
        Compression::Snappy => unsnap(input, max),
        Compression::Lz4 => read(compression, lz4_flex::frame::FrameDecoder::new(input), input.len(), max),
        Compression::Zstd => match zstd::stream::read::Decoder::with_buffer(input) {
            Ok(decoder) => read(compression, decoder, input.len(), max),
            Err(_) => Err(BatchError::Damaged(compression)),
        },
    }
}

/// The records compressed.
pub(super) fn deflate(compression: Compression, input: &[u8]) -> io::Result<Vec<u8>> {
    match compression {
        Compression::None => Ok(input.to_vec()),
        Compression::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(input)?;
            encoder.finish()
        }
        Compression::Snappy => snap(input),
        Compression::Lz4 => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(input)?;
            Ok(encoder.finish()?)
        }
        Compression::Zstd => zstd::bulk::compress(input, ZSTD_LEVEL),
    }
}

/// Reads to the end, and one byte further than allowed to know that it is too much. What is set aside at first follows
/// from the bytes that are there, and not from what they claim.
fn read(
    compression: Compression,
    decoder: impl Read,
    packed: usize,
    max: usize,
) -> Result<Vec<u8>, BatchError> {
    let mut out = Vec::with_capacity(packed.saturating_mul(4).min(max));
    let read = decoder.take(max as u64 + 1).read_to_end(&mut out);
    match read {
        _ if out.len() > max => Err(BatchError::Inflated(max)),
        Ok(_) => Ok(out),
        Err(_) => Err(BatchError::Damaged(compression)),
    }
}

/// One Snappy block, or a stream of them as the Java library writes it.
fn unsnap(input: &[u8], max: usize) -> Result<Vec<u8>, BatchError> {
    let mut out = Vec::new();
    // Only the magic is looked at: writers disagree on the versions after it.
    if !input.starts_with(&SNAPPY_STREAM[..8]) {
        unsnap_block(input, max, &mut out)?;
        return Ok(out);
    }
    let damaged = BatchError::Damaged(Compression::Snappy);
    let mut rest = input.get(SNAPPY_STREAM.len()..).ok_or(damaged.clone())?;
    while !rest.is_empty() {
        let (len, after) = rest.split_first_chunk::<4>().ok_or(damaged.clone())?;
        let (block, after) =
            after.split_at_checked(u32::from_be_bytes(*len) as usize).ok_or(damaged.clone())?;
        unsnap_block(block, max, &mut out)?;
        rest = after;
    }
    Ok(out)
}

/// The length at the head of a block is believed only as far as a block can be: what is allocated is bounded by what
/// is allowed, and by how far Snappy can compress.
fn unsnap_block(block: &[u8], max: usize, out: &mut Vec<u8>) -> Result<(), BatchError> {
    let damaged = |_| BatchError::Damaged(Compression::Snappy);
    let len = snap::raw::decompress_len(block).map_err(damaged)?;
    let start = out.len();
    if len > max - start.min(max) {
        return Err(BatchError::Inflated(max));
    }
    out.resize(start + len, 0);
    let written = snap::raw::Decoder::new().decompress(block, &mut out[start..]).map_err(damaged)?;
    out.truncate(start + written);
    Ok(())
}

fn snap(input: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = SNAPPY_STREAM.to_vec();
    let mut encoder = snap::raw::Encoder::new();
    for block in input.chunks(SNAPPY_BLOCK) {
        let packed = encoder.compress_vec(block)?;
        out.extend_from_slice(&(packed.len() as u32).to_be_bytes());
        out.extend_from_slice(&packed);
    }
    Ok(out)
}
