//! `trifid archive query`: one query over the store of tables, without a server.
//!
//! The query takes the way that it would take over HTTP, through the door's own face, so that formats, limits and
//! messages are the same; only the socket is missing.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use bytes::Bytes;
use clap::Args;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Uri};
use http_body_util::BodyExt as _;
use trifid_archive_face::{ArchiveFace, Options as FaceOptions, ROOT};
use trifid_base_web::{Body, Face as _, Request, egress};

use super::{Options, folder, opened, ports, tables};
use crate::cli::Common;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The query, in ADQL
    query: String,
    /// The format: text, csv, tsv, votable, votable/td, json, html, fits, parquet, arrow ...
    #[arg(long, default_value = "text")]
    format: String,
    /// The file to write; without it, standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// At most so many rows
    #[arg(long, value_name = "ROWS")]
    maxrec: Option<u64>,
}

pub(crate) fn run(common: &Common, arguments: &Arguments) -> anyhow::Result<()> {
    let config = common.resolve(Vec::new())?;
    let options: Options = config.section(Options::SECTION)?;
    let folder = folder(&config)?;
    let archive = Arc::new(opened(&options, &folder)?);
    tables::Tables::new(&options, &folder, Arc::clone(&archive)).publish()?;
    let mut settings = config.section::<FaceOptions>(FaceOptions::SECTION)?;
    // Whoever asks at a terminal wants all of it.
    settings.output_default = settings.output_limit;
    let client = egress::Client::new(&config.section(egress::Options::SECTION)?)?;
    let face = ArchiveFace::new(archive, settings.resolve(false)?, ports(&options, &folder, 1, client));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match &arguments.output {
        Some(path) => {
            let mut file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            runtime.block_on(answer(&face, arguments, &mut file))?;
            Ok(file.sync_all()?)
        }
        None => runtime.block_on(answer(&face, arguments, &mut io::stdout().lock())),
    }
}

async fn answer(face: &ArchiveFace, arguments: &Arguments, out: &mut dyn Write) -> anyhow::Result<()> {
    let response = face.call(request(arguments)?).await;
    let is_success = response.status().is_success();
    let mut body: Body = response.into_body();
    let mut refusal = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(bytes) = frame?.into_data() else { continue };
        match is_success {
            true => out.write_all(&bytes)?,
            false => refusal.extend_from_slice(&bytes),
        }
    }
    out.flush()?;
    if is_success { Ok(()) } else { Err(anyhow!("{}", String::from_utf8_lossy(&refusal).trim())) }
}

/// The request that a client would send; a refusal is to be plain text, whatever the format of the rows.
fn request(arguments: &Arguments) -> anyhow::Result<Request> {
    let mut form = vec![("LANG", "ADQL".to_owned()), ("QUERY", arguments.query.clone())];
    form.push(("RESPONSEFORMAT", arguments.format.clone()));
    form.extend(arguments.maxrec.map(|rows| ("MAXREC", rows.to_string())));
    let pairs: Vec<String> = form.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    let mut request =
        Request::new(Method::POST, Uri::from_maybe_shared(Bytes::from(format!("{ROOT}/sync")))?);
    request.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    request.body = Bytes::from(pairs.join("&"));
    Ok(request)
}

fn encoded(value: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode = |byte: u8| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    value.bytes().map(encode).collect()
}
