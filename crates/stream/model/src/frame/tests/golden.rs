//! `testdata/frames.txt`: one frame of each kind, as every version of the protocol that is called 1 has it.
//!
//! The file is reviewed like code. `TRIFID_GOLDEN=write cargo test -p trifid-stream-model golden` writes it anew.

use std::fmt::Write;
use std::path::Path;

use super::*;
use crate::batch::golden::{named, unhex};

const HEAD: &str = "# Frames of version 1: what each is, then its bytes. See docs/stream-protocol.md.\n";

fn described(text: &mut String, title: &str, bytes: &[u8]) {
    writeln!(text, "\n# {title}").unwrap();
    for line in bytes.chunks(48) {
        line.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
        text.push('\n');
    }
}

/// A preface, then a frame of each kind. Batches are one that librdkafka wrote.
fn document() -> String {
    let mut text = HEAD.to_owned();
    described(&mut text, "Preface { all capabilities }", &Preface::new(Capabilities::ALL).encode());
    let batches = named("librdkafka-idempotent");
    let mut source = Source(3);
    for (id, message) in (1..).zip(Request::samples(&mut source)) {
        let message = match message {
            Request::Publish(publish) => Publish { batches: batches.clone(), ..publish }.into(),
            other => other,
        };
        described(&mut text, &title(id, &message), &message.encode(id).into_bytes());
    }
    for (id, message) in (1..).zip(Reply::samples(&mut source)) {
        let message = match message {
            Reply::Batch(batch) => Batch { batches: batches.clone(), ..batch }.into(),
            other => other,
        };
        described(&mut text, &title(id, &message), &message.encode(id).into_bytes());
    }
    text
}

/// The message as Rust prints it, a batch by its name.
fn title(id: u32, message: &impl std::fmt::Debug) -> String {
    let batch = format!("{:?}", named("librdkafka-idempotent"));
    format!("id {id}: {message:?}").replace(&batch, "librdkafka-idempotent")
}

#[test]
fn golden_frames() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/frames.txt");
    if std::env::var_os("TRIFID_GOLDEN").is_some() {
        std::fs::write(&path, document()).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert!(golden == document(), "testdata/frames.txt differs from what is encoded");
    let mut read = 0;
    for part in golden.split("\n# id ").skip(1) {
        let (_, hex) = part.split_once('\n').unwrap();
        let frame = frame(&unhex(hex));
        let known = if frame.kind < 0x80 {
            Request::decode(&frame).map(|message| message.encode(frame.id))
        } else {
            Reply::decode(&frame).map(|message| message.encode(frame.id))
        };
        assert_eq!(known.unwrap().into_bytes(), unhex(hex));
        read += 1;
    }
    assert_eq!(read, Request::KINDS.len() + Reply::KINDS.len());
}
