//! The frames that one write and one flush make durable together.
//!
//! Small payloads are copied, header first, into buffers that are reused from batch to batch: an append
//! allocates nothing. A large payload comes in a buffer of its own, filled before the lock was taken. Headers
//! get their last fields (epoch, durable mark, checksum) when the batch is written, because only then are
//! they known.

use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

use crate::crc;
use crate::frame::{Kind, frame_len, put_appended, put_committed};
use crate::limits::{CHUNK_BYTES, FRAME_HEADER_BYTES, SMALL_PAYLOAD_BYTES_MAX};
use crate::outcome::Outcome;
use crate::position::{Epoch, LogId, Position};

/// A payload checked and made ready outside the lock.
pub(crate) struct Prepared<'a> {
    pub(crate) pieces: &'a [&'a [u8]],
    pub(crate) len: usize,
    pub(crate) count: u32,
    crc: u32,
    /// The frame of a large payload, complete but for its header.
    own: Option<Vec<u8>>,
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(pieces: &'a [&'a [u8]], count: u32) -> Self {
        let len = pieces.iter().map(|piece| piece.len()).sum();
        let own = (len > SMALL_PAYLOAD_BYTES_MAX).then(|| {
            let mut frame = Vec::with_capacity(frame_len(len));
            frame.resize(FRAME_HEADER_BYTES, 0);
            pieces.iter().for_each(|piece| frame.extend_from_slice(piece));
            frame.resize(frame_len(len), 0);
            frame
        });
        Prepared { pieces, len, count, crc: crc::of_pieces(pieces), own }
    }

    /// Bytes on disk.
    pub(crate) fn frame_len(&self) -> usize {
        frame_len(self.len)
    }
}

/// Where a frame's header lies in the batch.
struct HeaderAt {
    chunk: u32,
    offset: u32,
}

/// A run of frames in position order.
pub(crate) struct Batch {
    pub(crate) first: Position,
    pub(crate) end: Position,
    pub(crate) bytes: usize,
    pub(crate) outcome: Arc<Outcome>,
    chunks: Vec<Vec<u8>>,
    headers: Vec<HeaderAt>,
}

impl Batch {
    pub(crate) fn new(first: Position) -> Self {
        Batch {
            first,
            end: first,
            bytes: 0,
            outcome: Arc::default(),
            chunks: Vec::new(),
            headers: Vec::new(),
        }
    }

    /// A batch that begins by saying that the positions from `first` to `next` hold nothing.
    pub(crate) fn after_void(log: LogId, first: Position, next: Position, spare: &mut Vec<Vec<u8>>) -> Self {
        let mut batch = Batch::new(first);
        while batch.end < next {
            let count = u32::try_from(next.get() - batch.end.get()).unwrap_or(u32::MAX);
            batch.push_frame(Kind::Void, log, Prepared::new(&[], count), spare);
        }
        batch
    }

    pub(crate) fn positions(&self) -> Range<Position> {
        self.first..self.end
    }

    pub(crate) fn frames(&self) -> usize {
        self.headers.len()
    }

    /// Adds a frame at the end; a new buffer, when one is needed, comes from `spare`.
    pub(crate) fn push(&mut self, log: LogId, payload: Prepared<'_>, spare: &mut Vec<Vec<u8>>) {
        self.push_frame(Kind::Data, log, payload, spare);
    }

    fn push_frame(&mut self, kind: Kind, log: LogId, payload: Prepared<'_>, spare: &mut Vec<Vec<u8>>) {
        let frame_len = payload.frame_len();
        match payload.own {
            Some(frame) => self.chunks.push(frame),
            None => copy_small(self.chunk_with_room(frame_len, spare), &payload, frame_len),
        }
        let chunk = self.chunks.len() - 1;
        let offset = self.chunks[chunk].len() - frame_len;
        let header = &mut self.chunks[chunk][offset..offset + FRAME_HEADER_BYTES];
        put_appended(header, kind, log, self.end, payload.count, payload.len as u32, payload.crc);
        self.headers.push(HeaderAt { chunk: chunk as u32, offset: offset as u32 });
        self.end = self.end.advance(payload.count);
        self.bytes += frame_len;
    }

