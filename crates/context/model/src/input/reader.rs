//! Walks a JSON text into [`EntityInput`] and [`AttributeInput`].

use std::borrow::Cow;

use smallvec::SmallVec;

use super::value::{self, Values};
use super::{AttributeInput, Change, Content, EntityInput, InstanceInput, Invalid};
use crate::json::{Kind as Json, Value};
use crate::ld::Context;
use crate::limits::{MAX_INSTANCES, MAX_SCOPES, MAX_SUBS, MAX_TYPES};
use crate::name::{self, DEFAULT_DATASET, NULL, shown};
use crate::record::{Kind, MAX_SLOTS, Slot};
use crate::symbol::{Budget, Symbol, Symbols};
use crate::time::Instant;

/// Which inputs the operation takes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mode {
    /// The NGSI-LD Null deletes (update, partial update, merge); otherwise it is refused (5.5.4).
    pub nulls: bool,
    /// The Null may also stand inside a compound value (merge alone, 5.5.12).
    pub nested_nulls: bool,
    /// The input is in the simplified representation (4.5.4).
    pub simplified: bool,
}

/// Members of an entity that are not attributes but that a client may send back as it received them.
const IGNORED: [&str; 3] = ["createdAt", "modifiedAt", "deletedAt"];
/// Core terms that can be no attribute of an entity (4.5.1).
const NOT_ATTRIBUTES: [&str; 9] = [
    "datasetId",
    "instanceId",
    "observedAt",
    "unitCode",
    "value",
    "object",
    "languageMap",
    "previousValue",
    "previousObject",
];
/// Members that only answers carry, or that belong to another kind of element (4.5.2.2, 4.5.3.2).
const OUTPUT_ONLY: [&str; 6] = [
    "previousValue",
    "previousObject",
    "previousLanguageMap",
    "previousVocab",
    "previousJson",
    "previousValueList",
];

