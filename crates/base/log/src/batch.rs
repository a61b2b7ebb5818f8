//! The frames that one write and one flush make durable together.
//!
//! Small payloads are copied, header first, into buffers that are reused from batch to batch: an append
//! allocates nothing. A large payload is written from where it lies: the caller's shared bytes, or a copy made
//! before the lock was taken; its header stands in the buffer, and the parts of a batch say in which order
//! buffers and payloads follow. Headers get their last fields (epoch, durable mark, checksum) when the batch is
//! written, because only then are they known.

use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::crc;
use crate::frame::{Kind, appended, frame_len, put_appended, put_committed};
use crate::limits::{
    CHUNK_BYTES, COPIED_BYTES_MAX, FRAME_ALIGN_BYTES, FRAME_HEADER_BYTES, SMALL_PAYLOAD_BYTES_MAX,
};
use crate::outcome::Outcome;
use crate::position::{Epoch, LogId, Position};
use crate::record_batch::{self, NO_STAMP};

/// A payload checked and made ready outside the lock.
pub(crate) struct Prepared<'a> {
    body: Body<'a>,
    kind: Kind,
    len: usize,
    count: u32,
    crc: u32,
    stamp: i64,
}

enum Body<'a> {
    /// To be copied.
    Pieces(&'a [&'a [u8]]),
    /// To be copied.
    Small(Bytes),
    /// To be written from where it lies.
    Large(Bytes),
}

impl<'a> Prepared<'a> {
    /// An opaque payload.
    pub(crate) fn new(pieces: &'a [&'a [u8]], count: u32) -> Self {
        Prepared::of_kind(Kind::Data, pieces, count)
    }

    fn of_kind(kind: Kind, pieces: &'a [&'a [u8]], count: u32) -> Self {
        let len = pieces.iter().map(|piece| piece.len()).sum();
        let body = match len > SMALL_PAYLOAD_BYTES_MAX {
            true => Body::Large(pieces.concat().into()),
            false => Body::Pieces(pieces),
        };
        Prepared { body, kind, len, count, crc: crc::of_pieces(pieces), stamp: NO_STAMP }
    }

    /// A record batch, of which the caller knows that its checksum holds; none if it is no batch.
    pub(crate) fn record_batch(payload: Bytes, count: u32) -> Option<Prepared<'static>> {
        let crc = record_batch::stated_crc(&payload)?;
        debug_assert_eq!(record_batch::verify(&payload, crc), Ok(()), "the caller has verified the batch");
        let (len, stamp) = (payload.len(), record_batch::stamp(&payload));
        let body = if len > COPIED_BYTES_MAX { Body::Large(payload) } else { Body::Small(payload) };
        Some(Prepared { body, kind: Kind::RecordBatch, len, count, crc, stamp })
    }

    /// Bytes on disk.
    pub(crate) fn frame_len(&self) -> usize {
        frame_len(self.len)
    }
}

/// A run of bytes to write: of one of the buffers, or a payload.
enum Part {
    Copied { chunk: usize, range: Range<usize> },
    Shared(Bytes),
}

/// Where a frame's header lies in the batch.
struct FrameAt {
    chunk: u32,
    offset: u32,
    stamp: i64,
}

/// A frame of a batch that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) position: Position,
    pub(crate) records: u32,
    pub(crate) frame_len: usize,
    pub(crate) stamp: i64,
}

/// A run of frames in position order.
pub(crate) struct Batch {
    pub(crate) first: Position,
    pub(crate) end: Position,
    pub(crate) bytes: usize,
    pub(crate) outcome: Arc<Outcome>,
    chunks: Vec<Vec<u8>>,
    parts: Vec<Part>,
    frames: Vec<FrameAt>,
}

impl Batch {
    pub(crate) fn new(first: Position) -> Self {
        Batch {
            first,
            end: first,
            bytes: 0,
            outcome: Arc::default(),
            chunks: Vec::new(),
            parts: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// A batch that begins by saying that the positions from `first` to `next` hold nothing.
    pub(crate) fn after_void(log: LogId, first: Position, next: Position, spare: &mut Vec<Vec<u8>>) -> Self {
        let mut batch = Batch::new(first);
        while batch.end < next {
            let count = u32::try_from(next.get() - batch.end.get()).unwrap_or(u32::MAX);
            batch.push(log, Prepared::of_kind(Kind::Void, &[], count), spare);
        }
        batch
    }

    pub(crate) fn positions(&self) -> Range<Position> {
        self.first..self.end
    }

    pub(crate) fn frames(&self) -> usize {
        self.frames.len()
    }

    /// Adds a frame at the end; a new buffer, when one is needed, comes from `spare`.
    pub(crate) fn push(&mut self, log: LogId, payload: Prepared<'_>, spare: &mut Vec<Vec<u8>>) {
        let frame_len = payload.frame_len();
        let copied = match payload.body {
            Body::Large(_) => FRAME_HEADER_BYTES + FRAME_ALIGN_BYTES,
            Body::Pieces(_) | Body::Small(_) => frame_len,
        };
        let chunk = self.chunk_with_room(copied, spare);
        let offset = self.chunks[chunk].len();
        let buffer = &mut self.chunks[chunk];
        buffer.resize(offset + FRAME_HEADER_BYTES, 0);
        let (len, crc) = (payload.len as u32, payload.crc);
        put_appended(&mut buffer[offset..], payload.kind, log, self.end, payload.count, len, crc);
        self.frames.push(FrameAt { chunk: chunk as u32, offset: offset as u32, stamp: payload.stamp });
        self.body(chunk, payload.body, frame_len - FRAME_HEADER_BYTES);
        self.end = self.end.advance(payload.count);
        self.bytes += frame_len;
    }

    /// Adds the payload, padded to `padded_len`.
    fn body(&mut self, chunk: usize, body: Body<'_>, padded_len: usize) {
        let header_at = self.chunks[chunk].len() - FRAME_HEADER_BYTES;
        let buffer = &mut self.chunks[chunk];
        match body {
            Body::Pieces(pieces) => pieces.iter().for_each(|piece| buffer.extend_from_slice(piece)),
            Body::Small(payload) => buffer.extend_from_slice(&payload),
            Body::Large(payload) => {
                let padding = padded_len - payload.len();
                self.part(chunk, header_at);
                self.parts.push(Part::Shared(payload));
                let padding_at = header_at + FRAME_HEADER_BYTES;
                self.chunks[chunk].resize(padding_at + padding, 0);
                if padding > 0 {
                    self.part(chunk, padding_at);
                }
                return;
            }
        }
        buffer.resize(header_at + FRAME_HEADER_BYTES + padded_len, 0);
        self.part(chunk, header_at);
    }

    /// What was copied to the end of the buffer from `start` on is to be written next.
    fn part(&mut self, chunk: usize, start: usize) {
        let end = self.chunks[chunk].len();
        match self.parts.last_mut() {
            Some(Part::Copied { chunk: last, range }) if *last == chunk && range.end == start => {
                range.end = end;
            }
            _ => self.parts.push(Part::Copied { chunk, range: start..end }),
        }
    }

    fn chunk_with_room(&mut self, bytes: usize, spare: &mut Vec<Vec<u8>>) -> usize {
        let roomy = self.chunks.last().is_some_and(|chunk| chunk.capacity() - chunk.len() >= bytes);
        if !roomy {
            self.chunks.push(spare.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK_BYTES)));
        }
        self.chunks.len() - 1
    }

