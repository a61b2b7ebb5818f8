//! DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: a stream's settings under the names that Kafka gives them.
//!
//! | topic configuration | stream |
//! |---|---|
//! | `retention.ms` | records older than this may go; -1 keeps them |
//! | `retention.bytes` | the oldest segments of a shard go beyond this; -1 keeps them |
//! | `cleanup.policy` | `delete`; `compact`; both |
//! | `max.message.bytes` | the largest batch |
//! | `trifid.durability` | `memory`, `periodic`, `on-commit`; chosen when the stream is made |
//!
//! Some others are shown because clients look for them; they say how it is and cannot be set to anything else. A
//! configuration that is not known is refused by name: a setting that is silently passed over would be a lie.

use std::rc::Rc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult,
};
use kafka_protocol::messages::{
    AlterConfigsRequest, AlterConfigsResponse, DescribeConfigsRequest, DescribeConfigsResponse,
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, alter_configs_response,
    incremental_alter_configs_response,
};
use trifid_stream_engine::{SpecChange, Stream};
use trifid_stream_model::spec::{Durability, StreamSpec};

use super::caller::{Caller, blocking, text};
use super::codes;

/// A kind of resource.
const TOPIC: i8 = 2;
/// The broker itself.
const BROKER: i8 = 4;

/// Where a value comes from, as the protocol numbers it: set for the topic, or as it is everywhere.
const FROM_TOPIC: i8 = 1;
const FROM_BROKER: i8 = 4;
const FROM_DEFAULT: i8 = 5;

/// Types of values, as the protocol numbers them.
const TYPE_STRING: i8 = 2;
const TYPE_INT: i8 = 3;
const TYPE_LONG: i8 = 5;
const TYPE_LIST: i8 = 7;

/// A refusal with its words.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) error: ResponseError,
    pub(crate) message: Option<String>,
}

impl Refused {
    pub(crate) fn new(error: ResponseError, message: impl Into<String>) -> Self {
        Self { error, message: Some(message.into()) }
    }

    fn config(message: impl Into<String>) -> Self {
        Self::new(ResponseError::InvalidConfig, message)
    }
}

impl From<ResponseError> for Refused {
    fn from(error: ResponseError) -> Self {
        Self { error, message: None }
    }
}

/// One configuration of a topic, as it is told.
pub(crate) struct Shown {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    /// It cannot be changed.
    pub(crate) is_fixed: bool,
    pub(crate) source: i8,
    kind: i8,
    meaning: &'static str,
}

/// What is true of every topic and cannot be otherwise: name, value, meaning.
const FIXED: &[(&str, &str, &str)] = &[
    ("compression.type", "producer", "Batches are kept as their producer compressed them."),
    ("message.timestamp.type", "CreateTime", "Records keep the time of their producer."),
    ("min.insync.replicas", "1", "There is one broker."),
];

/// The configuration of a stream.
pub(crate) fn shown(spec: &StreamSpec) -> impl Iterator<Item = Shown> {
    let default = StreamSpec::default();
    let own = |name, value: String, usual: String, kind, meaning| {
        let source = if value == usual { FROM_DEFAULT } else { FROM_TOPIC };
        Shown { name, value, is_fixed: false, source, kind, meaning }
    };
    let policy = own(
        "cleanup.policy",
        policy(spec).into(),
        policy(&default).into(),
        TYPE_LIST,
        "Whether old records go, or all but the last of each key.",
    );
    let largest = own(
        "max.message.bytes",
        spec.max_batch_bytes.to_string(),
        default.max_batch_bytes.to_string(),
        TYPE_INT,
        "The largest batch that is taken.",
    );
    let bytes = own(
        "retention.bytes",
        kept(spec.retention_bytes),
        kept(default.retention_bytes),
        TYPE_LONG,
        "The oldest segments of a partition go when it is larger; -1 keeps them.",
    );
    let time = own(
        "retention.ms",
        kept(spec.retention_ms),
        kept(default.retention_ms),
        TYPE_LONG,
        "Records older than this may go; -1 keeps them.",
    );
    let durability = Shown {
        is_fixed: true,
        ..own(
            "trifid.durability",
            durability(spec.durability).into(),
            durability(default.durability).into(),
            TYPE_STRING,
            "What an acknowledgement promises: memory, periodic, on-commit.",
        )
    };
    let fixed = FIXED.iter().map(|(name, value, meaning)| Shown {
        name,
        value: (*value).to_owned(),
        is_fixed: true,
        source: FROM_DEFAULT,
        kind: TYPE_STRING,
        meaning,
    });
    [policy, largest, bytes, time, durability].into_iter().chain(fixed)
}

