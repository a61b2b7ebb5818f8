//! Why a file store does not open, or an export or import does not succeed.

use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};

use trifid_base_log::OpenError;

/// See the module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The journal does not open.
    #[error("the journal does not open")]
    Journal(#[from] OpenError),
    /// A file is damaged. Restore it from a copy.
    #[error("{} is damaged at byte {offset}: {what}", file.display())]
    Damaged {
        /// The file, relative to the data directory.
        file: PathBuf,
        /// The byte at which the damaged block or entry begins.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// A file was written by a version that this program does not know.
    #[error("{} is written in a format that this version does not read: {what}", file.display())]
    Unsupported {
        /// The file, relative to the data directory.
        file: PathBuf,
        /// What is unknown.
        what: String,
    },
    /// What a file holds does not fit into the store.
    #[error("{} holds at byte {offset} what the store does not take", file.display())]
    Content {
        /// The file, relative to the data directory.
        file: PathBuf,
        /// The byte at which the block begins.
        offset: u64,
        /// The store's reason.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// An import wants a directory without entities.
    #[error("the data directory holds entities already; an import wants an empty one")]
    NotEmpty,
    /// The disk failed.
    #[error("{action} {} failed", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path, relative to the data directory.
        path: PathBuf,
        /// The disk's answer.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// Whether it says that a file is not there (any more).
    pub(super) fn is_gone(&self) -> bool {
        let gone = |source: &io::Error| source.kind() == io::ErrorKind::NotFound;
        match self {
            Error::Io { source, .. } | Error::Journal(OpenError::Io { source, .. }) => gone(source),
            _ => false,
        }
    }
}

/// For `map_err`.
pub(super) fn io_error(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
    let path = path.as_ref().to_owned();
    move |source| Error::Io { action, path, source }
}
