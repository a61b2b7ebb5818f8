//! What a figure depends on besides the code: machine, kernel, build.

use crate::affinity::Cores;
use crate::procfs;
use serde::Serialize;
use std::path::Path;
use std::process::Command;

/// The surroundings of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Environment {
    /// The processor.
    pub cpu: String,
    /// Cores that the rig may use.
    pub cores: usize,
    /// The kernel's release.
    pub kernel: String,
    /// The commit of the working directory, with `+` when files differ from it.
    pub commit: String,
    /// The version of the rig.
    pub version: &'static str,
    /// The build profile.
    pub profile: &'static str,
    /// Which core serves and which drives, when pinned.
    pub pinned: Option<Cores>,
    /// The file system under durable stores.
    pub file_system: String,
    /// Seconds since 1970 at the start.
    pub started: u64,
}

impl Environment {
    /// Looks around.
    pub(crate) fn observe(cores: usize, pinned: Option<Cores>, directory: &Path) -> Environment {
        let unknown = || "unknown".to_owned();
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Environment {
            cpu: procfs::processor().unwrap_or_else(unknown),
            cores,
            kernel: procfs::kernel().unwrap_or_else(unknown),
            commit: commit().unwrap_or_else(unknown),
            version: env!("CARGO_PKG_VERSION"),
            profile: if cfg!(debug_assertions) { "debug" } else { "release" },
            pinned,
            file_system: procfs::file_system(directory).unwrap_or_else(unknown),
            started: since_epoch.map_or(0, |elapsed| elapsed.as_secs()),
        }
    }
}

fn commit() -> Option<String> {
    let hash = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { hash } else { format!("{hash}+") })
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