fn kept(limit: Option<u64>) -> String {
    limit.map_or_else(|| "-1".to_owned(), |limit| limit.to_string())
}

fn policy(spec: &StreamSpec) -> &'static str {
    let expires = spec.retention_ms.is_some() || spec.retention_bytes.is_some();
    match (spec.compact, expires) {
        (false, _) => "delete",
        (true, false) => "compact",
        (true, true) => "compact,delete",
    }
}

fn durability(durability: Durability) -> &'static str {
    match durability {
        Durability::Memory => "memory",
        Durability::Periodic { .. } => "periodic",
        Durability::OnCommit => "on-commit",
    }
}

/// Sets one configuration; without a value, to what it is by default.
pub(crate) fn set(spec: &mut StreamSpec, name: &str, value: Option<&str>) -> Result<(), Refused> {
    let default = StreamSpec::default();
    match name {
        "retention.ms" => {
            spec.retention_ms = value.map_or(Ok(default.retention_ms), |text| limit(name, text))?;
        }
        "retention.bytes" => {
            spec.retention_bytes = value.map_or(Ok(default.retention_bytes), |text| limit(name, text))?;
        }
        "max.message.bytes" => {
            spec.max_batch_bytes = value.map_or(Ok(default.max_batch_bytes), |text| number(name, text))?;
        }
        "cleanup.policy" => set_policy(spec, value.unwrap_or("delete"))?,
        "trifid.durability" => spec.durability = value.map_or(Ok(default.durability), read_durability)?,
        _ => return set_fixed(name, value),
    }
    Ok(())
}

fn set_fixed(name: &str, value: Option<&str>) -> Result<(), Refused> {
    let Some((_, only, _)) = FIXED.iter().find(|(fixed, ..)| *fixed == name) else {
        return Err(Refused::config(format!("the configuration {name} is not known")));
    };
    match value {
        None => Ok(()),
        Some(value) if value == *only => Ok(()),
        Some(_) => Err(Refused::config(format!("{name} is {only} and cannot be otherwise"))),
    }
}

/// `compact` alone keeps the last record of each key whatever its age: a retention would take it.
fn set_policy(spec: &mut StreamSpec, value: &str) -> Result<(), Refused> {
    let mut names: Vec<_> = value.split(',').map(str::trim).collect();
    names.sort_unstable();
    match *names {
        ["delete"] => spec.compact = false,
        ["compact", "delete"] => spec.compact = true,
        ["compact"] => {
            spec.compact = true;
            (spec.retention_ms, spec.retention_bytes) = (None, None);
        }
        _ => return Err(Refused::config("cleanup.policy is delete, compact, or compact,delete")),
    }
    Ok(())
}

fn read_durability(text: &str) -> Result<Durability, Refused> {
    match text {
        "memory" => Ok(Durability::Memory),
        "periodic" => Ok(Durability::PERIODIC),
        "on-commit" => Ok(Durability::OnCommit),
        _ => Err(Refused::config("trifid.durability is memory, periodic or on-commit")),
    }
}

