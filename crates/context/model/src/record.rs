//! The entity record: one immutable block of bytes, laid out so that answers are copied rather than built.
//!
//! ```text
//! record   = created i64 | modified i64 | expires i64 | types u16 | scopes u16 | id length u32
//!          | attributes offset u32 | instances u32
//!          | type symbol u32 ... | id | (length u16, scope) ... | instance ...
//! instance = length u32 | name symbol u32 | created i64 | modified i64 | observed i64 | expires i64
//!          | kind u8 | slots u8 | dataset length u16 | value length u32 | fragment length u32
//!          | (slot tag u8, symbol u32) ... | dataset | fragment | sub-attribute instance ...
//! fragment = "type":"Property","value":<value>,"observedAt":"...","unitCode":"...","datasetId":"..."
//! ```
//!
//! All numbers are little endian. Everything whose spelling no `@context` can change stands in the fragment
//! as it will be sent: a normalized attribute without sub-attributes is one copy between braces, concise a
//! suffix of it, simplified its value alone. What a context does change is a symbol: attribute names, types,
//! and the slots (`objectType`, `valueType`). Vocabulary values are kept expanded and compacted when sent.
//! Instances are position independent, so that an update copies the ones it leaves alone.
//!
//! A record is made only by the encoders of this module, never read from disk or network: its numbers are
//! trusted. On disk lies the canonical form ([`crate::canonical`]), from which records are rebuilt.

use std::borrow::Cow;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use smallvec::SmallVec;
use triomphe::ThinArc;

use crate::json;
use crate::symbol::Symbol;
use crate::time::Instant;

mod swap;

/// The attribute kinds of clause 4.5 (4.5.2, 4.5.3, 4.5.18, 4.5.20 to 4.5.24).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the standard's")]
pub enum Kind {
    Property,
    GeoProperty,
    Relationship,
    LanguageProperty,
    VocabProperty,
    JsonProperty,
    ListProperty,
    ListRelationship,
}

