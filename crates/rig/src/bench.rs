//! What every suite stands on: its options, its folder, and servers side by side under one generator.

use crate::args::{Mode, Options};
use crate::client::Reply;
use crate::error::Error;
use crate::figures::Spread;
use crate::floor::Fixed;
use crate::generator::{Load, Pace, Window, drive};
use crate::report::Findings;
use crate::request::Requests;
use crate::server::Server;
use crate::verdict::{Bound, Target};
use std::ffi::OsString;
use std::path::Path;

/// What every cell needs.
pub(crate) struct Bench<'a> {
    pub(crate) options: &'a Options,
    pub(crate) program: &'a Path,
    pub(crate) directory: &'a Path,
    pub(crate) progress: &'a mut dyn FnMut(&str),
}

/// A server and the requests that it answers.
pub(crate) struct Side {
    pub(crate) server: Server,
    pub(crate) requests: Requests,
}

impl Bench<'_> {
    /// A part that failed is a target that was missed, unless nothing is judged.
    pub(crate) fn settled(
        &mut self,
        part: &str,
        done: Result<(), Error>,
        findings: &mut Findings,
    ) -> Result<(), Error> {
        let Err(error) = done else { return Ok(()) };
        if !self.options.judging() {
            return Err(error);
        }
        (self.progress)(&format!("{part} failed: {error}"));
        let name = format!("{part}: failures ({error})");
        findings.targets.push(Target::judge(&name, Bound::AtMost(0.0), None, Some(Spread::once(1.0)), true));
        Ok(())
    }

    /// A floor that answers what another server answered.
    pub(crate) fn start_floor(
        &mut self,
        name: &'static str,
        reply: &Reply,
        requests: &Requests,
        journal: Option<&Path>,
    ) -> Result<Side, Error> {
        let body = String::from_utf8(reply.body.clone());
        let body = body.map_err(|_| Error::Wrong { name, what: "a body that is not UTF-8".to_owned() })?;
        let fixed = Fixed { status: reply.status, headers: reply.headers.clone(), body };
        let path = self.directory.join("floor.json");
        let text = serde_json::to_string(&fixed).expect("strings and a number");
        std::fs::write(&path, text).map_err(Error::file(&path))?;
        let mut arguments: Vec<OsString> = ["bench", "floor", "--answer"].map(OsString::from).to_vec();
        arguments.push(path.into_os_string());
        if let Some(journal) = journal {
            arguments.extend([OsString::from("--journal"), journal.as_os_str().to_owned()]);
        }
        let server =
            Server::start(name, self.program, &arguments, self.directory, self.options.server_core())?;
        Ok(Side { server, requests: requests.clone().expecting(&fixed) })
    }

    /// Drives one side through one window.
    pub(crate) fn drive(&mut self, side: &mut Side, clients: usize, pace: Pace) -> Result<Window, Error> {
        let load = Load {
            name: side.server.name(),
            address: side.server.address(),
            pids: &[side.server.pid()],
            clients,
            pace,
            warm_up: self.options.warm_up,
            window: self.options.window,
            compare_bodies: self.options.mode == Mode::Smoke,
        };
        drive(&load, &mut side.requests)
    }

    /// Drives first the floor, then the other.
    pub(crate) fn pair(
        &mut self,
        floor: &mut Side,
        other: &mut Side,
        clients: usize,
        pace: Pace,
    ) -> Result<(Window, Window), Error> {
        let of_floor = self.drive(floor, clients, pace)?;
        Ok((of_floor, self.drive(other, clients, pace)?))
    }
}
