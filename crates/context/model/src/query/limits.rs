//! The bounds of the query languages, in one place. What exceeds them is refused while it is read.

/// Greatest length in bytes of one parameter's text.
pub const MAX_TEXT: usize = 32 * 1024;
/// Greatest nesting of parentheses in `q`.
pub const MAX_DEPTH: usize = 32;
/// Greatest number of terms in `q`, of types in a type selection, of scopes in `scopeQ`.
pub const MAX_TERMS: usize = 512;
/// Greatest number of values in a list: of one `q` term, of ids, of datasetIds.
pub const MAX_LIST: usize = 2_000;
/// Greatest number of names in one attribute path, and of members in one trailing path.
pub const MAX_PATH: usize = 16;
/// Greatest number of relationships followed by one `q` term or one projection (4.5.23).
pub const MAX_HOPS: usize = 10;
/// Linked entities that one evaluation of a filter may look up before it gives up.
pub const MAX_LINKED: u32 = 1_000;
/// Work that one evaluation of `q` may do before it gives up; a unit is some tens of bytes looked at. A query of
/// many terms or long lists of values over a large array would otherwise take minutes for one entity.
pub const MAX_WORK: u32 = 1 << 20;
/// Greatest length in bytes of a regular expression.
pub const MAX_PATTERN: usize = 1_024;
/// Greatest size in bytes of a compiled regular expression, and of its run-time cache.
pub const MAX_PATTERN_PROGRAM: usize = 1 << 18;
/// Greatest number of members named by one projection, at all levels together.
pub const MAX_PROJECTION: usize = 512;
/// Greatest number of keys in `orderBy`.
pub const MAX_ORDER_TERMS: usize = 16;
/// Bytes of a text, object or array that take part in ordering.
pub const MAX_SORT_TEXT: usize = 1_024;
/// Greatest number of language ranges.
pub const MAX_LANGUAGES: usize = 64;
/// Greatest number of positions in a stored geometry.
pub const MAX_VERTICES: usize = 20_000;
/// Greatest number of positions in the reference geometry of a query.
pub const MAX_QUERY_VERTICES: usize = 2_000;
/// Greatest length in bytes of the `coordinates` or `orderFrom` text.
pub const MAX_COORDINATES: usize = 512 * 1024;
