//! Writes one entity, and the attributes in it.

use super::join::Join;
use super::projection::Own;
use super::stamp::{Stamp, write_text};
use super::{Format, Projection, Renderer, concise, scan, simplified};
use crate::name::DEFAULT_DATASET;
use crate::record::{Instance, Kind, Record, Slot};
use crate::symbol::Symbol;
use crate::time::Instant;

/// Everything that writing one entity needs.
pub(super) struct Pen<'p, 'j> {
    pub(super) r: &'p Renderer<'p>,
    pub(super) join: Option<&'p mut Join<'j>>,
    pub(super) out: &'p mut Vec<u8>,
    stamp: Stamp,
}

/// Where an attribute instance stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'a> {
    /// In an entity: there the projection and the dataset filter apply, and there relationships join.
    Entity(Option<&'a Projection>),
    /// In another attribute.
    Attribute,
}

/// The instances of one attribute written so far.
struct Run<'i> {
    first: Instance<'i>,
    /// Where the value of the first one begins.
    start: usize,
    count: usize,
}

/// Replaces the comma behind the last member by `bracket`, or closes what is empty.
pub(super) fn close(out: &mut Vec<u8>, bracket: u8) {
    match out.last_mut() {
        Some(last) if *last == b',' => *last = bracket,
        _ => out.push(bracket),
    }
}

impl<'p, 'j> Pen<'p, 'j> {
    pub(super) fn new(r: &'p Renderer<'p>, join: Option<&'p mut Join<'j>>, out: &'p mut Vec<u8>) -> Self {
        Pen { r, join, out, stamp: Stamp::new() }
    }

    /// The entity in the form asked for; false when it shows no member.
    pub(super) fn document(&mut self, record: &Record, shown: Option<&Projection>, context: bool) -> bool {
        match self.r.style.feature {
            None => self.entity(record, shown, context),
            Some(feature) => self.feature(feature, record, shown, context),
        }
    }

