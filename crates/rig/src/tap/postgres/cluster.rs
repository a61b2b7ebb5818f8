//! A private PostgreSQL: a cluster in a folder that goes away, on a free port of the loopback.
//!
//! PostgreSQL refuses to run as root, so started by root it runs as the user `postgres`. Nothing of a PostgreSQL
//! that runs on the machine is touched.

use super::wire::Wire;
use crate::bench::Bench;
use crate::error::Error;
use crate::limits;
use crate::process::{self, Words};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const NAME: &str = "PostgreSQL";
/// The user inside the cluster.
const USER: &str = "rig";
/// How often a port is tried that somebody else took in between.
const PORTS: usize = 3;

/// Settings: one backend does all the work of its connection, so that its CPU is all there is; nothing runs beside
/// it; what is prepared is planned once.
const SETTINGS: [&str; 11] = [
    "fsync=off",
    "full_page_writes=off",
    "autovacuum=off",
    "jit=off",
    "max_parallel_workers_per_gather=0",
    "max_connections=10",
    "shared_buffers=128MB",
    "plan_cache_mode=force_generic_plan",
    "log_min_messages=fatal",
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
];

/// A running cluster. Dropping it stops it.
pub(super) struct Cluster {
    child: Child,
    address: SocketAddr,
    /// Goes away last.
    _folder: tempfile::TempDir,
}

/// Whom the programs run as, where that is not who runs the rig.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    user: u32,
    group: u32,
}

impl Cluster {
    /// Makes and starts one; nothing if PostgreSQL is not installed.
    pub(super) fn start(bench: &Bench<'_>) -> Result<Option<Cluster>, Error> {
        let Some(programs) = programs() else { return Ok(None) };
        let owner = owner()?;
        let folder = folder(&bench.options.directory, owner)?;
        let data = folder.path().join("data");
        let arguments = ["-A", "trust", "-U", USER, "--encoding=UTF8", "--locale=C", "--no-sync", "-D"];
        let arguments = arguments.map(OsString::from).into_iter().chain([data.clone().into_os_string()]);
        let mut command = process::command(&programs.join("initdb"), arguments, folder.path());
        process::run("initdb", as_owner(&mut command, owner), None, limits::POSTGRES_WAIT)?;
        let core = bench.options.server_core();
        let mut last = None;
        for _ in 0..PORTS {
            match serve(&programs, &data, owner, core) {
                Ok((child, address)) => return Ok(Some(Cluster { child, address, _folder: folder })),
                Err(error) => last = Some(error),
            }
        }
        last.map_or(Ok(None), Err)
    }

    /// A connection.
    pub(super) fn connect(&self) -> Result<Wire, Error> {
        Wire::connect(self.address, USER)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}

/// Asks it to end at once but cleanly ("fast shutdown"), so that no child and no shared memory stay behind.
fn stop(child: &mut Child) {
    let pid = rustix::process::Pid::from_child(child);
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
    if !matches!(process::ended(child, Instant::now() + limits::STOP_WAIT), Ok(Some(_))) {
        process::kill(child);
    }
}

/// Starts it on a free port and waits until it takes connections.
fn serve(
    programs: &Path,
    data: &Path,
    owner: Option<Owner>,
    core: Option<usize>,
) -> Result<(Child, SocketAddr), Error> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    let address = free.map_err(Error::system("finding a free port"))?;
    let mut arguments = vec![OsString::from("-D"), data.as_os_str().to_owned()];
    let port = format!("port={}", address.port());
    let settings = SETTINGS.into_iter().chain([port.as_str()]);
    arguments.extend(settings.flat_map(|setting| [OsString::from("-c"), OsString::from(setting)]));
    let mut command = process::command(&programs.join("postgres"), arguments, data);
    let mut child = process::spawn(NAME, as_owner(&mut command, owner), core)?;
    let stderr = child.stderr.take().expect("standard error is piped by `command`");
    let (words, _) = Words::read(stderr, |_| ());
    let deadline = Instant::now() + limits::POSTGRES_WAIT;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().map_err(Error::system("waiting for a program"))? {
            return Err(Error::Start { name: NAME, reason: format!("{status}; it said: {words}") });
        }
        if Wire::connect(address, USER).is_ok() {
            return Ok((child, address));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    stop(&mut child);
    Err(Error::Start { name: NAME, reason: format!("no connection in time; it said: {words}") })
}

/// The folder of its programs: that of Debian's newest version, or one of the search path.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let numbered = versions.filter_map(|entry| {
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some((version, entry.path().join("bin")))
    });
    let whole = |folder: &Path| ["initdb", "postgres"].iter().all(|name| folder.join(name).is_file());
    let newest = numbered.filter(|(_, folder)| whole(folder)).max_by_key(|(version, _)| *version);
    let path = std::env::var_os("PATH").unwrap_or_default();
    newest.map(|(_, folder)| folder).or_else(|| std::env::split_paths(&path).find(|folder| whole(folder)))
}

