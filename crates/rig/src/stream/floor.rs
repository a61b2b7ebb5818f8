//! Floors of streams as processes beside the server.

use std::ffi::OsString;
use std::path::PathBuf;

use super::echo;
use super::publisher::Floor;
use crate::args::Transport;
use crate::bench::Bench;
use crate::error::Error;
use crate::server::Server;

/// A running floor.
pub(super) struct Running {
    pub(super) server: Server,
    pub(super) floor: Floor,
}

/// What a floor does with frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Answers with sixteen bytes.
    Ack,
    /// Answers with the frame.
    Echo,
    /// Answers with sixteen bytes once the frame is on the disk.
    Durable,
}

/// Starts one.
pub(super) fn start(
    bench: &Bench<'_>,
    name: &'static str,
    transport: Transport,
    kind: Kind,
) -> Result<Running, Error> {
    let file = |ending: &str| bench.directory.join(format!("{}.{ending}", name.replace(' ', "-")));
    let certificate = file("pem");
    let journal = (kind == Kind::Durable).then(|| file("journal"));
    let arguments = arguments(transport, kind, &certificate, journal);
    let core = bench.options.server_core();
    let server = Server::start(name, bench.program, &arguments, bench.directory, core)?;
    let certificate = echo::trusted(&certificate)?;
    let floor = Floor { address: server.address(), transport, certificate, echoes: kind == Kind::Echo };
    Ok(Running { server, floor })
}

fn arguments(
    transport: Transport,
    kind: Kind,
    certificate: &std::path::Path,
    journal: Option<PathBuf>,
) -> Vec<OsString> {
    let transport = match transport {
        Transport::Tls => "tls",
        Transport::Quic => "quic",
    };
    let mode = if kind == Kind::Echo { "echo" } else { "ack" };
    let mut arguments: Vec<OsString> =
        ["bench", "echo", "--transport", transport, "--mode", mode, "--certificate"].map(Into::into).to_vec();
    arguments.push(certificate.as_os_str().to_owned());
    if let Some(journal) = journal {
        arguments.extend([OsString::from("--journal"), journal.into_os_string()]);
    }
    arguments
}