/// Spelling of each kind: type name, value member, and the fragment's beginning.
const KINDS: [(Kind, &str, &str, &str); 8] = [
    (Kind::Property, "Property", "value", r#""type":"Property","value":"#),
    (Kind::GeoProperty, "GeoProperty", "value", r#""type":"GeoProperty","value":"#),
    (Kind::Relationship, "Relationship", "object", r#""type":"Relationship","object":"#),
    (
        Kind::LanguageProperty,
        "LanguageProperty",
        "languageMap",
        r#""type":"LanguageProperty","languageMap":"#,
    ),
    (Kind::VocabProperty, "VocabProperty", "vocab", r#""type":"VocabProperty","vocab":"#),
    (Kind::JsonProperty, "JsonProperty", "json", r#""type":"JsonProperty","json":"#),
    (Kind::ListProperty, "ListProperty", "valueList", r#""type":"ListProperty","valueList":"#),
    (Kind::ListRelationship, "ListRelationship", "objectList", r#""type":"ListRelationship","objectList":"#),
];

impl Kind {
    /// The kind named `name`, as in the member `type` of a normalized attribute.
    pub fn from_name(name: &str) -> Option<Kind> {
        KINDS.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// The standard's name of the kind.
    pub fn name(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// The member that carries the value of this kind.
    pub fn value_member(self) -> &'static str {
        KINDS[self as usize].2
    }

    /// `"type":"Property","value":` and its siblings: what stands before the value in a fragment.
    pub(crate) fn prefix(self) -> &'static str {
        KINDS[self as usize].3
    }

    /// Relationship and ListRelationship: their values name other entities.
    pub fn is_relationship(self) -> bool {
        matches!(self, Kind::Relationship | Kind::ListRelationship)
    }

    fn from_byte(byte: u8) -> Kind {
        KINDS[usize::from(byte)].0
    }
}

/// A place in an instance that is spelled by the reader's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Slot {
    /// `objectType` of a Relationship or ListRelationship.
    ObjectType = 1,
    /// `valueType` of a Property.
    ValueType = 2,
    /// `entityTypeSealed` of `ngsildproof` (4.5.2.2).
    SealedType = 3,
}

impl Slot {
    /// The member that the slot fills.
    pub fn member(self) -> &'static str {
        match self {
            Slot::ObjectType => "objectType",
            Slot::ValueType => "valueType",
            Slot::SealedType => "entityTypeSealed",
        }
    }

    fn from_byte(byte: u8) -> Slot {
        match byte {
            1 => Slot::ObjectType,
            2 => Slot::ValueType,
            _ => Slot::SealedType,
        }
    }
}

/// "Not set" in the time fields.
const NEVER: i64 = i64::MIN;
const RECORD_HEADER: usize = 40;
const INSTANCE_HEADER: usize = 52;

fn u16_at(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn len_at(bytes: &[u8], at: usize) -> usize {
    u32_at(bytes, at) as usize
}

fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes were sliced"))
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the encoder wrote whole strings")
}

fn instant_at(bytes: &[u8], at: usize) -> Option<Instant> {
    let micros = i64_at(bytes, at);
    (micros != NEVER).then_some(Instant(micros))
}

/// One entity, immutable; cloning shares it. One pointer wide, so that a store can swap it atomically.
#[derive(Clone)]
pub struct Record(ThinArc<(), u8>);

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record").field("id", &self.id()).field("bytes", &self.size()).finish_non_exhaustive()
    }
}

impl Record {
    fn bytes(&self) -> &[u8] {
        &self.0.slice
    }

    /// The entity's identifier.
    pub fn id(&self) -> &str {
        let from = RECORD_HEADER + 4 * u16_at(self.bytes(), 24);
        text(&self.bytes()[from..from + len_at(self.bytes(), 28)])
    }

    /// The entity's types, in the order they were added.
    pub fn types(&self) -> impl ExactSizeIterator<Item = Symbol> + Clone + '_ {
        let count = u16_at(self.bytes(), 24);
        (0..count).map(|n| Symbol::from_index(u32_at(self.bytes(), RECORD_HEADER + 4 * n)))
    }

    /// The entity's scopes (4.18).
    pub fn scopes(&self) -> Scopes<'_> {
        let at = RECORD_HEADER + 4 * u16_at(self.bytes(), 24) + len_at(self.bytes(), 28);
        Scopes { bytes: &self.bytes()[at..], left: u16_at(self.bytes(), 26) }
    }

    /// When the entity was created.
    pub fn created(&self) -> Instant {
        Instant(i64_at(self.bytes(), 0))
    }

    /// When the entity was last changed.
    pub fn modified(&self) -> Instant {
        Instant(i64_at(self.bytes(), 8))
    }

    /// When the entity ceases to exist (4.22).
    pub fn expires(&self) -> Option<Instant> {
        instant_at(self.bytes(), 16)
    }

    /// All attribute instances; those of one attribute are neighbours.
    pub fn instances(&self) -> Instances<'_> {
        Instances { bytes: &self.bytes()[len_at(self.bytes(), 32)..] }
    }

    /// The instances of the attribute `name`.
    pub fn attribute(&self, name: Symbol) -> impl Iterator<Item = Instance<'_>> + Clone {
        self.instances().filter(move |instance| instance.name() == name)
    }

    /// True when the entity has an attribute `name`.
    pub fn has(&self, name: Symbol) -> bool {
        self.attribute(name).next().is_some()
    }

    /// The distinct attribute names, in order.
    pub fn attribute_names(&self) -> impl Iterator<Item = Symbol> + '_ {
        let mut last = None;
        self.instances()
            .map(|instance| instance.name())
            .filter(move |name| last.replace(*name) != Some(*name))
    }

    /// The first instant at which the entity or one of its attribute instances ceases to exist (4.22).
    pub fn first_expiry(&self) -> Option<Instant> {
        self.instances().filter_map(Instance::expires).chain(self.expires()).min()
    }

    /// Bytes that the record occupies.
    pub fn size(&self) -> usize {
        self.bytes().len()
    }
}

/// Iterator over scopes.
#[derive(Debug, Clone)]
pub struct Scopes<'r> {
    bytes: &'r [u8],
    left: usize,
}

impl<'r> Iterator for Scopes<'r> {
    type Item = &'r str;

    fn next(&mut self) -> Option<&'r str> {
        self.left = self.left.checked_sub(1)?;
        let (own, rest) = self.bytes[2..].split_at(u16_at(self.bytes, 0));
        self.bytes = rest;
        Some(text(own))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Scopes<'_> {}

/// Iterator over attribute (or sub-attribute) instances.
#[derive(Debug, Clone)]
pub struct Instances<'r> {
    bytes: &'r [u8],
}

impl<'r> Iterator for Instances<'r> {
    type Item = Instance<'r>;