fn limit(name: &str, text: &str) -> Result<Option<u64>, Refused> {
    if text.trim() == "-1" { Ok(None) } else { number(name, text).map(Some) }
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, Refused> {
    text.trim().parse().map_err(|_| Refused::config(format!("{name}: `{text}` is not a number that fits")))
}

/// Tells the configuration of topics, and a little of the broker's.
pub(crate) async fn describe(
    caller: Rc<Caller>,
    request: DescribeConfigsRequest,
    _: i16,
) -> DescribeConfigsResponse {
    let documented = request.include_documentation;
    let one = |resource: &DescribeConfigsResource| {
        let result = DescribeConfigsResult::default()
            .with_resource_type(resource.resource_type)
            .with_resource_name(resource.resource_name.clone());
        let asked = |name: &str| {
            let keys = resource.configuration_keys.as_deref();
            keys.is_none_or(|keys| keys.is_empty() || keys.iter().any(|key| **key == *name))
        };
        match describe_one(&caller, resource) {
            Ok(all) => {
                let configs = all.into_iter().filter(|config| asked(config.name));
                result.with_configs(configs.map(|config| config.told(documented)).collect())
            }
            Err(Refused { error, message }) => {
                result.with_error_code(error.code()).with_error_message(message.map(text))
            }
        }
    };
    DescribeConfigsResponse::default().with_results(request.resources.iter().map(one).collect())
}

fn describe_one(caller: &Caller, resource: &DescribeConfigsResource) -> Result<Vec<Shown>, Refused> {
    match resource.resource_type {
        TOPIC => Ok(shown(&caller.stream(&resource.resource_name)?.spec()).collect()),
        BROKER => Ok(broker(caller)),
        _ => {
            Err(Refused::new(ResponseError::InvalidRequest, "only topics and the broker have configurations"))
        }
    }
}

fn broker(caller: &Caller) -> Vec<Shown> {
    let policy = caller.broker().policy();
    let fact = |name, value: String, kind, meaning| Shown {
        name,
        value,
        is_fixed: true,
        source: FROM_BROKER,
        kind,
        meaning,
    };
    vec![
        fact(
            "auto.create.topics.enable",
            policy.auto_create.to_string(),
            1,
            "Whether a topic is made when it is named for the first time.",
        ),
        fact("default.replication.factor", "1".into(), TYPE_INT, "There is one broker."),
        fact(
            "num.partitions",
            policy.spec.shards.to_string(),
            TYPE_INT,
            "Partitions of a topic that names no number.",
        ),
    ]
}

impl Shown {
    fn told(self, documented: bool) -> DescribeConfigsResourceResult {
        DescribeConfigsResourceResult::default()
            .with_name(text(self.name))
            .with_value(Some(text(self.value)))
            .with_read_only(self.is_fixed)
            .with_config_source(self.source)
            .with_config_type(self.kind)
            .with_documentation(documented.then(|| text(self.meaning)))
    }
}

/// One change of one configuration.
enum Change<'a> {
    Set(&'a str, Option<&'a str>),
    Append(&'a str, &'a str),
    Subtract(&'a str, &'a str),
}

/// Replaces the whole configuration of topics: what is not named goes back to its default.
pub(crate) async fn alter(caller: Rc<Caller>, request: AlterConfigsRequest, _: i16) -> AlterConfigsResponse {
    let mut responses = Vec::with_capacity(request.resources.len());
    for resource in &request.resources {
        let reset = ["cleanup.policy", "max.message.bytes", "retention.bytes", "retention.ms"];
        let named = resource.configs.iter().map(|config| Change::Set(&config.name, config.value.as_deref()));
        let changes = reset.into_iter().map(|name| Change::Set(name, None)).chain(named);
        let altered = alter_one(
            &caller,
            resource.resource_type,
            &resource.resource_name,
            changes.collect(),
            request.validate_only,
        );
        let (code, message) = outcome(altered.await);
        responses.push(
            alter_configs_response::AlterConfigsResourceResponse::default()
                .with_error_code(code)
                .with_error_message(message.map(text))
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name.clone()),
        );
    }
    AlterConfigsResponse::default().with_responses(responses)
}

/// Changes single configurations of topics (KIP-339).
pub(crate) async fn alter_incrementally(
    caller: Rc<Caller>,
    request: IncrementalAlterConfigsRequest,
    _: i16,
) -> IncrementalAlterConfigsResponse {
    let mut responses = Vec::with_capacity(request.resources.len());
    for resource in &request.resources {
        let change =
            |config: &'_ kafka_protocol::messages::incremental_alter_configs_request::AlterableConfig| {
                (
                    config.name.to_string(),
                    config.config_operation,
                    config.value.as_ref().map(ToString::to_string),
                )
            };
        let texts: Vec<_> = resource.configs.iter().map(change).collect();
        let changes =
            texts.iter().map(|(name, operation, value)| Change::read(name, *operation, value.as_deref()));
        let altered = match changes.collect::<Result<Vec<_>, _>>() {
            Ok(changes) => {
                let (kind, name) = (resource.resource_type, &*resource.resource_name);
                alter_one(&caller, kind, name, changes, request.validate_only).await
            }
            Err(refused) => Err(refused),
        };
        let (code, message) = outcome(altered);
        responses.push(
            incremental_alter_configs_response::AlterConfigsResourceResponse::default()
                .with_error_code(code)
                .with_error_message(message.map(text))
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name.clone()),
        );
    }
    IncrementalAlterConfigsResponse::default().with_responses(responses)
}

