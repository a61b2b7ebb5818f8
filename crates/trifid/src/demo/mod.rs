//! `trifid demo`: serve on loopback with sample data behind every door, and print what to try.

#[cfg(feature = "context")]
mod city;
#[cfg(feature = "context")]
mod life;
#[cfg(feature = "archive-datafusion")]
mod sky;
#[cfg(feature = "context")]
mod world;

use std::io::Write as _;

use clap::Args;
use trifid_base_runtime::config::Flag;

use crate::cli::Common;
use crate::house::{self, House};

/// The doors that the demo opens.
const DOORS: &str = match (cfg!(feature = "context"), cfg!(feature = "archive-datafusion")) {
    (true, true) => "context,archive",
    (true, false) => "context",
    (false, _) => "archive",
};

#[derive(Args)]
pub(crate) struct Arguments {
    /// The port of loopback to serve on
    #[arg(long, default_value_t = 9090)]
    port: u16,
}

pub(crate) fn run(common: &Common, arguments: &Arguments) -> anyhow::Result<()> {
    let address = format!("127.0.0.1:{}", arguments.port);
    // Nothing of the demo outlives it, and nothing of an installation is touched.
    let scratch = std::env::temp_dir().join(format!("trifid-demo-{}", std::process::id()));
    let flags = vec![
        Flag::named("demo --port", "http.listen", address),
        Flag::named("demo", "data_dir", scratch.display().to_string()),
        Flag::named("demo", "doors", DOORS),
        #[cfg(feature = "context")]
        Flag::named("demo", "context.store", "memory"),
        #[cfg(feature = "archive")]
        Flag::named("demo", "archive.jobs", "memory"),
    ];
    let config = common.resolve(flags)?;
    let served = house::run(&config, settle);
    // Results that waited for slow readers, if there were any.
    let _ = std::fs::remove_dir_all(&scratch);
    served
}

/// Fills every door, and says what is behind it.
async fn settle(house: &mut House) -> anyhow::Result<()> {
    let mut text = String::new();
    #[cfg(feature = "context")]
    {
        text += &city::settle(house).await?;
    }
    #[cfg(feature = "archive-datafusion")]
    {
        text += &sky::settle(house).await?;
    }
    text += "\nCtrl-C stops it.\n";
    write!(std::io::stdout(), "{text}")?;
    Ok(())
}
