//! What can go wrong while measuring. A missed target is not an error: it is a result.

use crate::scanner::Fault;
use std::io;
use std::path::PathBuf;

/// Why a suite gave no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A server could not be started.
    #[error("{name} did not start: {reason}")]
    Start {
        /// Which server.
        name: &'static str,
        /// What happened, with the server's last words.
        reason: String,
    },
    /// A program that was to do its work and end did not.
    #[error("{name} failed: {reason}")]
    Failed {
        /// Which program.
        name: &'static str,
        /// What happened, with its last words.
        reason: String,
    },
    /// A connection failed.
    #[error("connection to {name}: {source}")]
    Connection {
        /// Which server.
        name: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// A response that the scanner cannot take.
    #[error("{name} sent a response that cannot be measured: {fault}")]
    Response {
        /// Which server.
        name: &'static str,
        /// What is wrong with it.
        fault: Fault,
    },
    /// A response that is not the expected one.
    #[error("{name} answered wrongly: {what}")]
    Wrong {
        /// Which server.
        name: &'static str,
        /// What was expected and what came.
        what: String,
    },
    /// No answer within the wait of `limits`.
    #[error("{name} did not answer within {seconds} s")]
    Silent {
        /// Which server.
        name: &'static str,
        /// The wait.
        seconds: u64,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The system refused something else that measuring needs.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The options contradict each other or the machine.
    #[error("{0}")]
    Options(String),
}

impl Error {
    /// For `map_err`: names what was being done.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::System { what, source }
    }

    /// For `map_err`: names the file.
    pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::File { path: path.to_owned(), source }
    }
}
