//! Member-level change of one attribute instance: partial update (5.5.8) and merge (5.5.12).

use std::borrow::Cow;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::input::{AttributeInput, Change, Content, InstanceInput, Invalid, check_companions};
use crate::json::{self, Doc, Kind as Json, Value};
use crate::limits::MAX_SUBS;
use crate::name::NULL;
use crate::record::{InstanceDraft, Kind, MAX_SLOTS, Slot};
use crate::symbol::Symbol;
use crate::time::Instant;

/// Parameters of a merge (6.5.3.4).
#[derive(Debug, Clone, Copy, Default)]
pub struct Merge<'a> {
    /// `lang`: a bare string goes into the language map under this tag.
    pub lang: Option<&'a str>,
    /// `observedAt`: given to every instance that is merged and names none itself.
    pub observed: Option<(Instant, &'a str)>,
}

/// Overwrites the members that `input` mentions (5.5.8).
pub(super) fn overwrite<'a>(
    instance: &mut InstanceDraft<'a>,
    mut input: InstanceInput<'a>,
    now: Instant,
) -> Result<(), Invalid> {
    if let Some(value) = input.value.take() {
        check_kind(instance.kind, &input)?;
        instance.value = value;
    } else if input.kind_is_explicit {
        check_kind(instance.kind, &input)?;
    }
    members(instance, &mut input)?;
    instance.modified = now;
    for sub in input.subs {
        put_sub(instance, sub, now)?;
    }
    Ok(())
}

/// Merges `input` to any depth (5.5.12).
pub(super) fn merge<'a>(
    instance: &mut InstanceDraft<'a>,
    mut input: InstanceInput<'a>,
    how: Merge<'_>,
    now: Instant,
) -> Result<(), Invalid> {
    if let Some(value) = input.value.take() {
        merge_value(instance, &input, value, how)?;
    } else if input.kind_is_explicit {
        check_kind(instance.kind, &input)?;
    }
    members(instance, &mut input)?;
    instance.modified = now;
    if let (false, Some((at, spelled))) = (input.observed.is_mentioned(), how.observed) {
        instance.observed = Some((at, Cow::Owned(spelled.to_owned())));
    }
    for sub in input.subs {
        merge_sub(instance, sub, now)?;
    }
    Ok(())
}

/// What a merge makes of an attribute that was not there: Nulls inside its value vanish.
pub(super) fn finish_new(instance: &mut InstanceDraft<'_>, how: Merge<'_>) -> Result<(), Invalid> {
    if instance.value.contains(NULL) && instance.kind != Kind::JsonProperty {
        instance.value = Cow::Owned(merge_json("null", &instance.value)?);
    }
    if let (None, Some((at, spelled))) = (&instance.observed, how.observed) {
        instance.observed = Some((at, Cow::Owned(spelled.to_owned())));
    }
    match how.lang {
        Some(lang) if instance.kind == Kind::Property && instance.value.starts_with('"') => {
            instance.kind = Kind::LanguageProperty;
            instance.value = Cow::Owned(format!("{{{}:{}}}", json::quoted(lang), instance.value));
        }
        _ => {}
    }
    Ok(())
}

/// The kind of an attribute cannot change here. A concise GeoProperty and Property share their member, and a
/// bare value takes the stored kind.
fn check_kind(stored: Kind, input: &InstanceInput<'_>) -> Result<(), Invalid> {
    let Some(kind) = input.kind else { return Ok(()) };
    let same_member = kind.value_member() == stored.value_member();
    if kind == stored || (!input.kind_is_explicit && same_member) {
        return Ok(());
    }
    Err(Invalid::new(format!("is a {} and cannot become a {} (5.5.8)", stored.name(), kind.name())))
}

fn members<'a>(instance: &mut InstanceDraft<'a>, input: &mut InstanceInput<'a>) -> Result<(), Invalid> {
    let take = |change: &mut Change<_>| std::mem::replace(change, Change::Keep);
    if input.observed.is_mentioned() {
        let observed = match &input.observed {
            Change::Set(observed) => Some(observed.clone()),
            Change::Keep | Change::Remove => None,
        };
        instance.observed = observed;
    }
    std::mem::replace(&mut input.expires, Change::Keep).apply_to(&mut instance.expires);
    take(&mut input.unit_code).apply_to(&mut instance.unit_code);
    take(&mut input.sealed_id).apply_to(&mut instance.sealed_id);
    for tag in [Slot::ObjectType, Slot::ValueType, Slot::SealedType] {
        if input.slots.iter().any(|(own, _)| *own == tag) {
            instance.slots.retain(|(own, _)| *own != tag);
        }
    }
    for (tag, slot) in input.slots.drain(..) {
        if let Change::Set(symbol) = slot {
            instance.slots.push((tag, symbol));
        }
    }
    // The input may have left the kind open, so the instance is asked what it has become.
    if instance.slots.len() > MAX_SLOTS {
        return Err(Invalid::new(format!("more than {MAX_SLOTS} types")));
    }
    let has = |slot: Slot| instance.slots.iter().any(|(own, _)| *own == slot);
    check_companions(instance.kind, instance.unit_code.is_some(), has)
}

