//! `trifid context export` and `import`: a backup of the file store, and its way back.
//!
//! An export reads the files of the data directory and asks no server, so it works while one serves. What is
//! written to a file gets its name at the end, once it is flushed: a backup that is there is whole.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use trifid_base_log::{Disk, RealDisk};
use trifid_context_backends::file::{self, Exported};

use super::store;
use crate::cli::Common;
use crate::progress::Progress;
use crate::settings::Root;

#[derive(Args)]
pub(crate) struct ExportArguments {
    /// The file to write; without it, standard output
    file: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct ImportArguments {
    /// The file to read; `-` is standard input
    file: PathBuf,
}

pub(crate) fn export(common: &Common, arguments: &ExportArguments) -> anyhow::Result<()> {
    let data_dir = data_dir(common)?;
    ensure!(data_dir.is_dir(), "there is no data directory {}", data_dir.display());
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(&data_dir)?);
    let exported = match &arguments.file {
        Some(path) => to_file(&disk, path).with_context(|| format!("cannot export to {}", path.display()))?,
        None if io::stdout().is_terminal() => {
            bail!("an export is not for a terminal; name a file, or use a pipe")
        }
        None => to(&disk, &mut io::stdout().lock())?,
    };
    summary("exported", &exported)
}

fn to_file(disk: &Arc<dyn Disk>, path: &Path) -> anyhow::Result<Exported> {
    ensure!(!path.exists(), "the file exists");
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let file = File::create(&unfinished)?;
    let exported = to(disk, &mut BufWriter::new(&file))?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()?;
    Ok(exported)
}

fn to(disk: &Arc<dyn Disk>, out: &mut dyn Write) -> anyhow::Result<Exported> {
    let progress = Progress::begin();
    let mut out = progress.counting(out);
    let exported = file::export(disk, &mut out);
    let flushed = out.flush();
    progress.end();
    let exported = exported?;
    flushed?;
    Ok(exported)
}

pub(crate) fn import(common: &Common, arguments: &ImportArguments) -> anyhow::Result<()> {
    let data_dir = data_dir(common)?;
    let taken = store::take(&data_dir).with_context(|| format!("cannot take {}", data_dir.display()))?;
    let input: Box<dyn io::Read> = if arguments.file == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(
            File::open(&arguments.file)
                .with_context(|| format!("cannot open {}", arguments.file.display()))?,
        )
    };
    let progress = Progress::begin();
    let imported = file::import(&taken, &mut progress.counting(input));
    progress.end();
    summary("imported", &imported.with_context(|| format!("cannot import into {}", data_dir.display()))?)
}

fn data_dir(common: &Common) -> anyhow::Result<PathBuf> {
    Ok(common.resolve(Vec::new())?.section::<Root>(Root::SECTION)?.data_dir)
}

fn summary(what: &str, moved: &Exported) -> anyhow::Result<()> {
    let Exported { entries, bytes, position } = *moved;
    let up_to = if position == 0 { String::new() } else { format!(", up to position {position}") };
    writeln!(io::stderr(), "{what} {entries} entries, {bytes} bytes{up_to}")?;
    Ok(())
}