    /// Fills in what is known only now.
    pub(crate) fn seal(&mut self, epoch: Epoch, mark: Position, seed: u32) {
        for at in &self.frames {
            let offset = at.offset as usize;
            let header = &mut self.chunks[at.chunk as usize][offset..offset + FRAME_HEADER_BYTES];
            put_committed(header, epoch, mark, seed);
        }
    }

    /// The frames in order.
    pub(crate) fn placed(&self) -> impl Iterator<Item = Placed> {
        self.frames.iter().map(|at| {
            let (position, records, frame_len) =
                appended(&self.chunks[at.chunk as usize][at.offset as usize..][..FRAME_HEADER_BYTES]);
            Placed { position, records, frame_len, stamp: at.stamp }
        })
    }

    /// The bytes to write.
    pub(crate) fn pieces(&self) -> Vec<IoSlice<'_>> {
        let bytes = |part| match part {
            &Part::Copied { chunk, ref range } => IoSlice::new(&self.chunks[chunk][range.clone()]),
            Part::Shared(payload) => IoSlice::new(payload),
        };
        self.parts.iter().map(bytes).collect()
    }

    /// The buffers that can be used again.
    pub(crate) fn into_spare(self) -> impl Iterator<Item = Vec<u8>> {
        self.chunks.into_iter().map(|mut chunk| {
            chunk.clear();
            chunk
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Header;

    /// The headers and payloads that a reader would find.
    fn frames(batch: &Batch, seed: u32) -> Vec<(Header, Vec<u8>)> {
        let mut bytes: Vec<u8> = batch.pieces().iter().flat_map(|piece| piece.to_vec()).collect();
        let mut frames = Vec::new();
        while !bytes.is_empty() {
            let header = Header::decode(bytes[..FRAME_HEADER_BYTES].try_into().unwrap(), seed).unwrap();
            let rest = bytes.split_off(header.frame_len());
            let payload = &bytes[FRAME_HEADER_BYTES..][..header.payload_len as usize];
            assert_eq!(header.check_payload(payload), Ok(()));
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
        assert_eq!(batch.bytes, batch.pieces().iter().map(|piece| piece.len()).sum::<usize>());
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
    fn large_record_batches_are_written_from_where_they_lie() {
        let large = Bytes::from(record_batch::tests::batch(5, &[7; COPIED_BYTES_MAX]));
        let small = Bytes::from(record_batch::tests::batch(9, b"small"));
        let mut batch = Batch::new(Position::new(5));
        for payload in [&small, &large, &small, &large] {
            let prepared = Prepared::record_batch(payload.clone(), 2).unwrap();
            batch.push(LogId(1), prepared, &mut Vec::new());
        }
        batch.seal(Epoch(2), Position::new(5), 9);
        let pieces = batch.pieces();
        assert_eq!(pieces.iter().filter(|piece| piece.as_ptr() == large.as_ptr()).count(), 2);
        assert_eq!((pieces.len(), batch.chunks.len()), (5, 1));
        let frames = frames(&batch, 9);
        let seen: Vec<_> = frames.iter().map(|(h, p)| (h.base.get(), h.kind, p.as_slice())).collect();
        let kind = Kind::RecordBatch;
        assert_eq!(seen, [(5, kind, &small[..]), (7, kind, &large), (9, kind, &small), (11, kind, &large)]);
        let placed: Vec<_> = batch.placed().map(|frame| (frame.position.get(), frame.stamp)).collect();
        assert_eq!(placed, [(5, 9), (7, 5), (9, 9), (11, 5)]);
        assert_eq!(batch.placed().map(|frame| frame.frame_len).sum::<usize>(), batch.bytes);
    }

    #[test]
    fn what_is_no_record_batch_is_refused() {
        assert!(Prepared::record_batch(Bytes::from_static(&[0; 100]), 1).is_none());
        assert!(Prepared::record_batch(Bytes::new(), 1).is_none());
    }

    #[test]
    fn buffers_are_used_again() {
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
