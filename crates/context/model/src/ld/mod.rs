//! JSON-LD contexts as far as NGSI-LD needs them (ETSI GS CIM 009 v1.9.1, 4.4 and 5.5.7; JSON-LD 1.1).
//!
//! The way: a document is parsed into a [`LocalContext`]; a [`Loader`] says which further documents it refers
//! to and merges all of them with the core into a [`Context`], which expands and compacts names. Nothing here
//! does I/O and everything is bounded ([`limits`]).
//!
//! What is left out on purpose: everything about values. NGSI-LD keeps property values as they are, and its
//! own members have fixed meanings, so type coercions, containers and languages in a user context change
//! nothing and are only checked for shape. `@base` and `@propagate` are passed over, `@import` is refused with
//! a hint, scoped contexts are refused because 5.5.7 says so, and a term with `@reverse` or null cannot be used.

mod context;
mod core;
mod define;
mod error;
mod iri;
mod keys;
pub mod limits;
mod loader;
mod local;
#[cfg(test)]
mod tests;

pub use context::{Announcement, Context};
pub use core::{CoreVersion, Cores, DEFAULT_VOCAB};
pub use error::{ContextError, NameError, TermError};
pub use iri::{is_absolute, is_http};
pub use loader::{Loader, Step};
pub use local::{LocalContext, parse_context, parse_document};

/// Parses `bytes` as a context document, merges it as far as it can be merged alone, and checks that every name
/// it defines survives the way to its IRI and back. The entry point of the fuzz target: any input is
/// answered, none panics. Yields the number of terms.
pub fn fuzz(bytes: &[u8]) -> Result<usize, ContextError> {
    // Immutable; made once because a fuzzer calls this thousands of times a second.
    static CORES: std::sync::LazyLock<Cores> = std::sync::LazyLock::new(Cores::new);
    let local = std::sync::Arc::new(parse_document(bytes, "http://fuzz.invalid/a/context.jsonld")?);
    let mut loader = Loader::new(local);
    if let Step::Need(urls) = loader.step()? {
        let empty = parse_document(b"{\"@context\":{}}", "http://fuzz.invalid/empty")?;
        let empty = std::sync::Arc::new(empty);
        urls.iter().for_each(|url| loader.supply(url, empty.clone()));
    }
    let announcement = Announcement::url("http://fuzz.invalid/a/context.jsonld");
    let context = loader.finish(&CORES, CoreVersion::LATEST, announcement)?;
    for name in context.terms() {
        let Ok(iri) = context.expand(name) else { continue };
        assert_eq!(
            context.expand(&context.compact(&iri)).as_deref(),
            Ok(&*iri),
            "compaction inverts expansion"
        );
    }
    Ok(context.len())
}
