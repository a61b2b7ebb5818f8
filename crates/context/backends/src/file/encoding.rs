//! Texts and numbers as the file store writes them: little endian, lengths before bytes.

use std::str;

/// The length of a text that is not there.
const NONE: u32 = u32::MAX;

/// Bytes are not what some version of this code writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an entry {0}")]
pub(super) struct Malformed(pub(super) &'static str);

/// Appends what `fill` appends, with its length before it.
pub(super) fn put_filled(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    fill(out);
    let len = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&len.to_le_bytes());
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_filled(out, |out| out.extend_from_slice(text.as_bytes()));
}

pub(super) fn put_none(out: &mut Vec<u8>) {
    out.extend_from_slice(&NONE.to_le_bytes());
}

/// Takes values off the front of bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed("ends early"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from(self.u32()?) | u64::from(self.u32()?) << 32)
    }

    pub(super) fn i64(&mut self) -> Result<i64, Malformed> {
        Ok(self.u64()?.cast_signed())
    }

    pub(super) fn optional_bytes(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        match self.u32()? {
            NONE => Ok(None),
            len => Ok(Some(self.take(len as usize)?)),
        }
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        self.optional_bytes()?.ok_or(Malformed("lacks a text"))
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Malformed> {
        str::from_utf8(self.bytes()?).map_err(|_| Malformed("holds text that is not UTF-8"))
    }

    pub(super) fn optional_text(&mut self) -> Result<Option<&'a str>, Malformed> {
        let bytes = self.optional_bytes()?.map(str::from_utf8).transpose();
        bytes.map_err(|_| Malformed("holds text that is not UTF-8"))
    }

    pub(super) fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed("goes on after its end")) }
    }
}
