//! Tables that come with a query (TAP 1.1 2.7.6, DALI 1.1 3.4.5): in the request, or from a URL.
//!
//! A URL is fetched only from hosts that the operator lists, through the egress guard, within bounds of size and time.
//! Whatever the table is in (VOTable, FITS, CSV, Arrow, gzip around one of them, Parquet where the roof reads it), it
//! is told by its bytes. Reading costs milliseconds and more, so it takes a turn in the compute pool like a query. The
//! rows keep their order.

use std::collections::HashSet;
use std::io::{BufReader, Cursor, Read};
use std::sync::Arc;

use bytes::Bytes;
use http::Uri;
use trifid_archive_adql::types::Field;
use trifid_archive_engine::catalogue::UPLOAD_SCHEMA;
use trifid_archive_engine::table::{Table, TableHead};
use trifid_archive_model::csv::{self, Delimiter};
use trifid_archive_model::fits::{self, Wanted};
use trifid_archive_model::ipc;
use trifid_archive_model::read::{Fault as ReadFault, ReadError, TableReader};
use trifid_archive_model::sniff::{Format, SNIFF_BYTES, Sniffed, Wrapper, sniff, unwrapped};
use trifid_archive_model::votable::{self, ReadOptions};
use trifid_base_web::egress;

use crate::ArchiveFace;
use crate::fault::{Fault, quoted};
use crate::form::File;
use crate::format::Formats;
use crate::limits::{UPLOAD_BATCH_ROWS, UPLOAD_NAME_BYTES_MAX, UPLOADS_MAX};
use crate::settings::{Hosts, Upload};

/// One table of UPLOAD: its name, and where it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spec<'v> {
    pub(crate) name: &'v str,
    pub(crate) place: Place<'v>,
}

/// Where an uploaded table is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place<'v> {
    /// In the part of this name.
    Part(&'v str),
    /// Under this URL.
    Url(Uri),
}

/// What the values of UPLOAD say.
pub(crate) fn specs<'v>(values: &[&'v str]) -> Result<Vec<Spec<'v>>, Fault> {
    let mut specs: Vec<Spec<'v>> = Vec::new();
    let mut names = HashSet::new();
    for item in
        values.iter().flat_map(|value| value.split(';')).map(str::trim).filter(|item| !item.is_empty())
    {
        let spec = spec(item)?;
        if !names.insert(spec.name.to_ascii_lowercase()) {
            return Err(Fault::invalid(format!("UPLOAD names the table {} twice", quoted(spec.name))));
        }
        if specs.len() == UPLOADS_MAX {
            return Err(Fault::too_large(format!("one query may upload {UPLOADS_MAX} tables at most")));
        }
        specs.push(spec);
    }
    Ok(specs)
}

fn spec(item: &str) -> Result<Spec<'_>, Fault> {
    let (name, uri) = item.split_once(',').ok_or_else(|| {
        Fault::invalid(format!(
            "UPLOAD takes pairs of a table's name and a URI, `name,uri`; {} is none",
            quoted(item)
        ))
    })?;
    let (name, uri) = (name.trim(), uri.trim());
    // Some clients name the table with its schema.
    let schema = name.get(..UPLOAD_SCHEMA.len() + 1).filter(|start| {
        start.ends_with('.') && start[..UPLOAD_SCHEMA.len()].eq_ignore_ascii_case(UPLOAD_SCHEMA)
    });
    let name = &name[schema.map_or(0, str::len)..];
    if !is_identifier(name) {
        return Err(Fault::invalid(format!(
            "the name of an uploaded table is a letter followed by letters, digits and `_`, not {}",
            quoted(name)
        )));
    }
    Ok(Spec { name, place: place(uri)? })
}

/// TAP 1.1 2.7.6: a regular identifier of ADQL.
fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.len() <= UPLOAD_NAME_BYTES_MAX
}

fn place(uri: &str) -> Result<Place<'_>, Fault> {
    let (scheme, rest) = uri.split_once(':').unwrap_or((uri, ""));
    if scheme.eq_ignore_ascii_case("param") && !rest.is_empty() {
        return Ok(Place::Part(rest));
    }
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let url = is_web.then(|| uri.parse().ok()).flatten();
    url.map(Place::Url).ok_or_else(|| {
        Fault::invalid(format!(
            "UPLOAD takes tables from param:<part>, http and https URLs; {} is none of them",
            quoted(uri)
        ))
    })
}

