//! The form in which entities lie on disk: NGSI-LD itself, normalized, with every system attribute and every
//! name as a full IRI, so that it depends on no context and on no table of symbols.
//!
//! ```text
//! {"format":1,"id":"urn:...","type":["https://..."],"scope":["/a"],
//!  "createdAt":"...","modifiedAt":"...","expiresAt":"...",
//!  "https://.../speed":[<instance>,...], ...}
//! instance = {<fragment>,"objectType":["https://..."],"createdAt":"...","modifiedAt":"...","expiresAt":"...",
//!             "https://.../source":<instance>, ...}
//! ```
//!
//! Fragments are copied as they stand in the record; times keep their microseconds. What [`write()`] writes
//! [`read`] reads back into the same record, byte for byte. A member that is missing, unknown or of another
//! kind is refused, as is white space: such a text is damaged, or of a version to come. Reading costs one pass
//! for the tape and one over it; it interns names and allocates a buffer for the instances and the record.
//!
//! Instances of one attribute must be neighbours, as records have them: apart they would be one member twice.
//!
//! A name always has a colon, the members of this form never have one. Should a name lack it, or begin with
//! it, one colon is put before it.

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::json::{self, Doc, Value};
use crate::record::{
    Draft, Instance, InstanceDraft, Kind, MAX_SHORT_TEXT, MAX_SLOTS, MAX_TYPES, Record, Slot,
};
use crate::render::stamp::{Stamp, write_text};
use crate::symbol::{Budget, Full, Symbol, Symbols};
use crate::time::Instant;

/// The version of the form that this code writes and reads.
pub const FORMAT: u32 = 1;

