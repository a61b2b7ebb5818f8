//! ASCII tables (FITS 4.0 7.2): the form that catalogues had before binary tables. Read only.
//!
//! A field is so many characters at a column of the row; a number among blanks is a number, nothing but
//! blanks is NULL, and so is what TNULLn says.

use trifid_archive_adql::types::{Field, Size, Type};

use super::card::Value;
use super::columns::{Column, Columns, Scale, describe, name};
use super::form::{Code, Form};
use super::header::Header;
use crate::limits::{FITS_COLUMNS_MAX, FITS_ROW_BYTES_MAX};
use crate::read::{At, Fault, ReadError};

/// What the characters of a field say.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Characters {
    /// The characters that stand for NULL, without blanks around.
    pub(super) null: Option<String>,
}

/// The columns of an ASCII table.
pub(super) fn columns(header: &Header) -> Result<Columns, ReadError> {
    let count = header.count("TFIELDS")?;
    if count > FITS_COLUMNS_MAX as u64 {
        return Err(header.wrong(format!("TFIELDS is {count}, more than {FITS_COLUMNS_MAX}")));
    }
    let row_bytes = header.count("NAXIS1")?;
    if row_bytes > FITS_ROW_BYTES_MAX {
        let fault = Fault::Limit { what: "a row in bytes", limit: FITS_ROW_BYTES_MAX };
        return Err(ReadError::new(At::Document, fault));
    }
    let mut used = std::collections::HashMap::new();
    let columns = (1..=count).map(|ordinal| column(header, ordinal, row_bytes, &mut used));
    // Fields may overlap, so that many of them could make one row into many times its size.
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let widths = columns.iter().filter_map(|column| column.form.row_bytes());
    let row_units = widths.fold(row_bytes, u64::saturating_add);
    Ok(Columns { columns, row_bytes, row_units })
}

fn column(
    header: &Header,
    ordinal: u64,
    row_bytes: u64,
    used: &mut std::collections::HashMap<String, usize>,
) -> Result<Column, ReadError> {
    let keyword = format!("TFORM{ordinal}");
    let told = header.text(&keyword).ok_or_else(|| header.wrong(format!("{keyword} is missing")))?;
    let wrong = || header.wrong(format!("{keyword} is {told:?}, which is no form of an ASCII table"));
    let (letter, rest) = told.split_at_checked(1).ok_or_else(wrong)?;
    let width: u64 = rest.split('.').next().and_then(|width| width.parse().ok()).ok_or_else(wrong)?;
    let place = format!("TBCOL{ordinal}");
    let start = header.count(&place)?;
    let end = start.checked_sub(1).and_then(|before| before.checked_add(width));
    if end.is_none_or(|end| end > row_bytes) || width == 0 {
        return Err(
            header.wrong(format!("{place} is {start}, and {width} characters from there are not in the row"))
        );
    }
    let scale = match (header.real(&format!("TSCAL{ordinal}")), header.real(&format!("TZERO{ordinal}"))) {
        (None | Some(1.0), None | Some(0.0)) => Scale::None,
        (factor, zero) => Scale::Linear(factor.unwrap_or(1.0), zero.unwrap_or(0.0)),
    };
    let ty = match (letter, scale) {
        ("A", _) => Type::Text,
        ("I", Scale::None) if width <= 9 => Type::Int,
        ("I", Scale::None) => Type::Long,
        ("I" | "F" | "E" | "D", _) => Type::Double,
        _ => return Err(wrong()),
    };
    let mut field = Field::new(name(header, ordinal, used), ty);
    if ty == Type::Text {
        field.size = Size::Variable(u32::try_from(width).ok());
    }
    describe(header, ordinal, &mut field);
    let null = match header.value(&format!("TNULL{ordinal}")) {
        Some(Value::Text(null)) => Some(null.trim().to_owned()),
        _ => None,
    };
    Ok(Column {
        field,
        form: Form::row(Code::Char, width),
        // Within the row, whose size is limited.
        offset: start.saturating_sub(1) as usize,
        null: None,
        scale,
        width: Some(width),
        characters: Some(Characters { null }),
    })
}

impl Characters {
    /// The field without blanks around; nothing where it is NULL.
    pub(super) fn value<'a>(&self, field: &'a [u8]) -> Option<&'a [u8]> {
        let value = field.trim_ascii();
        let is_null = value.is_empty() || self.null.as_ref().is_some_and(|null| null.as_bytes() == value);
        (!is_null).then_some(value)
    }
}
