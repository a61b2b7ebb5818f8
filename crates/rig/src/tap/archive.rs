//! The archive door as the rig sees it: a program that loads files and serves, and an address that speaks TAP.

use super::answer::Format;
use super::question::{Expected, Question};
use super::stars::Stars;
use crate::bench::Bench;
use crate::client::{Client, Reply};
use crate::error::Error;
use crate::limits;
use crate::process;
use crate::request::{Expect, Template};
use crate::serve::{self, Setting};
use crate::server::Server;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The table that is measured.
pub(super) const TABLE: &str = "bench.stars";
const SYNC: &str = "/tap/sync";

/// What the table says of itself: which column tells stars apart, where they are, what is asked for.
const DESCRIPTION: &str = r#"
[table]
description = "Stars out of a seed, as many as Hipparcos has"

[column.hip]
ucd = "meta.id;meta.main"
indexed = true

[column.ra]
unit = "deg"
ucd = "pos.eq.ra;meta.main"

[column.dec]
unit = "deg"
ucd = "pos.eq.dec;meta.main"

[column.plx]
unit = "mas"
ucd = "pos.parallax.trig"

[column.hpmag]
unit = "mag"
ucd = "phot.mag;em.opt"
indexed = true
"#;

/// The catalogue and where it lies.
pub(super) struct World {
    pub(super) stars: Stars,
    csv: PathBuf,
    description: PathBuf,
    data: PathBuf,
}

impl World {
    /// Writes the catalogue.
    pub(super) fn prepare(folder: &Path, count: usize) -> Result<World, Error> {
        let world = World {
            stars: Stars::generate(count),
            csv: folder.join("stars.csv"),
            description: folder.join("stars.toml"),
            data: folder.join("data"),
        };
        write(&world.csv, |out| world.stars.write_csv(out))?;
        write(&world.description, |out| out.write_all(DESCRIPTION.as_bytes()))?;
        std::fs::create_dir_all(&world.data).map_err(Error::file(&world.data))?;
        Ok(world)
    }

    /// Bytes of the catalogue as CSV.
    pub(super) fn csv_bytes(&self) -> Result<u64, Error> {
        Ok(std::fs::metadata(&self.csv).map_err(Error::file(&self.csv))?.len())
    }

    /// Loads the catalogue by the program's own hands, in place of what was loaded before.
    pub(super) fn load(&self, bench: &Bench<'_>) -> Result<Duration, Error> {
        let mut arguments: Vec<OsString> = ["archive", "load"].map(OsString::from).to_vec();
        arguments.push(self.csv.clone().into_os_string());
        arguments.extend(["--table", TABLE, "--describe"].map(OsString::from));
        arguments.push(self.description.clone().into_os_string());
        arguments.extend(serve::set(&("data_dir", self.data.as_os_str())));
        let mut command = process::command(bench.program, arguments, bench.directory);
        process::run("trifid archive load", &mut command, bench.options.server_core(), limits::LOAD_WAIT)
    }

    /// Starts the archive door alone over it.
    pub(super) fn serve(&self, bench: &Bench<'_>, more: &[Setting<'_>]) -> Result<Server, Error> {
        let own: [Setting<'_>; 2] = [("doors", "archive".as_ref()), ("data_dir", self.data.as_os_str())];
        let settings = [&own, more].concat();
        serve::start("the archive", bench.program, &settings, bench.directory, bench.options.server_core())
    }
}

/// Writes a file.
pub(super) fn write(
    path: &Path,
    contents: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<(), Error> {
    let written = File::create(path).and_then(|file| {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        contents(&mut out)?;
        out.flush()
    });
    written.map_err(Error::file(path))
}

/// A question, how its answer is to come, and what it must be.
#[derive(Clone, Debug)]
pub(super) struct Query {
    pub(super) question: Question,
    pub(super) format: Format,
    pub(super) expected: Expected,
}

impl Query {
    /// Finds out what the answer must be; a question that rounding decides is none.
    pub(super) fn new(stars: &Stars, question: Question, format: Format) -> Option<Query> {
        Some(Query { question, format, expected: question.expected(stars)? })
    }

    /// As a request that pyVO would send.
    pub(super) fn template(&self, host: &str) -> Template {
        let adql = self.question.adql();
        let fields = fields(&adql, self.format);
        Template::form(host, SYNC, &fields, Expect::status(200))
    }
}

/// The parameters of a query.
pub(super) fn fields(adql: &str, format: Format) -> [(&str, &str); 4] {
    [("REQUEST", "doQuery"), ("LANG", "ADQL"), ("RESPONSEFORMAT", format.parameter()), ("QUERY", adql)]
}

/// A connection to an archive.
pub(super) struct Tap {
    name: &'static str,
    pub(super) host: String,
    client: Client,
}

impl Tap {
    /// Connects.
    pub(super) fn connect(server: &Server) -> Result<Tap, Error> {
        let client = Client::connect(server.name(), server.address())?;
        Ok(Tap { name: server.name(), host: server.address().to_string(), client })
    }

    /// Sends a request and checks the status that it expects.
    pub(super) fn send(&mut self, template: &Template) -> Result<Reply, Error> {
        let mut request = Vec::new();
        template.write(0, &mut request);
        let reply = self.client.call(&request)?;
        if reply.status == template.expect.status {
            return Ok(reply);
        }
        Err(self.wrong(format!("{reply:.600} instead of {}", template.expect.status)))
    }

    /// Asks and looks at the answer.
    pub(super) fn ask(&mut self, stars: &Stars, query: &Query) -> Result<Reply, Error> {
        let reply = self.send(&query.template(&self.host))?;
        let checked = query.expected.check(stars, query.format, &reply.body);
        checked.map_err(|what| self.wrong(format!("{}: {what}", query.question.adql())))?;
        Ok(reply)
    }

    /// For a wrong answer.
    pub(super) fn wrong(&self, what: String) -> Error {
        Error::Wrong { name: self.name, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_a_form() {
        let stars = Stars::generate(10);
        let query = Query::new(&stars, Question::Lookup { hip: 7 }, Format::TableData).unwrap();
        let mut text = Vec::new();
        query.template("h:1").write(0, &mut text);
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with("POST /tap/sync HTTP/1.1\r\nHost: h:1\r\n"), "{text}");
        assert!(
            text.ends_with(
                "REQUEST=doQuery&LANG=ADQL&RESPONSEFORMAT=votable%2Ftd&\
                 QUERY=SELECT+hip%2C+ra%2C+dec%2C+plx%2C+hpmag+FROM+bench.stars+WHERE+hip+%3D+7"
            ),
            "{text}"
        );
    }
}
