//! Small pieces of JSON, appended.

use trifid_context_model::json;

/// Appends a string.
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    json::write_string(out, text);
}

/// Appends a natural number.
pub(crate) fn number(out: &mut Vec<u8>, value: usize) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = value;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a list.
pub(crate) fn array<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut item: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (at, one) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        item(out, one);
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_lists_are_written() {
        let mut out = Vec::new();
        array(&mut out, [0, 7, 10, usize::MAX], number);
        array(&mut out, ["a\"", "b"], string);
        array(&mut out, [], string);
        let expected = format!("[0,7,10,{}][\"a\\\"\",\"b\"][]", usize::MAX);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