/// Nobody else, unless we are root.
fn owner() -> Result<Option<Owner>, Error> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let path = Path::new("/etc/passwd");
    let users = std::fs::read_to_string(path).map_err(Error::file(path))?;
    let found = parse_user(&users, "postgres");
    let reason = || "it does not run as root, and there is no user postgres".to_owned();
    found.map(Some).ok_or_else(|| Error::Start { name: NAME, reason: reason() })
}

fn parse_user(users: &str, wanted: &str) -> Option<Owner> {
    let mut lines = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let fields = lines.find(|fields| fields.first() == Some(&wanted))?;
    Some(Owner { user: fields.get(2)?.parse().ok()?, group: fields.get(3)?.parse().ok()? })
}

fn as_owner(command: &mut Command, owner: Option<Owner>) -> &mut Command {
    if let Some(owner) = owner {
        command.uid(owner.user).gid(owner.group);
    }
    command
}

/// A folder that the owner can reach: where the suite works, else the system's temporary folder.
fn folder(wanted: &Path, owner: Option<Owner>) -> Result<tempfile::TempDir, Error> {
    let parents = [wanted.to_owned(), std::env::temp_dir()];
    let reached = parents.iter().find(|parent| owner.is_none() || may_be_entered(parent));
    let parent = reached.ok_or_else(|| Error::Start {
        name: NAME,
        reason: format!("its user may enter neither {} nor {}", parents[0].display(), parents[1].display()),
    })?;
    let folder = tempfile::Builder::new().prefix("trifid-bench-postgres-").tempdir_in(parent);
    let folder = folder.map_err(Error::file(parent))?;
    if let Some(owner) = owner {
        let given = std::os::unix::fs::chown(folder.path(), Some(owner.user), Some(owner.group));
        given.map_err(Error::file(folder.path()))?;
    }
    Ok(folder)
}

/// Whether everybody may go through a folder and all above it.
fn may_be_entered(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else { return false };
    let open = |folder: &Path| {
        folder.metadata().is_ok_and(|folder| folder.is_dir() && folder.permissions().mode() & 0o001 != 0)
    };
    path.metadata().is_ok_and(|folder| folder.mode() & 0o001 != 0) && path.ancestors().all(open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_name() {
        let users =
            "root:x:0:0:root:/root:/bin/sh\npostgres:x:101:104:Admin,,,:/var/lib/postgresql:/bin/sh\nbad:x\n";
        assert_eq!(parse_user(users, "postgres"), Some(Owner { user: 101, group: 104 }));
        assert_eq!(parse_user(users, "bad"), None);
        assert_eq!(parse_user(users, "nobody"), None);
    }

    #[test]
    fn a_closed_folder_is_not_entered() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        assert!(!may_be_entered(folder.path()));
        assert!(may_be_entered(Path::new("/")));
        assert!(!may_be_entered(Path::new("/no/such/folder")));
    }
}