/// Reads input under one context.
#[derive(Clone, Copy)]
pub struct Reader<'c> {
    /// Expands names.
    pub context: &'c Context,
    /// Interns them.
    pub symbols: &'c Symbols,
    /// Pays for new ones.
    pub budget: &'c Budget,
    /// What the operation takes.
    pub mode: Mode,
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl<'c> Reader<'c> {
    /// Reads an Entity or an Entity Fragment; `@context` is the caller's business and passed over here.
    pub fn entity<'d>(&self, value: Value<'d>) -> Result<EntityInput<'d>, Invalid> {
        if !value.is_object() {
            return Err(Invalid::new("an entity must be a JSON object"));
        }
        let mut entity = EntityInput {
            id: None,
            types: SmallVec::new(),
            scopes: Change::Keep,
            expires: Change::Keep,
            attributes: Vec::new(),
        };
        for (name, member) in value.members() {
            self.entity_member(&mut entity, name, member)?;
        }
        unique_names(&entity.attributes)?;
        Ok(entity)
    }

    fn entity_member<'d>(
        &self,
        entity: &mut EntityInput<'d>,
        name: Cow<'d, str>,
        member: Value<'d>,
    ) -> Result<(), Invalid> {
        match name.as_ref() {
            "id" | "@id" if entity.id.is_some() => {
                Err(Invalid::new("id and @id are the same member").at("id"))
            }
            "id" | "@id" => self.uri(member).map(|id| entity.id = Some(id)).map_err(|e| e.at("id")),
            "type" | "@type" if !entity.types.is_empty() => {
                Err(Invalid::new("type and @type are the same member").at("type"))
            }
            "type" | "@type" => {
                self.types(member).map(|types| entity.types = types).map_err(|e| e.at("type"))
            }
            "scope" => self.scopes(member).map(|scopes| entity.scopes = scopes).map_err(|e| e.at("scope")),
            "expiresAt" => {
                self.instant(member).map(|at| entity.expires = at).map_err(|error| error.at("expiresAt"))
            }
            "@context" => Ok(()),
            known if IGNORED.contains(&known) => Ok(()),
            known if NOT_ATTRIBUTES.contains(&known) => {
                Err(Invalid::new("belongs inside an attribute and cannot be one itself (4.5.1)").at(known))
            }
            // Counted before names are interned: what is refused should introduce few of them.
            _ if entity.attributes.len() >= MAX_INSTANCES => Err(too_many_instances()),
            _ => self.attribute_into(&mut entity.attributes, name, member),
        }
    }

    /// Reads one attribute given apart from its entity, as in `attrs/{attrId}`; an array gives several
    /// instances.
    pub fn attribute<'d>(
        &self,
        name: Cow<'d, str>,
        value: Value<'d>,
    ) -> Result<Vec<AttributeInput<'d>>, Invalid> {
        let mut attributes = Vec::new();
        if self.mode.simplified || !value.is_object() || value::is_geometry(value) {
            self.attribute_into(&mut attributes, name, value)?;
            return Ok(attributes);
        }
        // Apart from its entity an attribute is never a bare value: every object is its members (5.6.4.3).
        let symbol = self.symbol(&name)?;
        let (dataset, content) = self.wrapped(&name, value).map_err(|error| error.at(&name))?;
        attributes.push(AttributeInput { name: symbol, spelled: name, dataset, content });
        Ok(attributes)
    }

    /// An attribute object: its members, or its removal.
    fn wrapped<'d>(&self, spelled: &str, value: Value<'d>) -> Result<(Dataset<'d>, Content<'d>), Invalid> {
        let (mut input, mut dataset) = (InstanceInput::default(), None);
        let removed = self.members(&mut input, &mut dataset, spelled, value)?;
        check_location(spelled, &input)?;
        Ok((dataset, if removed { Content::Remove } else { Content::Set(Box::new(input)) }))
    }

    /// The symbol of a type or attribute name, interned.
    pub fn symbol(&self, name: &str) -> Result<Symbol, Invalid> {
        if !name::is_name(name) {
            return Err(Invalid::new(format!(
                "\"{}\" is not a valid name: a letter, then letters, digits and underscores, or an IRI (4.6.2)",
                shown(name)
            )));
        }
        let expanded = self.context.expand(name).map_err(|error| Invalid::new(error.to_string()))?;
        if expanded.starts_with('@') {
            return Err(Invalid::new(format!(
                "\"{name}\" stands for the JSON-LD keyword {expanded} and names nothing (4.4)"
            )));
        }
        let refuse = |full| Invalid::new(format!("the name \"{}\" is one too many: {full}", shown(name)));
        self.symbols.intern(&expanded, self.budget).map_err(refuse)
    }

    fn uri<'d>(&self, value: Value<'d>) -> Result<Cow<'d, str>, Invalid> {
        let text = value.as_str().ok_or_else(|| Invalid::new("must be a string holding a URI"))?;
        if text == NULL {
            return Err(Invalid::new("the NGSI-LD Null is not allowed here (5.5.4)"));
        }
        if name::is_uri(&text) { Ok(text) } else { Err(value::not_a_uri(&text)) }
    }

    fn types(&self, value: Value<'_>) -> Result<SmallVec<[Symbol; 2]>, Invalid> {
        let mut types = SmallVec::new();
        if value.items().count() > MAX_TYPES {
            return Err(Invalid::new(format!("more than {MAX_TYPES} types")));
        }
        if value.is_array() {
            for item in value.items() {
                let symbol = self.type_name(item)?;
                if !types.contains(&symbol) {
                    types.push(symbol);
                }
            }
        } else {
            types.push(self.type_name(value)?);
        }
        if types.is_empty() {
            return Err(Invalid::new("must name at least one type (4.16)"));
        }
        Ok(types)
    }

    fn type_name(&self, value: Value<'_>) -> Result<Symbol, Invalid> {
        let name = value.as_str().ok_or_else(|| Invalid::new("must be a string or an array of strings"))?;
        if name == NULL {
            return Err(Invalid::new("a type cannot be deleted (5.5.4)"));
        }
        self.symbol(&name)
    }

    fn scopes<'d>(&self, value: Value<'d>) -> Result<Change<Vec<Cow<'d, str>>>, Invalid> {
        if value.is_str(NULL) {
            return self.removal();
        }
        let items: Vec<Value<'d>> = if value.is_array() { value.items().collect() } else { vec![value] };
        if items.len() > MAX_SCOPES {
            return Err(Invalid::new(format!("more than {MAX_SCOPES} scopes")));
        }
        let scopes = items.into_iter().map(scope).collect::<Result<Vec<_>, _>>()?;
        Ok(if scopes.is_empty() { Change::Remove } else { Change::Set(scopes) })
    }

    /// `Change::Remove`, where the operation knows the NGSI-LD Null.
    fn removal<T>(&self) -> Result<Change<T>, Invalid> {
        if self.mode.nulls {
            return Ok(Change::Remove);
        }
        Err(Invalid::new("the NGSI-LD Null is not allowed in this operation (5.5.4)"))
    }

    fn instant(&self, value: Value<'_>) -> Result<Change<Instant>, Invalid> {
        Ok(match self.date_time(value)? {
            Change::Set((instant, _)) => Change::Set(instant),
            Change::Remove => Change::Remove,
            Change::Keep => Change::Keep,
        })
    }

    fn date_time<'d>(&self, value: Value<'d>) -> Result<Change<(Instant, Cow<'d, str>)>, Invalid> {
        let text =
            value.as_str().ok_or_else(|| Invalid::new("must be a string holding a dateTime (4.6.3)"))?;
        if text == NULL {
            return self.removal();
        }
        let instant = Instant::parse(&text)
            .map_err(|error| Invalid::new(format!("\"{}\" is {error}", shown(&text))))?;
        // A comma is accepted before the fraction, a point is written (4.6.3).
        let text = if text.contains(',') { Cow::Owned(text.replace(',', ".")) } else { text };
        Ok(Change::Set((instant, text)))
    }

    fn attribute_into<'d>(
        &self,
        into: &mut Vec<AttributeInput<'d>>,
        spelled: Cow<'d, str>,
        value: Value<'d>,
    ) -> Result<(), Invalid> {
        let name = self.symbol(&spelled)?;
        let from = into.len();
        if self.is_multi_instance(value) {
            for item in value.items() {
                into.push(self.instance(name, spelled.clone(), item)?);
            }
        } else if let Some(dataset) = self.simplified_datasets(value) {
            for (id, item) in dataset.members() {
                let mut instance = self.instance(name, spelled.clone(), item)?;
                instance.dataset = self.dataset(id).map_err(|error| error.at(&spelled))?;
                into.push(instance);
            }
        } else {
            into.push(self.instance(name, spelled, value)?);
        }
        if into.len() > MAX_INSTANCES {
            return Err(too_many_instances());
        }
        unique_datasets(&into[from..])
    }

    /// An array of attribute objects is several instances; any other array is a value (4.5.5, 4.5.2.3).
    fn is_multi_instance(&self, value: Value<'_>) -> bool {
        !self.mode.simplified
            && value.is_array()
            && value.items().next().is_some()
            && value.items().all(|item| item.is_object() && is_attribute_object(item))
    }

    /// `{"dataset": {...}}` of the simplified representation (4.5.5).
    fn simplified_datasets<'d>(&self, value: Value<'d>) -> Option<Value<'d>> {
        let only = value.members().count() == 1;
        (self.mode.simplified && only).then(|| value.get("dataset")).flatten().filter(|v| v.is_object())
    }

    fn instance<'d>(
        &self,
        name: Symbol,
        spelled: Cow<'d, str>,
        value: Value<'d>,
    ) -> Result<AttributeInput<'d>, Invalid> {
        let (dataset, content) = self.content(&spelled, value).map_err(|error| error.at(&spelled))?;
        Ok(AttributeInput { name, spelled, dataset, content })
    }

    fn content<'d>(&self, spelled: &str, value: Value<'d>) -> Result<(Dataset<'d>, Content<'d>), Invalid> {
        let mut input = InstanceInput::default();
        let mut dataset = None;
        let mut removed = value.is_str(NULL);
        if removed {
            self.removal::<()>()?;
        } else if !self.mode.simplified && value.is_object() && is_attribute_object(value) {
            removed = self.members(&mut input, &mut dataset, spelled, value)?;
        } else {
            self.bare(&mut input, value)?;
        }
        check_location(spelled, &input)?;
        Ok((dataset, if removed { Content::Remove } else { Content::Set(Box::new(input)) }))
    }

    /// A value without wrapper: a geometry, or anything as a Property (4.5.2.3, 4.5.4).
    fn bare<'d>(&self, input: &mut InstanceInput<'d>, value: Value<'d>) -> Result<(), Invalid> {
        input.bare = true;
        if let Some((kind, inner)) = self.simplified_wrapper(value) {
            input.kind = Some(kind);
            input.value = Some(self.values().of_kind(kind, inner)?);
            return Ok(());
        }
        if value.get("type").is_some()
            && value.is_object()
            && !value::is_geometry(value)
            && !self.mode.simplified
        {
            return Err(Invalid::new(
                "its \"type\" is no attribute type; wrap an object value that has a \"type\" of its own in \
                 {\"value\": ...} (4.5.2.3)",
            ));
        }
        let kind = if value::is_geometry(value) { Kind::GeoProperty } else { Kind::Property };
        input.kind = Some(kind);
        input.value = Some(self.values().of_kind(kind, value)?);
        Ok(())
    }

    /// `{"languageMap": ...}`, `{"vocab": ...}`, `{"json": ...}` of the simplified representation.
    fn simplified_wrapper<'d>(&self, value: Value<'d>) -> Option<(Kind, Value<'d>)> {
        if !self.mode.simplified || value.members().count() != 1 {
            return None;
        }
        let (name, inner) = value.members().next()?;
        let kind = match name.as_ref() {
            "languageMap" => Kind::LanguageProperty,
            "vocab" => Kind::VocabProperty,
            "json" => Kind::JsonProperty,
            _ => return None,
        };
        Some((kind, inner))
    }

    fn values(&self) -> Values<'c> {
        Values { context: self.context, nulls: self.mode.nested_nulls }
    }

    /// The members of a wrapped attribute; true when its value is the NGSI-LD Null.
    fn members<'d>(
        &self,
        input: &mut InstanceInput<'d>,
        dataset: &mut Option<Cow<'d, str>>,
        spelled: &str,
        value: Value<'d>,
    ) -> Result<bool, Invalid> {
        let mut found: Option<(&'static str, Value<'d>)> = None;
        for (name, member) in value.members() {
            if let Some(known) = value_member(&name) {
                if found.replace((known, member)).is_some() {
                    return Err(Invalid::new(
                        "has more than one of value, object, languageMap, vocab, json, \
                                             valueList, objectList",
                    ));
                }
                continue;
            }
            self.member(input, dataset, spelled, name, member)?;
        }
        let removed = match found {
            Some((member, value)) => self.value(input, member, value)?,
            None => false,
        };
        self.check_members(input)?;
        unique_names(&input.subs)?;
        Ok(removed)
    }

    fn member<'d>(
        &self,
        input: &mut InstanceInput<'d>,
        dataset: &mut Option<Cow<'d, str>>,
        spelled: &str,
        name: Cow<'d, str>,
        member: Value<'d>,
    ) -> Result<(), Invalid> {
        let refuse = |error: Invalid| error.at(&name);
        match name.as_ref() {
            "type" | "@type" if input.kind_is_explicit => {
                return Err(Invalid::new("type and @type are the same member").at("type"));
            }
            "type" | "@type" => {
                input.kind = Some(attribute_type(member).map_err(|error| error.at("type"))?);
                input.kind_is_explicit = true;
            }
            "observedAt" => input.observed = self.date_time(member).map_err(refuse)?,
            "expiresAt" => input.expires = self.instant(member).map_err(refuse)?,
            "unitCode" => input.unit_code = self.text(member).map_err(refuse)?,
            "datasetId" => {
                let id =
                    member.as_str().ok_or_else(|| refuse(Invalid::new("must be a string holding a URI")))?;
                *dataset = self.dataset(id).map_err(refuse)?;
            }
            "objectType" => self.slot(input, Slot::ObjectType, member).map_err(refuse)?,
            "valueType" => self.slot(input, Slot::ValueType, member).map_err(refuse)?,
            "entityTypeSealed" if spelled == "ngsildproof" => {
                self.slot(input, Slot::SealedType, member).map_err(refuse)?;
            }
            "entityIdSealed" if spelled == "ngsildproof" => {
                input.sealed_id = self.text(member).map_err(refuse)?;
            }
            "entityTypeSealed" | "entityIdSealed" => {
                return Err(refuse(Invalid::new("belongs to ngsildproof alone (4.5.2.2)")));
            }
            "@context" => return Err(refuse(Invalid::new("is allowed in the entity alone (5.5.7)"))),
            // What an answer adds may come back: it is the broker's to set.
            "createdAt" | "modifiedAt" | "deletedAt" | "instanceId" | "lang" | "entity" | "entityList" => {}
            known if OUTPUT_ONLY.contains(&known) => {
                return Err(refuse(Invalid::new("is for notifications alone (4.5.2.2)")));
            }
            _ => {
                self.attribute_into(&mut input.subs, name, member)?;
                if input.subs.len() > MAX_SUBS {
                    return Err(Invalid::new(format!("more than {MAX_SUBS} sub-attributes")));
                }
            }
        }
        Ok(())
    }

    fn text<'d>(&self, value: Value<'d>) -> Result<Change<Cow<'d, str>>, Invalid> {
        if value.is_str(NULL) {
            return self.removal();
        }
        if value.kind() == Json::String {
            return Ok(Change::Set(Cow::Borrowed(value.raw())));
        }
        Err(Invalid::new("must be a string"))
    }

    fn dataset<'d>(&self, id: Cow<'d, str>) -> Result<Option<Cow<'d, str>>, Invalid> {
        if id == DEFAULT_DATASET {
            return Ok(None);
        }
        if id == NULL {
            return Err(Invalid::new("a datasetId cannot be deleted (5.5.8)"));
        }
        if name::is_uri(&id) { Ok(Some(id)) } else { Err(value::not_a_uri(&id)) }
    }

    fn slot(&self, input: &mut InstanceInput<'_>, slot: Slot, value: Value<'_>) -> Result<(), Invalid> {
        if value.is_str(NULL) {
            let removal = self.removal()?;
            input.slots.push((slot, removal));
            return Ok(());
        }
        let names: Vec<Value<'_>> = if value.is_array() { value.items().collect() } else { vec![value] };
        if names.is_empty() || names.len() + input.slots.len() > MAX_SLOTS {
            return Err(Invalid::new("must be a string or a short array of strings"));
        }
        for item in names {
            let name =
                item.as_str().ok_or_else(|| Invalid::new("must be a string or an array of strings"))?;
            input.slots.push((slot, Change::Set(self.symbol(&name)?)));
        }
        Ok(())
    }

    /// Takes the value member; true when it is the NGSI-LD Null, which deletes the instance.
    fn value<'d>(
        &self,
        input: &mut InstanceInput<'d>,
        member: &'static str,
        value: Value<'d>,
    ) -> Result<bool, Invalid> {
        if value::is_null(member, value) {
            return self.removal::<()>().map(|_| true).map_err(|error| error.at(member));
        }
        let kind = match input.kind {
            Some(kind) if kind.value_member() == member => kind,
            Some(kind) => {
                let reason =
                    format!("does not belong to a {}, which has {}", kind.name(), kind.value_member());
                return Err(Invalid::new(reason).at(member));
            }
            None => inferred_kind(member, value),
        };
        input.kind = Some(kind);
        input.value = Some(self.values().of_kind(kind, value).map_err(|error| error.at(member))?);
        Ok(false)
    }

    /// Members that exclude each other (4.5.2.2, 4.5.3.2, 4.5.24.2, 5.2.32).
    fn check_members(&self, input: &InstanceInput<'_>) -> Result<(), Invalid> {
        let Some(kind) = input.kind else { return Ok(()) };
        let has = |slot: Slot| input.slots.iter().any(|(tag, _)| *tag == slot);
        check_companions(kind, input.unit_code.is_mentioned(), has)?;
        if kind == Kind::LanguageProperty && !input.slots.iter().all(|slot| self.is_lang_string(slot)) {
            return Err(Invalid::new("of a LanguageProperty must be langString (5.2.32)").at("valueType"));
        }
        Ok(())
    }

    fn is_lang_string(&self, slot: &(Slot, Change<Symbol>)) -> bool {
        match slot {
            (Slot::ValueType, Change::Set(symbol)) => {
                let name = self.symbols.name(*symbol);
                name.rsplit(['/', '#', ':']).next() == Some("langString")
            }
            _ => true,
        }
    }
}

