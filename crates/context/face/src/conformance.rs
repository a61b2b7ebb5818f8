//! Entities for clients of an earlier version of the standard (4.3.6.8): attribute kinds that it does not know become
//! Properties that carry the same value.

use std::borrow::Cow;

use trifid_context_model::json::{Doc, Value, quoted};
use trifid_context_model::ld::Context;
use trifid_context_model::record::{Draft, InstanceDraft, Kind, Record};

use crate::prefer::{SPOKEN, Version};

/// Rewrites records for clients of one earlier version.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Downgrade<'c> {
    version: Version,
    /// Vocabulary values are compacted here, since a Property's value is left alone when it is sent.
    context: &'c Context,
}

/// The version that introduced a kind (Table 4.3.6.8-1); none for those that were always there.
fn introduced(kind: Kind) -> Option<Version> {
    let minor = match kind {
        Kind::Property | Kind::GeoProperty | Kind::Relationship => return None,
        Kind::LanguageProperty => 4,
        Kind::VocabProperty | Kind::JsonProperty | Kind::ListProperty | Kind::ListRelationship => 8,
    };
    Some(Version { major: SPOKEN.major, minor })
}

impl<'c> Downgrade<'c> {
    /// Nothing for clients that know every kind.
    pub(crate) fn to(version: Version, context: &'c Context) -> Option<Self> {
        let knows_all = version >= Version { major: SPOKEN.major, minor: 8 };
        (!knows_all).then_some(Downgrade { version, context })
    }

    /// The record as the client understands it; none when that is how it is anyway.
    pub(crate) fn apply(&self, record: &Record) -> Option<Record> {
        let mut draft = Draft::of(record);
        let mut altered = false;
        for (place, instance) in draft.instances.iter_mut().zip(record.instances()) {
            let mut own = instance.draft();
            if self.rewrite(&mut own) {
                let mut bytes = Vec::new();
                own.encode(instance.name(), &mut bytes);
                *place = Cow::Owned(bytes);
                altered = true;
            }
        }
        altered.then(|| draft.encode())
    }

    fn rewrite(&self, instance: &mut InstanceDraft<'_>) -> bool {
        let mut altered = false;
        for (_, sub) in &mut instance.subs {
            altered |= self.rewrite(sub);
        }
        if introduced(instance.kind).is_none_or(|since| since <= self.version) {
            return altered;
        }
        let value = self.value(instance.kind, &instance.value);
        instance.value = value.map_or_else(|| Cow::Owned(instance.value.clone().into_owned()), Cow::Owned);
        instance.kind = Kind::Property;
        true
    }

    /// The value where it reads differently in a Property.
    fn value(&self, kind: Kind, value: &str) -> Option<String> {
        let doc = Doc::parse(value.as_bytes()).ok()?;
        let terms = |value: Value<'_>| value.as_str().map(|iri| quoted(&self.context.compact(&iri)));
        let objects = |value: Value<'_>| value.get("object").map(|object| object.raw().to_owned());
        match kind {
            Kind::VocabProperty if doc.root().is_array() => Some(list(doc.root().items().filter_map(terms))),
            Kind::VocabProperty => terms(doc.root()),
            Kind::ListRelationship => Some(list(doc.root().items().filter_map(objects))),
            Kind::Property
            | Kind::GeoProperty
            | Kind::Relationship
            | Kind::LanguageProperty
            | Kind::JsonProperty
            | Kind::ListProperty => None,
        }
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    format!("[{}]", items.join(","))
}