    fn next(&mut self) -> Option<Instance<'r>> {
        if self.bytes.is_empty() {
            return None;
        }
        let (own, rest) = self.bytes.split_at(len_at(self.bytes, 0));
        self.bytes = rest;
        Some(Instance(own))
    }
}

/// One instance of an attribute: the default one, or that of a `datasetId` (4.5.5).
#[derive(Clone, Copy)]
pub struct Instance<'r>(&'r [u8]);

impl std::fmt::Debug for Instance<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Instance({}: {{{}}})", self.name().index(), self.fragment())
    }
}

impl<'r> Instance<'r> {
    /// The instance that [`InstanceDraft::encode`] wrote.
    pub(crate) fn of_bytes(bytes: &'r [u8]) -> Self {
        Instance(bytes)
    }

    /// The attribute's name.
    pub fn name(self) -> Symbol {
        Symbol::from_index(u32_at(self.0, 4))
    }

    /// When this instance was created.
    pub fn created(self) -> Instant {
        Instant(i64_at(self.0, 8))
    }

    /// When this instance was last changed.
    pub fn modified(self) -> Instant {
        Instant(i64_at(self.0, 16))
    }

    /// The member `observedAt` as an instant.
    pub fn observed(self) -> Option<Instant> {
        instant_at(self.0, 24)
    }

    /// The member `expiresAt` as an instant.
    pub fn expires(self) -> Option<Instant> {
        instant_at(self.0, 32)
    }

    /// The attribute's kind.
    pub fn kind(self) -> Kind {
        Kind::from_byte(self.0[40])
    }

    fn slots_end(self) -> usize {
        INSTANCE_HEADER + 5 * usize::from(self.0[41])
    }

    fn fragment_start(self) -> usize {
        self.slots_end() + u16_at(self.0, 42)
    }

    /// The slots in order: each tag with its symbol.
    pub fn slots(self) -> impl Iterator<Item = (Slot, Symbol)> + Clone + 'r {
        self.0[INSTANCE_HEADER..self.slots_end()]
            .chunks_exact(5)
            .map(|slot| (Slot::from_byte(slot[0]), Symbol::from_index(u32_at(slot, 1))))
    }

    /// The member `datasetId`.
    pub fn dataset(self) -> Option<&'r str> {
        let bytes = &self.0[self.slots_end()..self.fragment_start()];
        (!bytes.is_empty()).then(|| text(bytes))
    }

    /// The members that need no context, as sent, without braces; begins with `"type":`.
    pub fn fragment(self) -> &'r str {
        let from = self.fragment_start();
        text(&self.0[from..from + len_at(self.0, 48)])
    }

    /// The JSON text of the value (`value`, `object`, `languageMap` and so on; vocabulary values expanded).
    pub fn value(self) -> &'r str {
        &self.fragment()[self.kind().prefix().len()..][..len_at(self.0, 44)]
    }

    /// What follows the value in the fragment: empty, or members each preceded by a comma.
    pub fn members(self) -> &'r str {
        &self.fragment()[self.kind().prefix().len() + len_at(self.0, 44)..]
    }

    /// The sub-attribute instances.
    pub fn subs(self) -> Instances<'r> {
        Instances { bytes: &self.0[self.fragment_start() + len_at(self.0, 48)..] }
    }

    /// [`Instance::fragment`] without the check that it is text, for copying.
    pub(crate) fn fragment_bytes(self) -> &'r [u8] {
        let from = self.fragment_start();
        &self.0[from..from + len_at(self.0, 48)]
    }

    /// [`Instance::value`] for copying.
    pub(crate) fn value_bytes(self) -> &'r [u8] {
        let from = self.fragment_start() + self.kind().prefix().len();
        &self.0[from..from + len_at(self.0, 44)]
    }

    /// [`Instance::members`] for copying.
    pub(crate) fn members_bytes(self) -> &'r [u8] {
        let from = self.fragment_start();
        let value = self.kind().prefix().len() + len_at(self.0, 44);
        &self.0[from + value..from + len_at(self.0, 48)]
    }

    /// True when the instance has slots.
    pub(crate) fn has_slots(self) -> bool {
        self.0[41] != 0
    }

    /// True when the instance has sub-attributes.
    pub fn has_subs(self) -> bool {
        self.fragment_start() + len_at(self.0, 48) < self.0.len()
    }

    /// The instance's bytes, for copying it into another record.
    pub fn bytes(self) -> &'r [u8] {
        self.0
    }

    /// Equal in all that a client can set; system attributes are not compared.
    pub fn same_content(self, other: Instance<'_>) -> bool {
        self.kind() == other.kind()
            && self.fragment() == other.fragment()
            && self.expires() == other.expires()
            && self.slots().eq(other.slots())
            && self.subs().map(Instance::name).eq(other.subs().map(Instance::name))
            && self.subs().zip(other.subs()).all(|(a, b)| a.same_content(b))
    }

    /// The instance taken apart, to be changed and encoded again.
    pub fn draft(self) -> InstanceDraft<'r> {
        let mut draft = InstanceDraft::new(self.kind(), Cow::Borrowed(self.value()));
        draft.created = self.created();
        draft.modified = self.modified();
        draft.expires = self.expires();
        draft.dataset = self.dataset().map(Cow::Borrowed);
        draft.slots = self.slots().collect();
        draft.subs = self.subs().map(|sub| (sub.name(), sub.draft())).collect();
        self.take_members_into(&mut draft);
        draft
    }

    fn take_members_into(self, draft: &mut InstanceDraft<'r>) {
        let Some(members) = self.members().strip_prefix(',') else { return };
        let object = format!("{{{members}}}");
        let doc = json::Doc::parse(object.as_bytes()).expect("the encoder wrote valid members");
        for (name, value) in doc.root().members() {
            let raw = || Cow::Owned(value.raw().to_owned());
            match name.as_ref() {
                "observedAt" => {
                    let written = value.as_str().unwrap_or_default().into_owned();
                    draft.observed = self.observed().map(|instant| (instant, Cow::Owned(written)));
                }
                "unitCode" => draft.unit_code = Some(raw()),
                "entityIdSealed" => draft.sealed_id = Some(raw()),
                _ => {}
            }
        }
    }
}

