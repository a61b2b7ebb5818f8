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

/// A byte of base64 text that does not belong there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stray(pub(super) u8);

/// Marks in [`QUADS`] what is no character of the alphabet.
const STRAY: u32 = 1 << 31;

/// For each place of four characters the bits that a character there stands for.
static QUADS: [[u32; 256]; 4] = quads();

const fn quads() -> [[u32; 256]; 4] {
    let mut table = [[STRAY; 256]; 4];
    let mut value = 0;
    while value < 64 {
        let mut place = 0;
        while place < 4 {
            table[place][ALPHABET[value] as usize] = (value as u32) << (18 - 6 * place);
            place += 1;
        }
        value += 1;
    }
    table
}

/// Base64 being decoded.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// The bits of a group of four that is not complete, and how many of the four there are.
    bits: u32,
    count: u32,
    padding: u32,
}

impl Decoder {
    /// Decodes a piece of text, in which white space means nothing.
    pub(super) fn decode(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<(), Stray> {
        let mut rest = text;
        while !rest.is_empty() {
            if self.count == 0 && self.padding == 0 {
                rest = quads_of(rest, out);
            }
            // One at a time up to the end of a group, where the fast way can go on.
            while let Some((&byte, after)) = rest.split_first() {
                rest = after;
                if self.push(byte, out)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether the text may end here.
    pub(super) fn is_complete(&self) -> bool {
        self.count == 0 && (self.padding == 0 || self.padding == 4)
    }

    /// Takes a character; whether it completed a group.
    fn push(&mut self, byte: u8, out: &mut Vec<u8>) -> Result<bool, Stray> {
        if byte.is_ascii_whitespace() {
            return Ok(false);
        }
        if byte == b'=' {
            return self.pad(out).map(|()| false);
        }
        let bits = QUADS[3][usize::from(byte)];
        if bits == STRAY || self.padding > 0 {
            return Err(Stray(byte));
        }
        self.bits = self.bits << 6 | bits;
        self.count += 1;
        if self.count < 4 {
            return Ok(false);
        }
        out.extend_from_slice(&self.bits.to_be_bytes()[1..]);
        (self.bits, self.count) = (0, 0);
        Ok(true)
    }

    /// Takes a `=`: one after three characters, or two after two, end the text (RFC 4648 section 4).
    fn pad(&mut self, out: &mut Vec<u8>) -> Result<(), Stray> {
        match (self.count, self.padding) {
            (2, 0) => self.padding = 1,
            (2, 1) => {
                out.push((self.bits >> 4) as u8);
                (self.bits, self.count, self.padding) = (0, 0, 4);
            }
            (3, 0) => {
                out.extend_from_slice(&((self.bits >> 2) as u16).to_be_bytes());
                (self.bits, self.count, self.padding) = (0, 0, 4);
            }
            _ => return Err(Stray(b'=')),
        }
        Ok(())
    }
}

/// Decodes whole groups of four as far as nothing is in between; the rest of the text.
fn quads_of<'a>(text: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let (groups, _) = text.as_chunks::<4>();
    let start = out.len();
    out.resize(start + groups.len() * 3, 0);
    let (targets, _) = out[start..].as_chunks_mut::<3>();
    let mut done = 0;
    for ([a, b, c, d], target) in groups.iter().zip(targets) {
        let [first, second, third, fourth] = &QUADS;
        let bits = first[usize::from(*a)]
            | second[usize::from(*b)]
            | third[usize::from(*c)]
            | fourth[usize::from(*d)];
        if bits & STRAY != 0 {
            break;
        }
        let [_, x, y, z] = bits.to_be_bytes();
        *target = [x, y, z];
        done += 1;
    }
    out.truncate(start + done * 3);
    &text[done * 4..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(bytes: &[u8]) -> Vec<u8> {
        let (mut raw, mut out) = (bytes.to_vec(), Vec::new());
        encode_rest(&mut raw, &mut out);
        out
    }

    fn decoded(text: &[u8]) -> Result<Vec<u8>, Stray> {
        let (mut decoder, mut out) = (Decoder::default(), Vec::new());
        decoder.decode(text, &mut out)?;
        assert!(decoder.is_complete());
        Ok(out)
    }

    #[test]
    fn the_examples_of_rfc_4648() {
        for (plain, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(encoded(plain.as_bytes()).trim_ascii(), text.as_bytes());
            assert_eq!(decoded(text.as_bytes()).unwrap(), plain.as_bytes());
        }
    }

    #[test]
    fn what_does_not_belong_is_refused() {
        for (text, byte) in
            [("Zg==Zg==", b'Z'), ("Z===", b'='), ("Zm9v=", b'='), ("Zm-v", b'-'), ("Zg=a", b'a')]
        {
            assert_eq!(decoded(text.as_bytes()), Err(Stray(byte)), "{text}");
        }
        let mut decoder = Decoder::default();
        decoder.decode(b"Zm9vY", &mut Vec::new()).unwrap();
        assert!(!decoder.is_complete());
    }

    proptest! {
        #[test]
        fn whatever_is_encoded_is_decoded(bytes in prop::collection::vec(any::<u8>(), 0..4000), cut in 0_usize..6000) {
            let text = encoded(&bytes);
            prop_assert_eq!(base64::Engine::decode(
                &base64::engine::general_purpose::STANDARD,
                text.iter().copied().filter(|byte| *byte != b'\n').collect::<Vec<_>>(),
            ).unwrap(), bytes.clone());
            let (mut decoder, mut out) = (Decoder::default(), Vec::new());
            let (first, second) = text.split_at(cut.min(text.len()));
            decoder.decode(first, &mut out).unwrap();
            decoder.decode(second, &mut out).unwrap();
            prop_assert!(decoder.is_complete());
            prop_assert_eq!(out, bytes);
        }
    }
}
