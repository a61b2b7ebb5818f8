//! The program serving: `trifid serve` on a free port with one HTTP core, ready when its health says so.

use crate::client::Client;
use crate::error::Error;
use crate::limits;
use crate::request::{Expect, Template};
use crate::server::Server;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::{Duration, Instant};

/// Answers 200 once the program serves.
const HEALTH: &str = "/q/health";

/// A key of the configuration and its value.
pub(crate) type Setting<'a> = (&'a str, &'a OsStr);

/// Starts `trifid serve` and returns at its first 200.
pub(crate) fn start(
    name: &'static str,
    program: &Path,
    settings: &[Setting<'_>],
    directory: &Path,
    core: Option<usize>,
) -> Result<Server, Error> {
    let own: [Setting<'_>; 2] = [("http.listen", "127.0.0.1:0".as_ref()), ("http.cores", "1".as_ref())];
    let mut arguments = vec![OsString::from("serve")];
    arguments.extend(own.iter().chain(settings).flat_map(set));
    let server = Server::start(name, program, &arguments, directory, core)?;
    until_healthy(&server)?;
    Ok(server)
}

/// A setting on the command line.
pub(crate) fn set((key, value): &Setting<'_>) -> [OsString; 2] {
    let mut pair = OsString::from(format!("{key}="));
    pair.push(value);
    [OsString::from("--set"), pair]
}

/// Asks for the health until it is 200. A program that listens while it recovers answers 503.
fn until_healthy(server: &Server) -> Result<(), Error> {
    let mut client = Client::connect(server.name(), server.address())?;
    let mut request = Vec::new();
    let host = server.address().to_string();
    Template::new("GET", &host, HEALTH, None, Expect::status(200)).write(0, &mut request);
    let deadline = Instant::now() + limits::START_WAIT;
    loop {
        let reply = client.call(&request)?;
        match reply.status {
            200 => return Ok(()),
            503 if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
            _ => return Err(Error::Wrong { name: server.name(), what: format!("{HEALTH}: {reply:.300}") }),
        }
    }
}