impl<'a> Change<'a> {
    fn read(name: &'a str, operation: i8, value: Option<&'a str>) -> Result<Self, Refused> {
        match (operation, value) {
            (0, Some(value)) => Ok(Self::Set(name, Some(value))),
            (1, _) => Ok(Self::Set(name, None)),
            (2, Some(value)) => Ok(Self::Append(name, value)),
            (3, Some(value)) => Ok(Self::Subtract(name, value)),
            _ => Err(Refused::new(
                ResponseError::InvalidRequest,
                format!("{name}: no such operation, or no value"),
            )),
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Set(name, _) | Self::Append(name, _) | Self::Subtract(name, _) => name,
        }
    }

    fn apply(self, spec: &mut StreamSpec) -> Result<(), Refused> {
        match self {
            Self::Set(name, value) => set(spec, name, value),
            Self::Append("cleanup.policy", value) => {
                let joined = match policy(spec).split(',').any(|part| part == value.trim()) {
                    true => policy(spec).to_owned(),
                    false => format!("{},{value}", policy(spec)),
                };
                set_policy(spec, &joined)
            }
            Self::Subtract("cleanup.policy", value) => {
                let left: Vec<_> = policy(spec).split(',').filter(|part| *part != value.trim()).collect();
                set_policy(spec, &left.join(","))
            }
            Self::Append(name, _) | Self::Subtract(name, _) => {
                Err(Refused::config(format!("{name} is not a list")))
            }
        }
    }
}

fn outcome(altered: Result<(), Refused>) -> (i16, Option<String>) {
    match altered {
        Ok(()) => (0, None),
        Err(Refused { error, message }) => (error.code(), message),
    }
}

/// Gives the stream these settings.
pub(crate) async fn change(caller: &Rc<Caller>, stream: &Stream, spec: StreamSpec) -> Result<(), Refused> {
    let change = SpecChange {
        shards: Some(spec.shards),
        retention_ms: Some(spec.retention_ms),
        retention_bytes: Some(spec.retention_bytes),
        compact: Some(spec.compact),
        max_batch_bytes: Some(spec.max_batch_bytes),
    };
    let (broker, tenant, name) = (caller.broker().clone(), caller.tenant.clone(), stream.name().clone());
    let altered = blocking(move || broker.alter(&tenant, &name, &change)).await?;
    altered.map(|_| ()).map_err(|error| Refused::new(codes::create(&error), error.to_string()))
}

async fn alter_one(
    caller: &Rc<Caller>,
    kind: i8,
    name: &str,
    changes: Vec<Change<'_>>,
    validate_only: bool,
) -> Result<(), Refused> {
    if kind != TOPIC {
        return Err(Refused::new(
            ResponseError::InvalidRequest,
            "only topics have configurations that can be changed",
        ));
    }
    if !caller.may_write() {
        return Err(ResponseError::TopicAuthorizationFailed.into());
    }
    let stream = caller.stream(name)?;
    let mut spec = (*stream.spec()).clone();
    // The policy comes last: `compact` alone does away with retention, whatever the order in which they came.
    let (policies, others): (Vec<_>, Vec<_>) =
        changes.into_iter().partition(|change| change.name() == "cleanup.policy");
    for change in others.into_iter().chain(policies) {
        change.apply(&mut spec)?;
    }
    if durability(spec.durability) != durability(stream.spec().durability) {
        return Err(Refused::config("trifid.durability is chosen when the stream is made"));
    }
    spec.validate().map_err(|error| Refused::new(codes::spec(&error), error.to_string()))?;
    if validate_only { Ok(()) } else { change(caller, &stream, spec).await }
}
