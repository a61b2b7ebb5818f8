//! The formats of results: their names, and a writer for each (DALI 1.1 3.4.3, TAPRegExt 1.0 2.4).
//!
//! A client asks by media type, by short form or by alias. Who asks by media type gets exactly that media type back,
//! whatever parameters it had; names ignore case and blanks around parameters. Unknown parameters of a known media type
//! are passed over, as are formats that a roof did not bring.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use trifid_archive_engine::archive::Plan;
use trifid_archive_model::csv::{self, Delimiter};
use trifid_archive_model::read::{ReadError, TableReader};
use trifid_archive_model::sniff::Format as Found;
use trifid_archive_model::votable::{self, Serialization, Version};
use trifid_archive_model::write::{Head, TableWriter};
use trifid_archive_model::{html, ipc, json, text};

use crate::fault::{ErrorForm, Fault, VOTABLE, quoted};
use crate::upload::Bounds;

/// A format that another room writes, such as Parquet.
pub trait ExtraFormat: Send + Sync + 'static {
    /// Its media type.
    fn media(&self) -> &'static str;

    /// Its short form, then its aliases.
    fn names(&self) -> &'static [&'static str];

    /// The ending of a file of it.
    fn extension(&self) -> &'static str;

    /// Whether a result of it tells whether rows were withheld and whether it broke off.
    fn tells_end(&self) -> bool;

    /// A writer of one result.
    fn writer(&self, head: Head) -> Box<dyn TableWriter>;

    /// A reader of an uploaded table of at most so many rows and bytes, if the format reads what was found out to be
    /// `found`.
    fn reader(&self, found: Found, file: &Bytes, bounds: Bounds) -> Option<Read> {
        let _ = (found, file, bounds);
        None
    }
}

/// A reader, or why there is none.
pub type Read = Result<Box<dyn TableReader>, ReadError>;

/// A format.
#[derive(Clone)]
pub(crate) enum Format {
    /// VOTable.
    Votable(votable::Options),
    /// CSV.
    Csv,
    /// TSV.
    Tsv,
    /// JSON.
    Json,
    /// Text for a terminal.
    Text,
    /// A page for a browser.
    Html,
    /// FITS: a binary table.
    Fits,
    /// Arrow IPC as a stream.
    Arrow,
    /// What the roof brought.
    Extra(Arc<dyn ExtraFormat>),
}

/// How a result is written.
pub(crate) enum Target {
    /// Row by row, the tail decides.
    Stream(Box<dyn TableWriter>),
    /// When it is whole: see `fits`.
    Fits(Head),
}

/// A format with the media type under which its result goes out.
#[derive(Clone)]
pub(crate) struct Chosen {
    /// The format.
    pub(crate) format: Format,
    /// The media type.
    pub(crate) media: HeaderValue,
}

/// One line of the list of formats.
pub(crate) struct Listed<'a> {
    /// The media type.
    pub(crate) media: &'a str,
    /// Short form and aliases.
    pub(crate) names: &'a [&'a str],
    /// Its identifier in the registry of TAPRegExt, where it has one.
    pub(crate) ivoid: Option<&'static str>,
}

/// The formats of this service.
#[derive(Clone)]
pub(crate) struct Formats {
    extra: Vec<Arc<dyn ExtraFormat>>,
    /// How rows are carried where nobody says it.
    serialization: Serialization,
}

