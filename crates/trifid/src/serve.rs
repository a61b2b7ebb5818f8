//! `trifid serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use trifid_base_runtime::config::Flag;

use crate::cli::Common;
use crate::house;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Where to listen (http.listen)
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// The folder that holds everything durable (data_dir)
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
}

impl Arguments {
    fn flags(&self) -> Vec<Flag> {
        let listen = self.listen.map(|address| Flag::named("--listen", "http.listen", address.to_string()));
        let folder = self.data_dir.as_ref().map(|folder| folder.to_string_lossy().into_owned());
        let data_dir = folder.map(|folder| Flag::named("--data-dir", "data_dir", folder));
        listen.into_iter().chain(data_dir).collect()
    }
}

pub(crate) fn run(common: &Common, arguments: &Arguments) -> anyhow::Result<()> {
    let config = common.resolve(arguments.flags())?;
    house::run(&config, async |_| Ok(()))
}
