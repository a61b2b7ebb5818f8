//! A column being built out of cells.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, PrimitiveBuilder, StringBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    UInt8Type,
};
use arrow_array::{Array, ArrayRef, FixedSizeListArray, ListArray, NullArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use trifid_archive_adql::types::{Field, Type};

use super::json::{Json, Token};
use super::split::Cell;
use super::value;
use crate::batch::{item, scalar};

/// What a cell should have been.
type Expected = &'static str;

/// A column of one type.
#[derive(Debug)]
pub(super) struct Column {
    ty: Type,
    cells: Cells,
}

#[derive(Debug)]
enum Cells {
    Null(usize),
    Boolean(BooleanBuilder),
    Byte(PrimitiveBuilder<UInt8Type>),
    Short(PrimitiveBuilder<Int16Type>),
    Int(PrimitiveBuilder<Int32Type>),
    Long(PrimitiveBuilder<Int64Type>),
    Float(PrimitiveBuilder<Float32Type>),
    Double(PrimitiveBuilder<Float64Type>),
    Text(StringBuilder),
    Timestamp(PrimitiveBuilder<TimestampMicrosecondType>),
    /// So many items in every row.
    Fixed(Box<Cells>, NullBufferBuilder, usize),
    /// Any number of items in a row: the numbers.
    List(Box<Cells>, NullBufferBuilder, Vec<usize>),
}

impl Column {
    pub(super) fn new(field: &Field) -> Self {
        Self { ty: field.ty, cells: Cells::new(field.ty) }
    }

    pub(super) fn push_null(&mut self) -> Result<(), Expected> {
        self.cells.push_null();
        Ok(())
    }

    #[inline]
    pub(super) fn push(&mut self, cell: &Cell<'_>) -> Result<(), Expected> {
        let bytes: &[u8] = &cell.bytes;
        if matches!(self.ty, Type::Text | Type::Region) {
            if bytes.is_empty() && !cell.quoted {
                self.cells.push_null();
                return Ok(());
            }
            return self.cells.push(bytes).ok_or("text in UTF-8");
        }
        let bytes = value::trim(bytes);
        // In a column of arrays the word is an array of one NULL.
        if bytes.is_empty() || (value::is_null_word(bytes) && !matches!(self.ty, Type::Array(_))) {
            self.cells.push_null();
            return Ok(());
        }
        self.cells.push(bytes).ok_or_else(|| expected(self.ty))
    }

    pub(super) fn finish(self) -> ArrayRef {
        self.cells.finish()
    }
}

impl Cells {
    fn new(ty: Type) -> Self {
        match ty {
            Type::Null => Self::Null(0),
            Type::Boolean | Type::Bit => Self::Boolean(BooleanBuilder::new()),
            Type::UnsignedByte => Self::Byte(PrimitiveBuilder::new()),
            Type::Short => Self::Short(PrimitiveBuilder::new()),
            Type::Int => Self::Int(PrimitiveBuilder::new()),
            Type::Long => Self::Long(PrimitiveBuilder::new()),
            Type::Float => Self::Float(PrimitiveBuilder::new()),
            Type::Double => Self::Double(PrimitiveBuilder::new()),
            Type::Text | Type::Region => Self::Text(StringBuilder::new()),
            Type::Timestamp => Self::Timestamp(PrimitiveBuilder::new()),
            Type::FloatComplex => Self::Fixed(Box::new(Self::new(Type::Float)), NullBufferBuilder::new(0), 2),
            Type::DoubleComplex | Type::Point => {
                Self::Fixed(Box::new(Self::new(Type::Double)), NullBufferBuilder::new(0), 2)
            }
            Type::Circle => Self::Fixed(Box::new(Self::new(Type::Double)), NullBufferBuilder::new(0), 3),
            Type::Polygon => {
                Self::List(Box::new(Self::new(Type::Double)), NullBufferBuilder::new(0), Vec::new())
            }
            Type::Array(element) => {
                Self::List(Box::new(Self::new(scalar(element))), NullBufferBuilder::new(0), Vec::new())
            }
        }
    }

    fn push_null(&mut self) {
        match self {
            Self::Null(count) => *count += 1,
            Self::Boolean(cells) => cells.append_null(),
            Self::Byte(cells) => cells.append_null(),
            Self::Short(cells) => cells.append_null(),
            Self::Int(cells) => cells.append_null(),
            Self::Long(cells) => cells.append_null(),
            Self::Float(cells) => cells.append_null(),
            Self::Double(cells) => cells.append_null(),
            Self::Text(cells) => cells.append_null(),
            Self::Timestamp(cells) => cells.append_null(),
            Self::Fixed(items, nulls, size) => {
                (0..*size).for_each(|_| items.push_null());
                nulls.append_null();
            }
            Self::List(_, nulls, counts) => {
                counts.push(0);
                nulls.append_null();
            }
        }
    }

    /// Appends the value of this text; nothing where it is not one.
    #[inline]
    fn push(&mut self, bytes: &[u8]) -> Option<()> {
        match self {
            Self::Null(_) => return None,
            Self::Boolean(cells) => cells.append_value(value::truth(bytes)?),
            Self::Byte(cells) => push_integer(cells, bytes)?,
            Self::Short(cells) => push_integer(cells, bytes)?,
            Self::Int(cells) => push_integer(cells, bytes)?,
            Self::Long(cells) => push_integer(cells, bytes)?,
            Self::Float(cells) => cells.append_value(value::single(bytes)?),
            Self::Double(cells) => cells.append_value(value::real(bytes)?),
            Self::Text(cells) => cells.append_value(std::str::from_utf8(bytes).ok()?),
            Self::Timestamp(cells) => cells.append_value(value::instant(bytes)?),
            Self::Fixed(items, nulls, size) => {
                (push_items(items, bytes)? == *size).then_some(())?;
                nulls.append_non_null();
            }
            Self::List(items, nulls, counts) => {
                counts.push(push_items(items, bytes)?);
                nulls.append_non_null();
            }
        }
        Some(())
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Null(count) => Arc::new(NullArray::new(count)),
            Self::Boolean(mut cells) => Arc::new(cells.finish()),
            Self::Byte(mut cells) => Arc::new(cells.finish()),
            Self::Short(mut cells) => Arc::new(cells.finish()),
            Self::Int(mut cells) => Arc::new(cells.finish()),
            Self::Long(mut cells) => Arc::new(cells.finish()),
            Self::Float(mut cells) => Arc::new(cells.finish()),
            Self::Double(mut cells) => Arc::new(cells.finish()),
            Self::Text(mut cells) => Arc::new(cells.finish()),
            Self::Timestamp(mut cells) => Arc::new(cells.finish()),
            Self::Fixed(items, mut nulls, size) => {
                let items = items.finish();
                let field = item(items.data_type().clone());
                Arc::new(FixedSizeListArray::new(field, size as i32, items, nulls.finish()))
            }
            Self::List(items, mut nulls, counts) => {
                let items = items.finish();
                let field = item(items.data_type().clone());
                Arc::new(ListArray::new(field, OffsetBuffer::from_lengths(counts), items, nulls.finish()))
            }
        }
    }
}

