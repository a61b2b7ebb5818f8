//! What the header of a table says of its columns.

use std::sync::Arc;

use trifid_archive_adql::types::{Field, Size, Type};

use super::ascii::{self, Characters};
use super::card::Value;
use super::form::{Code, Form, Place};
use super::header::Header;
use crate::csv::unique;
use crate::limits::{FITS_COLUMNS_MAX, FITS_ROW_BYTES_MAX};
use crate::read::{At, Fault, ReadError};
use crate::votable::declare;

/// A column of a binary table.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) field: Field,
    pub(super) form: Form,
    /// Where it begins in the row.
    pub(super) offset: usize,
    /// The stored value that stands for NULL.
    pub(super) null: Option<i64>,
    pub(super) scale: Scale,
    /// Bytes of one string, where the column is text.
    pub(super) width: Option<u64>,
    /// What stands for values in an ASCII table, of which everything is text.
    pub(super) characters: Option<Characters>,
}

/// What a stored number is turned into (FITS 4.0 7.3.2, TSCALn and TZEROn).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// Itself.
    None,
    /// A number of the other sign convention: so much is added (FITS 4.0 table 19).
    Offset(i128),
    /// A real number: multiplied, then added.
    Linear(f64, f64),
}

/// The columns of a binary table.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) columns: Vec<Column>,
    pub(super) row_bytes: u64,
    /// Bytes or elements of a row, whichever are more: bits take less than a byte.
    pub(super) row_units: u64,
}

impl Columns {
    pub(super) fn new(header: &Header) -> Result<Self, ReadError> {
        if header.text("XTENSION") == Some("TABLE") {
            return ascii::columns(header);
        }
        let count = header.count("TFIELDS")?;
        if count > FITS_COLUMNS_MAX as u64 {
            return Err(header.wrong(format!("TFIELDS is {count}, more than {FITS_COLUMNS_MAX}")));
        }
        let row_bytes = header.count("NAXIS1")?;
        let mut used = std::collections::HashMap::new();
        let mut columns = Vec::new();
        let mut offset = 0;
        for ordinal in 1..=count {
            let (column, bytes) = column(header, ordinal, offset, &mut used)?;
            columns.push(column);
            offset = u64::checked_add(offset, bytes).unwrap_or(u64::MAX);
            if offset > row_bytes {
                break;
            }
        }
        if offset != row_bytes {
            return Err(header.wrong(format!(
                "NAXIS1 says that a row has {row_bytes} bytes, but the columns have {}{offset}",
                if columns.len() as u64 == count { "" } else { "at least " }
            )));
        }
        let units = columns.iter().map(|column| match column.form.place {
            Place::Row(count) => count.max(column.form.code.bytes(count).unwrap_or(u64::MAX)),
            Place::Heap32(_) | Place::Heap64(_) => 16,
        });
        let row_units = units.fold(0, u64::saturating_add);
        if row_units > FITS_ROW_BYTES_MAX {
            let fault = Fault::Limit { what: "a row in bytes or elements", limit: FITS_ROW_BYTES_MAX };
            return Err(ReadError::new(At::Document, fault));
        }
        Ok(Self { columns, row_bytes, row_units })
    }

    pub(super) fn has_heap(&self) -> bool {
        self.columns.iter().any(|column| !matches!(column.form.place, Place::Row(_)))
    }
}

/// The name of a column: as told, or numbered, and in any case unlike the others.
pub(super) fn name(
    header: &Header,
    ordinal: u64,
    used: &mut std::collections::HashMap<String, usize>,
) -> Arc<str> {
    let told = header.text(&format!("TTYPE{ordinal}")).map(str::to_owned);
    unique(told.unwrap_or_else(|| format!("col{ordinal}")), used).into()
}

/// What a column says of itself beside its type. TUCD, TUTYP, TXTYP and TCOMM are conventions.
pub(super) fn describe(header: &Header, ordinal: u64, field: &mut Field) {
    let text = |keyword: &str| header.text(&format!("{keyword}{ordinal}")).map(Arc::from);
    field.unit = text("TUNIT");
    field.ucd = text("TUCD");
    field.utype = text("TUTYP");
    field.description = text("TCOMM");
}

fn column(
    header: &Header,
    ordinal: u64,
    offset: u64,
    used: &mut std::collections::HashMap<String, usize>,
) -> Result<(Column, u64), ReadError> {
    let keyword = format!("TFORM{ordinal}");
    let told = header.text(&keyword).ok_or_else(|| header.wrong(format!("{keyword} is missing")))?;
    let form =
        Form::parse(told).ok_or_else(|| header.wrong(format!("{keyword} is {told:?}, which is no form")))?;
    let bytes =
        form.row_bytes().ok_or_else(|| header.wrong(format!("{keyword} is {told:?}, which is too large")))?;
    let dims = dims(header, ordinal, form)?;
    let scale = scale(header, ordinal, form.code)?;
    let (size, width) = size(form, &dims);
    let xtype = header.text(&format!("TXTYP{ordinal}"));
    let datatype = datatype(form.code, scale);
    let (ty, _) = declare::type_of(datatype, &size, xtype).unwrap_or((Type::Text, false));
    let mut field =
        Field { size, xtype: xtype.map(Arc::from), ..Field::new(name(header, ordinal, used), ty) };
    describe(header, ordinal, &mut field);
    let null = match header.value(&format!("TNULL{ordinal}")) {
        Some(Value::Integer(null)) if form.code.is_integer() => Some(*null),
        _ => None,
    };
    let offset = usize::try_from(offset).map_err(|_| header.wrong("a row is too long"))?;
    Ok((Column { field, form, offset, null, scale, width, characters: None }, bytes))
}

