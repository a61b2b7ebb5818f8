//! How values lie in the body of a frame. Little endian; a text is its length (u16) and its bytes, bytes are their
//! length (u32) and themselves, an optional value is preceded by 0 or 1, a list by its length (u32), a case by its
//! number (u8).

use bytes::{BufMut, Bytes, BytesMut};

use crate::limits::{LIST_ENTRIES_MAX, TEXT_BYTES_MAX};
use crate::names::{CacheName, GroupName, NameError, StreamName, Tenant};
use crate::spec::{CacheSpec, Durability, SpecError, StreamKind, StreamSpec};

/// Why bytes are no frame, or no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The first bytes of a connection are not ours.
    #[error("the connection does not begin with the preface of this protocol")]
    Preface,
    /// A version of the protocol that is not spoken here.
    #[error("version {0} of the protocol is not spoken here")]
    Version(u16),
    /// A body larger than negotiated.
    #[error("a frame of {len} bytes is larger than the {max} allowed")]
    TooLarge {
        /// What it has.
        len: usize,
        /// What is allowed.
        max: usize,
    },
    /// The reserved byte is not zero.
    #[error("the reserved byte of a frame is {0}")]
    Reserved(u8),
    /// A flag that means nothing here.
    #[error("the flags {0:#06x} of a frame are not known")]
    Flags(u16),
    /// A kind that does not exist, or not in this direction.
    #[error("a frame of kind {0:#04x} is not known here")]
    Kind(u8),
    /// The body ends within a value.
    #[error("a frame ends within {0}")]
    Truncated(&'static str),
    /// The body goes on after its last value.
    #[error("{0} bytes follow the last value of a frame")]
    Trailing(usize),
    /// A number that stands for nothing.
    #[error("{value} is no {what}")]
    Unknown {
        /// What it should stand for.
        what: &'static str,
        /// The number.
        value: u32,
    },
    /// More entries or bytes than a value may have.
    #[error("{what} has {len}, more than the {max} allowed")]
    TooMany {
        /// Which value.
        what: &'static str,
        /// How many.
        len: usize,
        /// How many are allowed.
        max: usize,
    },
    /// A text that is not UTF-8.
    #[error("a text is not UTF-8")]
    Utf8,
    /// A name that is none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A specification outside its limits.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

/// A body that is being read.
#[derive(Debug)]
pub(super) struct Reader {
    rest: Bytes,
}

impl Reader {
    pub(super) fn new(body: Bytes) -> Self {
        Self { rest: body }
    }

    pub(super) fn take(&mut self, len: usize, what: &'static str) -> Result<Bytes, FrameError> {
        if len > self.rest.len() { Err(FrameError::Truncated(what)) } else { Ok(self.rest.split_to(len)) }
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], FrameError> {
        let array = *self.rest.first_chunk::<N>().ok_or(FrameError::Truncated(what))?;
        bytes::Buf::advance(&mut self.rest, N);
        Ok(array)
    }

    /// All that is left.
    pub(super) fn tail(&mut self) -> Bytes {
        std::mem::take(&mut self.rest)
    }

    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Refuses what is left.
    pub(super) fn end(self) -> Result<(), FrameError> {
        if self.rest.is_empty() { Ok(()) } else { Err(FrameError::Trailing(self.rest.len())) }
    }
}

/// A value in a body.
pub(super) trait Field: Sized {
    /// The fewest bytes of one: what a list of them is bounded by before anything is allocated.
    const LEN_MIN: usize;
    fn put(&self, out: &mut BytesMut);
    fn take(reader: &mut Reader) -> Result<Self, FrameError>;
}

macro_rules! number {
    ($($type:ty)*) => { $(
        impl Field for $type {
            const LEN_MIN: usize = size_of::<$type>();

            fn put(&self, out: &mut BytesMut) {
                out.put_slice(&self.to_le_bytes());
            }

            fn take(reader: &mut Reader) -> Result<Self, FrameError> {
                reader.array("a number").map(Self::from_le_bytes)
            }
        }
    )* };
}

number!(u8 u16 u32 u64 i16 i32 i64);

impl Field for bool {
    const LEN_MIN: usize = 1;

    fn put(&self, out: &mut BytesMut) {
        out.put_u8((*self).into());
    }

    fn take(reader: &mut Reader) -> Result<Self, FrameError> {
        match u8::take(reader)? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(unknown("truth", value.into())),
        }
    }
}

