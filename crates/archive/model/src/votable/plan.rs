//! How the cells of a column are encoded: what of its declaration matters once rows flow.

use std::sync::Arc;

use trifid_archive_adql::types::{Element, Field, Size, Type};

use super::declare::{declared_size, is_bit, is_json, null};
use super::writer::Serialization;

/// How many items a cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// As many as there are.
    Variable,
    /// Exactly so many.
    Fixed(usize),
    /// A multiple of so many: all dimensions but the last are fixed.
    Multiple(usize),
}

/// A column, ready to be encoded.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) name: Arc<str>,
    pub(super) ty: Type,
    /// The number of items of an array, or of characters of a text.
    pub(super) extent: Extent,
    /// The characters of each string of an array of strings.
    pub(super) width: usize,
    /// Text in UTF-16, two bytes a unit (`unicodeChar`).
    pub(super) wide: bool,
    /// Booleans are declared `bit`.
    pub(super) bits: bool,
    /// An array of strings as JSON.
    pub(super) json: bool,
    /// The value given up for NULL.
    pub(super) null: Option<i64>,
}

impl Plan {
    pub(super) fn new(field: &Field, serialization: Serialization) -> Self {
        let size = declared_size(field, serialization);
        let (width, extent) = match field.ty {
            Type::Array(Element::Text) => strings(&size),
            ty => (0, extent(ty, &size)),
        };
        Self {
            name: Arc::clone(&field.name),
            ty: field.ty,
            extent,
            width,
            wide: field.unicode,
            bits: match field.ty {
                Type::Bit => is_bit(serialization),
                ty => ty == Type::Array(Element::Bit),
            },
            json: is_json(field),
            null: null(field.ty, serialization),
        }
    }

    /// Whether an array of `count` items has the shape that was declared.
    pub(super) fn admits(&self, count: usize) -> bool {
        match self.extent {
            Extent::Variable => true,
            Extent::Fixed(expected) => count == expected,
            Extent::Multiple(of) => count.checked_rem(of).unwrap_or(count) == 0,
        }
    }
}

pub(super) fn extent(ty: Type, size: &Size) -> Extent {
    match size {
        Size::One if ty == Type::Text => Extent::Fixed(1),
        Size::One | Size::Variable(_) => Extent::Variable,
        Size::Fixed(1) if matches!(ty, Type::Array(_)) => Extent::Variable,
        Size::Fixed(count) => Extent::Fixed(*count as usize),
        Size::Shape(fixed, last) => shape(fixed, *last),
    }
}

fn shape(fixed: &[u32], last: Option<u32>) -> Extent {
    let product = fixed.iter().fold(1_usize, |product, &size| product.saturating_mul(size as usize));
    match last {
        Some(last) => Extent::Fixed(product.saturating_mul(last as usize)),
        None if product == 1 => Extent::Variable,
        None => Extent::Multiple(product),
    }
}

/// The first dimension is the length of each string, the others number the strings (VOTable 1.5 section 2.2).
pub(super) fn strings(size: &Size) -> (usize, Extent) {
    match size {
        Size::Shape(fixed, last) if !fixed.is_empty() => (fixed[0] as usize, shape(&fixed[1..], *last)),
        _ => (0, Extent::Variable),
    }
}
