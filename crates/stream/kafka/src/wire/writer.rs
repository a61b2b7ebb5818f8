//! Writes values of the protocol behind each other; the counterpart of [`Reader`](super::reader::Reader).

use bytes::{BufMut as _, BytesMut};

/// A buffer, and how lengths are written into it.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    pub(crate) out: &'a mut BytesMut,
    flexible: bool,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut BytesMut, flexible: bool) -> Self {
        Self { out, flexible }
    }

    /// Begins an answer: room for its length, its correlation, and the tagged fields of its head, of which there are
    /// none.
    pub(crate) fn head(&mut self, correlation: i32) {
        self.out.put_i32(0);
        self.out.put_i32(correlation);
        self.tags();
    }

    pub(crate) fn i16(&mut self, value: i16) {
        self.out.put_i16(value);
    }

    pub(crate) fn i32(&mut self, value: i32) {
        self.out.put_i32(value);
    }

    pub(crate) fn i64(&mut self, value: i64) {
        self.out.put_i64(value);
    }

    pub(crate) fn varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.out.put_u8((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.out.put_u8((value & 0x7f) as u8);
    }

    /// A text that is not longer than what a request can hold.
    pub(crate) fn text(&mut self, text: &[u8]) {
        match self.flexible {
            true => self.varint(wide(text.len()).saturating_add(1)),
            false => self.out.put_i16(i16::try_from(text.len()).unwrap_or(i16::MAX)),
        }
        // Longer ones come from no request: their length was read as sixteen bits where it is written as such.
        let most = if self.flexible { text.len() } else { text.len().min(i16::MAX as usize) };
        self.out.put_slice(&text[..most]);
    }

    pub(crate) fn no_text(&mut self) {
        match self.flexible {
            true => self.varint(0),
            false => self.out.put_i16(-1),
        }
    }

    /// The length of an array, or of bytes that the caller lets follow.
    pub(crate) fn length(&mut self, length: usize) {
        match self.flexible {
            true => self.varint(wide(length).saturating_add(1)),
            false => self.out.put_i32(i32::try_from(length).unwrap_or(i32::MAX)),
        }
    }

    /// The end of a structure without tagged fields.
    pub(crate) fn tags(&mut self) {
        if self.flexible {
            self.out.put_u8(0);
        }
    }
}

/// Lengths of what is held in memory and bounded by options far below 32 bits.
fn wide(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Writes the length of the answer that begins at `start` into its place; `beyond` bytes of it stand elsewhere.
pub(crate) fn close(out: &mut BytesMut, start: usize, beyond: usize) {
    let length = out.len().saturating_sub(start + 4).saturating_add(beyond);
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&i32::try_from(length).unwrap_or(i32::MAX).to_be_bytes());
    }
}
