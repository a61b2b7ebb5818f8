//! The core contexts (ETSI GS CIM 009 v1.9.1, 4.4 and annex B) as a table of terms.
//!
//! The newest list is annex B of v1.9.1. An older version is the same table cut at the version which brought a
//! term; its number of members is that of the document which was published for it. Documents of 1.3 to 1.5
//! are answered with the list of 1.6: nothing they define is missing there. Which term came with which of
//! these old versions matters only to a client that names one.
//!
//! A term of the core never means anything else: user contexts cannot redefine it (4.4, 5.5.7).

use std::sync::Arc;

use hashbrown::HashMap;

use super::context::Context;
use crate::json::write_string;

/// Namespace of the names that no context defines (annex B, `@vocab`).
pub const DEFAULT_VOCAB: &str = "https://uri.etsi.org/ngsi-ld/default-context/";

const NGSI_LD: &str = "https://uri.etsi.org/ngsi-ld/";
const GEOJSON: &str = "https://purl.org/geojson/vocab#";
const BASE: &str = "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context";

/// A version of the core context that a client may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the versions")]
pub enum CoreVersion {
    V1_3,
    V1_4,
    V1_5,
    V1_6,
    V1_7,
    V1_8,
    V1_9,
}

impl CoreVersion {
    /// All versions, the oldest first.
    pub const ALL: [CoreVersion; 7] = [
        CoreVersion::V1_3,
        CoreVersion::V1_4,
        CoreVersion::V1_5,
        CoreVersion::V1_6,
        CoreVersion::V1_7,
        CoreVersion::V1_8,
        CoreVersion::V1_9,
    ];

    /// The newest version.
    pub const LATEST: CoreVersion = CoreVersion::V1_9;

    fn minor(self) -> u8 {
        self as u8 + 3
    }

    /// The version whose URL is exactly `url`; the URL without a version names the newest.
    pub fn from_url(url: &str) -> Option<CoreVersion> {
        let version = url.strip_prefix(BASE)?.strip_suffix(".jsonld")?;
        if version.is_empty() {
            return Some(CoreVersion::LATEST);
        }
        CoreVersion::ALL.into_iter().find(|known| version.strip_prefix('-') == Some(known.name()))
    }

    fn name(self) -> &'static str {
        match self {
            CoreVersion::V1_3 => "v1.3",
            CoreVersion::V1_4 => "v1.4",
            CoreVersion::V1_5 => "v1.5",
            CoreVersion::V1_6 => "v1.6",
            CoreVersion::V1_7 => "v1.7",
            CoreVersion::V1_8 => "v1.8",
            CoreVersion::V1_9 => "v1.9",
        }
    }

    /// Where this version is published.
    pub fn url(self) -> &'static str {
        match self {
            CoreVersion::V1_3 => "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.3.jsonld",
            CoreVersion::V1_4 => "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.4.jsonld",
            CoreVersion::V1_5 => "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.5.jsonld",
            CoreVersion::V1_6 => "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.6.jsonld",
            CoreVersion::V1_7 => "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.7.jsonld",
            CoreVersion::V1_8 => "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.8.jsonld",
            CoreVersion::V1_9 => "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.9.jsonld",
        }
    }

    fn terms(self) -> impl Iterator<Item = &'static Term> {
        let minor = self.minor().max(OLDEST_LIST);
        TERMS.iter().filter(move |term| term.since <= minor && minor <= term.until)
    }

    /// The context as a JSON-LD document.
    pub fn document(self) -> String {
        let mut out = b"{\n  \"@context\": {\n    \"@version\": 1.1,\n    \"@protected\": true,\n".to_vec();
        for term in self.terms() {
            out.extend_from_slice(b"    ");
            term.write(&mut out);
            out.extend_from_slice(b",\n");
        }
        out.extend_from_slice(b"    \"@vocab\": ");
        write_string(&mut out, DEFAULT_VOCAB);
        out.extend_from_slice(b"\n  }\n}\n");
        String::from_utf8(out).expect("the table is UTF-8")
    }
}

const OLDEST_LIST: u8 = 6;