/// The uploaded tables of a request, read.
pub(crate) async fn tables(
    face: &ArchiveFace,
    values: &[&str],
    files: &[File],
) -> Result<Vec<Arc<Table>>, Fault> {
    if values.is_empty() {
        return Ok(Vec::new());
    }
    let upload = &face.settings.upload;
    let mut found = Vec::new();
    for spec in specs(values)? {
        let file = match spec.place {
            Place::Part(part) => part_of(files, part)?.clone(),
            Place::Url(url) => fetched(face.client.as_ref(), upload, url).await?,
        };
        found.push((spec.name.to_owned(), file));
    }
    let bounds = Bounds { rows: upload.rows, bytes: upload.bytes };
    let ticket = face.queue()?;
    let formats = face.formats.clone();
    let work = async move {
        let _turn = ticket.turn().await?;
        let read = |(name, file): &(String, File)| table(name, file, bounds, &formats).map(Arc::new);
        found.iter().map(read).collect::<Result<Vec<_>, Fault>>()
    };
    let tables = face.archive.compute().spawn(work).await.map_err(Fault::internal)??;
    face.counters.uploads.add(0, tables.len() as u64);
    Ok(tables)
}

fn part_of<'f>(files: &'f [File], part: &str) -> Result<&'f File, Fault> {
    let found = files.iter().find(|file| file.part == part);
    found.or_else(|| files.iter().find(|file| file.part.eq_ignore_ascii_case(part))).ok_or_else(|| {
        Fault::invalid(format!("UPLOAD refers to the part {}, which the request does not have", quoted(part)))
    })
}

/// Fetches a table from elsewhere, if its host is one of those that tables may come from.
async fn fetched(client: Option<&egress::Client>, upload: &Upload, url: Uri) -> Result<File, Fault> {
    let host = url.host().unwrap_or_default();
    let (Some(client), true) = (client, upload.hosts.contains(host)) else {
        return Err(Fault::invalid(format!("this service does not fetch tables from {}", quoted(host))));
    };
    let shown = quoted(&url.to_string());
    let mut request = egress::Request::get(url);
    request.timeout = Some(upload.timeout);
    request.response_limit_bytes = Some(upload.bytes);
    if upload.hosts != Hosts::Any {
        // A redirect may lead to a host that is not on the list.
        request.redirects = Some(0);
    }
    let response = client.success(request).await.map_err(|error| match error {
        egress::FetchError::TooLarge { .. } => too_many_bytes(upload.bytes),
        // What an address behind a name is, is nobody's business.
        egress::FetchError::Refused { .. } => Fault::invalid(format!("this service may not fetch {shown}")),
        other => Fault::invalid(format!("the table {shown} cannot be fetched: {other}")),
    })?;
    let media = response.headers().get(http::header::CONTENT_TYPE);
    let media = media.and_then(|value| value.to_str().ok()).map(str::to_owned);
    Ok(File { part: String::new(), media, bytes: response.into_body() })
}

fn too_many_bytes(limit: u64) -> Fault {
    Fault::too_large(format!("an uploaded table may have {limit} bytes at most"))
}

/// What an uploaded table may be.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Rows.
    pub rows: u64,
    /// Bytes, unpacked.
    pub bytes: u64,
}

/// Reads a file as a table. Takes as long as it takes: for the compute pool.
pub(crate) fn table(name: &str, file: &File, bounds: Bounds, formats: &Formats) -> Result<Table, Fault> {
    let mut reader = reader(name, file, bounds, formats)?;
    let fields = unique(reader.fields());
    let mut batches = Vec::new();
    let mut rows: u64 = 0;
    while let Some(batch) =
        reader.next_batch(UPLOAD_BATCH_ROWS).map_err(|error| unreadable(name, &error, bounds))?
    {
        rows += batch.num_rows() as u64;
        if rows > bounds.rows {
            return Err(Fault::too_large(format!(
                "the uploaded table {name} has more than {} rows",
                bounds.rows
            )));
        }
        batches.push(batch);
    }
    let head = TableHead { schema: UPLOAD_SCHEMA.into(), name: name.into(), fields, position: None };
    Ok(Table::in_memory(head, &batches, &[])?)
}

/// The columns, each with a name of its own: a VOTable's need not be unique, a query's must.
fn unique(fields: &Arc<[Field]>) -> Arc<[Field]> {
    let mut taken = HashSet::new();
    if fields.iter().all(|field| !field.name.is_empty() && taken.insert(&*field.name)) {
        return Arc::clone(fields);
    }
    let mut taken: HashSet<Arc<str>> = HashSet::new();
    let named = |(at, field): (usize, &Field)| {
        let base: Arc<str> =
            if field.name.is_empty() { format!("col{}", at + 1).into() } else { field.name.clone() };
        let mut name = base.clone();
        let mut count = 1;
        while !taken.insert(name.clone()) {
            count += 1;
            name = format!("{base}_{count}").into();
        }
        Field { name, ..field.clone() }
    };
    fields.iter().enumerate().map(named).collect()
}