/// A built-in format: media type, names, identifier.
struct Row(&'static str, &'static [&'static str], Option<&'static str>, Kind);

#[derive(Clone, Copy)]
enum Kind {
    Default,
    Votable(Serialization),
    Csv,
    Tsv,
    Json,
    Text,
    Html,
    Fits,
    Arrow,
}

impl Kind {
    /// The media type of a result that was asked for by name. Text says its encoding then: browsers guess another one.
    const fn media(self, listed: &'static str) -> &'static str {
        match self {
            Self::Default | Self::Votable(_) | Self::Json | Self::Fits | Self::Arrow => listed,
            Self::Csv => "text/csv;header=present;charset=utf-8",
            Self::Tsv => "text/tab-separated-values;charset=utf-8",
            Self::Text => "text/plain;charset=utf-8",
            Self::Html => "text/html;charset=utf-8",
        }
    }
}

macro_rules! ivoid {
    ($name:literal) => {
        Some(concat!("ivo://ivoa.net/std/TAPRegExt#output-", $name))
    };
}

const ROWS: &[Row] = &[
    Row("application/x-votable+xml", &["votable"], None, Kind::Default),
    Row(
        "application/x-votable+xml;serialization=TABLEDATA",
        &["votable/td", "votable/tabledata"],
        ivoid!("votable-td"),
        Kind::Votable(Serialization::TableData),
    ),
    Row(
        "application/x-votable+xml;serialization=BINARY",
        &["votable/binary", "votable/b"],
        ivoid!("votable-binary"),
        Kind::Votable(Serialization::Binary),
    ),
    Row(
        "application/x-votable+xml;serialization=BINARY2",
        &["votable/b2", "votable/binary2"],
        ivoid!("votable-binary2"),
        Kind::Votable(Serialization::Binary2),
    ),
    Row("text/xml", &[], None, Kind::Votable(Serialization::TableData)),
    Row("text/csv;header=present", &["csv"], None, Kind::Csv),
    Row("text/tab-separated-values", &["tsv"], None, Kind::Tsv),
    Row("application/fits", &["fits"], None, Kind::Fits),
    Row("application/vnd.apache.arrow.stream", &["arrow"], None, Kind::Arrow),
    Row("application/json", &["json"], None, Kind::Json),
    Row("text/plain", &["text", "txt"], None, Kind::Text),
    Row("text/html", &["html"], None, Kind::Html),
];

impl Formats {
    /// A reader of a file that the archive's own rooms do not read.
    pub(crate) fn reader(&self, found: Found, file: &Bytes, bounds: Bounds) -> Option<Read> {
        self.extra.iter().find_map(|extra| extra.reader(found, file, bounds))
    }

    /// The built-in formats and `extra`; VOTables without more are serialised as `serialization`.
    pub(crate) fn new(extra: Vec<Arc<dyn ExtraFormat>>, serialization: Serialization) -> Self {
        Self { extra, serialization }
    }

    /// What is offered, for the capabilities document; the default first.
    pub(crate) fn list(&self) -> impl Iterator<Item = Listed<'_>> {
        let rows = ROWS.iter().map(|row| Listed { media: row.0, names: row.1, ivoid: row.2 });
        let listed = |extra: &'_ Arc<dyn ExtraFormat>| Listed {
            media: extra.media(),
            names: extra.names(),
            ivoid: None,
        };
        rows.chain(self.extra.iter().map(listed))
    }

    /// The format that a client asks for; the default where it asks for none.
    pub(crate) fn choose(&self, asked: Option<&str>) -> Result<Chosen, Fault> {
        let Some(asked) = asked.map(str::trim).filter(|asked| !asked.is_empty()) else {
            return Ok(Chosen { format: self.default_votable(Version::default()), media: VOTABLE });
        };
        let found = if asked.contains('/') {
            self.by_media(asked).or_else(|| self.by_name(asked))
        } else {
            self.by_name(asked)
        };
        found.ok_or_else(|| Fault::invalid(self.unknown(asked)))
    }

    fn unknown(&self, asked: &str) -> String {
        let names: Vec<&str> = self.list().filter_map(|listed| listed.names.first().copied()).collect();
        format!("the format {} is not known here; RESPONSEFORMAT takes {}", quoted(asked), names.join(", "))
    }

    fn default_votable(&self, version: Version) -> Format {
        Format::Votable(votable::Options { serialization: self.serialization, version })
    }

    fn built(&self, kind: Kind, version: Version) -> Format {
        match kind {
            Kind::Default => self.default_votable(version),
            Kind::Votable(serialization) => Format::Votable(votable::Options { serialization, version }),
            Kind::Csv => Format::Csv,
            Kind::Tsv => Format::Tsv,
            Kind::Json => Format::Json,
            Kind::Text => Format::Text,
            Kind::Html => Format::Html,
            Kind::Fits => Format::Fits,
            Kind::Arrow => Format::Arrow,
        }
    }

    fn by_name(&self, asked: &str) -> Option<Chosen> {
        let has = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(asked));
        if let Some(row) = ROWS.iter().find(|row| has(row.1)) {
            let format = self.built(row.3, Version::default());
            return Some(Chosen { format, media: HeaderValue::from_static(row.3.media(row.0)) });
        }
        let extra = self.extra.iter().find(|extra| has(extra.names()))?;
        Some(Chosen {
            format: Format::Extra(Arc::clone(extra)),
            media: HeaderValue::from_static(extra.media()),
        })
    }

    /// DALI 1.1 3.4.3: the answer's media type is the one that was asked for.
    fn by_media(&self, asked: &str) -> Option<Chosen> {
        let media = HeaderValue::from_str(asked).ok()?;
        let wanted = Media::parse(asked);
        let format = match wanted.name.as_str() {
            "application/x-votable+xml" => self.votable(&wanted, Kind::Default)?,
            "text/xml" | "application/xml" => {
                self.votable(&wanted, Kind::Votable(Serialization::TableData))?
            }
            "text/csv" if wanted.get("header").is_none_or(|header| header != "absent") => Format::Csv,
            "text/tab-separated-values" => Format::Tsv,
            "application/json" => Format::Json,
            "text/plain" => Format::Text,
            "text/html" => Format::Html,
            "application/fits" => Format::Fits,
            "application/vnd.apache.arrow.stream" => Format::Arrow,
            name => {
                let same = |extra: &&Arc<dyn ExtraFormat>| Media::parse(extra.media()).name == name;
                Format::Extra(Arc::clone(self.extra.iter().find(same)?))
            }
        };
        Some(Chosen { format, media })
    }

    fn votable(&self, wanted: &Media<'_>, otherwise: Kind) -> Option<Format> {
        let kind = match wanted.get("serialization").as_deref() {
            None => otherwise,
            Some("tabledata") => Kind::Votable(Serialization::TableData),
            Some("binary") => Kind::Votable(Serialization::Binary),
            Some("binary2") => Kind::Votable(Serialization::Binary2),
            Some(_) => return None,
        };
        let version = match wanted.get("version").as_deref() {
            None => Version::default(),
            Some("1.3") => Version::V1_3,
            Some("1.4") => Version::V1_4,
            Some("1.5") => Version::V1_5,
            Some(_) => return None,
        };
        Some(self.built(kind, version))
    }

    /// The form of faults for a client that asked for this: its own family where it has one.
    pub(crate) fn error_form(&self, asked: Option<&str>) -> ErrorForm {
        let asked = asked.unwrap_or_default().trim();
        let name = Media::parse(asked).name;
        match name.as_str() {
            "text" | "txt" | "text/plain" | "csv" | "text/csv" | "tsv" | "text/tab-separated-values" => {
                ErrorForm::Text
            }
            "json" | "application/json" => ErrorForm::Json,
            "html" | "text/html" => ErrorForm::Html,
            "text/xml" => ErrorForm::Votable(HeaderValue::from_static("text/xml")),
            _ => ErrorForm::default(),
        }
    }
}

