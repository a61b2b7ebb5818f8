//! How fast record batches and frames are read, checked and built on this machine, beside the least that could be done.
//!
//! `cargo run --release -p trifid-stream-model --features compression --example batches`

use std::hint::black_box;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use bytes::{BufMut as _, Bytes, BytesMut};
use trifid_stream_model::batch::{
    BatchBuilder, BuildOptions, Compression, RecordData, Rules, filter, open, split, stamp,
};
use trifid_stream_model::frame::{Ack, Decoder, Request, publish_head};
use trifid_stream_model::partition::murmur2;

/// Each figure is measured in rounds shorter than a turn of the scheduler, of which the fastest counts.
const ROUND: Duration = Duration::from_micros(500);
const ROUNDS: u32 = 300;

/// Seconds of one call: the fastest round, for what disturbs only adds.
fn seconds(mut call: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let (start, mut calls) = (Instant::now(), 0_u32);
        while start.elapsed() < ROUND {
            for _ in 0..4 {
                call();
            }
            calls += 4;
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(calls));
    }
    best
}

fn batch(value: &[u8], records: u32, compression: Compression) -> Bytes {
    let mut builder = BatchBuilder::new(BuildOptions { max_bytes: 16 << 20, compression });
    fill(&mut builder, value, records);
    builder.finish(None).ok().flatten().unwrap_or_default()
}

fn fill(builder: &mut BatchBuilder, value: &[u8], records: u32) {
    for i in 0..records {
        let key = i.to_be_bytes();
        let record = RecordData {
            timestamp: 1_764_547_200_000 + i64::from(i),
            key: Some(&key),
            value: Some(value),
            headers: &[("source", Some(b"north"))],
        };
        let _ = black_box(builder.append(&record));
    }
}

fn line(what: &str, seconds: f64, bytes: usize, records: u32) -> io::Result<()> {
    let gigabytes = bytes as f64 / seconds / 1e9;
    let each = seconds * 1e9 / f64::from(records);
    writeln!(io::stdout(), "  {what:<34} {gigabytes:>8.2} GB/s {each:>9.1} ns/record")
}

fn one_size(value: usize, records: u32) -> io::Result<()> {
    let value: Vec<u8> = (0..value).map(|i| b"abcdefgh"[i % 8]).collect();
    let plain = batch(&value, records, Compression::None);
    let len = plain.len();
    writeln!(io::stdout(), "{records} records of {} bytes, a batch of {len} bytes", value.len())?;
    let mut copy = vec![0; len];
    line("floor: copy", seconds(|| copy.copy_from_slice(black_box(&plain))), len, records)?;
    line("floor: CRC32C", seconds(|| _ = black_box(crc32c::crc32c(&plain))), len, records)?;
    let shallow = Rules { records: false, ..Rules::PRODUCED };
    line("check without records", seconds(|| drop(black_box(shallow.check(&plain)))), len, records)?;
    line("check", seconds(|| drop(black_box(Rules::PRODUCED.check(&plain)))), len, records)?;
    line("stamp, bytes shared", seconds(|| drop(black_box(stamp(plain.clone(), 1 << 40, 3)))), len, records)?;
    let read = || {
        let opened = open(&plain, 0);
        let sum: usize =
            opened.iter().flat_map(|o| o.records()).flatten().filter_map(|r| r.value).map(<[u8]>::len).sum();
        black_box(sum);
    };
    line("read records", seconds(read), len, records)?;
    let mut builder = BatchBuilder::new(BuildOptions { max_bytes: 16 << 20, ..BuildOptions::default() });
    let build = || {
        fill(&mut builder, &value, records);
        drop(black_box(builder.finish(None)));
    };
    line("build", seconds(build), len, records)?;
    line(
        "filter every other",
        seconds(|| drop(black_box(filter(&plain, 0, |r| r.delta % 2 == 0)))),
        len,
        records,
    )?;
    for compression in &Compression::ALL[1..] {
        let packed = batch(&value, records, *compression);
        if packed.is_empty() {
            continue;
        }
        let inflate = seconds(|| drop(black_box(open(&packed, 16 << 20))));
        line(&format!("inflate {compression}"), inflate, len, records)?;
    }
    Ok(())
}

/// Frames of one batch each, as a connection brings them.
fn frames() -> io::Result<()> {
    let plain = batch(&[7; 256], 1, Compression::None);
    let mut wire = BytesMut::new();
    let count = 200;
    for id in 0..count {
        wire.put_slice(&publish_head(id, 1, 0, 0, Ack::One, plain.len()));
        wire.put_slice(&plain);
    }
    writeln!(io::stdout(), "{count} frames of {} bytes", wire.len() / count as usize)?;
    let len = wire.len();
    let mut copy = vec![0; len];
    line("floor: copy", seconds(|| copy.copy_from_slice(black_box(&wire))), len, count)?;
    let decode = |look: fn(&Bytes)| {
        seconds(|| {
            let mut decoder = Decoder::with_max(1 << 20);
            decoder.buffer().extend_from_slice(&wire);
            while let Ok(Some(frame)) = decoder.next_frame() {
                if let Ok(Request::Publish(publish)) = Request::try_from(frame) {
                    look(&publish.batches);
                }
            }
        })
    };
    line("decode Publish", decode(|batches| _ = black_box(batches)), len, count)?;
    let check = |batches: &Bytes| {
        for batch in split(batches).flatten() {
            let _ = black_box(Rules::PRODUCED.check(&batch));
        }
    };
    line("decode Publish, split, check", decode(check), len, count)?;
    line("head on the stack", seconds(|| _ = black_box(publish_head(1, 1, 0, 0, Ack::One, 300))), 25, 1)
}

fn main() -> io::Result<()> {
    one_size(100, 1000)?;
    one_size(4096, 64)?;
    one_size(256, 1)?;
    frames()?;
    let key = *b"sensor-0001";
    line("murmur2 of a key of 11 bytes", seconds(|| _ = black_box(murmur2(black_box(&key)))), 11, 1)
}
