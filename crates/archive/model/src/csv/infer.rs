//! What type each column of a CSV has, guessed from a beginning or from the whole.
//!
//! A guess is the narrowest of truth values (in words), whole numbers of 32 or 64 bits, real numbers and
//! timestamps that every cell fits, or text. NULL fits all. Whole numbers too long for 64 bits are text, so
//! that no digit of an identifier is lost. A guess from a beginning can be wrong: the reader then refuses the
//! cell and says so, and a caller that can read the source twice infers from all of it.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

use trifid_archive_adql::types::{Field, Type};

use super::read::{Header, Options};
use super::split::{Cell, Splitter};
use super::value;
use crate::read::ReadError;

/// Records looked at between two looks at the limit.
const CHUNK_ROWS: usize = 1024;

/// What was guessed.
#[derive(Clone, Debug)]
pub struct Inference {
    /// The columns.
    pub fields: Arc<[Field]>,
    /// How many rows were looked at.
    pub rows: u64,
    /// Whether those were all rows.
    pub whole: bool,
}

/// Guesses the columns from all of a source, in one pass and bounded memory. Fields declared in the options
/// are taken as they are.
pub fn infer(source: impl Read, options: &Options) -> Result<Inference, ReadError> {
    let mut splitter = Splitter::new(source, options.delimiter.byte());
    sample(&mut splitter, options, |_, _| true)
}

/// Guesses from as many records as `go_on` lets pass: it is asked with the number of rows so far.
pub(super) fn sample<R: Read>(
    splitter: &mut Splitter<R>,
    options: &Options,
    go_on: impl Fn(&Splitter<R>, u64) -> bool,
) -> Result<Inference, ReadError> {
    let Some(Columns { names, mut guesses }) = begin(splitter, options)? else {
        return Ok(Inference { fields: Arc::from([]), rows: 0, whole: true });
    };
    let mut rows = u64::from(options.header == Header::Absent);
    while go_on(splitter, rows) {
        let count = splitter.next(guesses.len(), CHUNK_ROWS)?;
        if count == 0 {
            break;
        }
        rows += count as u64;
        for (column, guess) in guesses.iter_mut().enumerate() {
            (0..count).for_each(|row| guess.see(&splitter.cell(row, column)));
        }
    }
    let fields = names.iter().zip(&guesses).map(|(name, guess)| options.field(name, guess.ty())).collect();
    Ok(Inference { fields, rows, whole: splitter.is_exhausted() })
}

/// The columns by name, and the guesses so far.
struct Columns {
    names: Vec<String>,
    guesses: Vec<Guess>,
}

/// The names, and the guesses after the first line where that is no header.
fn begin<R: Read>(splitter: &mut Splitter<R>, options: &Options) -> Result<Option<Columns>, ReadError> {
    splitter.skip_preamble()?;
    let Some(columns) = splitter.first()? else { return Ok(None) };
    let mut guesses = vec![Guess::default(); columns];
    if options.header == Header::Absent {
        for (column, guess) in guesses.iter_mut().enumerate() {
            guess.see(&splitter.cell(0, column));
        }
    }
    Ok(Some(Columns { names: names(splitter, columns, options.header), guesses }))
}

/// The names of the columns by the first line: empty ones numbered, equal ones told apart.
pub(super) fn names<R: Read>(splitter: &Splitter<R>, columns: usize, header: Header) -> Vec<String> {
    let mut used: HashMap<String, usize> = HashMap::new();
    let mut names = Vec::with_capacity(columns);
    for column in 0..columns {
        let cell = splitter.cell(0, column);
        let given = match header {
            Header::Present => String::from_utf8_lossy(value::trim(&cell.bytes)).into_owned(),
            Header::Absent => String::new(),
        };
        let base = if given.is_empty() { format!("col{}", column + 1) } else { given };
        names.push(unique(base, &mut used));
    }
    names
}

/// The name itself, or with the first ordinal that makes it new.
pub(crate) fn unique(base: String, used: &mut HashMap<String, usize>) -> String {
    let Some(&last) = used.get(&base) else {
        used.insert(base.clone(), 1);
        return base;
    };
    let fresh = (last + 1..).map(|ordinal| (ordinal, format!("{base}_{ordinal}")));
    let Some((ordinal, name)) = fresh.into_iter().find(|(_, name)| !used.contains_key(name)) else {
        return base;
    };
    used.insert(base, ordinal);
    used.insert(name.clone(), 1);
    name
}

/// What the cells of a column so far have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Guess {
    /// All NULL.
    #[default]
    Unknown,
    Boolean,
    Int,
    Long,
    Double,
    Timestamp,
    Text,
}

impl Guess {
    fn ty(self) -> Type {
        match self {
            Self::Boolean => Type::Boolean,
            Self::Int => Type::Int,
            Self::Long => Type::Long,
            Self::Double => Type::Double,
            Self::Timestamp => Type::Timestamp,
            Self::Unknown | Self::Text => Type::Text,
        }
    }

    fn see(&mut self, cell: &Cell<'_>) {
        if *self == Self::Text {
            return;
        }
        let bytes = value::trim(&cell.bytes);
        if !cell.quoted && value::is_null_word(bytes) {
            return;
        }
        *self = self.join(bytes);
    }

    /// The narrowest guess that fits what was seen and this too. The guess at hand is tried first.
    fn join(self, bytes: &[u8]) -> Self {
        match self {
            Self::Unknown => Self::of(bytes),
            Self::Double if value::real(bytes).is_some() => Self::Double,
            Self::Timestamp if value::instant(bytes).is_some() => Self::Timestamp,
            Self::Boolean if value::truth_word(bytes).is_some() => Self::Boolean,
            Self::Int | Self::Long => match Self::of(bytes) {
                wider @ (Self::Long | Self::Double) => wider,
                Self::Int => self,
                _ => Self::Text,
            },
            _ => Self::Text,
        }
    }

    /// The narrowest guess for one value.
    fn of(bytes: &[u8]) -> Self {
        if value::integer::<i32>(bytes).is_some() {
            Self::Int
        } else if value::integer::<i64>(bytes).is_some() {
            Self::Long
        } else if is_digits(bytes) {
            Self::Text
        } else if value::real(bytes).is_some() {
            Self::Double
        } else if value::truth_word(bytes).is_some() {
            Self::Boolean
        } else if value::instant(bytes).is_some() {
            Self::Timestamp
        } else {
            Self::Text
        }
    }
}

/// A whole number, of any length.
fn is_digits(bytes: &[u8]) -> bool {
    let digits = bytes.strip_prefix(b"-").or(bytes.strip_prefix(b"+")).unwrap_or(bytes);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}
