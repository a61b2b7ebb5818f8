//! The headers of Parquet pages, without the pages: how large they say that they will be.
//!
//! A page says in its header how many bytes it has once it is unpacked and how many values it holds, and a reader makes
//! room for as many before it has seen one. What a stranger sends is therefore looked through first. Headers are Thrift
//! structures in the compact protocol (Parquet format, Data Pages; Thrift compact protocol specification); of these,
//! four numbers are read and everything else is passed over.

/// What the pages of one column chunk come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    /// All of them unpacked.
    pub(super) bytes: u64,
    /// The largest of them, unpacked: no value is larger.
    pub(super) largest: u64,
    /// Values, NULL and empty lists included.
    pub(super) values: u64,
}

/// Adds up the pages of a column chunk; `None` if they are not what they should be.
pub(super) fn sizes(chunk: &[u8]) -> Option<Sizes> {
    let mut sizes = Sizes::default();
    let mut rest = chunk;
    while !rest.is_empty() {
        let mut header = Compact { rest };
        let page = header.page()?;
        rest = header.rest.get(usize::try_from(page.packed).ok()?..)?;
        let unpacked = u64::try_from(page.unpacked).ok()?;
        sizes.bytes = sizes.bytes.checked_add(unpacked)?;
        sizes.largest = sizes.largest.max(unpacked);
        sizes.values = sizes.values.checked_add(u64::try_from(page.values).ok()?)?;
    }
    Some(sizes)
}

/// What of a header matters.
#[derive(Default)]
struct Page {
    unpacked: i64,
    packed: i64,
    values: i64,
}

/// Thrift's compact protocol.
struct Compact<'b> {
    rest: &'b [u8],
}

/// The number and the type of a field.
type Head = (i16, u8);

/// Structures within structures, lists included.
const LEVELS: usize = 8;

impl Compact<'_> {
    fn page(&mut self) -> Option<Page> {
        let mut page = Page::default();
        let mut last = 0;
        while let Some((field, ty)) = self.head(last)? {
            last = field;
            match (field, ty) {
                (2, INTEGER) => page.unpacked = self.signed()?,
                (3, INTEGER) => page.packed = self.signed()?,
                // Of data pages of either version, and of dictionaries.
                (5 | 7 | 8, STRUCT) => page.values = self.values()?,
                _ => self.pass(ty, LEVELS)?,
            }
        }
        Some(page)
    }

    /// The first field of a page's own header.
    fn values(&mut self) -> Option<i64> {
        let (mut values, mut last) = (0, 0);
        while let Some((field, ty)) = self.head(last)? {
            last = field;
            match (field, ty) {
                (1, INTEGER) => values = self.signed()?,
                _ => self.pass(ty, LEVELS)?,
            }
        }
        Some(values)
    }

    /// The next field; the inner `None` after the last.
    fn head(&mut self, last: i16) -> Option<Option<Head>> {
        let byte = self.byte()?;
        let (step, ty) = (byte >> 4, byte & 15);
        if ty == 0 {
            return Some(None);
        }
        let field = match step {
            0 => i16::try_from(self.signed()?).ok()?,
            step => last.checked_add(i16::from(step))?,
        };
        Some(Some((field, ty)))
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number: u64 = 0;
        for place in 0..10 {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).checked_shl(7 * place)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// A number with its sign in the last bit.
    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn skip(&mut self, count: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    /// Passes over a value.
    fn pass(&mut self, ty: u8, levels: usize) -> Option<()> {
        let levels = levels.checked_sub(1)?;
        match ty {
            // The type of a field says it.
            1 | 2 => Some(()),
            3 => self.skip(1),
            4..=6 => self.number().map(drop),
            7 => self.skip(8),
            8 => {
                let count = self.number()?;
                self.skip(count)
            }
            9 | 10 => self.pass_list(levels),
            STRUCT => {
                let mut last = 0;
                while let Some((field, ty)) = self.head(last)? {
                    last = field;
                    self.pass(ty, levels)?;
                }
                Some(())
            }
            // Page headers have no maps.
            _ => None,
        }
    }

    fn pass_list(&mut self, levels: usize) -> Option<()> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.number()? } else { u64::from(head >> 4) };
        // In a list truth values take a byte.
        let ty = if matches!(head & 15, 1 | 2) { 3 } else { head & 15 };
        for _ in 0..count {
            self.pass(ty, levels)?;
        }
        Some(())
    }
}

const INTEGER: u8 = 5;
const STRUCT: u8 = 12;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A data page of 300 bytes, 5 packed, 9 values, with a checksum and statistics.
    const HEADER: [u8; 22] = [
        0x15, 0, 0x15, 0xd8, 4, 0x15, 10, 0x15, 2, 0x1c, 0x15, 18, 0x15, 0, 0x4c, 0x18, 2, b'a', b'b', 0, 0,
        0,
    ];

    #[test]
    fn pages_are_added_up() {
        let page = [&HEADER[..], b"page!"].concat();
        let one = Sizes { bytes: 300, largest: 300, values: 9 };
        assert_eq!(sizes(&page), Some(one));
        let two = [&page[..], &page[..]].concat();
        assert_eq!(sizes(&two), Some(Sizes { bytes: 600, largest: 300, values: 18 }));
        assert_eq!(sizes(b""), Some(Sizes::default()));
        assert_eq!(sizes(&two[..two.len() - 1]), None);
    }

    #[test]
    fn sizes_below_nothing_are_refused() {
        for place in [3, 6] {
            let mut header = HEADER.to_vec();
            header[place] |= 1;
            assert_eq!(sizes(&[&header[..], b"page!"].concat()), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = sizes(&bytes);
        }
    }
}
