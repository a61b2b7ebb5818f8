//! `cargo xtask layering`: the dependency rules of ARCHITECTURE.md, checked over `cargo metadata`.
//!
//! A package's name says which room it is (`trifid-<door>-<room>`), and a room may name only the rooms below
//! it. On top of that some third-party packages are barred from some rooms, however long the way they come in
//! by, and a few from the whole graph.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

const RULES: &str = "ARCHITECTURE.md, \"Arrows point down only\"";

/// What each kind of room must not reach through its normal dependencies, at any distance.
const BARRED_FROM_MODELS: &[&str] = &["tokio", "mio", "hyper", "http", "serde_json", "quinn", "rustls"];
const BARRED_FROM_ENGINES: &[&str] =
    &["hyper", "axum", "reqwest", "quinn", "rustls", "tokio-postgres", "datafusion", "async-nats", "rumqttc"];

/// What must not be in the graph at all: a second crypto provider, or TLS by way of C.
const BARRED_EVERYWHERE: &[&str] = &["aws-lc-rs", "aws-lc-sys", "openssl", "openssl-sys", "native-tls"];

/// Packages whose optional dependencies others in the graph switch on: DataFusion gives Arrow's schema a JSON form,
/// which the rooms that hold Arrow batches cannot name all the same. What is behind them is not followed.
const OPAQUE: &[&str] = &["arrow-schema"];

/// Heavy packages that enter through exactly one package of ours.
const QUARANTINED: &[(&str, &str)] = &[
    ("datafusion", "trifid-archive-datafusion"),
    ("parquet", "trifid-archive-datafusion"),
    ("openraft", "trifid-stream-backends"),
    ("krilla", "trifid-rig"),
];

/// One package of the workspace and what its manifest names.
#[derive(Debug, Default)]
struct Member {
    /// Normal and build dependencies.
    normal: BTreeSet<String>,
    /// Dependencies of its tests.
    dev: BTreeSet<String>,
    /// Every package that its normal dependencies lead to.
    reached: BTreeSet<String>,
}

/// The workspace as far as the rules look at it.
#[derive(Debug, Default)]
struct House {
    members: BTreeMap<String, Member>,
    /// Every package of the resolved graph.
    everything: BTreeSet<String>,
}

/// Where a package stands in the house.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Room<'a> {
    Roof,
    Rig,
    Chores,
    Base(&'a str),
    Door { door: &'a str, room: &'a str },
    Unknown,
}

fn room(name: &str) -> Room<'_> {
    match name {
        "trifid" => return Room::Roof,
        "trifid-rig" => return Room::Rig,
        "xtask" => return Room::Chores,
        _ => {}
    }
    match name.strip_prefix("trifid-").and_then(|rest| rest.split_once('-')) {
        Some(("base", room)) => Room::Base(room),
        Some((door @ ("context" | "stream" | "archive"), room)) => Room::Door { door, room },
        _ => Room::Unknown,
    }
}

/// Whether a package in `from` may have one in `to` as a normal dependency.
fn may_use(from: Room<'_>, to: Room<'_>) -> bool {
    match (from, to) {
        (_, Room::Roof | Room::Chores | Room::Unknown | Room::Base("sim")) => false,
        (Room::Roof, _) => true,
        // The rig sees the house from outside.
        (Room::Rig, Room::Base("runtime") | Room::Door { door: "stream", room: "client" }) => true,
        (Room::Rig | Room::Chores | Room::Unknown, _) | (_, Room::Rig) => false,
        (Room::Base(_), to) => matches!(to, Room::Base(_)),
        (Room::Door { door, room }, Room::Door { door: other, room: below }) => {
            door == other && rooms_below(room).contains(&below)
        }
        // A shard of a stream is a log, not something behind a port (decision 0014).
        (Room::Door { door: "stream", room: "engine" }, Room::Base("log")) => true,
        (Room::Door { room, .. }, Room::Base(base)) => base_below(room).contains(&base),
    }
}

/// The rooms of the same door that a room may name.
fn rooms_below(room: &str) -> &'static [&'static str] {
    match room {
        "model" | "adql" => &["adql"],
        "engine" => &["model", "adql"],
        "client" => &["model"],
        // Drivers behind ports: `backends`, or in the archive one package a driver.
        "backends" | "datafusion" | "postgres" | "face" | "kafka" => &["engine", "model", "adql"],
        _ => &[],
    }
}

/// The packages of `base` that a room may name.
fn base_below(room: &str) -> &'static [&'static str] {
    match room {
        "engine" | "client" => &["runtime"],
        "backends" | "datafusion" | "postgres" => &["runtime", "web", "log", "postgres"],
        "face" | "kafka" => &["runtime", "web"],
        _ => &[],
    }
}