impl Field for String {
    const LEN_MIN: usize = 2;

    fn put(&self, out: &mut BytesMut) {
        put_text(out, self);
    }

    fn take(reader: &mut Reader) -> Result<Self, FrameError> {
        take_text(reader, TEXT_BYTES_MAX).map(|text| text.as_ref().to_owned())
    }
}

impl Field for Bytes {
    const LEN_MIN: usize = 4;

    fn put(&self, out: &mut BytesMut) {
        out.put_u32_le(self.len() as u32);
        out.put_slice(self);
    }

    fn take(reader: &mut Reader) -> Result<Self, FrameError> {
        let len = u32::take(reader)? as usize;
        reader.take(len, "bytes")
    }
}

impl<T: Field> Field for Option<T> {
    const LEN_MIN: usize = 1;

    fn put(&self, out: &mut BytesMut) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn take(reader: &mut Reader) -> Result<Self, FrameError> {
        if bool::take(reader)? { T::take(reader).map(Some) } else { Ok(None) }
    }
}

impl<T: Field> Field for Vec<T> {
    const LEN_MIN: usize = 4;

    fn put(&self, out: &mut BytesMut) {
        out.put_u32_le(self.len() as u32);
        for value in self {
            value.put(out);
        }
    }

    fn take(reader: &mut Reader) -> Result<Self, FrameError> {
        let len = u32::take(reader)? as usize;
        if len > LIST_ENTRIES_MAX {
            return Err(FrameError::TooMany { what: "a list", len, max: LIST_ENTRIES_MAX });
        }
        if len.saturating_mul(T::LEN_MIN) > reader.left() {
            return Err(FrameError::Truncated("a list"));
        }
        (0..len).map(|_| T::take(reader)).collect()
    }
}

macro_rules! name {
    ($($type:ty)*) => { $(
        impl Field for $type {
            const LEN_MIN: usize = 2;

            fn put(&self, out: &mut BytesMut) {
                put_text(out, self.as_str());
            }

            fn take(reader: &mut Reader) -> Result<Self, FrameError> {
                Ok(Self::new(take_text(reader, TEXT_BYTES_MAX)?.as_ref())?)
            }
        }
    )* };
}

name!(Tenant StreamName CacheName GroupName);

/// A text that borrows from the frame.
pub(super) struct Text(Bytes);

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        // Looked at when it was taken.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

pub(super) fn take_text(reader: &mut Reader, max: usize) -> Result<Text, FrameError> {
    let len = usize::from(u16::take(reader)?);
    if len > max {
        return Err(FrameError::TooMany { what: "a text", len, max });
    }
    let bytes = reader.take(len, "a text")?;
    std::str::from_utf8(&bytes).map_err(|_| FrameError::Utf8)?;
    Ok(Text(bytes))
}

/// Writes a text, cut at a character where it is longer than a text may be: only messages of errors can be.
pub(super) fn put_text(out: &mut BytesMut, text: &str) {
    let text = &text[..text.floor_char_boundary(u16::MAX as usize)];
    out.put_u16_le(text.len() as u16);
    out.put_slice(text.as_bytes());
}

pub(super) fn unknown(what: &'static str, value: u32) -> FrameError {
    FrameError::Unknown { what, value }
}

/// A struct whose fields lie one after the other.
macro_rules! record {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }

        impl $crate::frame::field::Field for $name {
            const LEN_MIN: usize = 0 $(+ <$type as $crate::frame::field::Field>::LEN_MIN)*;

            #[allow(unused_variables)]
            fn put(&self, out: &mut bytes::BytesMut) {
                $($crate::frame::field::Field::put(&self.$field, out);)*
            }

            #[allow(unused_variables)]
            fn take(
                reader: &mut $crate::frame::field::Reader,
            ) -> Result<Self, $crate::frame::field::FrameError> {
                Ok(Self { $($field: $crate::frame::field::Field::take(reader)?,)* })
            }
        }

        #[cfg(test)]
        impl $crate::frame::sample::Sample for $name {
            #[allow(unused_variables)]
            fn sample(source: &mut $crate::frame::sample::Source) -> Self {
                Self { $($field: $crate::frame::sample::Sample::sample(source),)* }
            }
        }
    )* };
}

