//! Entry points that take any bytes: the bodies of the fuzz targets under `fuzz/`, and of the tests that replay
//! their corpus on the stable toolchain.
//!
//! Each returns normally for every input. What it asserts is a law of this crate, so a panic is a defect.

/// Target `region`: DALI and STC-S. What is read is printed and read back; whatever its shape, it has a cap, ranges of
/// cells, an area between nothing and the sphere, and its relations agree with each other.
pub fn region(bytes: &[u8]) {
    crate::dali::fuzz::region(bytes);
}

/// Target `votable`: a document in any serialisation. What is read and can be written is read back, and written the
/// same again.
pub fn votable(bytes: &[u8]) {
    crate::votable::fuzz::document(bytes);
}

/// Target `csv`: a table in CSV or TSV. What is read is written and read again as the same.
pub fn csv(bytes: &[u8]) {
    crate::csv::fuzz(bytes);
}

/// Target `fits`: a table in FITS, read from a stream and from a file as the same.
pub fn fits(bytes: &[u8]) {
    crate::fits::fuzz(bytes);
}

/// Target `arrow`: an Arrow stream or file.
pub fn arrow(bytes: &[u8]) {
    crate::ipc::fuzz(bytes);
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

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
        replay("region", super::region);
        replay("csv", super::csv);
        replay("fits", super::fits);
        replay("arrow", super::arrow);
    }
}