/// A media type, taken apart.
struct Media<'m> {
    name: String,
    parameters: &'m str,
}

impl<'m> Media<'m> {
    fn parse(text: &'m str) -> Self {
        let (name, parameters) = text.split_once(';').unwrap_or((text, ""));
        Self { name: name.trim().to_ascii_lowercase(), parameters }
    }

    /// A parameter, in lower case and without quotes.
    fn get(&self, name: &str) -> Option<String> {
        let mut pairs = self.parameters.split(';').filter_map(|parameter| parameter.split_once('='));
        let (_, value) = pairs.find(|(found, _)| found.trim().eq_ignore_ascii_case(name))?;
        Some(value.trim().trim_matches('"').to_ascii_lowercase())
    }
}

impl Format {
    /// The way in which one result is written.
    pub(crate) fn target(&self, head: Head) -> Target {
        Target::Stream(match self {
            Self::Votable(options) => Box::new(votable::Writer::new(*options, head)),
            Self::Csv => Box::new(csv::Writer::new(head.fields, Delimiter::Comma)),
            Self::Tsv => Box::new(csv::Writer::new(head.fields, Delimiter::Tab)),
            Self::Json => Box::new(json::Writer::new(head)),
            Self::Text => Box::new(text::Writer::new(head)),
            Self::Html => Box::new(html::Writer::page(head)),
            Self::Arrow => Box::new(ipc::Writer::new(head)),
            Self::Extra(extra) => extra.writer(head),
            Self::Fits => return Target::Fits(head),
        })
    }

    /// Whether a result tells itself that rows were withheld, or that it broke off.
    pub(crate) fn tells_end(&self) -> bool {
        match self {
            Self::Votable(_) | Self::Json | Self::Text | Self::Html | Self::Fits | Self::Arrow => true,
            Self::Csv | Self::Tsv => false,
            Self::Extra(extra) => extra.tells_end(),
        }
    }

    /// Whether compressing a result again is worth the time.
    pub(crate) fn is_compressible(&self) -> bool {
        !matches!(self, Self::Extra(_))
    }

    /// The columns as the format renders them, kept with their plan once they are.
    pub(crate) fn rendered(&self, plan: &Plan) -> Option<Arc<[u8]>> {
        let Self::Votable(votable::Options { serialization, .. }) = *self else { return None };
        let render = || votable::render_fields(&plan.fields, serialization, false);
        Some(plan.rendered.get(serialization as usize, render))
    }

    /// How a browser takes the result: what it can show it shows, the rest becomes a file.
    pub(crate) fn disposition(&self) -> HeaderValue {
        match self {
            Self::Votable(_) => HeaderValue::from_static("inline; filename=\"result.vot\""),
            Self::Csv => HeaderValue::from_static("attachment; filename=\"result.csv\""),
            Self::Tsv => HeaderValue::from_static("attachment; filename=\"result.tsv\""),
            Self::Json => HeaderValue::from_static("inline; filename=\"result.json\""),
            Self::Text => HeaderValue::from_static("inline; filename=\"result.txt\""),
            Self::Html => HeaderValue::from_static("inline; filename=\"result.html\""),
            Self::Fits => HeaderValue::from_static("attachment; filename=\"result.fits\""),
            Self::Arrow => HeaderValue::from_static("attachment; filename=\"result.arrow\""),
            Self::Extra(extra) => {
                let value = format!("attachment; filename=\"result.{}\"", extra.extension());
                HeaderValue::try_from(value).unwrap_or(HeaderValue::from_static("attachment"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
