//! Base64 (RFC 4648 section 4), written in lines and read in pieces.
//!
//! Encoding looks up two characters at a time in a table of all 12-bit pairs (8 KiB, a quarter of the first
//! cache): half the look-ups of the classic table. Decoding takes four characters with four look-ups and one test, and
//! falls back to one at a time around white space and padding.

use super::limits::LINE_BYTES;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static PAIRS: [[u8; 2]; 4096] = pairs();

const fn pairs() -> [[u8; 2]; 4096] {
    let mut table = [[0; 2]; 4096];
    let mut value = 0;
    while value < 4096 {
        table[value] = [ALPHABET[value >> 6], ALPHABET[value & 63]];
        value += 1;
    }
    table
}

/// Appends the whole lines that `raw` makes and removes them from it; less than a line stays.
pub(super) fn encode_lines(raw: &mut Vec<u8>, out: &mut Vec<u8>) {
    let whole = raw.len() / LINE_BYTES * LINE_BYTES;
    out.reserve(whole / 3 * 4 + whole / LINE_BYTES);
    for line in raw[..whole].chunks_exact(LINE_BYTES) {
        encode_triples(line, out);
        out.push(b'\n');
    }
    raw.copy_within(whole.., 0);
    raw.truncate(raw.len() - whole);
}

/// Appends what is left, padded, and empties it.
pub(super) fn encode_rest(raw: &mut Vec<u8>, out: &mut Vec<u8>) {
    encode_lines(raw, out);
    let triples = raw.len() / 3 * 3;
    encode_triples(&raw[..triples], out);
    let pair = |value: u32| PAIRS[(value & 0xFFF) as usize];
    match raw[triples..] {
        [one] => {
            out.extend_from_slice(&pair(u32::from(one) << 4));
            out.extend_from_slice(b"==");
        }
        [one, two] => {
            let value = u32::from(one) << 16 | u32::from(two) << 8;
            out.extend_from_slice(&pair(value >> 12));
            out.extend_from_slice(&[pair(value)[0], b'=']);
        }
        _ => {}
    }
    if !raw.is_empty() {
        out.push(b'\n');
    }
    raw.clear();
}

/// Appends the characters of bytes whose number is a multiple of three.
fn encode_triples(raw: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + raw.len() / 3 * 4, 0);
    let target = &mut out[start..];
    let (sixes, rest) = raw.as_chunks::<6>();
    let (eights, tail) = target.as_chunks_mut::<8>();
    for (six, eight) in sixes.iter().zip(eights) {
        let [a, b, c, d, e, f] = *six;
        let value = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        let pair = |shift: u32| PAIRS[(value >> shift & 0xFFF) as usize];
        let ([i, j], [k, l], [m, n], [o, p]) = (pair(36), pair(24), pair(12), pair(0));
        *eight = [i, j, k, l, m, n, o, p];
    }
    if let ([a, b, c], [i, j, k, l]) = (rest, tail) {
        let value = u32::from_be_bytes([0, *a, *b, *c]);
        [*i, *j] = PAIRS[(value >> 12) as usize];
        [*k, *l] = PAIRS[(value & 0xFFF) as usize];
    }
}