fn sub_position(instance: &InstanceDraft<'_>, name: Symbol, dataset: Option<&str>) -> Option<usize> {
    instance.subs.iter().position(|(own, sub)| *own == name && sub.dataset.as_deref() == dataset)
}

/// Sub-attributes are replaced whole in a partial update.
fn put_sub<'a>(
    instance: &mut InstanceDraft<'a>,
    sub: AttributeInput<'a>,
    now: Instant,
) -> Result<(), Invalid> {
    let at = sub_position(instance, sub.name, sub.dataset.as_deref());
    let Content::Set(content) = sub.content else {
        if let Some(at) = at {
            instance.subs.remove(at);
        }
        return Ok(());
    };
    let created = at.map_or(now, |at| instance.subs[at].1.created);
    let mut draft = super::complete(*content, created, now).map_err(|error| error.at(&sub.spelled))?;
    draft.dataset = sub.dataset;
    match at {
        Some(at) => instance.subs[at].1 = draft,
        None if instance.subs.len() >= MAX_SUBS => {
            return Err(Invalid::new(format!("more than {MAX_SUBS} sub-attributes")));
        }
        None => {
            // Instances of one name stay neighbours, as the record's layout wants them.
            let last = instance.subs.iter().rposition(|(own, _)| *own == sub.name);
            instance.subs.insert(last.map_or(instance.subs.len(), |at| at + 1), (sub.name, draft));
        }
    }
    Ok(())
}

fn merge_sub<'a>(
    instance: &mut InstanceDraft<'a>,
    sub: AttributeInput<'a>,
    now: Instant,
) -> Result<(), Invalid> {
    match (sub_position(instance, sub.name, sub.dataset.as_deref()), sub.content) {
        (Some(at), Content::Set(content)) => {
            let spelled = sub.spelled;
            merge(&mut instance.subs[at].1, *content, Merge::default(), now).map_err(|e| e.at(&spelled))
        }
        (_, content) => put_sub(instance, AttributeInput { content, ..sub }, now),
    }
}

/// Puts a new value into the stored one: compound values and language maps are merged, others replaced.
fn merge_value<'a>(
    instance: &mut InstanceDraft<'a>,
    input: &InstanceInput<'a>,
    value: Cow<'a, str>,
    how: Merge<'_>,
) -> Result<(), Invalid> {
    if input.bare && input.kind == Some(Kind::Property) && instance.kind != Kind::Property {
        return merge_bare(instance, &value, how);
    }
    check_kind(instance.kind, input)?;
    match instance.kind {
        Kind::Property | Kind::LanguageProperty => {
            instance.value = Cow::Owned(merge_json(&instance.value, &value)?);
        }
        _ => instance.value = value,
    }
    Ok(())
}

/// A simplified value merged into an attribute that is not a Property goes where that kind keeps its value.
fn merge_bare(instance: &mut InstanceDraft<'_>, value: &str, how: Merge<'_>) -> Result<(), Invalid> {
    let own = |text: &str| Cow::Owned(text.to_owned());
    match (instance.kind, how.lang) {
        (Kind::LanguageProperty, Some(lang)) if value.starts_with('"') => {
            let patch = format!("{{{}:{value}}}", json::quoted(lang));
            instance.value = Cow::Owned(merge_json(&instance.value, &patch)?);
            Ok(())
        }
        (Kind::LanguageProperty, None) if value.starts_with('"') => {
            Err(Invalid::new("is a LanguageProperty: name the language with the parameter lang (5.5.12)"))
        }
        (Kind::Relationship, _) if is_uri_text(value) => {
            instance.value = own(value);
            Ok(())
        }
        (Kind::JsonProperty, _) if value.starts_with(['{', '[']) => {
            instance.value = own(value);
            Ok(())
        }
        (Kind::ListProperty, _) if value.starts_with('[') => {
            instance.value = own(value);
            Ok(())
        }
        (kind, _) => Err(Invalid::new(format!("is a {}; this value does not fit it (5.5.12)", kind.name()))),
    }
}

