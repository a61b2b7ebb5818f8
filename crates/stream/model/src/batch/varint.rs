//! Varints of Protocol Buffers, zigzag, as Kafka writes them within records.

use super::error::RecordProblem;

/// Takes a number of at most 64 bits. Nearly every number of a record has one or two bytes.
#[inline(always)]
pub(super) fn take_long(input: &mut &[u8]) -> Result<i64, RecordProblem> {
    match **input {
        [first, ref rest @ ..] if first < 0x80 => {
            *input = rest;
            Ok(unzigzag(first.into()))
        }
        [first, second, ref rest @ ..] if second < 0x80 => {
            *input = rest;
            Ok(unzigzag(u64::from(first & 0x7f) | u64::from(second) << 7))
        }
        _ => take_longer(input),
    }
}

#[inline(never)]
fn take_longer(input: &mut &[u8]) -> Result<i64, RecordProblem> {
    let mut value = 0_u64;
    for (i, &byte) in input.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        if i == 9 && byte > 1 {
            return Err(RecordProblem::Varint);
        }
        value |= bits << (7 * i);
        if byte < 0x80 {
            *input = &input[i + 1..];
            return Ok(unzigzag(value));
        }
    }
    Err(if input.len() < 10 { RecordProblem::Truncated } else { RecordProblem::Varint })
}

/// Takes a number of at most 32 bits.
#[inline(always)]
pub(super) fn take_int(input: &mut &[u8]) -> Result<i32, RecordProblem> {
    i32::try_from(take_long(input)?).map_err(|_| RecordProblem::Varint)
}

/// Appends a number.
#[inline(always)]
pub(super) fn put_long(out: &mut Vec<u8>, value: i64) {
    match zigzag(value) {
        short @ 0..0x80 => out.push(short as u8),
        medium @ 0x80..0x4000 => out.extend_from_slice(&[medium as u8 | 0x80, (medium >> 7) as u8]),
        long => put_longer(out, long),
    }
}

#[inline(never)]
fn put_longer(out: &mut Vec<u8>, mut rest: u64) {
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// The bytes that a number takes.
pub(super) fn len_long(value: i64) -> usize {
    let bits = 64 - (zigzag(value) | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(value: i64) -> Vec<u8> {
        let mut out = Vec::new();
        put_long(&mut out, value);
        out
    }

    #[test]
    fn known_numbers() {
        for (value, bytes) in [
            (0, &[0][..]),
            (-1, &[1]),
            (1, &[2]),
            (63, &[0x7e]),
            (-64, &[0x7f]),
            (64, &[0x80, 1]),
            (300, &[0xd8, 4]),
            (i64::MIN, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
        ] {
            assert_eq!(written(value), bytes);
        }
    }

    #[test]
    fn what_is_no_number() {
        assert_eq!(take_long(&mut &[0x80; 9][..]), Err(RecordProblem::Truncated));
        assert_eq!(take_long(&mut &[0x80; 10][..]), Err(RecordProblem::Varint));
        assert_eq!(
            take_long(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]),
            Err(RecordProblem::Varint)
        );
        assert_eq!(take_int(&mut &written(1 << 40)[..]), Err(RecordProblem::Varint));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value: i64, shift in 0_u32..64) {
            let value = value >> shift;
            let bytes = written(value);
            prop_assert_eq!(bytes.len(), len_long(value));
            let mut rest = &bytes[..];
            prop_assert_eq!(take_long(&mut rest), Ok(value));
            prop_assert!(rest.is_empty());
        }
    }
}
