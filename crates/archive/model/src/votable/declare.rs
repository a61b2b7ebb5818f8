//! What a FIELD says of its type: `datatype`, `arraysize`, `xtype` (VOTable 1.5 sections 2.1, 2.2 and 4.1).

use std::borrow::Cow;
use std::sync::Arc;

use trifid_archive_adql::types::{Element, Field, Size, Type};

use super::limits;
use super::writer::Serialization;
use crate::batch::{element, scalar};

/// The attributes of a FIELD that tell its type.
pub(crate) struct Declared {
    pub(crate) datatype: &'static str,
    pub(crate) arraysize: Option<String>,
    pub(crate) xtype: Option<Arc<str>>,
    /// The value that stands for NULL: `VALUES null`.
    pub(crate) null: Option<i64>,
}

/// How a column is declared in a serialisation.
pub(crate) fn declare(field: &Field, serialization: Serialization) -> Declared {
    let datatype = match field.ty {
        Type::UnsignedByte if serialization == Serialization::Binary => "short",
        Type::Bit if !is_bit(serialization) => "boolean",
        ty => datatype(ty, field.unicode),
    };
    let json = is_json(field);
    Declared {
        datatype,
        arraysize: arraysize(field, serialization),
        xtype: if json { Some(Arc::from("json")) } else { field.xtype.clone() },
        null: null(field.ty, serialization),
    }
}

/// Whether a bit alone is declared `bit`. In the binary forms it is declared `boolean`: of what common tools read there
/// one fails at a single bit and another looks for it in the wrong place.
pub(super) fn is_bit(serialization: Serialization) -> bool {
    serialization == Serialization::TableData
}

/// Whether a column is an array of strings without a common length, which VOTable does not have: it is written as
/// a JSON array (DALI 1.2, xtype `json`). So are strings whose common length would make each of them huge.
pub(super) fn is_json(field: &Field) -> bool {
    let has_width = |fixed: &[u32]| fixed.first().is_some_and(|&width| width as usize <= limits::FIXED_ITEMS);
    matches!(field.ty, Type::Array(Element::Text))
        && !matches!(&field.size, Size::Shape(fixed, _) if has_width(fixed))
}

/// The size that is declared: the column's own, unless it is fixed and a NULL could not be told, as of bytes in BINARY,
/// or would cost more than a small array does; then it is declared variable.
pub(super) fn declared_size(field: &Field, serialization: Serialization) -> Cow<'_, Size> {
    let is_mute = serialization == Serialization::Binary && field.ty == Type::Array(Element::UnsignedByte);
    let is_fit = |count: u64| !is_mute && count <= limits::FIXED_ITEMS as u64;
    match &field.size {
        Size::Fixed(count) if !is_fit(u64::from(*count)) => Cow::Owned(Size::Variable(Some(*count))),
        Size::Shape(fixed, Some(last)) => {
            let count =
                fixed.iter().fold(u64::from(*last), |count, &size| count.saturating_mul(u64::from(size)));
            if is_fit(count) {
                Cow::Borrowed(&field.size)
            } else {
                Cow::Owned(Size::Shape(fixed.clone(), None))
            }
        }
        size => Cow::Borrowed(size),
    }
}

/// The value given up for NULL (VOTable 1.5 section 5.5), of a column or of the items of an array. TABLEDATA and
/// BINARY2 need none for scalars: an empty cell and the mask say it.
pub(super) fn null(ty: Type, serialization: Serialization) -> Option<i64> {
    let binary = serialization == Serialization::Binary;
    match ty {
        Type::UnsignedByte | Type::Short if binary => Some(i64::from(i16::MIN)),
        Type::Int if binary => Some(i64::from(i32::MIN)),
        Type::Long if binary => Some(i64::MIN),
        Type::Array(Element::Short) => Some(i64::from(i16::MIN)),
        Type::Array(Element::Int) => Some(i64::from(i32::MIN)),
        Type::Array(Element::Long) => Some(i64::MIN),
        _ => None,
    }
}

