//! Structured logs, on standard error alone: standard output belongs to answers.
//!
//! A person at a terminal gets lines of text; a collector behind a pipe gets one JSON object a line. The levels
//! mean: ERROR, a human must look; WARN, it went on but unexpectedly; INFO, the life of the process; DEBUG, the
//! life of a request. A client's mistake is neither of the first two.

use std::io::{self, IsTerminal};

use serde::Deserialize;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{Kind, Kinded};

/// The form of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    /// Text.
    Pretty,
    /// One JSON object a line.
    Json,
}

impl Kinded for Format {
    const KIND: Kind = Kind::Choice(&["auto", "pretty", "json"]);
}

crate::section! {
    /// What is logged, and how.
    pub struct Options in "log" {
        /// The least level that is written; directives such as `info,trifid_base_web=debug` differ by module.
        level: String = "info" in "level or directives",
        /// The form of a line; `auto` writes text on a terminal and JSON elsewhere.
        format: Format = "auto",
    }
}

/// Why logging could not begin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `log.level` is not understood.
    #[error("`log.level` is neither a level nor a list of directives: {0}")]
    Level(String),
    /// Something else in this process logs already.
    #[error("logging was set up twice")]
    Twice,
}

/// Begins to log, for the whole process and once.
pub fn init(options: &Options) -> Result<(), Error> {
    let filter = EnvFilter::builder()
        .parse(&options.level)
        .map_err(|error| Error::Level(format!("{} ({error})", options.level)))?;
    let terminal = io::stderr().is_terminal();
    let lines = fmt().with_env_filter(filter).with_writer(io::stderr);
    let begun = match options.format {
        Format::Json => lines.json().flatten_event(true).finish().try_init(),
        Format::Auto if !terminal => lines.json().flatten_event(true).finish().try_init(),
        Format::Auto | Format::Pretty => lines.with_ansi(terminal).finish().try_init(),
    };
    begun.map_err(|_| Error::Twice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_info_and_auto() {
        let options = Options::default();
        assert_eq!((options.level.as_str(), options.format), ("info", Format::Auto));
    }

    #[test]
    fn a_level_that_is_none_is_refused() {
        let options = Options { level: "info,web=lots".to_owned(), format: Format::Json };
        let message = init(&options).unwrap_err().to_string();
        assert!(message.contains("info,web=lots"), "{message}");
    }
}
