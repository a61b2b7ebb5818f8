//! The plan of a binary table: which form each column takes.
//!
//! | column | form |
//! |---|---|
//! | boolean, bit | `L`, since `X` has no NULL |
//! | unsignedByte, short, int, long | `B`, `I`, `J`, `K` |
//! | float, double, complex | `E`, `D`, `C`, `M`; NULL is NaN |
//! | text, timestamp, region | `nA` as wide as the longest; `PA` or `QA` where that would be mostly padding |
//! | array of one length | `n` of its elements, with `TDIMn` where there are dimensions |
//! | array of several lengths | `P` or `Q` of its elements, and the dimensions are lost |
//! | array of bits | `nX` where all are of one length and none is NULL; else logicals |
//! | array of strings of one length | `nA` with `TDIMn`; else the text of a JSON array |
//!
//! NULL among whole numbers is a value that does not occur (`TNULLn`). Where every value of a byte occurs, or
//! both ends of the range of a longer number do, the column takes the next wider form.

use trifid_archive_adql::types::{Element, Field, Size, Type};

use super::form::{Code, Form, Place};
use super::survey::{Seen, Survey};
use crate::limits::{FITS_COLUMNS_MAX, FITS_PADDING_BYTES};
use crate::write::WriteError;

/// Bytes that a 32-bit descriptor can point into (FITS 4.0 7.3.5).
const HEAP32_BYTES: u64 = i32::MAX as u64;

/// Bytes of `YYYY-MM-DDThh:mm:ss.ffffff`.
const INSTANT_BYTES: u64 = 26;

/// A column of the plan.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) form: Form,
    /// The value that stands for NULL.
    pub(super) null: Option<i64>,
    /// Bytes of one string, where the column is an array of strings in the row.
    pub(super) width: Option<u64>,
    /// The dimensions, first varying fastest.
    pub(super) dims: Vec<u64>,
    /// Whether the cells are the text of JSON arrays.
    pub(super) is_json: bool,
}

/// The plan of a table.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) plans: Vec<Plan>,
    pub(super) row_bytes: u64,
    pub(super) heap_bytes: u64,
}

impl Layout {
    pub(super) fn new(survey: &Survey) -> Result<Self, WriteError> {
        if survey.fields.len() > FITS_COLUMNS_MAX {
            let limit = FITS_COLUMNS_MAX as u64;
            return Err(WriteError::TooLarge { what: "the number of columns", limit });
        }
        let pairs = survey.fields.iter().zip(&survey.columns);
        let planned = pairs.map(|(field, seen)| plan(field, seen, survey)).collect::<Result<Vec<_>, _>>()?;
        let heap_bytes = planned.iter().map(|(_, heap)| heap).sum();
        let mut plans: Vec<Plan> = planned.into_iter().map(|(plan, _)| plan).collect();
        if heap_bytes > HEAP32_BYTES {
            plans.iter_mut().for_each(Plan::widen_descriptor);
        }
        let row_bytes = plans.iter().map(|plan| plan.form.row_bytes()).sum::<Option<u64>>();
        let limit = i64::MAX as u64;
        let row_bytes = row_bytes.ok_or(WriteError::TooLarge { what: "a row in bytes", limit })?;
        Ok(Self { plans, row_bytes, heap_bytes })
    }

    pub(super) fn has_heap(&self) -> bool {
        self.plans.iter().any(|plan| !matches!(plan.form.place, Place::Row(_)))
    }
}

impl Plan {
    const fn of(form: Form) -> Self {
        Self { form, null: None, width: None, dims: Vec::new(), is_json: false }
    }

    fn widen_descriptor(&mut self) {
        if let Place::Heap32(most) = self.form.place {
            self.form.place = Place::Heap64(most);
        }
    }
}