/// The `datatype` of a column, as TAP_SCHEMA and VOSI name it.
pub fn datatype_of(field: &Field) -> &'static str {
    datatype(field.ty, field.unicode)
}

const fn datatype(ty: Type, unicode: bool) -> &'static str {
    match ty {
        Type::Boolean => "boolean",
        Type::Bit => "bit",
        Type::UnsignedByte => "unsignedByte",
        Type::Short => "short",
        Type::Int => "int",
        Type::Long => "long",
        Type::Float => "float",
        Type::Double | Type::Point | Type::Circle | Type::Polygon => "double",
        Type::FloatComplex => "floatComplex",
        Type::DoubleComplex => "doubleComplex",
        Type::Null | Type::Text | Type::Timestamp | Type::Region => {
            if unicode {
                "unicodeChar"
            } else {
                "char"
            }
        }
        Type::Array(element) => datatype(scalar(element), unicode),
    }
}

/// The `arraysize` of a column, as TAP_SCHEMA and VOSI name it.
pub fn arraysize_of(field: &Field) -> Option<String> {
    arraysize(field, Serialization::Binary2)
}

fn arraysize(field: &Field, serialization: Serialization) -> Option<String> {
    let fallback = match field.ty {
        Type::Point => return Some("2".into()),
        Type::Circle => return Some("3".into()),
        Type::Null => return Some("*".into()),
        Type::Array(Element::Text) if is_json(field) => return Some("*".into()),
        Type::Timestamp | Type::Region | Type::Polygon | Type::Array(_) => Some("*".into()),
        _ => None,
    };
    if let (Type::Text, Size::Fixed(1)) = (field.ty, &field.size) {
        // One character is a scalar (VOTable 1.3 erratum 3).
        return None;
    }
    if let (Type::Array(_), Size::Fixed(1)) = (field.ty, &field.size) {
        // VOTable 1.5 section 2.2: clients disagree on what `1` alone means.
        return Some("1*".into());
    }
    let is_sized = fallback.is_some() || field.ty == Type::Text;
    if is_sized && field.size != Size::One {
        Some(declared_size(field, serialization).to_string())
    } else {
        fallback
    }
}

/// The size that an `arraysize` tells (VOTable 1.5 section 2.2): `5`, `*`, `5*`, `3x4`, `3x*`. The most that a
/// variable last dimension of several holds is not kept.
pub(crate) fn size(arraysize: &str) -> Option<Size> {
    let text = arraysize.trim();
    if text.is_empty() {
        return Some(Size::One);
    }
    let mut dimensions = text.split('x').collect::<Vec<_>>();
    if dimensions.len() > limits::DIMENSIONS {
        return None;
    }
    let last = dimensions.pop()?.trim();
    let fixed = dimensions.into_iter().map(dimension).collect::<Option<Box<[u32]>>>()?;
    let (last, variable) = match last.strip_suffix('*') {
        Some(most) => (most.trim(), true),
        None => (last, false),
    };
    let most = if last.is_empty() && variable { None } else { Some(dimension(last)?) };
    Some(match (fixed.is_empty(), variable, most) {
        (true, true, most) => Size::Variable(most),
        (true, false, Some(count)) => Size::Fixed(count),
        (false, false, Some(count)) => Size::Shape(fixed, Some(count)),
        (false, true, _) => Size::Shape(fixed, None),
        (_, false, None) => return None,
    })
}