    /// `{"id":...,"type":...,<attributes>}` (4.5.1).
    pub(super) fn entity(&mut self, record: &Record, shown: Option<&Projection>, context: bool) -> bool {
        self.out.reserve(record.size() + 64);
        self.out.push(b'{');
        let start = self.out.len();
        if shown.is_none_or(|shown| shown.shows_own(Own::ID)) {
            self.out.extend_from_slice(br#""id":"#);
            write_text(self.out, record.id());
            self.out.push(b',');
        }
        self.body(record, shown);
        let any = self.out.len() > start;
        self.end_document(context);
        any
    }

    /// Closes a document, with the context where it belongs into the body.
    pub(super) fn end_document(&mut self, context: bool) {
        if let Some(value) = self.r.style.context.filter(|_| context) {
            self.out.extend_from_slice(br#""@context":"#);
            self.out.extend_from_slice(value);
            self.out.push(b',');
        }
        close(self.out, b'}');
    }

    /// The members of an entity behind its identifier, each followed by a comma.
    pub(super) fn body(&mut self, record: &Record, shown: Option<&Projection>) {
        let own = |member| shown.is_none_or(|shown| shown.shows_own(member));
        if own(Own::TYPE) {
            self.types(record);
        }
        if record.scopes().len() > 0 && own(Own::SCOPE) {
            self.scopes(record);
        }
        if self.r.style.sys_attrs {
            self.dated("createdAt", Some(record.created()).filter(|_| own(Own::CREATED)));
            self.dated("modifiedAt", Some(record.modified()).filter(|_| own(Own::MODIFIED)));
            self.dated("expiresAt", record.expires().filter(|_| own(Own::EXPIRES)));
        }
        self.attributes(record.instances(), Place::Entity(shown), true);
    }

    /// One type as a string, several as an array (4.16).
    fn types(&mut self, record: &Record) {
        self.out.extend_from_slice(br#""type":"#);
        let mut types = record.types();
        if types.len() == 1 {
            types.for_each(|symbol| self.key(symbol));
        } else {
            self.out.push(b'[');
            types.by_ref().for_each(|symbol| {
                self.key(symbol);
                self.out.push(b',');
            });
            close(self.out, b']');
        }
        self.out.push(b',');
    }

    /// One scope as a string, several as an array (4.18).
    fn scopes(&mut self, record: &Record) {
        self.out.extend_from_slice(br#""scope":"#);
        let scopes = record.scopes();
        if scopes.len() == 1 {
            scopes.for_each(|scope| write_text(self.out, scope));
        } else {
            self.out.push(b'[');
            scopes.for_each(|scope| {
                write_text(self.out, scope);
                self.out.push(b',');
            });
            close(self.out, b']');
        }
        self.out.push(b',');
    }

    /// `"createdAt":"...",` and its like.
    fn dated(&mut self, member: &str, at: Option<Instant>) {
        let Some(at) = at else { return };
        self.out.push(b'"');
        self.out.extend_from_slice(member.as_bytes());
        self.out.extend_from_slice(br#"":"#);
        self.stamp.write(self.out, at);
        self.out.push(b',');
    }

    /// A name as the context spells it, quoted.
    #[inline]
    pub(super) fn key(&mut self, symbol: Symbol) {
        self.out.extend_from_slice(self.r.context.key(self.r.symbols, symbol));
    }

    /// The attributes of an entity or an attribute, each followed by a comma.
    fn attributes<'i>(
        &mut self,
        instances: impl Iterator<Item = Instance<'i>>,
        place: Place<'_>,
        keys: bool,
    ) {
        let mut run: Option<Run<'i>> = None;
        for instance in instances {
            let shown = match place {
                Place::Entity(projection) => self.r.shows(instance, projection),
                Place::Attribute => self.r.is_alive(instance),
            };
            if !shown {
                continue;
            }
            if let Some(run) = &mut run {
                if run.first.name() == instance.name() {
                    self.another(run, instance, place);
                    continue;
                }
                self.end_run(run);
            }
            if keys {
                self.key(instance.name());
                self.out.push(b':');
            }
            let start = self.out.len();
            self.instance(instance, place);
            self.out.push(b',');
            run = Some(Run { first: instance, start, count: 1 });
        }
        if let Some(run) = &run {
            self.end_run(run);
        }
    }

    /// The shown ones among the instances of one attribute, without its name; false when none is shown.
    pub(super) fn attribute_value<'i>(&mut self, instances: impl Iterator<Item = Instance<'i>>) -> bool {
        let start = self.out.len();
        self.attributes(instances, Place::Entity(None), false);
        let any = self.out.len() > start;
        if any {
            self.out.pop();
        }
        any
    }

    #[inline]
    fn instance(&mut self, instance: Instance<'_>, place: Place<'_>) {
        match self.r.style.format {
            Format::Normalized => self.wrapped(instance, true, place),
            Format::Concise if concise::is_bare(self, instance) => {
                self.out.extend_from_slice(instance.value_bytes());
            }
            Format::Concise => self.wrapped(instance, concise::needs_type(instance), place),
            Format::Simplified => simplified::value(self, instance, place),
        }
    }

    /// A further instance of an attribute: what was one value becomes a list (4.5.5).
    fn another(&mut self, run: &mut Run<'_>, instance: Instance<'_>, place: Place<'_>) {
        if run.count == 1 {
            self.begin_list(run, place);
        }
        run.count += 1;
        match self.r.style.format {
            Format::Normalized => self.wrapped(instance, true, place),
            Format::Concise => self.wrapped(instance, concise::needs_type(instance), place),
            Format::Simplified => {
                self.dataset_key(instance);
                simplified::value(self, instance, place);
            }
        }
        self.out.push(b',');
    }

    fn begin_list(&mut self, run: &Run<'_>, place: Place<'_>) {
        match self.r.style.format {
            // A bare value in an array would not be read as an instance.
            Format::Concise if concise::is_bare(self, run.first) => {
                self.out.truncate(run.start);
                self.out.push(b'[');
                self.wrapped(run.first, concise::needs_type(run.first), place);
                self.out.push(b',');
            }
            Format::Normalized | Format::Concise => self.out.insert(run.start, b'['),
            Format::Simplified => {
                let end = self.out.len();
                self.out.extend_from_slice(br#"{"dataset":{"#);
                self.dataset_key(run.first);
                let prefix = self.out.len() - end;
                self.out[run.start..].rotate_right(prefix);
            }
        }
    }

    /// `"urn:...":` of the dataset map (4.5.4).
    fn dataset_key(&mut self, instance: Instance<'_>) {
        write_text(self.out, instance.dataset().unwrap_or(DEFAULT_DATASET));
        self.out.push(b':');
    }

    fn end_run(&mut self, run: &Run<'_>) {
        if run.count == 1 {
            return;
        }
        match self.r.style.format {
            Format::Normalized | Format::Concise => close(self.out, b']'),
            Format::Simplified => {
                close(self.out, b'}');
                self.out.push(b'}');
            }
        }
        self.out.push(b',');
    }

    /// The instance as an object: the fragment, then what the fragment cannot hold.
    fn wrapped(&mut self, instance: Instance<'_>, with_type: bool, place: Place<'_>) {
        self.out.push(b'{');
        self.fragment(instance, with_type);
        if instance.has_slots() {
            self.slots(instance);
        }
        if self.r.style.sys_attrs {
            self.out.push(b',');
            self.dated("createdAt", Some(instance.created()));
            self.dated("modifiedAt", Some(instance.modified()));
            self.dated("expiresAt", instance.expires());
            self.out.pop();
        }
        if instance.has_subs() {
            self.out.push(b',');
            self.attributes(instance.subs(), Place::Attribute, true);
            self.out.pop();
        }
        if self.join.is_some() && instance.kind().is_relationship() {
            self.joined_member(instance, place);
        }
        self.out.push(b'}');
    }

    fn fragment(&mut self, instance: Instance<'_>, with_type: bool) {
        let kind = instance.kind();
        match kind {
            Kind::LanguageProperty if self.r.style.lang.is_some() => {
                self.in_one_language(instance, with_type);
            }
            Kind::VocabProperty => {
                self.prefix(kind, with_type);
                self.vocab(instance.value());
                self.out.extend_from_slice(instance.members_bytes());
            }
            // The terser of the two forms of its entries (4.5.22.3).
            Kind::ListRelationship if self.r.style.format == Format::Concise => {
                self.prefix(kind, with_type);
                simplified::targets(self.out, instance.value());
                self.out.extend_from_slice(instance.members_bytes());
            }
            _ => {
                let skipped = if with_type { 0 } else { type_len(kind) };
                self.out.extend_from_slice(&instance.fragment_bytes()[skipped..]);
            }
        }
    }

    /// `"type":"VocabProperty","vocab":`, the type where asked for.
    pub(super) fn prefix(&mut self, kind: Kind, with_type: bool) {
        let skipped = if with_type { 0 } else { type_len(kind) };
        self.out.extend_from_slice(&kind.prefix().as_bytes()[skipped..]);
    }

    /// A vocabulary value, compacted (4.5.20, 5.7.1.5).
    pub(super) fn vocab(&mut self, value: &str) {
        let list = value.starts_with('[');
        if list {
            self.out.push(b'[');
        }
        for token in scan::strings(value) {
            write_text(self.out, &self.r.context.compact(&scan::unquote(token)));
            self.out.push(b',');
        }
        if list { close(self.out, b']') } else { self.out.truncate(self.out.len() - 1) }
    }

    /// `,"objectType":...` and its like: one name as a string, several as an array.
    fn slots(&mut self, instance: Instance<'_>) {
        for slot in [Slot::ObjectType, Slot::ValueType, Slot::SealedType] {
            let mut names = instance.slots().filter(|(own, _)| *own == slot).map(|(_, symbol)| symbol);
            let Some(first) = names.next() else { continue };
            self.out.extend_from_slice(b",\"");
            self.out.extend_from_slice(slot.member().as_bytes());
            self.out.extend_from_slice(b"\":");
            let start = self.out.len();
            self.key(first);
            let mut count = 1;
            for symbol in names {
                self.out.push(b',');
                self.key(symbol);
                count += 1;
            }
            if count > 1 {
                self.out.insert(start, b'[');
                self.out.push(b']');
            }
        }
    }
}

/// Length of `"type":"Property",`.
fn type_len(kind: Kind) -> usize {
    kind.name().len() + r#""type":"","#.len()
}