/// Tests may look sideways within a door and use the simulated faults, but never into another door, and the
/// rig stays outside even then.
fn may_test_with(from: Room<'_>, to: Room<'_>) -> bool {
    match (from, to) {
        (Room::Rig | Room::Chores, _) => may_use(from, to),
        (Room::Door { door, .. }, Room::Door { door: other, .. }) => door == other,
        (_, Room::Base(_)) => true,
        (Room::Roof, _) => !matches!(to, Room::Chores | Room::Unknown),
        _ => may_use(from, to),
    }
}

fn findings(house: &House) -> Vec<String> {
    let mut found = Vec::new();
    for (name, member) in &house.members {
        found.extend(edges(house, name, &member.normal, "use", may_use));
        found.extend(edges(house, name, &member.dev, "test with", may_test_with));
        found.extend(barred(name, member));
        found.extend(quarantine(name, member));
        if room(name) == Room::Unknown {
            found.push(format!("{name} is in no room of the house"));
        }
    }
    let everywhere = BARRED_EVERYWHERE.iter().filter(|package| house.everything.contains(**package));
    found.extend(everywhere.map(|package| format!("{package} must not be in the graph")));
    found
}

fn edges<'a>(
    house: &'a House,
    name: &'a str,
    named: &'a BTreeSet<String>,
    verb: &'a str,
    allowed: fn(Room<'_>, Room<'_>) -> bool,
) -> impl Iterator<Item = String> + 'a {
    let ours = named.iter().filter(|other| house.members.contains_key(*other));
    ours.filter(move |other| !allowed(room(name), room(other)))
        .map(move |other| format!("{name} must not {verb} {other}"))
}

fn barred<'a>(name: &'a str, member: &'a Member) -> impl Iterator<Item = String> + 'a {
    let list = match room(name) {
        Room::Door { room: "model" | "adql", .. } => BARRED_FROM_MODELS,
        Room::Door { room: "engine", .. } => BARRED_FROM_ENGINES,
        _ => &[],
    };
    let reached = list.iter().filter(|package| member.reached.contains(**package));
    reached.map(move |package| format!("{name} must not reach {package}"))
}

fn quarantine<'a>(name: &'a str, member: &'a Member) -> impl Iterator<Item = String> + 'a {
    let escaped =
        QUARANTINED.iter().filter(move |(package, owner)| name != *owner && member.normal.contains(*package));
    escaped.map(move |(package, owner)| format!("{name} must not name {package}: only {owner} does"))
}

/// Checks the workspace at `root`.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let metadata = MetadataCommand::new()
        .current_dir(root)
        .features(cargo_metadata::CargoOpt::AllFeatures)
        .other_options(vec!["--locked".to_owned()])
        .exec()?;
    crate::outcome(&findings(&house(&metadata)?), RULES)
}

fn house(metadata: &Metadata) -> anyhow::Result<House> {
    let graph = Graph::new(metadata)?;
    let members = metadata.workspace_packages().into_iter().map(|package| {
        let named = |dev: bool| {
            let kept =
                package.dependencies.iter().filter(move |d| (d.kind == DependencyKind::Development) == dev);
            kept.map(|dependency| dependency.name.to_string()).collect()
        };
        let member =
            Member { normal: named(false), dev: named(true), reached: graph.reached_from(&package.id.repr) };
        (package.name.to_string(), member)
    });
    Ok(House {
        members: members.collect(),
        everything: graph.names.values().map(|n| (*n).to_owned()).collect(),
    })
}

