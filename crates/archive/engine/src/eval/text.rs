//! `||`, LOWER, UPPER, LEFT, and the functions that look for words.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::types::Int64Type;
use arrow_array::{Array as _, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use trifid_archive_adql::types::Type;

use super::cells::{Cells, Shape, any_null, boolean_array, bounded, nulls, primitive, searched_for, texts};
use super::compare::each;
use super::like::fold;
use crate::error::QueryError;

/// `||` of all, NULL if one is.
pub(super) fn concat(parts: &[Cells], rows: usize) -> Result<Cells, QueryError> {
    let operands: Vec<&Cells> = parts.iter().collect();
    if any_null(&operands) {
        return Ok(Cells::null(Type::Text, rows));
    }
    let shape = Shape::of(&operands, rows);
    let arrays = parts.iter().map(texts).collect::<Result<Vec<_>, _>>()?;
    let sizes = parts.iter().zip(&arrays).map(|(part, array)| match part.is_constant() {
        true => array.value_length(0) as usize * shape.len,
        false => bytes(array).len(),
    });
    let size = sizes.sum();
    bounded(size)?;
    let mut builder = StringBuilder::with_capacity(shape.len, size);
    let nulls = nulls(&operands, shape);
    for row in 0..shape.len {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            builder.append_null();
            continue;
        }
        for (part, array) in parts.iter().zip(&arrays) {
            let _ = builder.write_str(array.value(part.place(row)));
        }
        builder.append_value("");
    }
    Ok(shape.cells(Arc::new(builder.finish())))
}

/// A text made of each text.
fn rewrite(operand: &Cells, f: impl Fn(&str, &mut StringBuilder)) -> Result<Cells, QueryError> {
    if operand.is_null() {
        return Ok(Cells::null(Type::Text, operand.rows()));
    }
    let array = texts(operand)?;
    let shape = Shape::of(&[operand], operand.rows());
    let mut builder = StringBuilder::with_capacity(array.len(), bytes(array).len());
    for row in 0..array.len() {
        if array.is_null(row) {
            builder.append_null();
            continue;
        }
        f(array.value(row), &mut builder);
        builder.append_value("");
        bounded(builder.values_slice().len())?;
    }
    Ok(shape.cells(Arc::new(builder.finish())))
}

/// LOWER, by Unicode's full mapping.
pub(super) fn lower(operand: &Cells) -> Result<Cells, QueryError> {
    // A capital sigma at the end of a word has a lower case of its own: not letter by letter.
    letters(operand, u8::to_ascii_lowercase, |text, out| {
        let _ = out.write_str(&text.to_lowercase());
    })
}

/// UPPER, by Unicode's full mapping.
pub(super) fn upper(operand: &Cells) -> Result<Cells, QueryError> {
    letters(operand, u8::to_ascii_uppercase, |text, out| {
        for c in text.chars().flat_map(char::to_uppercase) {
            let _ = out.write_char(c);
        }
    })
}

/// Texts with other letters: all bytes in one go where all are ASCII, else text by text.
fn letters(
    operand: &Cells,
    ascii: impl Fn(&u8) -> u8,
    other: impl Fn(&str, &mut StringBuilder),
) -> Result<Cells, QueryError> {
    if operand.is_null() {
        return Ok(Cells::null(Type::Text, operand.rows()));
    }
    let array = texts(operand)?;
    let (first, bytes) = (array.value_offsets()[0], bytes(array));
    if !bytes.is_ascii() {
        return rewrite(operand, other);
    }
    let offsets = array.value_offsets().iter().map(|offset| offset - first).collect::<Vec<i32>>();
    let values: Vec<u8> = bytes.iter().map(ascii).collect();
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    let changed = StringArray::new(offsets, Buffer::from_vec(values), array.nulls().cloned());
    Ok(Shape::of(&[operand], operand.rows()).cells(Arc::new(changed)))
}

/// The bytes of all texts of an array.
fn bytes(array: &StringArray) -> &[u8] {
    let offsets = array.value_offsets();
    &array.value_data()[offsets[0] as usize..offsets[array.len()] as usize]
}

/// LEFT: so many characters from the front.
pub(super) fn left(text: &Cells, count: &Cells) -> Result<Cells, QueryError> {
    if any_null(&[text, count]) {
        return Ok(Cells::null(Type::Text, text.rows()));
    }
    let shape = Shape::of(&[text, count], text.rows());
    let (array, counts) = (texts(text)?, primitive::<Int64Type>(count)?);
    let nulls = nulls(&[text, count], shape);
    let cut = |row: usize| {
        let valid = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        valid.then(|| front(array.value(text.place(row)), counts.value(count.place(row))))
    };
    let taken: StringArray = (0..shape.len).map(cut).collect();
    Ok(shape.cells(Arc::new(taken)))
}

fn front(text: &str, count: i64) -> &str {
    let count = usize::try_from(count).unwrap_or(0);
    // A character takes at least a byte.
    if text.len() <= count {
        return text;
    }
    text.char_indices().nth(count).map_or(text, |(end, _)| &text[..end])
}

/// The truth of `f` for every pair of a text and what is sought in it.
pub(super) fn pairs(
    left: &Cells,
    right: &Cells,
    f: impl Fn(&str, &str) -> bool,
) -> Result<Cells, QueryError> {
    if any_null(&[left, right]) {
        return Ok(Cells::null(Type::Boolean, left.rows()));
    }
    let shape = Shape::of(&[left, right], left.rows());
    let (a, b) = (texts(left)?, searched_for(right)?);
    let values = each(shape.len, |row| f(a.value(left.place(row)), b.value(right.place(row))));
    Ok(shape.cells(boolean_array(values, nulls(&[left, right], shape))))
}

/// `ivo_hasword`: whether every word of the needle is one of the haystack's, ignoring case. Words are what
/// stands between characters that are neither letters nor digits.
pub(super) fn has_word(haystack: &str, needle: &str) -> bool {
    words(needle).all(|wanted| words(haystack).any(|word| same_folded(word, wanted)))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Whether two texts are the same but for case.
pub(super) fn same_folded(a: &str, b: &str) -> bool {
    a.chars().map(fold).eq(b.chars().map(fold))
}

/// `ivo_hashlist_has`: whether an item is in a list whose items are parted by `#`, ignoring case.
pub(super) fn hash_list_has(list: &str, item: &str) -> bool {
    list.split('#').any(|one| same_folded(one, item))
}
