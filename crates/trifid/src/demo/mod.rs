//! `trifid demo`: serve on loopback with sample data behind every door, and print what to try.

#[cfg(feature = "context")]
mod city;
#[cfg(feature = "stream")]
mod harbour;
#[cfg(feature = "context")]
mod life;
#[cfg(feature = "archive-datafusion")]
mod sky;
#[cfg(feature = "context")]
mod world;

use std::io::Write as _;
use std::path::Path;

use clap::Args;
use trifid_base_runtime::config::Flag;

use crate::cli::Common;
use crate::house::{self, House};

/// The doors that the demo opens.
const DOORS: &[&str] = &[
    #[cfg(feature = "context")]
    "context",
    #[cfg(feature = "stream")]
    "stream",
    #[cfg(feature = "archive-datafusion")]
    "archive",
];

#[derive(Args)]
pub(crate) struct Arguments {
    /// The port of loopback to serve HTTP on; 0 takes free ports, for streams too
    #[arg(long, default_value_t = 9090)]
    port: u16,
}

pub(crate) fn run(common: &Common, arguments: &Arguments) -> anyhow::Result<()> {
    let address = format!("127.0.0.1:{}", arguments.port);
    // Nothing of the demo outlives it, and nothing of an installation is touched.
    let scratch = std::env::temp_dir().join(format!("trifid-demo-{}", std::process::id()));
    let mut flags = vec![
        Flag::named("demo --port", "http.listen", address),
        Flag::named("demo", "data_dir", scratch.display().to_string()),
        Flag::named("demo", "doors", DOORS.join(",")),
        #[cfg(feature = "stream")]
        Flag::named("demo", "stream.auto_create", "true"),
        #[cfg(feature = "context")]
        Flag::named("demo", "context.store", "memory"),
        #[cfg(feature = "archive")]
        Flag::named("demo", "archive.jobs", "memory"),
    ];
    if cfg!(feature = "stream") && arguments.port == 0 {
        let free = ["stream.listen", "stream.kafka_listen"];
        flags.extend(free.map(|key| Flag::named("demo --port", key, "127.0.0.1:0")));
    }
    let config = common.resolve(flags)?;
    let served = house::run(&config, async |house| settle(house, &scratch).await);
    // Results that waited for slow readers, if there were any.
    let _ = std::fs::remove_dir_all(&scratch);
    served
}

/// Fills every door, and says what is behind it.
#[cfg_attr(not(feature = "stream"), allow(unused_variables))] // for doors
async fn settle(house: &mut House, scratch: &Path) -> anyhow::Result<()> {
    let mut text = String::new();
    #[cfg(feature = "context")]
    {
        text += &city::settle(house).await?;
    }
    #[cfg(feature = "stream")]
    {
        text += &harbour::settle(house, scratch.to_owned()).await?;
    }
    #[cfg(feature = "archive-datafusion")]
    {
        text += &sky::settle(house).await?;
    }
    text += "\nCtrl-C stops it.\n";
    write!(std::io::stdout(), "{text}")?;
    Ok(())
}
