//! Multipart bodies (RFC 7578), as far as TAP needs them: parameters, and files that UPLOAD refers to.
//!
//! The body is in memory already, so a file is a slice of it and nothing is copied. One pass finds the
//! delimiters; what stands before the first and after the last is nobody's (RFC 2046 5.1.1). Broken input is refused
//! and never guessed at, save that a delimiter line may end in a bare line feed, as hand-written requests do.

use std::borrow::Cow;

use bytes::Bytes;
use memchr::memmem;

use crate::fault::Fault;
use crate::form::{File, Form, not_utf8};
use crate::limits::{BOUNDARY_BYTES_MAX, FIELD_BYTES_MAX, PART_HEADER_BYTES_MAX, PARTS_MAX};

/// Adds the parts of `body` to `form`; `media` is the whole `Content-Type`.
pub(crate) fn read<'r>(media: &str, body: &'r Bytes, form: &mut Form<'r>) -> Result<(), Fault> {
    let boundary = parameter(media, "boundary").filter(|boundary| is_boundary(boundary));
    let boundary = boundary.ok_or_else(|| broken("its Content-Type names no boundary"))?;
    let mut parts = Parts::new(body, &boundary)?;
    let mut count = 0;
    while let Some(part) = parts.next()? {
        count += 1;
        if count > PARTS_MAX {
            return Err(Fault::invalid(format!("the multipart body has more than {PARTS_MAX} parts")));
        }
        add(part, form)?;
    }
    Ok(())
}

fn broken(what: &str) -> Fault {
    Fault::invalid(format!("the multipart body is broken: {what}"))
}

fn is_boundary(boundary: &str) -> bool {
    !boundary.is_empty() && boundary.len() <= BOUNDARY_BYTES_MAX && boundary.bytes().all(|byte| byte >= b' ')
}

/// One part: its header, and its content as a slice of the body.
struct Part {
    header: Bytes,
    content: Bytes,
}

/// The parts of a body, one after the other.
struct Parts<'b> {
    body: &'b Bytes,
    delimiter: Vec<u8>,
    /// Where the next part begins, at the byte after its delimiter.
    at: usize,
}

impl<'b> Parts<'b> {
    fn new(body: &'b Bytes, boundary: &str) -> Result<Self, Fault> {
        let delimiter = format!("\r\n--{boundary}").into_bytes();
        // The first delimiter needs no line before it.
        let at = if body.starts_with(&delimiter[2..]) {
            delimiter.len() - 2
        } else {
            let found = memmem::find(body, &delimiter);
            found.ok_or_else(|| broken("its boundary does not occur"))? + delimiter.len()
        };
        Ok(Self { body, delimiter, at })
    }

    fn next(&mut self) -> Result<Option<Part>, Fault> {
        let rest = &self.body[self.at..];
        if rest.starts_with(b"--") {
            return Ok(None);
        }
        // White space may follow a boundary.
        let padding = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let line = match rest.get(padding..) {
            Some([b'\r', b'\n', ..]) => 2,
            Some([b'\n', ..]) => 1,
            _ => return Err(broken("a boundary is not followed by a line end")),
        };
        let start = self.at + padding + line;
        let rest = &self.body[start..];
        let length = if rest.starts_with(&self.delimiter[2..]) {
            return Err(broken("a part has no header"));
        } else {
            memmem::find(rest, &self.delimiter).ok_or_else(|| broken("it ends inside a part"))?
        };
        self.at = start + length + self.delimiter.len();
        let part = self.body.slice(start..start + length);
        let (header, content) = split_header(&part).ok_or_else(|| broken("a part's header does not end"))?;
        Ok(Some(Part { header: part.slice(..header), content: part.slice(content..) }))
    }
}

/// Where a part's header ends and where its content begins.
fn split_header(part: &[u8]) -> Option<(usize, usize)> {
    if part.starts_with(b"\r\n") {
        return Some((0, 2));
    }
    let window = &part[..part.len().min(PART_HEADER_BYTES_MAX)];
    let strict = memmem::find(window, b"\r\n\r\n").map(|at| (at, at + 4));
    let bare = memmem::find(window, b"\n\n").map(|at| (at, at + 2));
    match (strict, bare) {
        (Some(strict), Some(bare)) => Some(strict.min(bare)),
        (strict, bare) => strict.or(bare),
    }
}

fn add<'r>(part: Part, form: &mut Form<'r>) -> Result<(), Fault> {
    let header = std::str::from_utf8(&part.header).map_err(|_| not_utf8())?;
    let disposition = field(header, "content-disposition").unwrap_or_default();
    let name = parameter(disposition, "name").ok_or_else(|| broken("a part has no name"))?.into_owned();
    let media = field(header, "content-type").map(str::to_owned);
    let is_file = parameter(disposition, "filename").is_some() || media.as_deref().is_some_and(is_table);
    if is_file {
        form.files.push(File { part: name, media, bytes: part.content });
        return Ok(());
    }
    if part.content.len() > FIELD_BYTES_MAX {
        return Err(Fault::too_large(format!("the parameter is larger than {FIELD_BYTES_MAX} bytes")));
    }
    let value = std::str::from_utf8(&part.content).map_err(|_| not_utf8())?;
    // A table may come in a part that says neither that it is a file nor what it is; UPLOAD may refer to any part.
    form.push(Cow::Owned(name.clone()), Cow::Owned(value.to_owned()))?;
    form.files.push(File { part: name, media, bytes: part.content });
    Ok(())
}

/// Whether a part of this media type is a file although it has no file name.
fn is_table(media: &str) -> bool {
    !media.trim_start().get(..10).is_some_and(|start| start.eq_ignore_ascii_case("text/plain"))
}

/// The value of a header field.
fn field<'h>(header: &'h str, name: &str) -> Option<&'h str> {
    let fields = header.split('\n').filter_map(|line| line.split_once(':'));
    fields.filter(|(found, _)| found.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
}

/// A parameter of a header field's value, its quotes removed.
fn parameter<'h>(value: &'h str, name: &str) -> Option<Cow<'h, str>> {
    let mut rest = value.split_once(';')?.1;
    loop {
        let (found, after) = rest.split_once('=')?;
        let (text, after) = token(after.trim_start())?;
        if found.trim().eq_ignore_ascii_case(name) {
            return Some(text);
        }
        rest = after.split_once(';')?.1;
    }
}

/// A token or a quoted string, and what follows it.
fn token(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(';').unwrap_or(text.len());
        return Some((Cow::Borrowed(text[..end].trim()), &text[end..]));
    };
    let mut out = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((Cow::Owned(out), &quoted[at + 1..])),
            '\\' => match characters.next()? {
                (_, escaped @ ('"' | '\\')) => out.push(escaped),
                // Browsers send the backslashes of a file name as they are.
                (_, other) => out.extend(['\\', other]),
            },
            other => out.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests;