    fn chunk_with_room(&mut self, bytes: usize, spare: &mut Vec<Vec<u8>>) -> &mut Vec<u8> {
        let roomy = self.chunks.last().is_some_and(|chunk| chunk.capacity() - chunk.len() >= bytes);
        if !roomy {
            self.chunks.push(spare.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK_BYTES)));
        }
        let last = self.chunks.len() - 1;
        &mut self.chunks[last]
    }

    /// Fills in what is known only now.
    pub(crate) fn seal(&mut self, epoch: Epoch, mark: Position, seed: u32) {
        for at in &self.headers {
            let offset = at.offset as usize;
            put_committed(
                &mut self.chunks[at.chunk as usize][offset..offset + FRAME_HEADER_BYTES],
                epoch,
                mark,
                seed,
            );
        }
    }

    /// The bytes to write.
    pub(crate) fn pieces(&self) -> Vec<IoSlice<'_>> {
        self.chunks.iter().map(|chunk| IoSlice::new(chunk)).collect()
    }

    /// The buffers that can be used again.
    pub(crate) fn into_spare(self) -> impl Iterator<Item = Vec<u8>> {
        self.chunks.into_iter().filter(|chunk| chunk.capacity() == CHUNK_BYTES).map(|mut chunk| {
            chunk.clear();
            chunk
        })
    }
}

fn copy_small(chunk: &mut Vec<u8>, payload: &Prepared<'_>, frame_len: usize) {
    let start = chunk.len();
    chunk.resize(start + FRAME_HEADER_BYTES, 0);
    payload.pieces.iter().for_each(|piece| chunk.extend_from_slice(piece));
    chunk.resize(start + frame_len, 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Header;

    /// The headers and payloads that a reader would find.
    fn frames(batch: &Batch, seed: u32) -> Vec<(Header, Vec<u8>)> {
        let mut bytes: Vec<u8> = batch.chunks.concat();
        let mut frames = Vec::new();
        while !bytes.is_empty() {
            let header = Header::decode(bytes[..FRAME_HEADER_BYTES].try_into().unwrap(), seed).unwrap();
            let rest = bytes.split_off(header.frame_len());
            let payload = &bytes[FRAME_HEADER_BYTES..][..header.payload_len as usize];
            assert_eq!(crc::of(payload), header.payload_crc);
            frames.push((header, payload.to_vec()));
            bytes = rest;
        }
        frames
    }

    #[test]
    fn small_and_large_payloads_follow_one_another() {
        let large = vec![7; SMALL_PAYLOAD_BYTES_MAX + 1];
        let mut batch = Batch::new(Position::new(5));
        let mut spare = Vec::new();
        batch.push(LogId(1), Prepared::new(&[b"ab", b"", b"c"], 1), &mut spare);
        batch.push(LogId(1), Prepared::new(&[&large], 3), &mut spare);
        batch.push(LogId(1), Prepared::new(&[], 1), &mut spare);
        batch.seal(Epoch(2), Position::new(5), 9);
        let frames = frames(&batch, 9);
        let seen: Vec<_> = frames.iter().map(|(h, p)| (h.base.get(), h.count, p.as_slice())).collect();
        assert_eq!(seen, [(5, 1, b"abc".as_slice()), (6, 3, &large), (9, 1, b"")]);
        assert!(frames.iter().all(|(h, _)| h.epoch == Epoch(2) && h.mark == Position::new(5)));
        assert_eq!(batch.end, Position::new(10));
        assert_eq!(batch.bytes, batch.chunks.iter().map(Vec::len).sum::<usize>());
    }

    #[test]
    fn a_void_takes_the_positions_that_were_refused() {
        let (first, next) = (Position::new(5), Position::new(5 + (1 << 32)));
        let mut batch = Batch::after_void(LogId(1), first, next, &mut Vec::new());
        batch.push(LogId(1), Prepared::new(&[b"x"], 1), &mut Vec::new());
        batch.seal(Epoch(2), first, 9);
        let seen: Vec<_> = frames(&batch, 9).iter().map(|(h, _)| (h.kind, h.base, h.count)).collect();
        let second = first.advance(u32::MAX);
        let expected = [(Kind::Void, first, u32::MAX), (Kind::Void, second, 1), (Kind::Data, next, 1)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn buffers_are_used_again_unless_they_held_one_large_payload() {
        let large = vec![7; SMALL_PAYLOAD_BYTES_MAX + 1];
        let mut batch = Batch::new(Position::ZERO);
        let mut spare = vec![Vec::with_capacity(CHUNK_BYTES)];
        let first = spare[0].as_ptr();
        batch.push(LogId(1), Prepared::new(&[b"small"], 1), &mut spare);
        batch.push(LogId(1), Prepared::new(&[&large], 1), &mut spare);
        assert!(spare.is_empty());
        let spare: Vec<_> = batch.into_spare().collect();
        assert_eq!(spare.len(), 1);
        assert_eq!((spare[0].as_ptr(), spare[0].len()), (first, 0));
    }
}