fn scope(item: Value<'_>) -> Result<Cow<'_, str>, Invalid> {
    let text = item.as_str().ok_or_else(|| Invalid::new("must be a string or an array of strings"))?;
    if name::is_scope(&text) {
        return Ok(text);
    }
    Err(Invalid::new(format!(
        "\"{}\" is not a scope: levels of letters, digits and underscores, each beginning with a letter, separated \
         by / (4.18)",
        shown(&text)
    )))
}

fn too_many_instances() -> Invalid {
    Invalid::new(format!("more than {MAX_INSTANCES} attribute instances"))
}

/// Members that stand beside the value of some kinds alone (4.5.2.2, 4.5.3.2).
pub(crate) fn check_companions(kind: Kind, unit: bool, has: impl Fn(Slot) -> bool) -> Result<(), Invalid> {
    if unit && !matches!(kind, Kind::Property | Kind::ListProperty) {
        return Err(Invalid::new(format!("a {} has no unit", kind.name())).at("unitCode"));
    }
    if !kind.is_relationship() && has(Slot::ObjectType) {
        return Err(Invalid::new("belongs to relationships alone").at("objectType"));
    }
    if kind.is_relationship() && has(Slot::ValueType) {
        return Err(Invalid::new("belongs to properties alone").at("valueType"));
    }
    Ok(())
}

fn attribute_type(value: Value<'_>) -> Result<Kind, Invalid> {
    let text = value.as_str().ok_or_else(|| Invalid::new("must be a string"))?;
    Kind::from_name(&text).ok_or_else(|| {
        Invalid::new(format!(
            "\"{}\" is no attribute type: use Property, GeoProperty, Relationship, LanguageProperty, VocabProperty, \
             JsonProperty, ListProperty or ListRelationship (4.5)",
            shown(&text)
        ))
    })
}

/// The member names that carry a value.
fn value_member(name: &str) -> Option<&'static str> {
    const MEMBERS: [&str; 7] = ["value", "object", "languageMap", "vocab", "json", "valueList", "objectList"];
    MEMBERS.into_iter().find(|member| *member == name)
}

