//! The operations that every store must answer alike.

use crate::tenant::TenantName;

/// One operation: the tenant (empty for the default one), then what the operation takes.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each is the broker's method of the same name")]
pub enum Step {
    Create(&'static str, String),
    Replace(&'static str, String, String),
    Merge(&'static str, String, String),
    Append(&'static str, String, String, bool),
    Update(&'static str, String, String),
    Partial(&'static str, String, String, String),
    ReplaceAttribute(&'static str, String, String, String),
    DeleteAttribute(&'static str, String, String, bool),
    Delete(&'static str, String),
    Batch(&'static str, &'static str, String),
    Purge(&'static str, String),
    Query(&'static str, Option<String>, Option<String>),
    Discover(&'static str),
    Expire,
}

impl Step {
    /// The tenant that the step is for.
    pub fn tenant(&self) -> TenantName {
        let name = match self {
            Step::Create(tenant, ..)
            | Step::Replace(tenant, ..)
            | Step::Merge(tenant, ..)
            | Step::Append(tenant, ..)
            | Step::Update(tenant, ..)
            | Step::Partial(tenant, ..)
            | Step::ReplaceAttribute(tenant, ..)
            | Step::DeleteAttribute(tenant, ..)
            | Step::Delete(tenant, ..)
            | Step::Batch(tenant, ..)
            | Step::Purge(tenant, ..)
            | Step::Query(tenant, ..)
            | Step::Discover(tenant) => tenant,
            Step::Expire => "",
        };
        TenantName::parse(name).unwrap_or_default()
    }
}

fn create(tenant: &'static str, text: &str) -> Step {
    Step::Create(tenant, text.to_owned())
}

/// A corpus written by hand: each operation succeeding and refused, tenants, expiry, paging, discovery.
pub fn scripted_steps() -> Vec<Step> {
    let own = |text: &str| text.to_owned();
    let query = |types: Option<&str>, q: Option<&str>| Step::Query("", types.map(own), q.map(own));
    let one = || own("urn:a:1");
    vec![
        Step::Query("city", None, None),
        query(None, None),
        create("", r#"{"id":"urn:a:1","type":"T","n":1,"r":{"type":"Relationship","object":"urn:a:2"}}"#),
        create("", r#"{"id":"urn:a:1","type":"T"}"#),
        create(
            "",
            r#"{"id":"urn:a:2","type":["T","U"],"n":[{"value":2},{"value":3,"datasetId":"urn:d:1"}]}"#,
        ),
        create("", r#"{"id":"no","type":"T"}"#),
        create("", r#"{"id":"urn:a:3"}"#),
        create(
            "city",
            r#"{"id":"urn:a:1","type":"V","x":{"type":"LanguageProperty","languageMap":{"en":"a"}}}"#,
        ),
        Step::Query("city", None, None),
        query(Some("T"), None),
        query(Some("U,V"), None),
        query(Some("T"), Some("n==2")),
        query(None, Some("n>0;r")),
        Step::Discover(""),
        Step::Update("", one(), own(r#"{"n":5,"m":6}"#)),
        Step::Append("", one(), own(r#"{"type":"W","n":7,"k":8,"scope":"/s"}"#), true),
        Step::Append("", one(), own(r#"{"n":7,"scope":"/t"}"#), false),
        Step::Append("", own("urn:a:9"), own(r#"{"n":7}"#), false),
        Step::Merge("", one(), own(r#"{"n":"urn:ngsi-ld:null","k":{"value":{"a":1}}}"#)),
        Step::Merge("", one(), own(r#"{"k":{"value":{"a":"urn:ngsi-ld:null","b":2}}}"#)),
        Step::Partial("", one(), own("k"), own(r#"{"unitCode":"X"}"#)),
        Step::Partial("", one(), own("none"), own(r#"{"value":1}"#)),
        Step::ReplaceAttribute("", one(), own("k"), own(r#"{"type":"Relationship","object":"urn:b:1"}"#)),
        Step::DeleteAttribute("", own("urn:a:2"), own("n"), false),
        Step::DeleteAttribute("", own("urn:a:2"), own("n"), false),
        Step::DeleteAttribute("", own("urn:a:2"), own("n"), true),
        Step::DeleteAttribute("", one(), own("scope"), false),
        Step::Replace("", one(), own(r#"{"id":"urn:a:1","type":"Z","only":true}"#)),
        Step::Replace("", one(), own(r#"{"id":"urn:a:2","type":"Z"}"#)),
        Step::Discover(""),
        Step::Batch(
            "",
            "create",
            own(r#"[{"id":"urn:b:1","type":"B"},{"id":"urn:b:1","type":"B"},{"id":"x"}]"#),
        ),
        Step::Batch("", "create", own(r#"[{"id":"urn:b:2","type":"B"},null]"#)),
        Step::Batch("", "create", own("[]")),
        Step::Batch(
            "",
            "upsert",
            own(r#"[{"id":"urn:b:1","type":"B","v":1},{"id":"urn:b:3","type":"B","v":2}]"#),
        ),
        Step::Batch("", "upsert-update", own(r#"[{"id":"urn:b:1","w":1},{"id":"urn:b:4","type":"B"}]"#)),
        Step::Batch("", "update", own(r#"[{"id":"urn:b:1","v":"urn:ngsi-ld:null"},{"id":"urn:b:9","v":2}]"#)),
        Step::Batch("", "merge", own(r#"[{"id":"urn:b:3","v":3},{"id":"urn:b:9","v":2}]"#)),
        Step::Batch("", "delete", own(r#"["urn:b:4","urn:b:4","nonsense"]"#)),
        query(Some("B"), None),
        create("", r#"{"id":"urn:e:1","type":"E","expiresAt":"1970-01-01T00:01:00Z","n":1}"#),
        create("", r#"{"id":"urn:e:2","type":"E","n":{"value":1,"expiresAt":"1970-01-01T00:01:00Z"},"m":2}"#),
        create("", r#"{"id":"urn:e:3","type":"E","expiresAt":"1970-01-01T00:00:01Z"}"#),
        query(Some("E"), None),
        create("", r#"{"id":"urn:e:3","type":"E","expiresAt":"2099-01-01T00:00:00Z"}"#),
        Step::Expire,
        query(Some("E"), None),
        Step::Purge("", own("B")),
        Step::Delete("", own("urn:e:2")),
        Step::Delete("", own("urn:e:2")),
        Step::Delete("nowhere", own("urn:e:2")),
        query(None, None),
        Step::Discover(""),
        Step::Discover("city"),
    ]
}

const TENANTS: [&str; 2] = ["", "other"];
const NAMES: [&str; 5] = ["n", "m", "k", "long_name_of_an_attribute", "r"];

struct Dice(fastrand::Rng);

impl Dice {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.0.usize(..from.len())]
    }

    fn id(&mut self) -> String {
        format!("urn:x:{}", self.0.u32(..24))
    }

    fn value(&mut self) -> String {
        match self.0.u32(..8) {
            0 => r#""text""#.to_owned(),
            1 => r#"{"value":{"a":1,"b":[1,2]},"unitCode":"C"}"#.to_owned(),
            2 => r#"{"type":"Relationship","object":"urn:x:1"}"#.to_owned(),
            3 => r#"{"type":"LanguageProperty","languageMap":{"en":"x"}}"#.to_owned(),
            4 => r#"{"value":1,"datasetId":"urn:d:1","sub":{"value":2}}"#.to_owned(),
            5 => format!(r#"{{"value":1,"expiresAt":"1970-01-01T00:{:02}:00Z"}}"#, self.0.u32(..30)),
            n => format!("{n}"),
        }
    }

    fn attributes(&mut self) -> String {
        let count = self.0.usize(..4);
        let mut names: Vec<&str> = NAMES.to_vec();
        self.0.shuffle(&mut names);
        names[..count].iter().map(|name| format!(",\"{name}\":{}", self.value())).collect()
    }

    fn fragment(&mut self) -> String {
        let types = if self.0.u32(..4) == 0 { r#""type":"B""# } else { r#""createdAt":0"# };
        format!("{{{types}{}}}", self.attributes())
    }

    fn entity(&mut self, id: &str) -> String {
        let types = self.pick(&["\"A\"", "\"B\"", "[\"A\",\"C\"]", "\"D\""]);
        let scope = self.pick(&["", r#","scope":"/s""#, r#","scope":["/s","/t/u"]"#]);
        let expires = if self.0.u32(..6) == 0 {
            format!(r#","expiresAt":"1970-01-01T00:{:02}:00Z""#, self.0.u32(..30))
        } else {
            String::new()
        };
        format!(r#"{{"id":"{id}","type":{types}{scope}{expires}{}}}"#, self.attributes())
    }

    fn step(&mut self) -> Step {
        let (tenant, id) = (self.pick(&TENANTS), self.id());
        let name = self.pick(&NAMES).to_owned();
        match self.0.u32(..20) {
            0..=4 => {
                let body = self.entity(&id);
                Step::Create(tenant, body)
            }
            5 => {
                let body = self.entity(&id);
                Step::Replace(tenant, id, body)
            }
            6 => Step::Merge(tenant, id, self.fragment()),
            7 | 8 => Step::Append(tenant, id, self.fragment(), self.0.bool()),
            9 => Step::Update(tenant, id, self.fragment()),
            10 => Step::Partial(tenant, id, name, self.value()),
            11 => Step::DeleteAttribute(tenant, id, name, self.0.bool()),
            12 => Step::Delete(tenant, id),
            13 | 14 => self.batch(tenant),
            15 => Step::Query(tenant, Some(self.pick(&["A", "B,C", "(A;C)"]).to_owned()), None),
            16 => Step::Query(tenant, None, Some(self.pick(&["n", "n>1", "m==\"text\"", "k;r"]).to_owned())),
            17 => Step::Discover(tenant),
            18 => Step::Expire,
            _ => match self.0.u32(..12) {
                0 => Step::Purge(tenant, "D".to_owned()),
                _ => Step::Query(tenant, None, None),
            },
        }
    }

    fn batch(&mut self, tenant: &'static str) -> Step {
        let verb = self.pick(&["create", "upsert", "upsert-update", "update", "merge"]);
        let count = 1 + self.0.usize(..4);
        let items: Vec<String> = (0..count)
            .map(|_| {
                let id = self.id();
                self.entity(&id)
            })
            .collect();
        Step::Batch(tenant, verb, format!("[{}]", items.join(",")))
    }
}

/// `count` random operations on few entities; the same for the same seed.
pub fn random_steps(seed: u64, count: usize) -> Vec<Step> {
    let mut dice = Dice(fastrand::Rng::with_seed(seed));
    (0..count).map(|_| dice.step()).collect()
}