/// TDIMn, where it speaks of all elements; `rAw` says the same of strings.
fn dims(header: &Header, ordinal: u64, form: Form) -> Result<Vec<u32>, ReadError> {
    let Place::Row(count) = form.place else { return Ok(Vec::new()) };
    let keyword = format!("TDIM{ordinal}");
    let Some(told) = header.text(&keyword) else {
        let width = form.width.filter(|&width| width < count && count % width == 0);
        let dims = width
            .map(|width| [width, count / width].iter().filter_map(|&dim| u32::try_from(dim).ok()).collect());
        return Ok(dims.unwrap_or_default());
    };
    let inner = told.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let parsed: Option<Vec<u32>> =
        inner.and_then(|inner| inner.split(',').map(|dim| dim.trim().parse().ok()).collect());
    let dims = parsed.ok_or_else(|| header.wrong(format!("{keyword} is {told:?}, which is no shape")))?;
    let product = dims.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim.into()));
    // FITS 4.0 7.3.2: elements beyond the product have no place in the array; then there is none.
    Ok(if product == Some(count) { dims } else { Vec::new() })
}

/// The size of a value and, of text, the bytes of one string.
fn size(form: Form, dims: &[u32]) -> (Size, Option<u64>) {
    let narrow = |count: u64| u32::try_from(count).ok();
    match (form.place, form.code) {
        (Place::Heap32(most) | Place::Heap64(most), code) => (
            Size::Variable(most.filter(|&most| most > 0).and_then(narrow)),
            (code == Code::Char).then_some(0),
        ),
        (Place::Row(count), Code::Char) => match dims {
            [width, inner @ .., last] => {
                let fixed = std::iter::once(*width).chain(inner.iter().copied()).collect();
                (Size::Shape(fixed, Some(*last)), Some(u64::from(*width).max(1)))
            }
            _ => (Size::Variable(narrow(count)), Some(count)),
        },
        (Place::Row(count), _) => match dims {
            [inner @ .., last] if !inner.is_empty() => (Size::Shape(inner.into(), Some(*last)), None),
            [_] => (Size::Fixed(narrow(count).unwrap_or(u32::MAX)), None),
            _ if count == 1 => (Size::One, None),
            _ => (Size::Fixed(narrow(count).unwrap_or(u32::MAX)), None),
        },
    }
}

/// VOTable's name of what a value becomes.
const fn datatype(code: Code, scale: Scale) -> &'static str {
    match (code, scale) {
        (Code::Logical, _) => "boolean",
        (Code::Bit, _) => "bit",
        (Code::Char, _) => "char",
        (Code::FloatComplex, _) => "floatComplex",
        (Code::DoubleComplex, _) => "doubleComplex",
        (_, Scale::Linear(..)) | (Code::Double, _) => "double",
        (Code::Float, _) => "float",
        (Code::Byte, Scale::None) => "unsignedByte",
        (Code::Short, Scale::None) | (Code::Byte, Scale::Offset(_)) => "short",
        (Code::Int, Scale::None) | (Code::Short, Scale::Offset(_)) => "int",
        (Code::Long, _) | (Code::Int, Scale::Offset(_)) => "long",
    }
}

fn scale(header: &Header, ordinal: u64, code: Code) -> Result<Scale, ReadError> {
    let factor = header.real(&format!("TSCAL{ordinal}")).unwrap_or(1.0);
    let zero = header.real(&format!("TZERO{ordinal}")).unwrap_or(0.0);
    if (factor, zero) == (1.0, 0.0) {
        return Ok(Scale::None);
    }
    // FITS 4.0 table 19: the numbers of the other sign convention.
    let other = match code {
        Code::Byte => -128,
        Code::Short => 1 << 15,
        Code::Int => 1 << 31,
        Code::Long => 1_i128 << 63,
        Code::Float | Code::Double => 0,
        Code::FloatComplex | Code::DoubleComplex => {
            return Err(
                header.wrong(format!("column {ordinal} scales complex numbers, which is not supported"))
            );
        }
        Code::Logical | Code::Bit | Code::Char => return Ok(Scale::None),
    };
    let is_other = factor == 1.0 && other != 0 && zero == other as f64;
    Ok(if is_other { Scale::Offset(other) } else { Scale::Linear(factor, zero) })
}
