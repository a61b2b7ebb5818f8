//! What a query may cost before anybody knows what it means. Each bound has a name here and a test.

/// Bytes of a query's text.
pub const BYTES: usize = 1 << 20;

/// Tokens of a query.
pub const TOKENS: u32 = 1 << 18;

/// How deep parentheses, subqueries, CASE, NOT and signs nest.
pub const DEPTH: u32 = 200;

/// What a subquery counts for in [`DEPTH`].
pub const SUBQUERY_DEPTH: u32 = 8;

/// The height of a tree that the parser makes: nesting, and terms in one chain of `+ - * /`, of joins or of set
/// operations. (Chains of AND, OR and `||` are flat, and any list is.)
pub const HEIGHT: u32 = 256;

/// Characters of the line that a message shows.
pub const EXCERPT: usize = 100;

/// Characters of it before the place.
pub const EXCERPT_BEFORE: usize = 60;

/// Bytes of a word of the query that a message repeats.
pub const QUOTED_WORD: usize = 40;

/// Letters of the longest word that a suggestion is sought for.
pub const SUGGEST_WORD: usize = 64;

const _: () = assert!(EXCERPT_BEFORE < EXCERPT);
const _: () = assert!(BYTES < u32::MAX as usize, "places are 32 bits wide");

/// Bytes of a unit of measure.
pub const UNIT_BYTES: usize = 256;

/// How deep parentheses nest in a unit of measure.
pub const UNIT_DEPTH: u32 = 16;
