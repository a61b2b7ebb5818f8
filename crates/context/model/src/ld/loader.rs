//! From a context as written to an active one, without doing any I/O: the loader says which documents it
//! needs, somebody fetches them, and when none is missing the parts are merged in order.

use std::sync::Arc;

use super::context::{Announcement, Context, Map};
use super::core::{CoreVersion, Cores};
use super::define::Builder;
use super::error::ContextError;
use super::limits::{MAX_DOCUMENTS, MAX_PIECES};
use super::local::{LocalContext, Piece};

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Supply these documents; the order does not matter.
    Need(Vec<Box<str>>),
    /// Call [`Loader::finish`].
    Ready,
}

/// See the module.
#[derive(Debug)]
pub struct Loader {
    root: Arc<LocalContext>,
    documents: Map<Box<str>, Arc<LocalContext>>,
}

impl Loader {
    /// A loader for `root`.
    pub fn new(root: Arc<LocalContext>) -> Loader {
        Loader { root, documents: Map::default() }
    }

    /// The documents that are referred to and not supplied yet.
    pub fn step(&self) -> Result<Step, ContextError> {
        let mut missing: Vec<Box<str>> = Vec::new();
        for document in std::iter::once(&self.root).chain(self.documents.values()) {
            for url in document.remotes() {
                if !self.documents.contains_key(url) && !missing.iter().any(|known| **known == *url) {
                    missing.push(url.into());
                }
            }
            if self.documents.len() + missing.len() > MAX_DOCUMENTS {
                return Err(ContextError::TooManyDocuments);
            }
        }
        Ok(if missing.is_empty() { Step::Ready } else { Step::Need(missing) })
    }

    /// Hands over the document at `url`.
    pub fn supply(&mut self, url: &str, document: Arc<LocalContext>) {
        self.documents.insert(url.into(), document);
    }

    /// Merges all parts. The core is the version that the context names last, or `fallback` when it names none;
    /// wherever it stands, it counts as the last one (4.4).
    ///
    /// # Panics
    /// When a document is missing: [`Loader::step`] has not answered [`Step::Ready`].
    pub fn finish(
        &self,
        cores: &Cores,
        fallback: CoreVersion,
        announcement: Announcement,
    ) -> Result<Context, ContextError> {
        let mut plan = Plan { loader: self, parts: Vec::new(), pieces: 0, core: fallback, open: Vec::new() };
        plan.flatten(&self.root)?;
        let core = cores.table(plan.core);
        let mut builder = Builder::new(core);
        for piece in plan.parts {
            match piece {
                Piece::Reset => builder.reset()?,
                Piece::Terms(terms) => builder.apply(terms)?,
                Piece::Core(_) | Piece::Remote(_) => {}
            }
        }
        Context::new(Some(core.clone()), builder.finish(), announcement).check()
    }
}

/// The pieces of all documents in the order in which they count.
struct Plan<'l> {
    loader: &'l Loader,
    parts: Vec<&'l Piece>,
    /// Pieces seen, also those that only refer to others.
    pieces: usize,
    core: CoreVersion,
    /// The documents around the piece at hand.
    open: Vec<&'l str>,
}

impl<'l> Plan<'l> {
    /// Recursion goes as deep as documents nest, which their number bounds.
    fn flatten(&mut self, local: &'l LocalContext) -> Result<(), ContextError> {
        for piece in &local.pieces {
            self.pieces += 1;
            if self.pieces > MAX_PIECES {
                return Err(ContextError::TooManyPieces);
            }
            match piece {
                Piece::Core(version) => self.core = *version,
                Piece::Remote(url) => self.include(url)?,
                Piece::Reset | Piece::Terms(_) => self.parts.push(piece),
            }
        }
        Ok(())
    }

    fn include(&mut self, url: &'l str) -> Result<(), ContextError> {
        if self.open.contains(&url) {
            return Err(ContextError::Cycle(url.into()));
        }
        self.open.push(url);
        let document = self.loader.documents.get(url).expect("finish is called when no document is missing");
        self.flatten(document)?;
        self.open.pop();
        Ok(())
    }
}