fn is_uri_text(value: &str) -> bool {
    let is_uri = |item: Value<'_>| item.as_str().is_some_and(|text| crate::name::is_uri(&text));
    Doc::parse(value.as_bytes()).is_ok_and(|doc| {
        let root = doc.root();
        if root.is_array() { root.items().all(is_uri) } else { is_uri(root) }
    })
}

/// RFC 7396 over JSON texts, with the NGSI-LD Null where the RFC has `null` (5.5.12).
fn merge_json(old: &str, patch: &str) -> Result<String, Invalid> {
    let unreadable = |_| Invalid::new("the value cannot be merged");
    let old = Doc::parse(old.as_bytes()).map_err(unreadable)?;
    let patch = Doc::parse(patch.as_bytes()).map_err(unreadable)?;
    let mut out = Vec::new();
    merge_into(&mut out, Some(old.root()), patch.root());
    String::from_utf8(out).map_err(|_| Invalid::new("the value cannot be merged"))
}

/// The members of an object, for a number of questions.
enum Members<'d> {
    Few(Option<Value<'d>>),
    Many(HashMap<Cow<'d, str>, Value<'d>, RandomState>),
}

impl<'d> Members<'d> {
    /// The members of `object`, none if there is no object, to be asked `questions` times.
    fn of(object: Option<Value<'d>>, questions: usize) -> Self {
        /// Comparisons up to which members are found by looking at each.
        const FEW: usize = 256;
        let members = object.into_iter().flat_map(Value::members);
        if members.clone().count() * questions <= FEW {
            return Members::Few(object);
        }
        Members::Many(members.collect())
    }

    fn get(&self, name: &str) -> Option<Value<'d>> {
        match self {
            Members::Few(object) => object.and_then(|object| object.get(name)),
            Members::Many(members) => members.get(name).copied(),
        }
    }
}

fn merge_into(out: &mut Vec<u8>, old: Option<Value<'_>>, patch: Value<'_>) {
    if patch.kind() != Json::Object {
        out.extend_from_slice(patch.minified().as_bytes());
        return;
    }
    let old = old.filter(|old| old.is_object());
    let old_members = || old.into_iter().flat_map(Value::members);
    let changes = Members::of(Some(patch), old_members().count());
    let known = Members::of(old, patch.members().count());
    out.push(b'{');
    let mut first = true;
    let mut member = |out: &mut Vec<u8>, name: &str| {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        json::write_string(out, name);
        out.push(b':');
    };
    for (name, value) in old_members() {
        match changes.get(&name) {
            Some(change) if change.is_str(NULL) => {}
            Some(change) => {
                member(out, &name);
                merge_into(out, Some(value), change);
            }
            None => {
                member(out, &name);
                out.extend_from_slice(value.minified().as_bytes());
            }
        }
    }
    for (name, change) in patch.members() {
        if known.get(&name).is_none() && !change.is_str(NULL) {
            member(out, &name);
            merge_into(out, None, change);
        }
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compound_values_merge_as_rfc_7396_says_5_5_12() {
        for (old, patch, merged) in [
            (r#"{"a":1,"b":{"c":2}}"#, r#"{"b":{"c":"urn:ngsi-ld:null","d":3}}"#, r#"{"a":1,"b":{"d":3}}"#),
            (r#"{"a":1}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            ("[1]", r#"{"a":{"b":"urn:ngsi-ld:null","c":1}}"#, r#"{"a":{"c":1}}"#),
            ("1", "2", "2"),
        ] {
            assert_eq!(merge_json(old, patch).unwrap(), merged);
        }
    }

    #[test]
    fn objects_with_many_members_merge_alike() {
        let object = |names: std::ops::Range<usize>, value: usize| {
            let members: Vec<String> = names.map(|n| format!("\"m{n}\":{value}")).collect();
            members.join(",")
        };
        let old = format!("{{{}}}", object(0..60, 1));
        let patch = format!("{{\"m0\":\"{NULL}\",{},\"none\":\"{NULL}\"}}", object(40..80, 2));
        let merged = format!("{{{},{},{}}}", object(1..40, 1), object(40..60, 2), object(60..80, 2));
        assert_eq!(merge_json(&old, &patch).unwrap(), merged);
    }
}