/// The resolved graph by package id, normal and build edges only.
struct Graph<'a> {
    names: BTreeMap<&'a str, &'a str>,
    edges: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Graph<'a> {
    fn new(metadata: &'a Metadata) -> anyhow::Result<Self> {
        let resolve = metadata.resolve.as_ref().ok_or_else(|| anyhow::anyhow!("cargo resolved no graph"))?;
        let names = metadata.packages.iter().map(|p| (p.id.repr.as_str(), p.name.as_str())).collect();
        let edges = resolve.nodes.iter().map(|node| {
            let kept = node
                .deps
                .iter()
                .filter(|dep| dep.dep_kinds.iter().any(|k| k.kind != DependencyKind::Development));
            (node.id.repr.as_str(), kept.map(|dep| dep.pkg.repr.as_str()).collect())
        });
        Ok(Self { names, edges: edges.collect() })
    }

    fn reached_from(&self, start: &str) -> BTreeSet<String> {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&str> = self.edges.get(start).cloned().unwrap_or_default();
        while let Some(id) = open.pop() {
            let is_opaque = self.names.get(id).is_some_and(|name| OPAQUE.contains(name));
            if seen.insert(id) && !is_opaque {
                open.extend(self.edges.get(id).into_iter().flatten());
            }
        }
        seen.into_iter().filter_map(|id| self.names.get(id)).map(|name| (*name).to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A house of the named packages; `reached` is what the first of them leads to.
    fn house_of(packages: &[(&str, &[&str], &[&str])], reached: &[&str]) -> House {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let mut house = House { everything: set(reached), ..House::default() };
        for (index, (name, normal, dev)) in packages.iter().enumerate() {
            let reached = if index == 0 { set(reached) } else { BTreeSet::new() };
            house.members.insert((*name).to_owned(), Member { normal: set(normal), dev: set(dev), reached });
            for other in
                normal.iter().chain(*dev).filter(|other| other.starts_with("trifid") || **other == "xtask")
            {
                house.members.entry((*other).to_owned()).or_default();
            }
        }
        house
    }

    /// What the rules say about one package with these dependencies.
    fn check(name: &str, normal: &[&str], dev: &[&str]) -> Vec<String> {
        findings(&house_of(&[(name, normal, dev)], &[]))
    }

    #[test]
    fn the_house_as_drawn_has_no_findings() {
        let drawn: [(&str, &[&str], &[&str]); 11] = [
            ("trifid-stream-engine", &["trifid-stream-model", "trifid-base-log"], &["trifid-base-sim"]),
            ("trifid-stream-kafka", &["trifid-stream-engine", "trifid-base-web"], &[]),
            ("trifid-context-model", &["memchr"], &["serde_json"]),
            (
                "trifid-context-engine",
                &["trifid-context-model", "trifid-base-runtime", "tokio"],
                &["trifid-base-sim"],
            ),
            ("trifid-context-backends", &["trifid-context-engine", "trifid-base-log"], &["trifid-base-sim"]),
            (
                "trifid-context-face",
                &["trifid-context-engine", "trifid-base-web"],
                &["trifid-context-backends"],
            ),
            ("trifid-base-web", &["trifid-base-runtime", "hyper"], &[]),
            ("trifid-base-sim", &["trifid-base-log"], &[]),
            ("trifid-rig", &["trifid-base-runtime", "trifid-stream-client"], &[]),
            ("trifid", &["trifid-context-face", "trifid-context-backends", "trifid-rig"], &[]),
            ("xtask", &["clap"], &[]),
        ];
        assert_eq!(findings(&house_of(&drawn, &["memchr"])), Vec::<String>::new());
    }

    #[test]
    fn arrows_that_point_up_or_sideways_are_found() {
        let wrong = [
            ("trifid-context-model", "trifid-context-engine"),
            ("trifid-context-model", "trifid-base-runtime"),
            ("trifid-context-engine", "trifid-context-face"),
            ("trifid-context-engine", "trifid-context-backends"),
            ("trifid-context-engine", "trifid-base-web"),
            ("trifid-context-backends", "trifid-context-face"),
            ("trifid-context-face", "trifid-context-backends"),
            ("trifid-context-face", "trifid-base-log"),
            ("trifid-context-engine", "trifid-stream-engine"),
            ("trifid-archive-face", "trifid-context-model"),
            ("trifid-base-web", "trifid-context-model"),
            ("trifid-base-runtime", "trifid"),
            ("trifid-rig", "trifid-context-model"),
            ("trifid-rig", "trifid-base-web"),
            ("trifid-base-log", "trifid-base-sim"),
            ("trifid", "trifid-base-sim"),
            ("trifid", "xtask"),
            ("xtask", "trifid-base-runtime"),
        ];
        for (from, to) in wrong {
            assert_eq!(check(from, &[to], &[]), [format!("{from} must not use {to}")]);
        }
    }

    #[test]
    fn tests_may_look_sideways_but_not_into_another_door() {
        assert!(
            check("trifid-context-face", &[], &["trifid-context-backends", "trifid-base-sim"]).is_empty()
        );
        for (from, to) in [
            ("trifid-context-face", "trifid-stream-engine"),
            ("trifid-rig", "trifid-context-model"),
            ("trifid-base-web", "trifid-context-face"),
            ("trifid", "xtask"),
        ] {
            assert_eq!(check(from, &[], &[to]), [format!("{from} must not test with {to}")]);
        }
    }

    #[test]
    fn barred_packages_are_found_at_any_distance() {
        let reach = |name, package| findings(&house_of(&[(name, &[], &[])], &[package]));
        assert_eq!(reach("trifid-context-model", "tokio"), ["trifid-context-model must not reach tokio"]);
        assert_eq!(reach("trifid-context-engine", "hyper"), ["trifid-context-engine must not reach hyper"]);
        assert!(reach("trifid-context-engine", "tokio").is_empty());
        assert_eq!(reach("trifid-base-web", "aws-lc-rs"), ["aws-lc-rs must not be in the graph"]);
    }

    #[test]
    fn a_heavy_package_enters_through_one_door_only() {
        assert!(check("trifid-archive-datafusion", &["datafusion"], &[]).is_empty());
        assert_eq!(
            check("trifid-archive-face", &["datafusion"], &[]),
            ["trifid-archive-face must not name datafusion: only trifid-archive-datafusion does"]
        );
    }

    #[test]
    fn a_package_outside_the_rooms_is_found() {
        assert_eq!(check("trifid-utils", &[], &[]), ["trifid-utils is in no room of the house"]);
    }

    #[test]
    fn this_workspace_keeps_the_rules() {
        let root = crate::root().unwrap();
        run(&root).unwrap();
    }
}