/// The plan of a column and its bytes in the heap.
fn plan(field: &Field, seen: &Seen, survey: &Survey) -> Result<(Plan, u64), WriteError> {
    let one = |code| Ok((Plan::of(Form::row(code, 1)), 0));
    match field.ty {
        Type::Null => one(Code::Char),
        Type::Boolean | Type::Bit => one(Code::Logical),
        Type::UnsignedByte | Type::Short | Type::Int | Type::Long => {
            let has_null = seen.has_null_items || !survey.is_seen;
            let (code, null) = whole(field, seen, survey, code_of(field.ty), has_null)?;
            Ok((Plan { null, ..Plan::of(Form::row(code, 1)) }, 0))
        }
        Type::Float => one(Code::Float),
        Type::Double => one(Code::Double),
        Type::FloatComplex => one(Code::FloatComplex),
        Type::DoubleComplex => one(Code::DoubleComplex),
        Type::Text | Type::Region => text(field, seen, survey),
        Type::Timestamp => Ok((Plan::of(Form::row(Code::Char, INSTANT_BYTES)), 0)),
        Type::Point => Ok((Plan::of(Form::row(Code::Double, 2)), 0)),
        Type::Circle => Ok((Plan::of(Form::row(Code::Double, 3)), 0)),
        Type::Polygon => array(field, seen, Code::Double, survey),
        Type::Array(Element::Text) => strings(field, seen, survey),
        Type::Array(element) => array(field, seen, code_of(crate::batch::scalar(element)), survey),
    }
}

/// The form of one value, where its type is that of an element.
fn code_of(ty: Type) -> Code {
    match ty {
        Type::Boolean => Code::Logical,
        Type::Bit => Code::Bit,
        Type::UnsignedByte => Code::Byte,
        Type::Short => Code::Short,
        Type::Int => Code::Int,
        Type::Long => Code::Long,
        Type::Float => Code::Float,
        Type::FloatComplex => Code::FloatComplex,
        Type::DoubleComplex => Code::DoubleComplex,
        Type::Null | Type::Text | Type::Timestamp | Type::Region => Code::Char,
        Type::Double | Type::Point | Type::Circle | Type::Polygon | Type::Array(_) => Code::Double,
    }
}

