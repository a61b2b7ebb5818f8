//! Frames: a length of four bytes, big endian, then so many bytes.
//!
//! A small frame is cut out of the buffer that it was read into, together with its neighbours. For a large one the
//! buffer is made as long as the frame, so that it arrives in one piece and its records can be handed on as slices.

use bytes::{Buf as _, Bytes, BytesMut};

/// A length that nobody sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    /// Below zero.
    #[error("a request of {0} bytes")]
    Negative(i32),
    /// Beyond the limit.
    #[error("a request of {bytes} bytes, above the limit of {limit}")]
    TooLarge {
        /// The length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
}

/// What the buffer begins with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A whole frame, taken out.
    Frame(Bytes),
    /// A part of one. `missing` bytes more and it is whole; the length of all of it is `whole`.
    Partial {
        /// Bytes that have not arrived.
        missing: usize,
        /// Bytes of length and frame together.
        whole: usize,
    },
    /// Less than a length.
    Nothing,
}

/// Takes the next frame out of `buffer`, if it is there.
pub(crate) fn next(buffer: &mut BytesMut, limit: usize) -> Result<Next, FrameError> {
    let Some(length) = buffer.first_chunk::<4>().map(|head| i32::from_be_bytes(*head)) else {
        return Ok(Next::Nothing);
    };
    let bytes = usize::try_from(length).map_err(|_| FrameError::Negative(length))?;
    if bytes > limit {
        return Err(FrameError::TooLarge { bytes, limit });
    }
    let whole = bytes + 4;
    if buffer.len() < whole {
        return Ok(Next::Partial { missing: whole - buffer.len(), whole });
    }
    buffer.advance(4);
    Ok(Next::Frame(buffer.split_to(bytes).freeze()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_cut_one_after_the_other() {
        let mut buffer = BytesMut::from(&b"\0\0\0\x02ab\0\0\0\0\0\0\0\x03c"[..]);
        assert_eq!(next(&mut buffer, 9), Ok(Next::Frame(Bytes::from_static(b"ab"))));
        assert_eq!(next(&mut buffer, 9), Ok(Next::Frame(Bytes::new())));
        assert_eq!(next(&mut buffer, 9), Ok(Next::Partial { missing: 2, whole: 7 }));
        assert_eq!(buffer.len(), 5);
        assert_eq!(next(&mut BytesMut::from(&b"\0\0\0"[..]), 9), Ok(Next::Nothing));
    }

    #[test]
    fn lengths_are_bounded_on_both_sides() {
        let check = |length: i32, refused: FrameError| {
            assert_eq!(next(&mut BytesMut::from(&length.to_be_bytes()[..]), 9), Err(refused));
        };
        check(-1, FrameError::Negative(-1));
        check(10, FrameError::TooLarge { bytes: 10, limit: 9 });
        check(i32::MAX, FrameError::TooLarge { bytes: i32::MAX as usize, limit: 9 });
    }
}