fn unreadable(name: &str, error: &ReadError, bounds: Bounds) -> Fault {
    match &error.fault {
        ReadFault::Io(source) if source.kind() == std::io::ErrorKind::FileTooLarge => {
            too_many_bytes(bounds.bytes)
        }
        ReadFault::Limit { .. } => Fault::too_large(format!("the uploaded table {name}: {error}")),
        ReadFault::Io(_)
        | ReadFault::Malformed(_)
        | ReadFault::Truncated(_)
        | ReadFault::Unsupported(_)
        | ReadFault::Value { .. } => {
            Fault::invalid(format!("the uploaded table {name} cannot be read: {error}"))
        }
    }
}

type Source = Box<dyn Read + Send>;

/// A reader of whatever a file holds.
fn reader(name: &str, file: &File, bounds: Bounds, formats: &Formats) -> Result<Box<dyn TableReader>, Fault> {
    let named = file_name(file.media.as_deref());
    let source: Source = Box::new(Cursor::new(Bytes::clone(&file.bytes)));
    match sniff(&file.bytes[..file.bytes.len().min(SNIFF_BYTES)], Some(named)) {
        // It is read from its end.
        Sniffed::Table(format @ Format::Parquet) => {
            let read = formats.reader(format, &file.bytes, bounds).ok_or_else(|| unknown(name))?;
            read.map_err(|error| unreadable(name, &error, bounds))
        }
        Sniffed::Table(format) => made(name, format, source, bounds),
        Sniffed::Wrapped(Wrapper::Gzip) => {
            let mut inner = flate2::read::MultiGzDecoder::new(source);
            let beginning = beginning_of(&mut inner)?;
            let rest = Capped { source: inner, left: bounds.bytes };
            let source = Box::new(Cursor::new(beginning.clone()).chain(rest));
            match sniff(&beginning, Some(unwrapped(named))) {
                Sniffed::Table(format) => made(name, format, source, bounds),
                Sniffed::Wrapped(_) | Sniffed::Unknown => Err(unknown(name)),
            }
        }
        Sniffed::Wrapped(_) | Sniffed::Unknown => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> Fault {
    Fault::invalid(format!(
        "the uploaded table {name} is in no format that is known here: VOTable, FITS, CSV, TSV or Arrow, \
         compressed with gzip or not, or Parquet where the service has it"
    ))
}

/// A file name that tells what the media type tells.
fn file_name(media: Option<&str>) -> &'static str {
    let name = media.and_then(|media| media.split(';').next()).unwrap_or_default().trim();
    match name.to_ascii_lowercase().as_str() {
        "text/csv" => "upload.csv",
        "text/tab-separated-values" => "upload.tsv",
        _ => "upload",
    }
}

fn beginning_of(source: &mut impl Read) -> Result<Vec<u8>, Fault> {
    let mut beginning = Vec::with_capacity(SNIFF_BYTES);
    let broken = |error| Fault::invalid(format!("the uploaded file cannot be read: {error}"));
    source.take(SNIFF_BYTES as u64).read_to_end(&mut beginning).map_err(broken)?;
    Ok(beginning)
}

/// What comes out of a compressed file is bounded like one that is not compressed.
struct Capped<R> {
    source: R,
    left: u64,
}

impl<R: Read> Read for Capped<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.left = self.left.checked_sub(count as u64).ok_or(std::io::ErrorKind::FileTooLarge)?;
        Ok(count)
    }
}

fn made(name: &str, format: Format, source: Source, bounds: Bounds) -> Result<Box<dyn TableReader>, Fault> {
    let source = BufReader::new(source);
    let made: Result<Box<dyn TableReader>, ReadError> = match format {
        Format::Csv => boxed(csv::Reader::new(source, &csv::Options::new(Delimiter::Comma))),
        Format::Tsv => boxed(csv::Reader::new(source, &csv::Options::new(Delimiter::Tab))),
        Format::VoTable => {
            boxed(votable::Reader::new(source, ReadOptions { nan_is_null: true, ..ReadOptions::default() }))
        }
        Format::ArrowFile | Format::ArrowStream => boxed(ipc::Reader::new(source)),
        Format::Fits => boxed(fits::Reader::new(source, &Wanted::FirstTable)),
        Format::Parquet => {
            return Err(Fault::invalid(format!(
                "the uploaded table {name} is Parquet in gzip; Parquet is compressed within, send it as it is"
            )));
        }
    };
    made.map_err(|error| unreadable(name, &error, bounds))
}

fn boxed<R: TableReader + 'static>(reader: Result<R, ReadError>) -> Result<Box<dyn TableReader>, ReadError> {
    reader.map(|reader| Box::new(reader) as Box<dyn TableReader>)
}

#[cfg(test)]
mod tests;
