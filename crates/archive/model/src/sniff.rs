//! Which format a file is in, by its first bytes and then by its name.
//!
//! Bytes decide where a format has a signature; text without one is looked at as a table, and only then does
//! the name matter: people call a VOTable `.xml` and a TSV `.txt`.

/// Bytes that are enough to tell every format.
pub const SNIFF_BYTES: usize = 4096;

/// A table format that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// VOTable in any serialization.
    VoTable,
    /// FITS; the table is one of its extensions.
    Fits,
    /// Values with commas between.
    Csv,
    /// Values with tabs between.
    Tsv,
    /// Parquet.
    Parquet,
    /// Arrow IPC as a file, with a footer.
    ArrowFile,
    /// Arrow IPC as a stream.
    ArrowStream,
}

/// What is wrapped around a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wrapper {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
    /// bzip2.
    Bzip2,
    /// xz.
    Xz,
    /// A ZIP archive.
    Zip,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sniffed {
    /// A table.
    Table(Format),
    /// Compressed: what is inside is to be sniffed again, with the name without its last suffix.
    Wrapped(Wrapper),
    /// Neither is recognised.
    Unknown,
}

/// Looks at the first bytes of a file, [`SNIFF_BYTES`] of them or all there are, and at its name where it has
/// one.
pub fn sniff(beginning: &[u8], name: Option<&str>) -> Sniffed {
    if let Some(wrapper) = wrapper(beginning) {
        return Sniffed::Wrapped(wrapper);
    }
    let format = signature(beginning).or_else(|| delimited(beginning, name));
    format.map_or(Sniffed::Unknown, Sniffed::Table)
}

/// The name of what is inside a wrapper: `a.csv.gz` holds `a.csv`.
pub fn unwrapped(name: &str) -> &str {
    let suffixes = [".gz", ".zst", ".bz2", ".xz", ".zip", ".gzip", ".zstd"];
    let lower = name.to_ascii_lowercase();
    let found = suffixes.iter().find(|suffix| lower.ends_with(**suffix));
    found.map_or(name, |suffix| &name[..name.len() - suffix.len()])
}

fn wrapper(bytes: &[u8]) -> Option<Wrapper> {
    match bytes {
        [0x1f, 0x8b, ..] => Some(Wrapper::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Wrapper::Zstd),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Wrapper::Bzip2),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Wrapper::Xz),
        [b'P', b'K', 3, 4, ..] => Some(Wrapper::Zip),
        _ => None,
    }
}

fn signature(bytes: &[u8]) -> Option<Format> {
    // FITS 4.0 4.4.1.1: the first card is SIMPLE.
    if bytes.starts_with(b"SIMPLE  =") {
        return Some(Format::Fits);
    }
    match bytes {
        [b'P', b'A', b'R', b'1', ..] => return Some(Format::Parquet),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => return Some(Format::ArrowFile),
        // A continuation marker, then the length of the schema's message.
        [0xff, 0xff, 0xff, 0xff, _, _, _, 0..=0x0f, ..] => return Some(Format::ArrowStream),
        _ => {}
    }
    is_votable(bytes).then_some(Format::VoTable)
}

/// XML whose root is VOTABLE, in any namespace, with whatever comes before it.
fn is_votable(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
    let mut rest = text.trim_start();
    while let Some(tag) = rest.strip_prefix('<') {
        let (is_prolog, end) = match tag {
            tag if tag.starts_with("!--") => (true, "-->"),
            tag if tag.starts_with('?') => (true, "?>"),
            tag if tag.starts_with('!') => (true, ">"),
            _ => (false, ""),
        };
        if !is_prolog {
            let name =
                tag.split(|c: char| c.is_whitespace() || c == '>' || c == '/').next().unwrap_or_default();
            return name.rsplit(':').next().is_some_and(|local| local.eq_ignore_ascii_case("VOTABLE"));
        }
        let Some((_, after)) = tag.split_once(end) else { return false };
        rest = after.trim_start();
    }
    false
}

/// Text by what stands between its values, or by its name.
fn delimited(bytes: &[u8], name: Option<&str>) -> Option<Format> {
    let lower = name.map(str::to_ascii_lowercase).unwrap_or_default();
    let is_text =
        !bytes.iter().any(|byte| matches!(byte, 0..=8 | 14..=31)) && !bytes.trim_ascii().starts_with(b"<");
    if !is_text {
        return None;
    }
    match lower.rsplit('.').next() {
        Some("csv") => return Some(Format::Csv),
        Some("tsv" | "tab") => return Some(Format::Tsv),
        _ => {}
    }
    let first = bytes
        .split(|byte| *byte == b'\n')
        .find(|line| !line.starts_with(b"#") && !line.trim_ascii().is_empty());
    let count = |byte| first.unwrap_or_default().iter().filter(|found| **found == byte).count();
    match (count(b'\t'), count(b',')) {
        (0, 0) => None,
        (tabs, commas) if tabs >= commas => Some(Format::Tsv),
        _ => Some(Format::Csv),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], name: &str, expected: Sniffed) {
        let name = Some(name).filter(|name| !name.is_empty());
        assert_eq!(sniff(bytes, name), expected, "{}", String::from_utf8_lossy(bytes));
    }

    #[test]
    fn bytes_decide_before_the_name() {
        check(b"SIMPLE  =                    T", "x.csv", Sniffed::Table(Format::Fits));
        check(b"PAR1....", "", Sniffed::Table(Format::Parquet));
        check(b"ARROW1\0\0", "", Sniffed::Table(Format::ArrowFile));
        check(&[0xff, 0xff, 0xff, 0xff, 0x10, 1, 0, 0, 1], "", Sniffed::Table(Format::ArrowStream));
        check(&[0x1f, 0x8b, 8], "x.csv.gz", Sniffed::Wrapped(Wrapper::Gzip));
        check(&[0x28, 0xb5, 0x2f, 0xfd], "", Sniffed::Wrapped(Wrapper::Zstd));
        check(
            b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- <x> -->\n<v:VOTABLE>",
            "x.csv",
            Sniffed::Table(Format::VoTable),
        );
        check(b"<VOTABLE/>", "", Sniffed::Table(Format::VoTable));
        check(b"<html><VOTABLE>", "x.csv", Sniffed::Unknown);
        check(b"<?xml version='1.0'", "", Sniffed::Unknown);
        check(b"", "", Sniffed::Unknown);
        check(b"a\x00b,", "x.csv", Sniffed::Unknown);
    }

    #[test]
    fn text_is_told_by_its_name_or_its_first_line() {
        check(b"a\tb\n", "x.csv", Sniffed::Table(Format::Csv));
        check(b"a", "x.CSV", Sniffed::Table(Format::Csv));
        check(b"a,b\tc\n", "x.tsv", Sniffed::Table(Format::Tsv));
        check(b"# a,b\n\na\tb\n", "x.txt", Sniffed::Table(Format::Tsv));
        check(b"ra,dec\n1,2\n", "", Sniffed::Table(Format::Csv));
        check(b"just words\n", "", Sniffed::Unknown);
    }

    #[test]
    fn names_lose_their_wrapper() {
        assert_eq!(unwrapped("a/b.csv.GZ"), "a/b.csv");
        assert_eq!(unwrapped("é.fits.zst"), "é.fits");
        assert_eq!(unwrapped("b.csv"), "b.csv");
    }
}
