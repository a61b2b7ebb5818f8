//! Names of tables as names of folders.

use std::fmt::Write as _;

/// The folder's name.
pub(super) fn spelled(schema: &str, table: &str) -> String {
    format!("{}.{}", part(schema), part(table))
}

fn part(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-' {
            text.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// Schema and table that a folder's name spells.
pub(super) fn read(folder: &str) -> Option<(String, String)> {
    let (schema, table) = folder.split_once('.')?;
    Some((whole(schema)?, whole(table)?)).filter(|(schema, table)| !schema.is_empty() && !table.is_empty())
}

fn whole(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_folder_and_back() {
        for (schema, table, folder) in
            [("demo", "hip_2", "demo.hip_2"), ("I/311", "a.b", "I%2F311.a%2Eb"), ("é", "..", "%C3%A9.%2E%2E")]
        {
            assert_eq!(spelled(schema, table), folder);
            assert_eq!(read(folder), Some((schema.into(), table.into())));
        }
        assert_eq!(read("no-table"), None);
        assert_eq!(read("a.%4"), None);
    }
}
