//! What can be configured of the binding, and what it runs on.

use std::time::Duration;

use serde::Deserialize;
use trifid_archive_model::votable::Serialization;
use trifid_base_runtime::config::{Kind, Kinded};
use trifid_base_runtime::section;
use trifid_base_runtime::units::{Size, Span};

use crate::origin::Origin;

/// How the rows of a VOTable are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Carried {
    /// BINARY2: exact, and half the size.
    Binary2,
    /// TABLEDATA: people can read it.
    TableData,
}

impl Kinded for Carried {
    const KIND: Kind = Kind::Choice(&["binary2", "tabledata"]);
}

section! {
    /// The HTTP binding of the archive door.
    pub struct Options in "archive" {
        /// The name of the service, on its page and in its documents.
        title: String = "Trifid archive",
        /// Where clients reach the door, such as https://archive.example/tap, where that does not follow from the host
        /// that they use: behind a proxy that speaks TLS or changes the path.
        public_url: Option<String> = "",
        /// Rows of a result where the client sets no MAXREC.
        output_default: u64 = "200000" in "rows",
        /// Rows of a result at most, whatever the client says.
        output_limit: u64 = "20000000" in "rows",
        /// How long a synchronous query may run.
        sync_timeout: Span = "10m",
        /// Rows of an uploaded table at most.
        upload_rows: u64 = "1000000" in "rows",
        /// Bytes of a request with uploads at most, and of a table fetched from elsewhere.
        upload_bytes: Size = "64MiB",
        /// Hosts that tables may be uploaded from by URL; `*` is any that the egress guard lets through, none turns it
        /// off, although TAP wants http.
        upload_hosts: Vec<String> = "*",
        /// How long fetching an uploaded table may take.
        upload_timeout: Span = "60s",
        /// How rows are carried where a client asks for a VOTable without saying how.
        votable: Carried = "binary2",
        /// Whether results are compressed for clients that accept it.
        compression: bool = "true",
        /// How long a client may keep its query waiting before its result goes to disk.
        spool_after: Span = "1s",
        /// What results that wait on disk for slow clients may take together.
        spool_limit: Size = "4GiB",
        /// How long a client may wait for a change of its job in one request; keep it below http.request_timeout.
        wait_limit: Span = "50s",
    }
}

/// Why the options cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// The public URL.
    #[error("archive.public_url: `{0}` is not an http or https URL without query and fragment")]
    PublicUrl(String),
    /// The limits of rows.
    #[error("archive.output_default must not exceed archive.output_limit")]
    Output,
    /// A host.
    #[error("archive.upload_hosts: `{0}` is neither a host's name nor `*`")]
    Host(String),
}

/// Options that hold together.
#[derive(Clone, Debug)]
pub struct Resolved {
    pub(crate) title: String,
    pub(crate) origin: Origin,
    pub(crate) output_default: u64,
    pub(crate) output_limit: u64,
    pub(crate) sync_timeout: Duration,
    pub(crate) upload: Upload,
    pub(crate) serialization: Serialization,
    pub(crate) compression: bool,
    pub(crate) spool_after: Duration,
    pub(crate) spool_limit_bytes: u64,
    pub(crate) wait_limit: Duration,
}

/// What may be uploaded.
#[derive(Clone, Debug)]
pub(crate) struct Upload {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) timeout: Duration,
    pub(crate) hosts: Hosts,
}

/// Where tables may be fetched from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hosts {
    /// Nowhere.
    None,
    /// Anywhere that the egress guard lets through.
    Any,
    /// These.
    Named(Vec<String>),
}

impl Hosts {
    /// Whether this host is one of them.
    pub(crate) fn contains(&self, host: &str) -> bool {
        match self {
            Self::None => false,
            Self::Any => true,
            Self::Named(names) => names.iter().any(|name| name.eq_ignore_ascii_case(host)),
        }
    }
}

impl Options {
    /// Checks the options; `is_tls` tells whether the listener speaks TLS.
    pub fn resolve(self, is_tls: bool) -> Result<Resolved, OptionsError> {
        if self.output_default > self.output_limit {
            return Err(OptionsError::Output);
        }
        Ok(Resolved {
            origin: origin(self.public_url, is_tls)?,
            title: self.title,
            output_default: self.output_default,
            output_limit: self.output_limit,
            sync_timeout: self.sync_timeout.into(),
            upload: Upload {
                rows: self.upload_rows,
                bytes: self.upload_bytes.0,
                timeout: self.upload_timeout.into(),
                hosts: hosts(self.upload_hosts)?,
            },
            serialization: match self.votable {
                Carried::Binary2 => Serialization::Binary2,
                Carried::TableData => Serialization::TableData,
            },
            compression: self.compression,
            spool_after: self.spool_after.into(),
            spool_limit_bytes: self.spool_limit.0,
            wait_limit: self.wait_limit.into(),
        })
    }
}

fn origin(public_url: Option<String>, is_tls: bool) -> Result<Origin, OptionsError> {
    let Some(url) = public_url else { return Ok(Origin::Host { is_tls }) };
    let fits = url.parse::<http::Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none() && !url.contains('#')
    });
    if !fits {
        return Err(OptionsError::PublicUrl(url));
    }
    Ok(Origin::Fixed(url.trim_end_matches('/').to_owned()))
}

fn hosts(names: Vec<String>) -> Result<Hosts, OptionsError> {
    if names.is_empty() {
        return Ok(Hosts::None);
    }
    if names.iter().any(|name| name == "*") {
        return Ok(Hosts::Any);
    }
    let is_name =
        |name: &String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte));
    match names.iter().find(|name| !is_name(name)) {
        Some(strange) => Err(OptionsError::Host(strange.clone())),
        None => Ok(Hosts::Named(names)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(change: impl FnOnce(&mut Options)) -> Result<Resolved, OptionsError> {
        let mut options = Options::default();
        change(&mut options);
        options.resolve(false)
    }

    #[test]
    fn the_defaults_hold_together() {
        let resolved = resolve(|_| ()).unwrap();
        assert_eq!(resolved.origin, Origin::Host { is_tls: false });
        assert_eq!(resolved.upload.hosts, Hosts::Any, "the guard decides");
        assert_eq!(Options::default().resolve(true).unwrap().origin, Origin::Host { is_tls: true });
    }

    #[test]
    fn the_public_url_is_one() {
        let url = |url: &str| resolve(|options| options.public_url = Some(url.to_owned()));
        let fixed = url("https://a.example/tap/").unwrap().origin;
        assert_eq!(fixed, Origin::Fixed("https://a.example/tap".into()));
        for wrong in ["a.example/tap", "ftp://a/tap", "https://a/tap?x=1", "https://a/tap#x", "/tap"] {
            assert!(matches!(url(wrong), Err(OptionsError::PublicUrl(_))), "{wrong}");
        }
    }

    #[test]
    fn contradictions_are_named() {
        assert!(matches!(resolve(|options| options.output_limit = 1), Err(OptionsError::Output)));
        let strange = resolve(|options| options.upload_hosts = vec!["https://a.example".into()]);
        assert!(matches!(strange, Err(OptionsError::Host(_))));
    }

    #[test]
    fn hosts_ignore_case() {
        let named = hosts(vec!["Data.example".into()]).unwrap();
        assert!(named.contains("data.EXAMPLE") && !named.contains("evil.example"));
        assert!(hosts(vec!["a".into(), "*".into()]).unwrap().contains("anything"));
        assert!(!hosts(Vec::new()).unwrap().contains("anything"));
    }
}
