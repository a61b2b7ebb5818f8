//! The batches of `testdata/batches`: what clients of Kafka write.

use std::fs;
use std::path::Path;

use bytes::Bytes;

/// The lines of hex digits of a file, after its comments.
pub(crate) fn unhex(text: &str) -> Bytes {
    let digits: String = text.lines().filter(|line| !line.starts_with('#')).collect();
    let nibble = |c: u8| (c as char).to_digit(16).expect("a hex digit") as u8;
    digits.as_bytes().chunks(2).map(|pair| nibble(pair[0]) << 4 | nibble(pair[1])).collect()
}

/// Each batch with the name of its file.
pub(crate) fn all() -> Vec<(String, Bytes)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/batches");
    let mut batches: Vec<_> = fs::read_dir(folder)
        .expect("the batches")
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, unhex(&fs::read_to_string(path).unwrap()))
        })
        .collect();
    batches.sort();
    assert_eq!(batches.len(), 11);
    batches
}

/// The batch of this name.
pub(crate) fn named(name: &str) -> Bytes {
    all().into_iter().find(|(other, _)| other == name).expect("a batch").1
}