/// Why a text is not the canonical form of an entity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalError {
    /// It is not JSON.
    #[error(transparent)]
    Json(#[from] json::Error),
    /// It is of another version of the form.
    #[error("written in format {0}; this version reads format {FORMAT}")]
    Format(String),
    /// A member is missing, has a wrong value or is unknown.
    #[error("member \"{member}\" {problem} at byte {offset}")]
    Member {
        /// The member.
        member: String,
        /// What is wrong with it.
        problem: &'static str,
        /// Where it stands.
        offset: usize,
    },
    /// The table of names is full.
    #[error(transparent)]
    Full(#[from] Full),
}

/// Appends the canonical form of `record`.
pub fn write(record: &Record, symbols: &Symbols, out: &mut Vec<u8>) {
    out.reserve(record.size() * 2);
    let mut writer = Writer { symbols, out, stamp: Stamp::new() };
    writer.raw(br#"{"format":1,"id":"#);
    write_text(writer.out, record.id());
    writer.raw(br#","type":["#);
    writer.list(record.types(), |writer, symbol| write_text(writer.out, writer.symbols.name(symbol)));
    writer.raw(b"]");
    if record.scopes().len() > 0 {
        writer.raw(br#","scope":["#);
        writer.list(record.scopes(), |writer, scope| write_text(writer.out, scope));
        writer.raw(b"]");
    }
    writer.times(record.created(), record.modified(), record.expires());
    writer.attributes(record.instances());
    writer.raw(b"}");
}

/// Appends one instance alone, as an object with the attribute's name as its only member.
pub fn write_instance(instance: Instance<'_>, symbols: &Symbols, out: &mut Vec<u8>) {
    out.reserve(instance.bytes().len() * 2);
    let mut writer = Writer { symbols, out, stamp: Stamp::new() };
    writer.raw(b"{");
    writer.name(instance.name());
    writer.instance(instance);
    writer.raw(b"}");
}

struct Writer<'w> {
    symbols: &'w Symbols,
    out: &'w mut Vec<u8>,
    stamp: Stamp,
}

impl Writer<'_> {
    fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    fn list<T>(&mut self, items: impl Iterator<Item = T>, mut write: impl FnMut(&mut Self, T)) {
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.raw(b",");
            }
            write(self, item);
        }
    }

    /// `"<name>":`
    fn name(&mut self, symbol: Symbol) {
        let name = self.symbols.name(symbol);
        if memchr::memchr(b':', name.as_bytes()).is_some_and(|at| at > 0) {
            write_text(self.out, name);
        } else {
            write_text(self.out, &[":", name].concat());
        }
        self.raw(b":");
    }

    fn times(&mut self, created: Instant, modified: Instant, expires: Option<Instant>) {
        self.raw(br#","createdAt":"#);
        self.stamp.write(self.out, created);
        self.raw(br#","modifiedAt":"#);
        self.stamp.write(self.out, modified);
        if let Some(expires) = expires {
            self.raw(br#","expiresAt":"#);
            self.stamp.write(self.out, expires);
        }
    }

    /// `,"<name>":<instance>` for each name, with an array where a name has several instances.
    fn attributes<'i>(&mut self, instances: impl Iterator<Item = Instance<'i>>) {
        let mut run: Option<(Symbol, usize, bool)> = None;
        for instance in instances {
            match &mut run {
                Some((name, start, list)) if *name == instance.name() => {
                    if !std::mem::replace(list, true) {
                        self.out.insert(*start, b'[');
                    }
                    self.raw(b",");
                }
                _ => {
                    self.end(run);
                    self.raw(b",");
                    self.name(instance.name());
                    run = Some((instance.name(), self.out.len(), false));
                }
            }
            self.instance(instance);
        }
        self.end(run);
    }

    fn end(&mut self, run: Option<(Symbol, usize, bool)>) {
        if let Some((_, _, true)) = run {
            self.raw(b"]");
        }
    }

    fn instance(&mut self, instance: Instance<'_>) {
        self.raw(b"{");
        self.raw(instance.fragment_bytes());
        if instance.has_slots() {
            self.slots(instance);
        }
        self.times(instance.created(), instance.modified(), instance.expires());
        if instance.has_subs() {
            self.attributes(instance.subs());
        }
        self.raw(b"}");
    }

    /// `,"objectType":["<name>"]` and its like, in the order in which the record has them.
    fn slots(&mut self, instance: Instance<'_>) {
        for (index, (slot, _)) in instance.slots().enumerate() {
            if instance.slots().take(index).any(|(earlier, _)| earlier == slot) {
                continue;
            }
            self.raw(b",\"");
            self.raw(slot.member().as_bytes());
            self.raw(b"\":[");
            let names = instance.slots().filter(|(own, _)| *own == slot).map(|(_, symbol)| symbol);
            self.list(names, |writer, symbol| write_text(writer.out, writer.symbols.name(symbol)));
            self.raw(b"]");
        }
    }
}

/// Reads the canonical form of an entity; new names are introduced at the cost of `budget`.
pub fn read(bytes: &[u8], symbols: &Symbols, budget: &Budget) -> Result<Record, CanonicalError> {
    let doc = parse(bytes)?;
    let mut reader = Reader { symbols, budget, known: [("", Instant(0)); 2] };
    reader.entity(doc.root())
}

/// Reads what [`write_instance`] wrote: an encoded instance, as [`Draft`] takes it.
pub fn read_instance(bytes: &[u8], symbols: &Symbols, budget: &Budget) -> Result<Vec<u8>, CanonicalError> {
    let doc = parse(bytes)?;
    let mut members = doc.root().members();
    let (Some((name, value)), None) = (members.next(), members.next()) else {
        return Err(refusal("", "is not the one member of an object", doc.root()));
    };
    let mut reader = Reader { symbols, budget, known: [("", Instant(0)); 2] };
    let symbol = reader.name(&name, value)?;
    let mut out = Vec::with_capacity(bytes.len());
    reader.instance(&name, value)?.encode(symbol, &mut out);
    Ok(out)
}

/// White space would end up in fragments; this form has none.
fn parse(bytes: &[u8]) -> Result<Doc<'_>, CanonicalError> {
    let doc = Doc::parse_within(bytes, DEPTH)?;
    let root = doc.root();
    if !root.is_object() || root.raw().len() != bytes.len() || matches!(root.minified(), Cow::Owned(_)) {
        return Err(refusal("", "has white space around it or is no object", root));
    }
    Ok(doc)
}

/// Wrapping a bare value and putting fragments together make an entity deeper than any request may be.
const DEPTH: usize = 2 * json::MAX_DEPTH;

#[cold]
fn refusal(member: &str, problem: &'static str, value: Value<'_>) -> CanonicalError {
    CanonicalError::Member { member: member.to_owned(), problem, offset: value.offset() }
}

struct Reader<'c, 'd> {
    symbols: &'c Symbols,
    budget: &'c Budget,
    /// The last two instants read: the system attributes of one entity are mostly equal.
    known: [(&'d str, Instant); 2],
}

/// `createdAt`, `modifiedAt`, `expiresAt`.
#[derive(Default)]
struct Times {
    created: Option<Instant>,
    modified: Option<Instant>,
    expires: Option<Instant>,
}

/// Instances encoded one behind the other.
#[derive(Default)]
struct Encoded {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl<'d> Reader<'_, 'd> {
    fn entity(&mut self, root: Value<'d>) -> Result<Record, CanonicalError> {
        let mut members = root.members();
        match members.next() {
            Some((name, format)) if name == "format" && format.raw() == "1" => {}
            Some((name, format)) if name == "format" => {
                return Err(CanonicalError::Format(format.raw().to_owned()));
            }
            _ => return Err(refusal("format", "does not come first", root)),
        }
        let (mut id, mut types, mut scopes) = (None, None, Vec::new());
        let mut times = Times::default();
        let mut encoded = Encoded { bytes: Vec::with_capacity(root.raw().len()), ends: Vec::new() };
        for (name, value) in members {
            if name.contains(':') {
                self.attribute(&name, value, &mut encoded)?;
            } else if name == "id" {
                id = value.as_str();
            } else if name == "type" {
                types = Some(self.names(&name, value, MAX_TYPES)?.into_iter().collect());
            } else if name == "scope" {
                scopes = self.scopes(value)?;
            } else {
                self.time(&name, value, &mut times)?;
            }
        }
        let instances = encoded.slices().map(Cow::Borrowed).collect();
        let draft = Draft {
            id: id.ok_or_else(|| refusal("id", "is missing", root))?,
            types: types.ok_or_else(|| refusal("type", "is missing", root))?,
            scopes,
            created: times.created.ok_or_else(|| refusal("createdAt", "is missing", root))?,
            modified: times.modified.ok_or_else(|| refusal("modifiedAt", "is missing", root))?,
            expires: times.expires,
            instances,
        };
        Ok(draft.encode())
    }

    fn attribute(
        &mut self,
        name: &str,
        value: Value<'d>,
        encoded: &mut Encoded,
    ) -> Result<(), CanonicalError> {
        let symbol = self.name(name, value)?;
        if !value.is_array() {
            encoded.push(symbol, &self.instance(name, value)?);
            return Ok(());
        }
        for item in value.items() {
            encoded.push(symbol, &self.instance(name, item)?);
        }
        Ok(())
    }

    /// One instance: its type, its value, then the other members.
    fn instance(&mut self, name: &str, value: Value<'d>) -> Result<InstanceDraft<'d>, CanonicalError> {
        let mut members = value.members();
        let kind =
            members.next().filter(|(member, _)| member == "type").and_then(|(_, named)| named.as_str());
        let kind = kind.and_then(|named| Kind::from_name(&named));
        let kind =
            kind.ok_or_else(|| refusal(name, "does not begin with the type of an attribute", value))?;
        let (_, inner) = members
            .next()
            .filter(|(member, _)| member == kind.value_member())
            .ok_or_else(|| refusal(name, "does not hold the value of its type", value))?;
        let mut draft = InstanceDraft::new(kind, Cow::Borrowed(inner.raw()));
        let mut times = Times::default();
        for (member, value) in members {
            if member.contains(':') {
                self.sub_attribute(&member, value, &mut draft)?;
            } else {
                self.member(&member, value, &mut draft, &mut times)?;
            }
        }
        draft.created = times.created.ok_or_else(|| refusal(name, "lacks createdAt", value))?;
        draft.modified = times.modified.ok_or_else(|| refusal(name, "lacks modifiedAt", value))?;
        draft.expires = times.expires;
        Ok(draft)
    }

    fn sub_attribute(
        &mut self,
        name: &str,
        value: Value<'d>,
        draft: &mut InstanceDraft<'d>,
    ) -> Result<(), CanonicalError> {
        let symbol = self.name(name, value)?;
        if !value.is_array() {
            draft.subs.push((symbol, self.instance(name, value)?));
            return Ok(());
        }
        for item in value.items() {
            draft.subs.push((symbol, self.instance(name, item)?));
        }
        Ok(())
    }

    fn member(
        &mut self,
        name: &str,
        value: Value<'d>,
        draft: &mut InstanceDraft<'d>,
        times: &mut Times,
    ) -> Result<(), CanonicalError> {
        match name {
            "observedAt" => {
                let written = value.as_str().ok_or_else(|| refusal(name, "is no dateTime", value))?;
                draft.observed = Some((self.instant(name, value)?, written));
            }
            "unitCode" => draft.unit_code = Some(Cow::Borrowed(value.raw())),
            "entityIdSealed" => draft.sealed_id = Some(Cow::Borrowed(value.raw())),
            "datasetId" => draft.dataset = Some(short(name, value)?),
            "objectType" => self.slot(Slot::ObjectType, value, draft)?,
            "valueType" => self.slot(Slot::ValueType, value, draft)?,
            "entityTypeSealed" => self.slot(Slot::SealedType, value, draft)?,
            _ => self.time(name, value, times)?,
        }
        Ok(())
    }

    fn slot(
        &mut self,
        slot: Slot,
        value: Value<'d>,
        draft: &mut InstanceDraft<'d>,
    ) -> Result<(), CanonicalError> {
        let room = MAX_SLOTS - draft.slots.len();
        let names = self.names(slot.member(), value, room)?;
        draft.slots.extend(names.into_iter().map(|symbol| (slot, symbol)));
        Ok(())
    }

    fn time(&mut self, name: &str, value: Value<'d>, times: &mut Times) -> Result<(), CanonicalError> {
        let place = match name {
            "createdAt" => &mut times.created,
            "modifiedAt" => &mut times.modified,
            "expiresAt" => &mut times.expires,
            _ => return Err(refusal(name, "is unknown", value)),
        };
        *place = Some(self.instant(name, value)?);
        Ok(())
    }

    fn instant(&mut self, name: &str, value: Value<'d>) -> Result<Instant, CanonicalError> {
        let raw = value.raw();
        if let Some((_, instant)) = self.known.iter().find(|(known, _)| *known == raw) {
            return Ok(*instant);
        }
        let text = value.as_str().ok_or_else(|| refusal(name, "is no dateTime", value))?;
        let instant = Instant::parse(&text).map_err(|_| refusal(name, "is no dateTime", value))?;
        self.known = [(raw, instant), self.known[0]];
        Ok(instant)
    }

    /// The symbol of a member name that is an attribute's.
    fn name(&mut self, name: &str, value: Value<'d>) -> Result<Symbol, CanonicalError> {
        if !name.contains(':') {
            return Err(refusal(name, "is unknown", value));
        }
        Ok(self.symbols.intern(name.strip_prefix(':').unwrap_or(name), self.budget)?)
    }

    fn names(
        &mut self,
        member: &str,
        value: Value<'d>,
        limit: usize,
    ) -> Result<SmallVec<[Symbol; 4]>, CanonicalError> {
        let mut symbols = SmallVec::new();
        for item in value.items() {
            let name = item.as_str().ok_or_else(|| refusal(member, "holds what is no name", item))?;
            symbols.push(self.symbols.intern(&name, self.budget)?);
        }
        if symbols.is_empty() || symbols.len() > limit {
            return Err(refusal(member, "is no list of names, or too long a one", value));
        }
        Ok(symbols)
    }

    fn scopes(&self, value: Value<'d>) -> Result<Vec<Cow<'d, str>>, CanonicalError> {
        let scopes = value.items().map(|item| short("scope", item)).collect::<Result<Vec<_>, _>>()?;
        if scopes.is_empty() || scopes.len() > MAX_TYPES {
            return Err(refusal("scope", "is no list of scopes, or too long a one", value));
        }
        Ok(scopes)
    }
}

fn short<'d>(name: &str, value: Value<'d>) -> Result<Cow<'d, str>, CanonicalError> {
    let text = value.as_str().filter(|text| text.len() <= MAX_SHORT_TEXT);
    text.ok_or_else(|| refusal(name, "is no string, or too long a one", value))
}

impl Encoded {
    fn push(&mut self, name: Symbol, draft: &InstanceDraft<'_>) {
        draft.encode(name, &mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
}

#[cfg(test)]
mod tests;