/// An attribute instance before encoding; also what an update changes.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceDraft<'a> {
    /// The attribute kind.
    pub kind: Kind,
    /// The value as minified JSON text; vocabulary values expanded.
    pub value: Cow<'a, str>,
    /// `datasetId`; absent for the default instance.
    pub dataset: Option<Cow<'a, str>>,
    /// `observedAt` with its spelling.
    pub observed: Option<(Instant, Cow<'a, str>)>,
    /// `expiresAt`.
    pub expires: Option<Instant>,
    /// `unitCode` as JSON text.
    pub unit_code: Option<Cow<'a, str>>,
    /// `entityIdSealed` of `ngsildproof` (4.5.2.2) as JSON text.
    pub sealed_id: Option<Cow<'a, str>>,
    /// `objectType`, `valueType`, `entityTypeSealed`.
    pub slots: SmallVec<[(Slot, Symbol); 1]>,
    /// Sub-attributes; instances of one name are neighbours.
    pub subs: Vec<(Symbol, InstanceDraft<'a>)>,
    /// `createdAt`.
    pub created: Instant,
    /// `modifiedAt`.
    pub modified: Instant,
}

impl<'a> InstanceDraft<'a> {
    /// An instance with a value and nothing else.
    pub fn new(kind: Kind, value: Cow<'a, str>) -> Self {
        InstanceDraft {
            kind,
            value,
            dataset: None,
            observed: None,
            expires: None,
            unit_code: None,
            sealed_id: None,
            slots: SmallVec::new(),
            subs: Vec::new(),
            created: Instant(0),
            modified: Instant(0),
        }
    }

    /// Appends the encoded instance of attribute `name`.
    pub fn encode(&self, name: Symbol, out: &mut Vec<u8>) {
        let start = out.len();
        let dataset = self.dataset.as_deref().unwrap_or_default();
        let observed = self.observed.as_ref().map_or(NEVER, |(instant, _)| instant.0);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&name.index().to_le_bytes());
        for time in [self.created.0, self.modified.0, observed, self.expires.map_or(NEVER, |at| at.0)] {
            out.extend_from_slice(&time.to_le_bytes());
        }
        out.extend_from_slice(&[self.kind as u8, self.slots.len() as u8]);
        out.extend_from_slice(&(dataset.len() as u16).to_le_bytes());
        out.extend_from_slice(&(self.value.len() as u32).to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        for (tag, symbol) in &self.slots {
            out.push(*tag as u8);
            out.extend_from_slice(&symbol.index().to_le_bytes());
        }
        out.extend_from_slice(dataset.as_bytes());
        let fragment = out.len();
        self.encode_fragment(out);
        let length = (out.len() - fragment) as u32;
        out[start + 48..start + 52].copy_from_slice(&length.to_le_bytes());
        for (name, sub) in &self.subs {
            sub.encode(*name, out);
        }
        let total = (out.len() - start) as u32;
        out[start..start + 4].copy_from_slice(&total.to_le_bytes());
    }

    fn encode_fragment(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.kind.prefix().as_bytes());
        out.extend_from_slice(self.value.as_bytes());
        if let Some((_, written)) = &self.observed {
            out.extend_from_slice(br#","observedAt":"#);
            json::write_string(out, written);
        }
        for (member, value) in
            [(",\"unitCode\":", &self.unit_code), (",\"entityIdSealed\":", &self.sealed_id)]
        {
            if let Some(value) = value {
                out.extend_from_slice(member.as_bytes());
                out.extend_from_slice(value.as_bytes());
            }
        }
        if let Some(dataset) = &self.dataset {
            out.extend_from_slice(br#","datasetId":"#);
            json::write_string(out, dataset);
        }
    }
}

/// The greatest number of slots in one instance (`objectType` may name several types).
pub const MAX_SLOTS: usize = 255;
/// The greatest length of a `datasetId`, a scope, in bytes.
pub const MAX_SHORT_TEXT: usize = 65_535;
/// The greatest number of types or scopes of one entity.
pub const MAX_TYPES: usize = 65_535;

/// An entity before encoding: its own members, and instances already encoded or borrowed from a record.
#[derive(Debug, Clone)]
pub struct Draft<'a> {
    /// The identifier.
    pub id: Cow<'a, str>,
    /// Types in order.
    pub types: SmallVec<[Symbol; 2]>,
    /// Scopes in order.
    pub scopes: Vec<Cow<'a, str>>,
    /// `createdAt`.
    pub created: Instant,
    /// `modifiedAt`.
    pub modified: Instant,
    /// `expiresAt`.
    pub expires: Option<Instant>,
    /// Encoded instances; those of one attribute are neighbours.
    pub instances: Vec<Cow<'a, [u8]>>,
}

impl<'a> Draft<'a> {
    /// A draft that holds what `record` holds.
    pub fn of(record: &'a Record) -> Self {
        Draft {
            id: Cow::Borrowed(record.id()),
            types: record.types().collect(),
            scopes: record.scopes().map(Cow::Borrowed).collect(),
            created: record.created(),
            modified: record.modified(),
            expires: record.expires(),
            instances: record.instances().map(|instance| Cow::Borrowed(instance.bytes())).collect(),
        }
    }

    /// The instance at `index` of `self.instances`.
    pub fn instance(&self, index: usize) -> Instance<'_> {
        Instance(&self.instances[index])
    }

    /// Adds an encoded instance, next to its attribute's others.
    pub fn insert(&mut self, name: Symbol, bytes: Cow<'a, [u8]>) {
        let after = (0..self.instances.len()).rev().find(|at| self.instance(*at).name() == name);
        self.instances.insert(after.map_or(self.instances.len(), |at| at + 1), bytes);
    }

    /// Drops empty places, and puts the instances from `new` on next to those of the same attribute.
    pub(crate) fn bring_together(&mut self, new: usize) {
        /// Steps up to which each instance is put in its place by looking for it.
        const FEW: usize = 4096;
        let added = self.instances.split_off(new);
        self.instances.retain(|bytes| !bytes.is_empty());
        let mut added = added.into_iter().filter(|bytes| !bytes.is_empty());
        if added.size_hint().1.unwrap_or_default() * self.instances.len() <= FEW {
            added.for_each(|bytes| self.insert(Instance(&bytes).name(), bytes));
            return;
        }
        self.instances.extend(&mut added);
        let mut ranks: HashMap<Symbol, usize, RandomState> = HashMap::default();
        for at in 0..self.instances.len() {
            let next = ranks.len();
            ranks.entry(self.instance(at).name()).or_insert(next);
        }
        self.instances.sort_by_key(|bytes| ranks[&Instance(bytes).name()]);
    }

    /// Where the instances begin in the encoded record.
    fn attributes_offset(&self) -> usize {
        let scopes: usize = self.scopes.iter().map(|scope| scope.len() + 2).sum();
        RECORD_HEADER + 4 * self.types.len() + self.id.len() + scopes
    }

    /// Size of the encoded record, in bytes.
    pub fn size(&self) -> usize {
        self.attributes_offset() + self.instances.iter().map(|instance| instance.len()).sum::<usize>()
    }

    /// Encodes the record.
    pub fn encode(&self) -> Record {
        let (attributes, total) = (self.attributes_offset(), self.size());
        let mut out = Vec::with_capacity(total);
        let expires = self.expires.map_or(NEVER, |at| at.0);
        for time in [self.created.0, self.modified.0, expires] {
            out.extend_from_slice(&time.to_le_bytes());
        }
        out.extend_from_slice(&(self.types.len() as u16).to_le_bytes());
        out.extend_from_slice(&(self.scopes.len() as u16).to_le_bytes());
        for number in [self.id.len(), attributes, self.instances.len()] {
            out.extend_from_slice(&(number as u32).to_le_bytes());
        }
        for symbol in &self.types {
            out.extend_from_slice(&symbol.index().to_le_bytes());
        }
        out.extend_from_slice(self.id.as_bytes());
        for scope in &self.scopes {
            out.extend_from_slice(&(scope.len() as u16).to_le_bytes());
            out.extend_from_slice(scope.as_bytes());
        }
        for instance in &self.instances {
            out.extend_from_slice(instance);
        }
        Record(ThinArc::from_header_and_slice((), &out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbol::{Budget, Symbols};

    fn symbols() -> (Symbols, [Symbol; 3]) {
        let symbols = Symbols::new();
        let budget = Budget::new(10);
        let names = ["Vehicle", "speed", "source"].map(|name| symbols.intern(name, &budget).unwrap());
        (symbols, names)
    }

    fn speed(value: &'static str, dataset: Option<&'static str>, sub: Symbol) -> InstanceDraft<'static> {
        let mut draft = InstanceDraft::new(Kind::Property, Cow::Borrowed(value));
        draft.dataset = dataset.map(Cow::Borrowed);
        draft.observed = Some((Instant(5), Cow::Borrowed("1970-01-01T00:00:00.000005Z")));
        draft.unit_code = Some(Cow::Borrowed("\"KMH\""));
        draft.slots.push((Slot::ValueType, sub));
        draft.subs.push((sub, InstanceDraft::new(Kind::Relationship, Cow::Borrowed("\"urn:a:b\""))));
        draft.created = Instant(1);
        draft.modified = Instant(2);
        draft
    }

    #[test]
    fn a_record_gives_back_what_was_encoded() {
        let (_table, [vehicle, name, sub]) = symbols();
        let drafts = [speed("55", None, sub), speed("54.5", Some("urn:d:1"), sub)];
        let mut draft = Draft {
            id: "urn:ngsi-ld:Vehicle:1".into(),
            types: [vehicle].into_iter().collect(),
            scopes: vec!["/a/b".into(), "/c".into()],
            created: Instant(1),
            modified: Instant(9),
            expires: None,
            instances: Vec::new(),
        };
        for own in &drafts {
            let mut bytes = Vec::new();
            own.encode(name, &mut bytes);
            draft.insert(name, Cow::Owned(bytes));
        }
        let record = draft.encode();
        assert_eq!(record.id(), "urn:ngsi-ld:Vehicle:1");
        assert_eq!(record.types().collect::<Vec<_>>(), [vehicle]);
        assert_eq!(record.scopes().collect::<Vec<_>>(), ["/a/b", "/c"]);
        assert_eq!((record.created(), record.modified(), record.expires()), (Instant(1), Instant(9), None));
        assert_eq!(record.attribute_names().collect::<Vec<_>>(), [name]);
        let back: Vec<_> = record.attribute(name).map(Instance::draft).collect();
        assert_eq!(back, drafts);
        let first = record.instances().next().unwrap();
        assert_eq!(first.value(), "55");
        assert_eq!(
            first.fragment(),
            r#""type":"Property","value":55,"observedAt":"1970-01-01T00:00:00.000005Z","unitCode":"KMH""#
        );
        assert_eq!(Draft::of(&record).encode().bytes(), record.bytes());
    }

    #[test]
    fn content_is_compared_without_system_attributes() {
        let (_table, [_, name, sub]) = symbols();
        let encode = |draft: &InstanceDraft<'_>| {
            let mut out = Vec::new();
            draft.encode(name, &mut out);
            out
        };
        let (a, mut b) = (speed("55", None, sub), speed("55", None, sub));
        b.modified = Instant(99);
        assert!(Instance(&encode(&a)).same_content(Instance(&encode(&b))));
        b.subs.clear();
        assert!(!Instance(&encode(&a)).same_content(Instance(&encode(&b))));
    }
}
