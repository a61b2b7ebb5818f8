//! A payload of the journal: one change of an entity or of a hosted context, as `docs/context-store-format.md`
//! draws it.
//!
//! The payload at its position is the change event: it carries the entity after the change and every touched
//! instance as it was before, in canonical form, so that whoever reads the journal needs nothing else.

use bytes::Bytes;
use trifid_context_engine::contexts::{HostedContext, Kind};
use trifid_context_engine::journal::Entry;
use trifid_context_model::canonical;
use trifid_context_model::record::Record;
use trifid_context_model::symbol::Symbols;
use trifid_context_model::time::Instant;
use trifid_context_model::update::{Effect, Touched};

use super::encoding::{Cursor, Malformed, put_filled, put_none, put_text};

const VERSION: u8 = 1;
const CHANGE: u8 = 1;
const KEPT: u8 = 2;
const FORGOTTEN: u8 = 3;
/// Set in an effect when the content differs from before.
const CHANGED: u8 = 128;

/// A payload read back; texts are lent by its bytes.
#[derive(Debug)]
pub(super) enum Payload<'a> {
    Change(Change<'a>),
    Kept(HostedContext),
    Forgotten { tenant: &'a str, local_id: &'a str },
}

/// A change of an entity.
#[derive(Debug)]
pub(super) struct Change<'a> {
    pub(super) tenant: &'a str,
    pub(super) id: &'a str,
    /// Canonical form; `None` when the entity is gone.
    pub(super) after: Option<&'a [u8]>,
}

/// Why a payload cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PayloadError {
    #[error("written in version {0}; this program reads version {VERSION}")]
    Version(u8),
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// Appends the payload of an entity's change.
pub(super) fn put_change(entry: &Entry<'_>, symbols: &Symbols, out: &mut Vec<u8>) {
    out.extend_from_slice(&[VERSION, CHANGE]);
    put_text(out, entry.tenant.as_str());
    out.extend_from_slice(&entry.now.0.to_le_bytes());
    put_text(out, entry.id);
    match entry.after {
        Some(record) => put_filled(out, |out| canonical::write(record, symbols, out)),
        None => put_none(out),
    }
    out.extend_from_slice(&(entry.touched.len() as u32).to_le_bytes());
    for touched in entry.touched {
        put_touched(touched, entry.before, symbols, out);
    }
}

fn put_touched(touched: &Touched, before: Option<&Record>, symbols: &Symbols, out: &mut Vec<u8>) {
    let effect = match touched.effect {
        Effect::Created => 1,
        Effect::Updated => 2,
        Effect::Deleted => 3,
    };
    out.push(if touched.changed { effect | CHANGED } else { effect });
    put_text(out, symbols.name(touched.name));
    match &touched.dataset {
        Some(dataset) => put_text(out, dataset),
        None => put_none(out),
    }
    let same = |record: &Record| {
        let mut instances = record.attribute(touched.name);
        let found = instances.find(|instance| instance.dataset() == touched.dataset.as_deref());
        found.map(|instance| {
            let mut bytes = Vec::new();
            canonical::write_instance(instance, symbols, &mut bytes);
            bytes
        })
    };
    match before.and_then(same) {
        Some(bytes) => put_filled(out, |out| out.extend_from_slice(&bytes)),
        None => put_none(out),
    }
}

/// Appends the payload that keeps a hosted context.
pub(super) fn put_kept(context: &HostedContext, out: &mut Vec<u8>) {
    out.extend_from_slice(&[VERSION, KEPT]);
    put_context(context, out);
}

/// Appends the payload that forgets one.
pub(super) fn put_forgotten(tenant: &str, local_id: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&[VERSION, FORGOTTEN]);
    put_text(out, tenant);
    put_text(out, local_id);
}