/// The form of whole numbers, and the value that stands for NULL among them, where some is.
fn whole(
    field: &Field,
    seen: &Seen,
    survey: &Survey,
    code: Code,
    has_null: bool,
) -> Result<(Code, Option<i64>), WriteError> {
    if !has_null {
        return Ok((code, None));
    }
    let (least, most) = match code {
        Code::Byte => {
            let used = seen.bytes.as_ref();
            let free =
                (0..256).rev().find(|&value| used.is_none_or(|used| !used[value])).filter(|_| survey.is_seen);
            return Ok(
                free.map_or((Code::Short, Some(i64::from(i16::MIN))), |value| (code, Some(value as i64)))
            );
        }
        Code::Short => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Code::Int => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    if seen.least > least {
        return Ok((code, Some(least)));
    }
    if seen.most < most {
        return Ok((code, Some(most)));
    }
    match code {
        Code::Short => Ok((Code::Int, Some(i64::from(i32::MIN)))),
        Code::Int => Ok((Code::Long, Some(i64::MIN))),
        _ => Err(WriteError::Value {
            row: 0,
            column: field.name.clone(),
            reason: "both ends of 64 bits occur beside NULL, and neither is free to stand for it",
        }),
    }
}

/// Text in the row or in the heap.
fn text(field: &Field, seen: &Seen, survey: &Survey) -> Result<(Plan, u64), WriteError> {
    if !survey.is_seen {
        return Ok((Plan::of(Form::row(Code::Char, declared_bytes(field)?)), 0));
    }
    Ok(characters(seen.longest, seen.units, survey.rows))
}

/// Strings, the longest of which is given and the sum of all.
fn characters(longest: u64, sum: u64, rows: u64) -> (Plan, u64) {
    if is_worth_a_heap(longest.max(1).saturating_mul(rows), sum, rows) {
        let form = Form { place: Place::Heap32(Some(longest)), ..Form::row(Code::Char, 1) };
        return (Plan::of(form), sum);
    }
    (Plan::of(Form::row(Code::Char, longest.max(1))), 0)
}

/// Whether rows of a fixed width would be mostly padding. A fixed width is what every reader reads.
fn is_worth_a_heap(fixed_bytes: u64, heap_bytes: u64, rows: u64) -> bool {
    let heap_bytes = heap_bytes.saturating_add(rows.saturating_mul(8));
    fixed_bytes.saturating_sub(heap_bytes) > FITS_PADDING_BYTES && fixed_bytes / 4 > heap_bytes
}

/// What a column of text says its strings take at most, in UTF-8.
fn declared_bytes(field: &Field) -> Result<u64, WriteError> {
    let characters = match field.size {
        Size::One => Some(1),
        Size::Fixed(count) | Size::Variable(Some(count)) => Some(u64::from(count)),
        Size::Variable(None) | Size::Shape(..) => None,
    };
    let bytes = characters.map(|count| if field.unicode { count * 4 } else { count }.max(1));
    bytes.ok_or_else(|| unknown_length(field))
}

/// Arrays of strings: side by side where all are of one length, else as text.
fn strings(field: &Field, seen: &Seen, survey: &Survey) -> Result<(Plan, u64), WriteError> {
    if !survey.is_seen {
        return Err(unknown_length(field));
    }
    let width = seen.width.max(1);
    let bytes = width.saturating_mul(seen.longest);
    let is_constant = seen.nulls == 0 && seen.shortest == seen.longest && seen.longest > 0;
    if is_constant && !is_worth_a_heap(bytes.saturating_mul(survey.rows), seen.json, survey.rows) {
        let form = Form::row(Code::Char, bytes);
        return Ok((Plan { width: Some(width), dims: vec![width, seen.longest], ..Plan::of(form) }, 0));
    }
    let (plan, heap) = characters(seen.longest_json, seen.json, survey.rows);
    Ok((Plan { is_json: true, ..plan }, heap))
}

/// Arrays: in the row where all are of one length, and NULL among them can be told.
fn array(field: &Field, seen: &Seen, code: Code, survey: &Survey) -> Result<(Plan, u64), WriteError> {
    let (dims, declared) = shape(&field.size, seen.longest);
    let count = common_length(seen, survey, code, declared);
    // In the heap an array that is NULL has no items, which need no mark then.
    let has_null = seen.has_null_items || !survey.is_seen || (count.is_some() && seen.nulls > 0);
    let (code, null) = match code {
        // Bits have no NULL, and astropy reads none in the heap.
        Code::Bit if count.is_none() || has_null => (Code::Logical, None),
        code if code.is_integer() => whole(field, seen, survey, code, has_null)?,
        code => (code, None),
    };
    let too_large = || WriteError::TooLarge { what: "the heap in bytes", limit: i64::MAX as u64 };
    let heap = code.bytes(seen.units).ok_or_else(too_large)?;
    let fixed = code.bytes(count.unwrap_or(0)).ok_or_else(too_large)?.saturating_mul(survey.rows);
    let count = count.filter(|_| code == Code::Bit || !is_worth_a_heap(fixed, heap, survey.rows));
    let Some(count) = count else {
        if !survey.is_seen {
            return Err(unknown_length(field));
        }
        let form = Form { place: Place::Heap32(Some(seen.longest)), ..Form::row(code, 1) };
        return Ok((Plan { null, ..Plan::of(form) }, heap));
    };
    // One item without dimensions would be read as no array (FITS 4.0 7.3.2, TDIM).
    let is_shape = dims.iter().product::<u64>() == count && (dims.len() > 1 || count == 1);
    let dims = if is_shape { dims } else { Vec::new() };
    Ok((Plan { null, dims, ..Plan::of(Form::row(code, count)) }, 0))
}

/// The number of items that every array has, where a row of so many items can also say NULL as far as that
/// occurs.
fn common_length(seen: &Seen, survey: &Survey, code: Code, declared: Option<u64>) -> Option<u64> {
    let has_nan = matches!(code, Code::Float | Code::Double | Code::FloatComplex | Code::DoubleComplex);
    if !survey.is_seen {
        return declared;
    }
    let is_constant = seen.shortest == seen.longest && seen.longest > 0;
    let can_be_null = seen.nulls == 0 || has_nan || declared == Some(seen.longest);
    (is_constant && can_be_null).then_some(seen.longest)
}

/// The dimensions of an array of so many items and, where all are declared, their product. A last dimension
/// that is open is what the number of items makes it.
fn shape(size: &Size, items: u64) -> (Vec<u64>, Option<u64>) {
    match size {
        Size::One | Size::Variable(_) => (vec![items], None),
        Size::Fixed(count) => (vec![u64::from(*count)], Some(u64::from(*count))),
        Size::Shape(fixed, last) => {
            let mut dims: Vec<u64> = fixed.iter().map(|&dim| u64::from(dim)).collect();
            let product = dims.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim));
            let Some(product) = product.filter(|&product| product > 0) else { return (vec![items], None) };
            dims.push(last.map_or(items / product, u64::from));
            let is_whole = last.is_some() || items.is_multiple_of(product);
            let dims = if is_whole { dims } else { vec![items] };
            (dims, last.and_then(|last| product.checked_mul(u64::from(last))))
        }
    }
}

fn unknown_length(field: &Field) -> WriteError {
    let reason = "the column does not say how long its values are";
    WriteError::Value { row: 0, column: field.name.clone(), reason }
}
