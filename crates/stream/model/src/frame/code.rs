//! Why a request is refused: one list for all requests, each with its number and whether to try again.

use bytes::BytesMut;

use super::field::{Field, FrameError, Reader, put_text, take_text};
use crate::limits::TEXT_BYTES_MAX;

/// Whether trying again makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// The same request will be refused again.
    Never,
    /// The same request may succeed after the hint.
    Later,
    /// Look anew first: describe the stream, fetch the offset, read the value.
    AfterRefresh,
}

macro_rules! codes {
    ($(
        $(#[$doc:meta])* $name:ident $({ $(#[$detail_doc:meta])* $detail:ident })?
            = $number:literal, $retry:ident;
    )*) => {
        /// Why a request is refused. On the wire a number (u16) and a detail (u64, zero where there is none).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$doc])* $name $({ $(#[$detail_doc])* $detail: u64 })?,)*
            /// A number of a later version; treated like [`Code::Internal`].
            Other(u16),
        }

        impl Code {
            /// Every number that is given, with the name of the case.
            pub const NUMBERS: &[(u16, &str)] = &[$(($number, stringify!($name)),)*];

            /// Its number on the wire.
            pub fn number(self) -> u16 {
                match self {
                    $(Self::$name { .. } => $number,)*
                    Self::Other(number) => number,
                }
            }

            /// Its detail on the wire: zero where it has none.
            pub fn detail(self) -> u64 {
                match self {
                    $($(Self::$name { $detail } => $detail,)?)*
                    _ => 0,
                }
            }

            /// The case of a number and a detail.
            pub fn from_wire(number: u16, detail: u64) -> Self {
                match number {
                    $($number => codes!(@make $name detail $($detail)?),)*
                    _ => Self::Other(number),
                }
            }

            /// Whether trying again makes sense.
            pub fn retry(self) -> Retry {
                match self {
                    $(Self::$name { .. } => Retry::$retry,)*
                    Self::Other(_) => Retry::Never,
                }
            }
        }
    };
    (@make $name:ident $from:ident $detail:ident) => { Self::$name { $detail: $from } };
    (@make $name:ident $from:ident) => { Self::$name };
}

codes! {
    /// No token, or one that is not known.
    Unauthorized = 1, Never;
    /// The token does not allow it.
    Forbidden = 2, Never;
    /// The message is malformed, comes at the wrong time, or names an unknown handle, shard or subscription.
    InvalidRequest = 3, Never;
    /// A capability, a version or a combination that is not there.
    Unsupported = 4, Never;
    /// A frame, a batch or a value is larger than allowed; the limit is told.
    TooLarge {
        /// What is allowed.
        max
    } = 5, Never;
    /// No stream of this name.
    UnknownStream = 10, AfterRefresh;
    /// No group of this name, or the member is no longer one.
    UnknownGroup = 11, AfterRefresh;
    /// No cache of this name.
    UnknownCache = 12, AfterRefresh;
    /// Something of this name exists, and is made differently.
    AlreadyExists = 13, Never;
    /// A batch is damaged or not of the kind that is taken.
    InvalidBatch = 14, Never;
    /// The offset is no longer kept; the first one that is, is told.
    OffsetTooOld {
        /// The first offset that is kept.
        first
    } = 20, AfterRefresh;
    /// The offset does not exist yet; the next one to be written is told.
    OffsetInFuture {
        /// The next offset.
        end
    } = 21, AfterRefresh;
    /// The sequence of an idempotent producer has a gap; the one that was expected is told.
    OutOfSequence {
        /// What was expected.
        expected
    } = 22, Never;
    /// A newer epoch exists: of the shard's owner, or of the producer. It is told.
    Fenced {
        /// The newest epoch.
        epoch
    } = 23, AfterRefresh;
    /// Another value is there than was expected; its revision is told, zero where there is none.
    Conflict {
        /// The revision that is there.
        revision
    } = 24, AfterRefresh;
    /// The broker knows nothing of this producer: ask for a new id.
    UnknownProducer = 25, AfterRefresh;
    /// A delivery is no longer leased to this member: its time ran out, or it was settled.
    NotLeased = 26, Never;
    /// More than a limit of the tenant, the process or the connection allows: wait. With acknowledgement off, the
    /// records that were shed since the last notice are told.
    Overloaded {
        /// How many records were shed; zero where a publisher waits for each answer.
        shed
    } = 30, Later;
    /// The disk is full: writers wait, readers are served.
    NoSpace = 31, Later;
    /// The answer did not come in the time that was allowed; whether the request was carried out is not known.
    TimedOut = 32, Later;
    /// This broker is going away: connect again.
    ShuttingDown = 33, Later;
    /// A defect or a failing disk; told in the broker's log.
    Internal = 40, Never;
}

/// A refusal, as it is sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Why.
    pub code: Code,
    /// After how many milliseconds trying again makes sense; zero where there is no hint.
    pub retry_after_ms: u32,
    /// For a person.
    pub message: String,
}

impl Refusal {
    /// Without a hint.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, retry_after_ms: 0, message: message.into() }
    }

    /// With a hint.
    pub fn after(self, retry_after_ms: u32) -> Self {
        Self { retry_after_ms, ..self }
    }
}

impl Field for Refusal {
    const LEN_MIN: usize = 2 + 8 + 4 + 2;

    fn put(&self, out: &mut BytesMut) {
        self.code.number().put(out);
        self.code.detail().put(out);
        self.retry_after_ms.put(out);
        put_text(out, &self.message[..self.message.floor_char_boundary(TEXT_BYTES_MAX)]);
    }

    fn take(reader: &mut Reader) -> Result<Self, FrameError> {
        Ok(Self {
            code: Code::from_wire(Field::take(reader)?, Field::take(reader)?),
            retry_after_ms: Field::take(reader)?,
            message: take_text(reader, TEXT_BYTES_MAX)?.as_ref().to_owned(),
        })
    }
}