/// Appends a hosted context, as payloads and snapshots have it.
pub(super) fn put_context(context: &HostedContext, out: &mut Vec<u8>) {
    put_text(out, &context.tenant);
    put_text(out, &context.local_id);
    out.push(match context.kind {
        Kind::Hosted => 1,
        Kind::ImplicitlyCreated => 2,
        Kind::Cached => unreachable!("a copy of a document elsewhere is not hosted here"),
    });
    out.extend_from_slice(&context.created_at.0.to_le_bytes());
    put_filled(out, |out| out.extend_from_slice(&context.text));
}

/// Reads a hosted context.
pub(super) fn read_context(bytes: &[u8]) -> Result<HostedContext, Malformed> {
    let mut cursor = Cursor(bytes);
    let context = HostedContext {
        tenant: cursor.text()?.into(),
        local_id: cursor.text()?.into(),
        kind: match cursor.byte()? {
            1 => Kind::Hosted,
            2 => Kind::ImplicitlyCreated,
            _ => return Err(Malformed("has a context of an unknown kind")),
        },
        created_at: Instant(cursor.i64()?),
        text: Bytes::copy_from_slice(cursor.bytes()?),
    };
    cursor.end()?;
    Ok(context)
}

/// Reads a payload.
pub(super) fn read(bytes: &[u8]) -> Result<Payload<'_>, PayloadError> {
    let mut cursor = Cursor(bytes);
    match cursor.byte()? {
        VERSION => {}
        version => return Err(PayloadError::Version(version)),
    }
    match cursor.byte()? {
        CHANGE => Ok(Payload::Change(read_change(cursor)?)),
        KEPT => Ok(Payload::Kept(read_context(cursor.0)?)),
        FORGOTTEN => {
            let (tenant, local_id) = (cursor.text()?, cursor.text()?);
            cursor.end()?;
            Ok(Payload::Forgotten { tenant, local_id })
        }
        _ => Err(Malformed("is of an unknown kind").into()),
    }
}

fn read_change(mut cursor: Cursor<'_>) -> Result<Change<'_>, Malformed> {
    let tenant = cursor.text()?;
    let _now = cursor.i64()?;
    let change = Change { tenant, id: cursor.text()?, after: cursor.optional_bytes()? };
    for _ in 0..cursor.u32()? {
        if !matches!(cursor.byte()? & !CHANGED, 1..=3) {
            return Err(Malformed("has an unknown effect"));
        }
        cursor.text()?;
        cursor.optional_text()?;
        cursor.optional_bytes()?;
    }
    cursor.end()?;
    Ok(change)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn context(tenant: &str, text: &[u8]) -> HostedContext {
        HostedContext {
            tenant: tenant.into(),
            local_id: "id".into(),
            kind: Kind::ImplicitlyCreated,
            text: Bytes::copy_from_slice(text),
            created_at: Instant(-5),
        }
    }

    fn kept() -> Vec<u8> {
        let mut bytes = Vec::new();
        put_kept(&context("city", b"{}"), &mut bytes);
        bytes
    }

    #[test]
    fn contexts_are_read_back() {
        let Payload::Kept(found) = read(&kept()).unwrap() else { panic!("another kind") };
        assert_eq!(found, context("city", b"{}"));
        let mut bytes = Vec::new();
        put_forgotten("city", "id", &mut bytes);
        assert!(matches!(read(&bytes), Ok(Payload::Forgotten { tenant: "city", local_id: "id" })));
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = kept();
        bytes[0] = 2;
        assert_eq!(read(&bytes).unwrap_err(), PayloadError::Version(2));
    }

    #[test]
    fn a_payload_that_ends_early_or_late_is_malformed() {
        let whole = kept();
        for len in 0..whole.len() {
            assert!(matches!(read(&whole[..len]), Err(PayloadError::Malformed(_))), "{len}");
        }
        let late = [whole, vec![0]].concat();
        assert_eq!(read(&late).unwrap_err(), Malformed("goes on after its end").into());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(kind in 0..5u8, bytes: Vec<u8>) {
            let _ = read(&[&[VERSION, kind][..], &bytes].concat());
        }
    }
}