fn push_integer<T>(cells: &mut PrimitiveBuilder<T>, bytes: &[u8]) -> Option<()>
where
    T: ArrowPrimitiveType,
    T::Native: std::str::FromStr,
{
    cells.append_value(value::integer(bytes)?);
    Some(())
}

/// Appends items written with blanks between, and counts them. `NULL` is an item without a value.
fn push_items(items: &mut Cells, bytes: &[u8]) -> Option<usize> {
    let mut count = 0;
    if let Cells::Text(_) = items {
        return push_texts(items, bytes);
    }
    let mut tokens = bytes.split(u8::is_ascii_whitespace).filter(|token| !token.is_empty());
    if let Cells::Fixed(parts, nulls, size) = items {
        while let Some(first) = tokens.next() {
            parts.push(first)?;
            (1..*size).try_for_each(|_| parts.push(tokens.next()?))?;
            nulls.append_non_null();
            count += 1;
        }
        return Some(count);
    }
    for token in tokens {
        match token.eq_ignore_ascii_case(b"null") {
            true => items.push_null(),
            false => items.push(token)?,
        }
        count += 1;
    }
    Some(count)
}

/// Appends the strings of a JSON array (RFC 8259), or words with blanks between, and counts them.
fn push_texts(items: &mut Cells, bytes: &[u8]) -> Option<usize> {
    if bytes.first() != Some(&b'[') {
        let words = bytes.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        return words.map(|word| items.push(word)).try_fold(0, |count, pushed| pushed.map(|()| count + 1));
    }
    let mut json = Json { rest: bytes.get(1..)? };
    let mut count = 0;
    loop {
        match json.token()? {
            Token::Close if count == 0 => break,
            Token::Null => items.push_null(),
            Token::Text(text) => items.push(text.as_bytes())?,
            _ => return None,
        }
        count += 1;
        match json.token()? {
            Token::Comma => {}
            Token::Close => break,
            _ => return None,
        }
    }
    json.rest.trim_ascii().is_empty().then_some(count)
}

/// How an error names what the column holds.
fn expected(ty: Type) -> Expected {
    match ty {
        Type::Null => "NULL",
        Type::Boolean => "a truth value (BOOLEAN)",
        Type::Bit => "0 or 1 (BIT)",
        Type::UnsignedByte => "a whole number from 0 to 255 (UNSIGNEDBYTE)",
        Type::Short => "a whole number of 16 bits (SMALLINT)",
        Type::Int => "a whole number of 32 bits (INTEGER)",
        Type::Long => "a whole number of 64 bits (BIGINT)",
        Type::Float => "a real number (REAL)",
        Type::Double => "a real number (DOUBLE PRECISION)",
        Type::FloatComplex | Type::DoubleComplex => "two real numbers",
        Type::Text | Type::Region => "text in UTF-8",
        Type::Timestamp => "an ISO 8601 timestamp",
        Type::Point => "a position: two numbers with a blank between",
        Type::Circle => "a circle: three numbers with blanks between",
        Type::Polygon => "a polygon: numbers with blanks between",
        Type::Array(_) => "an array: values with blanks between",
    }
}
