//! Entry points that take any bytes: the bodies of the fuzz targets under `fuzz/`, and of the tests that replay their
//! corpus on the stable toolchain.
//!
//! Each returns normally for every input. What it asserts is a law of this crate, so a panic is a defect.

use bytes::{BufMut, Bytes, BytesMut};

use crate::batch::{
    BatchBuilder, BatchHeader, BuildOptions, Compression, Filtered, Opened, Producer, Rules, filter, open,
    split, stamp, validate,
};
use crate::frame::{Decoder, Frame, Pieces, Reply, Request};
use crate::limits::{BATCHES_PER_PUBLISH_MAX, FRAME_BYTES_MAX};

/// What compressed records may inflate to here.
const INFLATED_MAX: usize = 1 << 20;

/// Target `stream_frames`: the bytes of a connection. However they are cut, the frames are the same; each message that
/// is read is written and read again as the same.
pub fn frames(bytes: &[u8]) {
    let Some((&size, bytes)) = bytes.split_first() else { return };
    let whole = decoded(bytes, bytes.len().max(1));
    assert_eq!(whole, decoded(bytes, usize::from(size).max(1)));
    whole.iter().for_each(message);
}

/// Target `stream_message`: the kind and the body of one frame.
pub fn one_message(bytes: &[u8]) {
    if let Some((&kind, body)) = bytes.split_first() {
        message(&Frame { kind, id: 7, body: Bytes::copy_from_slice(body) });
    }
}

/// Target `stream_batch`: a produce payload. A batch that is taken can be read, and built again as the same; a filtered
/// one holds what was kept.
pub fn batches(bytes: &[u8]) {
    let payload = Bytes::copy_from_slice(bytes);
    let parts: Vec<_> = split(&payload).collect();
    assert!(parts.len() <= BATCHES_PER_PUBLISH_MAX + 1);
    let whole: usize = parts.iter().flatten().map(Bytes::len).sum();
    assert!(whole <= payload.len() && (whole == payload.len() || parts.last().is_none_or(Result::is_err)));
    for part in parts.into_iter().flatten() {
        one_batch(&repaired(&part));
        one_batch(&part);
    }
}

/// Target `stream_inflate`: the number of a compression, and its bytes. Nothing inflates to more than allowed.
pub fn inflate(bytes: &[u8]) {
    let Some((&number, packed)) = bytes.split_first() else { return };
    let mut batch = built().to_vec();
    batch[21..23].copy_from_slice(&i16::from(number % 5).to_be_bytes());
    batch.truncate(61);
    batch.extend_from_slice(packed);
    let length = (batch.len() - 12) as i32;
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    if let Ok(opened) = open(&batch.into(), INFLATED_MAX) {
        let plain = opened.header().attributes.compression == Compression::None;
        assert!(plain || opened.body().len() <= INFLATED_MAX);
        let _ = opened.records().verify();
    }
}

/// The frames of these bytes, given so many at a time, until one is wrong.
fn decoded(bytes: &[u8], size: usize) -> Vec<Frame> {
    let mut decoder = Decoder::with_max(FRAME_BYTES_MAX);
    let mut frames = Vec::new();
    for piece in bytes.chunks(size) {
        decoder.buffer().put_slice(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(_) => return frames,
            }
        }
        assert!(decoder.buffered() <= bytes.len());
    }
    frames
}

fn message(frame: &Frame) {
    if let Ok(request) = Request::decode(frame) {
        let again = again(&request.encode(frame.id));
        assert_eq!((again.kind, again.id), (frame.kind, frame.id));
        assert_eq!(Request::decode(&again).as_ref(), Ok(&request));
        assert!(Reply::decode(frame).is_err());
    }
    if let Ok(reply) = Reply::decode(frame) {
        let again = again(&reply.encode(frame.id));
        assert_eq!((again.kind, again.id), (frame.kind, frame.id));
        assert_eq!(Reply::decode(&again).as_ref(), Ok(&reply));
    }
}

/// The frame after it was written.
fn again(pieces: &Pieces) -> Frame {
    let mut decoder = Decoder::with_max(FRAME_BYTES_MAX);
    pieces.append_to(decoder.buffer());
    let frame = decoder.next_frame().ok().flatten().expect("what is encoded is a frame");
    assert_eq!(decoder.buffered(), 0);
    frame
}

/// The batch with a checksum that fits, so that what is behind it is reached.
fn repaired(batch: &Bytes) -> Bytes {
    let mut bytes = BytesMut::from(&batch[..]);
    if bytes.len() > 21 {
        let crc = crc32c::crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    }
    bytes.freeze()
}

fn one_batch(batch: &Bytes) {
    let rules = Rules { records: true, ..Rules::STORED };
    let (produced, stored) = (validate(batch), rules.check(batch));
    if let Ok(header) = produced {
        assert_eq!((header.size, stored.as_ref()), (batch.len(), Ok(&header)));
        if let Ok(opened) = open(batch, INFLATED_MAX) {
            rebuilt(&opened);
        }
    }
    if let Ok(header) = stored {
        stamped(batch, &header);
        filtered(batch, &header);
    }
}

