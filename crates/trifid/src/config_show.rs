//! `trifid config show`.

use std::io::Write as _;

use clap::Args;

use crate::cli::Common;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Put each key's meaning and unit above it
    #[arg(long)]
    explain: bool,
}

pub(crate) fn run(common: &Common, arguments: &Arguments) -> anyhow::Result<()> {
    let config = common.resolve(Vec::new())?;
    write!(std::io::stdout(), "{}", config.show(arguments.explain))?;
    Ok(())
}
