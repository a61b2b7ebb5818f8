//! How a command reaches its server: address, trust, token.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use trifid_stream_client::{Client, ClientOptions, Trust};

use crate::cli::{Common, TOKEN};
use crate::settings::Root;

/// Where the server is, and whom to believe that he is it.
#[derive(Args)]
pub(super) struct Reach {
    /// The server: quic://, tls:// or trifid:// (whichever of both answers)
    #[arg(long, value_name = "URL", default_value = "quic://localhost:7443")]
    server: String,
    /// The certificate to trust, or the authority that signed it [default: that of the data directory, if it has one]
    #[arg(long, value_name = "FILE", conflicts_with = "fingerprint")]
    ca: Option<PathBuf>,
    /// The SHA-256 of the certificate to trust, as the server prints it when it starts
    #[arg(long, value_name = "HEX")]
    fingerprint: Option<String>,
    /// A file with the token [default: the environment variable TRIFID_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The tenant to work in
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
}

impl Reach {
    /// Connects, and is greeted.
    pub(super) async fn connect(&self, common: &Common) -> anyhow::Result<Client> {
        let mut options = ClientOptions::new(&self.server)?.trust(self.trust(common)?);
        options.name = concat!("trifid/", env!("CARGO_PKG_VERSION")).to_owned();
        if let Some(token) = self.token()? {
            options = options.token(token);
        }
        if let Some(tenant) = &self.tenant {
            options = options.tenant(tenant)?;
        }
        Client::connect(options).await.with_context(|| format!("cannot reach {}", self.server))
    }

    fn trust(&self, common: &Common) -> anyhow::Result<Trust> {
        if let Some(ca) = &self.ca {
            return Ok(Trust::File(ca.clone()));
        }
        if let Some(fingerprint) = &self.fingerprint {
            return Ok(Trust::fingerprint(fingerprint)?);
        }
        let data_dir = common.resolve(Vec::new())?.section::<Root>(Root::SECTION)?.data_dir;
        let made = data_dir.join(trifid_stream_face::development::CERTIFICATE);
        Ok(if made.is_file() { Trust::development(data_dir) } else { Trust::default() })
    }

    fn token(&self) -> anyhow::Result<Option<String>> {
        match &self.token_file {
            None => Ok(std::env::var(TOKEN).ok().filter(|token| !token.is_empty())),
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
            }
        }
    }
}