/// Wrapped (normalized or concise) rather than a bare value: names an attribute type or has a member that
/// only attributes have.
fn is_attribute_object(value: Value<'_>) -> bool {
    value.members().any(|(name, member)| match name.as_ref() {
        "type" | "@type" => member.as_str().is_some_and(|text| Kind::from_name(&text).is_some()),
        "observedAt" | "unitCode" | "datasetId" | "objectType" | "valueType" => true,
        other => value_member(other).is_some(),
    })
}

/// The kind of a concise attribute, from its value member (4.5.2.3).
fn inferred_kind(member: &str, value: Value<'_>) -> Kind {
    match member {
        "object" => Kind::Relationship,
        "languageMap" => Kind::LanguageProperty,
        "vocab" => Kind::VocabProperty,
        "json" => Kind::JsonProperty,
        "valueList" => Kind::ListProperty,
        "objectList" => Kind::ListRelationship,
        _ if value::is_geometry(value) => Kind::GeoProperty,
        _ => Kind::Property,
    }
}

/// `location`, `observationSpace` and `operationSpace` are GeoProperties (4.7.1); `ngsildproof` holds an object.
fn check_location(spelled: &str, input: &InstanceInput<'_>) -> Result<(), Invalid> {
    let (Some(kind), Some(value)) = (input.kind, input.value.as_deref()) else { return Ok(()) };
    match spelled {
        "location" | "observationSpace" | "operationSpace" if kind != Kind::GeoProperty => {
            Err(Invalid::new("must be a GeoProperty holding a GeoJSON geometry (4.7.1)"))
        }
        "ngsildproof" if kind == Kind::Property && !value.starts_with('{') => {
            Err(Invalid::new("must hold an object with the proof (4.5.2.2)").at("value"))
        }
        _ => Ok(()),
    }
}

