//! The broker as the rig sees it: a program that serves, and an address that speaks NGSI-LD.

use crate::client::{Client, Reply};
use crate::error::Error;
use crate::request::{Expect, Template};
use crate::seed;
use crate::serve::{self, Setting};
use crate::server::Server;
use serde_json::Value;
use std::path::Path;

/// The path of the entities (6.4).
pub(crate) const ENTITIES: &str = "/ngsi-ld/v1/entities";
/// The path of batch create (6.14).
pub(crate) const BATCH_CREATE: &str = "/ngsi-ld/v1/entityOperations/create";

/// Which store a broker is started with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Store<'a> {
    /// Nothing survives.
    Memory,
    /// Journal and snapshots in this folder.
    File(&'a Path),
}

/// Starts `trifid serve` with one HTTP core and the context door alone, and returns at its first 200.
pub(crate) fn start(
    name: &'static str,
    program: &Path,
    store: Store<'_>,
    directory: &Path,
    core: Option<usize>,
) -> Result<Server, Error> {
    let mut settings: Vec<Setting<'_>> = vec![("doors", "context".as_ref())];
    match store {
        Store::Memory => settings.push(("context.store", "memory".as_ref())),
        Store::File(folder) => {
            settings.extend([("context.store", "file".as_ref()), ("data_dir", folder.as_os_str())]);
        }
    }
    serve::start(name, program, &settings, directory, core)
}

/// A connection to a broker that speaks in entities.
pub(crate) struct Context {
    name: &'static str,
    host: String,
    client: Client,
}

impl Context {
    /// Connects.
    pub(crate) fn connect(server: &Server) -> Result<Context, Error> {
        let client = Client::connect(server.name(), server.address())?;
        Ok(Context { name: server.name(), host: server.address().to_string(), client })
    }

    /// One call with this status, or an error that says what came instead.
    pub(crate) fn call(
        &mut self,
        method: &str,
        target: &str,
        body: Option<&str>,
        status: u16,
    ) -> Result<Reply, Error> {
        self.send(&Template::new(method, &self.host, target, body, Expect::status(status)), 0)
    }

    /// Sends a template and checks the status that it expects.
    pub(crate) fn send(&mut self, template: &Template, serial: u64) -> Result<Reply, Error> {
        let mut request = Vec::new();
        template.write(serial, &mut request);
        let reply = self.client.call(&request)?;
        if reply.status != template.expect.status {
            let line =
                String::from_utf8_lossy(request.split(|byte| *byte == b'\r').next().unwrap_or_default());
            return Err(self.wrong(format!("{line}: {reply:.300} instead of {}", template.expect.status)));
        }
        Ok(reply)
    }

    /// Creates one entity.
    pub(crate) fn create(&mut self, entity: &str) -> Result<Reply, Error> {
        self.call("POST", ENTITIES, Some(entity), 201)
    }

    /// Retrieves one entity.
    pub(crate) fn retrieve(&mut self, id: &str) -> Result<Value, Error> {
        let reply = self.call("GET", &format!("{ENTITIES}/{id}"), None, 200)?;
        reply.json().map_err(|what| self.wrong(what))
    }

    /// Retrieves one entity and compares it with what was posted.
    pub(crate) fn expect_entity(&mut self, id: &str, posted: &str) -> Result<(), Error> {
        let answered = self.retrieve(id)?;
        self.expect_same(posted, &answered)
    }

    /// Compares an entity with what was posted.
    pub(crate) fn expect_same(&self, posted: &str, answered: &Value) -> Result<(), Error> {
        let posted: Value = serde_json::from_str(posted).expect("the rig posts JSON");
        if seed::same(&posted, answered) {
            return Ok(());
        }
        Err(self.wrong(format!("posted {posted}, answered {answered}")))
    }

    /// For a wrong answer.
    pub(crate) fn wrong(&self, what: String) -> Error {
        Error::Wrong { name: self.name, what }
    }
}
