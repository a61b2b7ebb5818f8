//! Reads values of the protocol off a slice of a request. Nothing is copied: texts and bytes are slices of it.
//!
//! Lengths come in two forms, of which a request uses one throughout: an integer of fixed size, or an unsigned
//! variable-length integer that is one more than the length (KIP-482, "flexible versions").

use bytes::{Buf as _, Bytes};

use super::Malformed;

/// What is left of a request, and how its lengths are written.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    bytes: Bytes,
    flexible: bool,
}

impl Reader {
    pub(crate) fn new(bytes: Bytes, flexible: bool) -> Self {
        Self { bytes, flexible }
    }

    /// The bytes not yet read.
    pub(crate) fn rest(self) -> Bytes {
        self.bytes
    }

    pub(crate) fn i8(&mut self) -> Result<i8, Malformed> {
        self.bytes.try_get_i8().map_err(|_| Malformed::Short)
    }

    pub(crate) fn i16(&mut self) -> Result<i16, Malformed> {
        self.bytes.try_get_i16().map_err(|_| Malformed::Short)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, Malformed> {
        self.bytes.try_get_i32().map_err(|_| Malformed::Short)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, Malformed> {
        self.bytes.try_get_i64().map_err(|_| Malformed::Short)
    }

    pub(crate) fn uuid(&mut self) -> Result<[u8; 16], Malformed> {
        let mut uuid = [0; 16];
        self.bytes.try_copy_to_slice(&mut uuid).map_err(|_| Malformed::Short)?;
        Ok(uuid)
    }

    pub(crate) fn varint(&mut self) -> Result<u32, Malformed> {
        let mut value = 0u32;
        for shift in (0..35).step_by(7) {
            let byte = self.bytes.try_get_u8().map_err(|_| Malformed::Short)?;
            let bits = u32::from(byte & 0x7f);
            if shift == 28 && bits > 0xf {
                return Err(Malformed::Varint);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed::Varint)
    }

    /// A text, or none.
    pub(crate) fn text(&mut self) -> Result<Option<Bytes>, Malformed> {
        let length = match self.flexible {
            true => compact(self.varint()?),
            false => plain(self.i16()?.into())?,
        };
        let text = self.take(length)?;
        match &text {
            Some(text) if std::str::from_utf8(text).is_err() => Err(Malformed::Text),
            _ => Ok(text),
        }
    }

    /// Bytes, or none.
    pub(crate) fn bytes(&mut self) -> Result<Option<Bytes>, Malformed> {
        let length = self.length()?;
        self.take(length)
    }

    /// The number of elements of an array; none counts as nought.
    pub(crate) fn count(&mut self) -> Result<usize, Malformed> {
        self.length().map(Option::unwrap_or_default)
    }

    /// Passes the tagged fields at the end of a structure, if requests of this form have any. Each is shown to `see`
    /// with its tag.
    pub(crate) fn tags(&mut self, mut see: impl FnMut(u32, &Bytes)) -> Result<(), Malformed> {
        if !self.flexible {
            return Ok(());
        }
        for _ in 0..self.varint()? {
            let tag = self.varint()?;
            let length = self.varint()? as usize;
            see(tag, &self.take(Some(length))?.unwrap_or_default());
        }
        Ok(())
    }

    fn length(&mut self) -> Result<Option<usize>, Malformed> {
        match self.flexible {
            true => Ok(compact(self.varint()?)),
            false => plain(self.i32()?),
        }
    }

    fn take(&mut self, length: Option<usize>) -> Result<Option<Bytes>, Malformed> {
        let Some(length) = length else { return Ok(None) };
        if length > self.bytes.len() {
            return Err(Malformed::Short);
        }
        Ok(Some(self.bytes.split_to(length)))
    }
}

fn compact(length: u32) -> Option<usize> {
    length.checked_sub(1).map(|length| length as usize)
}

fn plain(length: i32) -> Result<Option<usize>, Malformed> {
    match length {
        -1 => Ok(None),
        length => usize::try_from(length).map(Some).map_err(|_| Malformed::Negative),
    }
}