/// Only the bytes of the broker differ.
fn stamped(batch: &Bytes, header: &BatchHeader) {
    let stamped = stamp(batch.clone(), 77, 3).expect("it is longer than its header");
    assert_eq!(stamped[16..], batch[16..]);
    let expected = BatchHeader { base_offset: 77, leader_epoch: 3, ..*header };
    let rules = Rules { records: true, ..Rules::STORED };
    assert_eq!(rules.check(&stamped), Ok(expected));
}

/// Its records in a batch of ours, and that read: the same records, and from then on the same bytes.
fn rebuilt(opened: &Opened) {
    let Some(first) = of_records(opened) else { return };
    if opened.header().attributes.compression == Compression::None {
        assert_eq!(opened.records().count(), opened.header().count as usize);
    }
    let reopened = open(&first, 0).expect("it is not compressed");
    assert!(validate(&first).is_ok());
    let same = opened.records().flatten().zip(reopened.records().flatten());
    for (theirs, ours) in same {
        assert_eq!((theirs.timestamp, theirs.key, theirs.value), (ours.timestamp, ours.key, ours.value));
        assert!(theirs.headers.eq(ours.headers));
    }
    assert_eq!(of_records(&reopened), Some(first));
}

/// A batch of these records; none where one of them is damaged, has a time that is not built, or a header's name that
/// is no text.
fn of_records(opened: &Opened) -> Option<Bytes> {
    let header = opened.header();
    let mut builder =
        BatchBuilder::new(BuildOptions { max_bytes: FRAME_BYTES_MAX, ..BuildOptions::default() });
    for record in opened.records() {
        let record = record.ok()?;
        let headers: Option<Vec<_>> =
            record.headers.map(|h| Some((std::str::from_utf8(h.key).ok()?, h.value))).collect();
        builder.append(&record.to_data(&headers?)).ok()?;
    }
    let producer =
        Producer { id: header.producer_id, epoch: header.producer_epoch, sequence: header.base_sequence };
    builder.finish(Some(producer)).ok().flatten()
}

fn filtered(batch: &Bytes, header: &BatchHeader) {
    let result = filter(batch, INFLATED_MAX, |record| record.delta % 2 == 0);
    match result {
        Ok(Filtered::Part(part)) => {
            let read = open(&part, INFLATED_MAX).expect("it was made here");
            let expected = open(batch, INFLATED_MAX).expect("it was filtered");
            let kept = expected.records().flatten().filter(|record| record.delta % 2 == 0);
            assert!(kept.map(|r| (r.offset, r.key, r.value)).eq(
                read.records().map(|r| r.expect("it was made here")).map(|r| (r.offset, r.key, r.value))
            ));
            assert_eq!(read.header().next_offset(), header.next_offset());
        }
        Ok(Filtered::Whole | Filtered::Nothing) | Err(_) => {}
    }
    let none = filter(batch, INFLATED_MAX, |_| false);
    assert!(none.is_err() || none == Ok(Filtered::Nothing) || header.count == 0);
}

/// A batch of one record without anything.
fn built() -> Bytes {
    let mut builder = BatchBuilder::new(BuildOptions::default());
    let record = crate::batch::RecordData::default();
    builder.append(&record).and_then(|_| builder.finish(None)).ok().flatten().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;

    /// Every input of the corpus, on the stable toolchain.
    fn replay(target: &str, body: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus").join(target);
        let mut count = 0;
        for entry in fs::read_dir(folder).expect("the corpus") {
            body(&fs::read(entry.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 0);
    }

    #[test]
    fn the_corpus_is_read() {
        replay("stream_frames", super::frames);
        replay("stream_message", super::one_message);
        replay("stream_batch", super::batches);
        replay("stream_inflate", super::inflate);
    }

    /// What a fuzzer would do in a second: the inputs of the corpus, each with a few bytes changed.
    fn changed(target: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus").join(target);
        let mut inputs: Vec<Vec<u8>> =
            fs::read_dir(folder).expect("the corpus").map(|e| fs::read(e.unwrap().path()).unwrap()).collect();
        inputs.sort();
        let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
        (prop::sample::select(inputs), changes).prop_map(|(mut input, changes)| {
            for (at, byte) in changes {
                let at = at.index(input.len());
                input[at] = byte;
            }
            input
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn frames_with_changes(input in changed("stream_frames")) {
            super::frames(&input);
        }

        #[test]
        fn messages_with_changes(input in changed("stream_message")) {
            super::one_message(&input);
        }

        #[test]
        fn batches_with_changes(input in changed("stream_batch")) {
            super::batches(&input);
        }

        #[test]
        fn compressed_records_with_changes(input in changed("stream_inflate")) {
            super::inflate(&input);
        }
    }
}