/// What the value of a term's definition is besides the IRI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Plain,
    Type(&'static str),
    Container(&'static str),
    /// The one definition with a scoped context (4.4 allows it to the core alone).
    Sealed,
}

/// The IRI of a term.
#[derive(Debug, Clone, Copy)]
enum Names {
    /// In the namespace of NGSI-LD.
    NgsiLd(&'static str),
    /// In the namespace of GeoJSON.
    GeoJson(&'static str),
    /// In the default namespace: annex B gives a relative name.
    Vocab(&'static str),
    /// An IRI or a keyword in full.
    Full(&'static str),
}

struct Term {
    name: &'static str,
    names: Names,
    shape: Shape,
    since: u8,
    until: u8,
}

impl Term {
    const fn since(self, minor: u8) -> Term {
        Term { since: minor, ..self }
    }

    const fn until(self, minor: u8) -> Term {
        Term { until: minor, ..self }
    }

    const fn called(self, local: &'static str) -> Term {
        Term { names: Names::NgsiLd(local), ..self }
    }

    fn iri(&self) -> String {
        match self.names {
            Names::NgsiLd(local) => [NGSI_LD, local].concat(),
            Names::GeoJson(local) => [GEOJSON, local].concat(),
            Names::Vocab(local) => [DEFAULT_VOCAB, local].concat(),
            Names::Full(iri) => iri.to_owned(),
        }
    }

    /// The IRI as annex B writes it.
    fn compact_iri(&self) -> String {
        match self.names {
            Names::NgsiLd(local) => format!("ngsi-ld:{local}"),
            Names::GeoJson(local) => format!("geojson:{local}"),
            Names::Vocab(local) => local.to_owned(),
            Names::Full(iri) => iri.to_owned(),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_string(out, self.name);
        out.extend_from_slice(b": ");
        let (keyword, value) = match self.shape {
            Shape::Plain => return write_string(out, &self.compact_iri()),
            Shape::Type(value) => ("@type", value),
            Shape::Container(value) => ("@container", value),
            Shape::Sealed => return out.extend_from_slice(SEALED.as_bytes()),
        };
        out.extend_from_slice(b"{\"@id\": ");
        write_string(out, &self.compact_iri());
        out.extend_from_slice(format!(", \"{keyword}\": \"{value}\"}}").as_bytes());
    }
}

const SEALED: &str = concat!(
    r#"{"@id": "ngsi-ld:ngsildproof", "@context": [{"entityIdSealed": "ngsi-ld:entityIdSealed", "#,
    r#""entityTypeSealed": {"@id": "ngsi-ld:entityTypeSealed", "@type": "@vocab"}}, "#,
    r#""https://w3id.org/security/data-integrity/v2"]}"#
);

const fn term(name: &'static str, shape: Shape) -> Term {
    Term { name, names: Names::NgsiLd(name), shape, since: OLDEST_LIST, until: u8::MAX }
}

const fn plain(name: &'static str) -> Term {
    term(name, Shape::Plain)
}

const fn geo(name: &'static str) -> Term {
    Term { names: Names::GeoJson(name), ..plain(name) }
}

const fn full(name: &'static str, iri: &'static str) -> Term {
    Term { names: Names::Full(iri), ..plain(name) }
}

const fn relative(name: &'static str) -> Term {
    Term { names: Names::Vocab(name), ..plain(name) }
}

const fn vocab(name: &'static str) -> Term {
    term(name, Shape::Type("@vocab"))
}

const fn date(name: &'static str) -> Term {
    term(name, Shape::Type("DateTime"))
}

const fn uri(name: &'static str) -> Term {
    term(name, Shape::Type("@id"))
}

const fn json(name: &'static str) -> Term {
    term(name, Shape::Type("@json"))
}

const fn list(name: &'static str) -> Term {
    term(name, Shape::Container("@list"))
}

const fn language(name: &'static str) -> Term {
    term(name, Shape::Container("@language"))
}

/// Annex B, with the minor version that brought a term where that is later than 1.6.
const TERMS: &[Term] = &[
    full("ngsi-ld", NGSI_LD),
    full("geojson", GEOJSON),
    full("id", "@id"),
    full("type", "@type"),
    plain("Attribute"),
    plain("AttributeList"),
    plain("ContextSourceIdentity").since(8),
    plain("ContextSourceNotification"),
    plain("ContextSourceRegistration"),
    plain("Date"),
    plain("DateTime"),
    plain("EntityType"),
    plain("EntityTypeInfo"),
    plain("EntityTypeList"),
    plain("ExecutionResultDetails").since(9),
    geo("Feature"),
    geo("FeatureCollection"),
    geo("GeometryCollection"),
    plain("GeoProperty"),
    plain("JsonProperty").since(8),
    plain("LanguageProperty"),
    geo("LineString"),
    plain("ListProperty").since(8),
    plain("ListRelationship").since(8),
    geo("MultiLineString"),
    geo("MultiPoint"),
    geo("MultiPolygon"),
    plain("Notification"),
    geo("Point"),
    geo("Polygon"),
    plain("Property"),
    plain("Relationship"),
    plain("Snapshot").since(9),
    plain("SnapshotNotification").since(9),
    plain("Subscription"),
    plain("TemporalProperty"),
    plain("Time"),
    plain("VocabProperty").since(8),
    plain("VocabularyProperty").since(7).until(7),
    plain("accept"),
    plain("aggrMethods").since(9),
    plain("aggrParams").since(9),
    plain("aggrPeriodDuration").since(9),
    relative("attributeCount"),
    relative("attributeDetails"),
    vocab("attributeList"),
    vocab("attributeName"),
    vocab("attributeNames"),
    vocab("attributes"),
    vocab("attributeTypes"),
    plain("attrs"),
    list("avg"),
    Term { names: Names::GeoJson("bbox"), ..list("bbox") },
    plain("cacheDuration"),
    plain("collation").since(9),
    plain("containedBy").called("isContainedBy").since(8),
    plain("contextSourceAlias").since(8),
    json("contextSourceExtras").since(8),
    plain("contextSourceInfo"),
    date("contextSourceTimeAt").since(8),
    plain("contextSourceUptime").since(8),
    plain("cooldown"),
    Term { names: Names::GeoJson("coordinates"), ..list("coordinates") },
    date("createdAt"),
    plain("csf"),
    plain("data"),
    term("dataset", Shape::Container("@index")).called("hasDataset").since(8),
    uri("datasetId"),
    date("deletedAt"),
    full("description", "http://purl.org/dc/terms/description"),
    plain("detail"),
    list("distinctCount"),
    date("endAt"),
    plain("endpoint"),
    date("endTimeAt"),
    plain("entities"),
    plain("entity").since(8),
    plain("entityCount"),
    uri("entityId"),
    list("entityList").since(8),
    plain("entityMap").called("hasEntityMap").since(8),
    plain("error"),
    plain("errors"),
    plain("expandValues").since(8),
    date("expiresAt"),
    Term { shape: Shape::Container("@set"), ..geo("features") },
    plain("format"),
    geo("geometry"),
    plain("geoproperty"),
    plain("geoQ"),
    plain("georel"),
    plain("idPattern"),
    plain("information"),
    uri("instanceId"),
    plain("isActive"),
    plain("join").since(8),
    plain("joinLevel").called("hasJoinLevel").since(8),
    json("json").called("hasJSON").since(8),
    plain("jsonKeys").since(8),
    list("jsons").since(8),
    plain("key").called("hasKey").since(8),
    plain("lang"),
    full("langString", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString").since(8),
    language("languageMap").called("hasLanguageMap"),
    list("languageMaps").called("hasLanguageMaps"),
    date("lastFailure"),
    date("lastNotification"),
    date("lastSuccess"),
    date("lastUsedAt").since(9),
    plain("linkedMaps").since(8),
    plain("localOnly"),
    plain("location"),
    plain("management"),
    plain("managementInterval"),
    list("max"),
    list("min"),
    plain("mode"),
    date("modifiedAt"),
    term("ngsildproof", Shape::Sealed).since(9),
    plain("notification"),
    plain("notificationTrigger"),
    date("notifiedAt"),
    plain("notifierInfo"),
    plain("notUpdated"),
    uri("object").called("hasObject"),
    list("objectList").called("hasObjectList").since(8),
    list("objectLists").called("hasObjectLists").since(8),
    list("objects").called("hasObjects"),
    vocab("objectType").called("hasObjectType").since(8),
    plain("observationInterval"),
    plain("observationSpace"),
    date("observedAt"),
    plain("omit").since(8),
    plain("operations"),
    plain("operationSpace"),
    list("orderBy").since(9),
    plain("ordering").since(9),
    plain("pick").since(8),
    json("previousJson").called("hasPreviousJson").since(8),
    language("previousLanguageMap").called("hasPreviousLanguageMap"),
    uri("previousObject").called("hasPreviousObject"),
    list("previousObjectList").called("hasPreviousObjectList").since(8),
    plain("previousValue").called("hasPreviousValue"),
    list("previousValueList").called("hasPreviousValueList").since(8),
    vocab("previousVocab").called("hasPreviousVocab").since(7),
    json("problemDetails").since(9),
    geo("properties"),
    vocab("propertyNames"),
    plain("q"),
    plain("reason"),
    plain("receiverInfo"),
    plain("refreshRate"),
    plain("registrationId"),
    plain("registrationName"),
    vocab("relationshipNames"),
    plain("resultStatus").since(9),
    plain("scope"),
    plain("scopeQ"),
    plain("showChanges"),
    plain("snapshotId").since(9),
    plain("snapshotLifetime").since(9),
    plain("snapshotPriority").since(9),
    list("snapshotQueries").since(9),
    list("snapshotQueriesDetails").since(9),
    plain("snapshotStatus").since(9),
    list("snapshotTemporalQueries").since(9),
    list("snapshotTemporalQueriesDetails").since(9),
    date("startAt"),
    plain("status"),
    list("stddev"),
    uri("subscriptionId"),
    plain("subscriptionName"),
    uri("success"),
    list("sum"),
    list("sumsq"),
    plain("sysAttrs"),
    plain("temporalQ"),
    uri("tenant"),
    plain("throttling"),
    date("timeAt"),
    plain("timeInterval"),
    plain("timeout"),
    plain("timeproperty"),
    plain("timerel"),
    plain("timesFailed").since(7),
    plain("timesSent"),
    full("title", "http://purl.org/dc/terms/title"),
    list("totalCount"),
    plain("triggerReason"),
    vocab("typeList"),
    vocab("typeName"),
    vocab("typeNames"),
    plain("unchanged"),
    plain("unitCode"),
    plain("updated"),
    plain("uri"),
    plain("value").called("hasValue"),
    list("valueList").called("hasValueList").since(8),
    list("valueLists").called("hasValueLists").since(8),
    list("values").called("hasValues"),
    vocab("valueType").called("hasValueType").since(9),
    vocab("vocab").called("hasVocab").since(7),
    list("vocabs").called("hasVocabs").since(7),
    vocab("watchedAttributes"),
];

/// The terms of one core version, both ways.
#[derive(Debug)]
pub(super) struct CoreTable {
    pub(super) version: CoreVersion,
    /// Term to IRI or keyword, and whether it may be a prefix.
    terms: HashMap<&'static str, (Box<str>, bool), foldhash::fast::RandomState>,
    /// IRI or keyword to term.
    names: HashMap<Box<str>, &'static str, foldhash::fast::RandomState>,
}

impl CoreTable {
    fn new(version: CoreVersion) -> CoreTable {
        let mut table = CoreTable { version, terms: HashMap::default(), names: HashMap::default() };
        for term in version.terms() {
            let iri = term.iri().into_boxed_str();
            let prefix = iri.ends_with(['/', '#']);
            table.names.insert(iri.clone(), term.name);
            table.terms.insert(term.name, (iri, prefix));
        }
        table
    }

    /// The IRI or keyword of a core term.
    pub(super) fn iri(&self, term: &str) -> Option<&str> {
        self.terms.get(term).map(|(iri, _)| &**iri)
    }

    /// The IRI that `prefix` stands for in a compact IRI.
    pub(super) fn prefix(&self, prefix: &str) -> Option<&str> {
        self.terms.get(prefix).filter(|(_, prefix)| *prefix).map(|(iri, _)| &**iri)
    }

    /// The core term of an IRI or keyword.
    pub(super) fn term(&self, iri: &str) -> Option<&'static str> {
        self.names.get(iri).copied()
    }

    /// The prefixes of the core and their IRIs.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.terms.iter().filter(|(_, (_, prefix))| *prefix).map(|(term, (iri, _))| (*term, &**iri))
    }
}

/// The built-in core contexts, made once per broker and shared.
#[derive(Debug)]
pub struct Cores {
    tables: [Arc<CoreTable>; CoreVersion::ALL.len()],
    contexts: [Arc<Context>; CoreVersion::ALL.len()],
}

impl Default for Cores {
    fn default() -> Self {
        Self::new()
    }
}

impl Cores {
    /// Builds the tables; under a millisecond.
    pub fn new() -> Cores {
        let tables = CoreVersion::ALL.map(|version| Arc::new(CoreTable::new(version)));
        let contexts = tables.each_ref().map(|table| Arc::new(Context::of_core(table.clone())));
        Cores { tables, contexts }
    }

    /// The context that consists of the core alone (5.5.5).
    pub fn get(&self, version: CoreVersion) -> &Arc<Context> {
        &self.contexts[version as usize]
    }

    pub(super) fn table(&self, version: CoreVersion) -> &Arc<CoreTable> {
        &self.tables[version as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Doc;

    fn members(version: CoreVersion) -> Vec<(String, serde_json::Value)> {
        let text = version.document();
        Doc::parse(text.as_bytes()).expect("no duplicate members");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        value["@context"].as_object().unwrap().clone().into_iter().collect()
    }

    fn count(version: CoreVersion, keyword: &str, value: &str) -> usize {
        members(version).iter().filter(|(_, definition)| definition[keyword] == value).count()
    }

    #[test]
    fn each_version_has_as_many_members_as_the_published_document() {
        let counts = CoreVersion::ALL.map(|version| members(version).len());
        assert_eq!(counts, [147, 147, 147, 147, 152, 184, 206]);
    }

    #[test]
    fn the_coercions_and_containers_of_1_8_are_counted() {
        let count = |keyword, value| count(CoreVersion::V1_8, keyword, value);
        let types = ["@vocab", "DateTime", "@id", "@json"].map(|value| count("@type", value));
        assert_eq!(types, [14, 14, 8, 3]);
        let containers = ["@list", "@set", "@language", "@index"].map(|value| count("@container", value));
        assert_eq!(containers, [22, 1, 2, 1]);
        let plain = members(CoreVersion::V1_8).iter().filter(|(_, value)| value.is_string()).count();
        assert_eq!(plain, 117);
    }

    #[test]
    fn annex_b_has_every_kind_of_definition() {
        let of: std::collections::BTreeMap<_, _> = members(CoreVersion::V1_9).into_iter().collect();
        assert_eq!(of["value"], "ngsi-ld:hasValue");
        assert_eq!(of["bbox"], serde_json::json!({"@id": "geojson:bbox", "@container": "@list"}));
        assert_eq!(of["json"], serde_json::json!({"@id": "ngsi-ld:hasJSON", "@type": "@json"}));
        assert_eq!(of["ngsildproof"]["@context"][1], "https://w3id.org/security/data-integrity/v2");
        assert!(!of.contains_key("VocabularyProperty") && of.contains_key("VocabProperty"));
    }

    #[test]
    fn only_the_exact_urls_name_a_core_context() {
        for version in CoreVersion::ALL {
            assert_eq!(CoreVersion::from_url(version.url()), Some(version));
        }
        assert_eq!(CoreVersion::from_url(&format!("{BASE}.jsonld")), Some(CoreVersion::LATEST));
        for other in
            ["-non-existing.jsonld", "-v1.2.jsonld", "-v1.10.jsonld", "v1.8.jsonld", "-v1.8", "-.jsonld"]
        {
            assert_eq!(CoreVersion::from_url(&format!("{BASE}{other}")), None, "{other}");
        }
    }

    #[test]
    fn no_two_terms_of_a_version_share_an_iri() {
        for version in CoreVersion::ALL {
            let table = CoreTable::new(version);
            assert_eq!(table.names.len(), table.terms.len(), "{version:?}");
        }
    }
}