/// An enum of cases, each with a number and fields of its own.
macro_rules! choice {
    ($($(#[$doc:meta])* $name:ident($what:literal) {
        $($(#[$case_doc:meta])* $case:ident
            $({ $($(#[$field_doc:meta])* $field:ident: $type:ty),* })? = $number:literal,)*
    })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$case_doc])* $case $({ $($(#[$field_doc])* $field: $type),* })?,)* }

        impl $crate::frame::field::Field for $name {
            const LEN_MIN: usize = 1;

            fn put(&self, out: &mut bytes::BytesMut) {
                match self {
                    $(Self::$case $({ $($field),* })? => {
                        bytes::BufMut::put_u8(out, $number);
                        $($($crate::frame::field::Field::put($field, out);)*)?
                    })*
                }
            }

            fn take(
                reader: &mut $crate::frame::field::Reader,
            ) -> Result<Self, $crate::frame::field::FrameError> {
                match <u8 as $crate::frame::field::Field>::take(reader)? {
                    $($number => Ok(Self::$case $({
                        $($field: $crate::frame::field::Field::take(reader)?),*
                    })?),)*
                    value => Err($crate::frame::field::unknown($what, value.into())),
                }
            }
        }

        #[cfg(test)]
        impl $crate::frame::sample::Sample for $name {
            fn sample(source: &mut $crate::frame::sample::Source) -> Self {
                let cases: &[fn(&mut $crate::frame::sample::Source) -> Self] = &[$(
                    |_source| Self::$case $({ $($field: $crate::frame::sample::Sample::sample(_source)),* })?,
                )*];
                source.pick(cases)(source)
            }
        }
    )* };
}

pub(super) use {choice, record};

impl Field for Durability {
    const LEN_MIN: usize = 5;

    fn put(&self, out: &mut BytesMut) {
        let (number, interval_ms) = match *self {
            Self::Memory => (0_u8, 0_u32),
            Self::Periodic { interval_ms } => (1, interval_ms),
            Self::OnCommit => (2, 0),
        };
        number.put(out);
        interval_ms.put(out);
    }

    fn take(reader: &mut Reader) -> Result<Self, FrameError> {
        match (u8::take(reader)?, u32::take(reader)?) {
            (0, 0) => Ok(Self::Memory),
            (1, interval_ms) => Ok(Self::Periodic { interval_ms }),
            (2, 0) => Ok(Self::OnCommit),
            (number, _) => Err(unknown("durability", number.into())),
        }
    }
}

impl Field for StreamKind {
    const LEN_MIN: usize = 1;

    fn put(&self, out: &mut BytesMut) {
        out.put_u8(match self {
            Self::Events => 0,
            Self::DeadLetter => 1,
            Self::Internal => 2,
        });
    }

    fn take(reader: &mut Reader) -> Result<Self, FrameError> {
        match u8::take(reader)? {
            0 => Ok(Self::Events),
            1 => Ok(Self::DeadLetter),
            2 => Ok(Self::Internal),
            value => Err(unknown("kind of stream", value.into())),
        }
    }
}

/// A specification that was taken from a frame is valid.
impl Field for StreamSpec {
    const LEN_MIN: usize = 4 + Durability::LEN_MIN + 1 + 1 + 1 + 4 + 1;

    fn put(&self, out: &mut BytesMut) {
        self.shards.put(out);
        self.durability.put(out);
        self.retention_ms.put(out);
        self.retention_bytes.put(out);
        self.compact.put(out);
        self.max_batch_bytes.put(out);
        self.kind.put(out);
    }

    fn take(reader: &mut Reader) -> Result<Self, FrameError> {
        let spec = Self {
            shards: Field::take(reader)?,
            durability: Field::take(reader)?,
            retention_ms: Field::take(reader)?,
            retention_bytes: Field::take(reader)?,
            compact: Field::take(reader)?,
            max_batch_bytes: Field::take(reader)?,
            kind: Field::take(reader)?,
        };
        spec.validate()?;
        Ok(spec)
    }
}

/// A specification that was taken from a frame is valid.
impl Field for CacheSpec {
    const LEN_MIN: usize = Durability::LEN_MIN + 8 + 1;

    fn put(&self, out: &mut BytesMut) {
        self.durability.put(out);
        self.budget_bytes.put(out);
        self.default_ttl_ms.put(out);
    }

    fn take(reader: &mut Reader) -> Result<Self, FrameError> {
        let spec = Self {
            durability: Field::take(reader)?,
            budget_bytes: Field::take(reader)?,
            default_ttl_ms: Field::take(reader)?,
        };
        spec.validate()?;
        Ok(spec)
    }
}