/// Two spellings of one name would be two values of one attribute.
fn unique_names(attributes: &[AttributeInput<'_>]) -> Result<(), Invalid> {
    // One name for each member: the instances of one are neighbours and share its spelling.
    let is_next = |at: &usize| {
        *at == 0
            || attributes[*at].name != attributes[*at - 1].name
            || attributes[*at].spelled != attributes[*at - 1].spelled
    };
    let members = (0..attributes.len()).filter(is_next);
    let mut names: SmallVec<[Symbol; 16]> = members.map(|at| attributes[at].name).collect();
    let groups = names.len();
    names.sort_unstable();
    names.dedup();
    if names.len() == groups {
        return Ok(());
    }
    let repeats = |own: &AttributeInput<'_>, at: usize| {
        attributes[..at].iter().any(|other| other.name == own.name && other.spelled != own.spelled)
    };
    let again = attributes.iter().enumerate().find(|(at, own)| repeats(own, *at));
    let spelled = again.map_or("", |(_, own)| &own.spelled);
    Err(Invalid::new("expands to the same name as another member").at(spelled))
}

/// `datasetId`; `None` is the default instance.
type Dataset<'d> = Option<Cow<'d, str>>;

fn unique_datasets(instances: &[AttributeInput<'_>]) -> Result<(), Invalid> {
    if instances.len() < 2 {
        return Ok(());
    }
    let mut datasets: Vec<Option<&str>> = instances.iter().map(|own| own.dataset.as_deref()).collect();
    datasets.sort_unstable();
    match datasets.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            let id = pair[0].unwrap_or(DEFAULT_DATASET);
            let error = Invalid::new(format!("two instances with the datasetId {id} (4.5.5)"));
            Err(error.at(&instances[0].spelled))
        }
        None => Ok(()),
    }
}