fn dimension(text: &str) -> Option<u32> {
    let text = text.trim();
    // `parse` alone would take a sign.
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// The type that a FIELD's attributes tell, and whether its text is `unicodeChar`; nothing for an unknown datatype.
pub(crate) fn type_of(datatype: &str, size: &Size, xtype: Option<&str>) -> Option<(Type, bool)> {
    let ty = match datatype.trim() {
        "boolean" => Type::Boolean,
        "bit" => Type::Bit,
        "unsignedByte" => Type::UnsignedByte,
        "short" => Type::Short,
        "int" => Type::Int,
        "long" => Type::Long,
        "float" => Type::Float,
        "double" => Type::Double,
        "floatComplex" => Type::FloatComplex,
        "doubleComplex" => Type::DoubleComplex,
        "char" => return Some((text(size, xtype), false)),
        "unicodeChar" => return Some((text(size, xtype), true)),
        _ => return None,
    };
    Some((if *size == Size::One { ty } else { array(ty, size, xtype) }, false))
}

/// Text, unless its xtype says what it tells (DALI 1.1 section 3.3, TAP 1.1 3.5, TAP 1.0 section 2.5).
fn text(size: &Size, xtype: Option<&str>) -> Type {
    match (size, xtype) {
        (Size::Shape(..), _) => Type::Array(Element::Text),
        (Size::One, _) => Type::Text,
        (_, Some("timestamp" | "adql:TIMESTAMP")) => Type::Timestamp,
        (_, Some("shape" | "adql:REGION" | "adql:POINT" | "adql:CIRCLE" | "adql:POLYGON")) => Type::Region,
        _ => Type::Text,
    }
}

/// An array, unless its xtype says that it is a geometry (DALI 1.1 sections 3.3.5 to 3.3.7). Reals of both widths
/// are taken; a geometry is of `double` from then on.
fn array(ty: Type, size: &Size, xtype: Option<&str>) -> Type {
    let is_real = matches!(ty, Type::Float | Type::Double);
    match (size, xtype) {
        (Size::Fixed(2), Some("point")) if is_real => Type::Point,
        (Size::Fixed(3), Some("circle")) if is_real => Type::Circle,
        (Size::Variable(_) | Size::Fixed(_), Some("polygon")) if is_real => Type::Polygon,
        _ => element(ty).map_or(ty, Type::Array),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arraysize: &str, expected: Option<Size>) {
        assert_eq!(size(arraysize), expected, "{arraysize}");
        if let Some(size_) = expected {
            assert_eq!(size(&size_.to_string()), Some(size_));
        }
    }

    #[test]
    fn arraysize_has_these_forms() {
        check("", Some(Size::One));
        check("*", Some(Size::Variable(None)));
        check("12*", Some(Size::Variable(Some(12))));
        check(" 12 ", Some(Size::Fixed(12)));
        check("1", Some(Size::Fixed(1)));
        check("3x4", Some(Size::Shape([3].into(), Some(4))));
        check("3x4x*", Some(Size::Shape([3, 4].into(), None)));
        check("3x4x5*", Some(Size::Shape([3, 4].into(), None)));
        for wrong in ["x", "3x", "*x3", "-1", "+1", "3,4", "a", "**", "99999999999"] {
            check(wrong, None);
        }
        check(&"2x".repeat(limits::DIMENSIONS), None);
    }

    #[test]
    fn xtypes_make_types() {
        let of = |datatype, arraysize, xtype| type_of(datatype, &size(arraysize).unwrap(), xtype);
        assert_eq!(of("double", "2", Some("point")), Some((Type::Point, false)));
        assert_eq!(of("float", "3", Some("circle")), Some((Type::Circle, false)));
        assert_eq!(of("double", "*", Some("polygon")), Some((Type::Polygon, false)));
        assert_eq!(of("double", "2", Some("interval")), Some((Type::Array(Element::Double), false)));
        assert_eq!(of("char", "*", Some("timestamp")), Some((Type::Timestamp, false)));
        assert_eq!(of("unicodeChar", "*", Some("adql:REGION")), Some((Type::Region, true)));
        assert_eq!(of("char", "*", Some("moc")), Some((Type::Text, false)));
        assert_eq!(of("char", "8x*", None), Some((Type::Array(Element::Text), false)));
        assert_eq!(of("int", "", Some("timestamp")), Some((Type::Int, false)));
        assert_eq!(of("string", "*", None), None);
    }
}
