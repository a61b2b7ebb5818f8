//! What a query may cost before anybody knows what it means. Each bound has a name here and a test.

/// Bytes of a query's text.
pub const BYTES: usize = 1 << 20;

/// Tokens of a query.
pub const TOKENS: u32 = 1 << 18;

/// How deep parentheses, calls, subqueries, CASE, NOT and signs nest. A level takes up to 8 KiB of stack to read and
/// print in an unoptimised build and 2.5 KiB in an optimised one, so that all of them fit into a thread's 2 MiB twice.
pub const DEPTH: u32 = 128;

/// What a subquery counts for in [`DEPTH`].
pub const SUBQUERY_DEPTH: u32 = 4;

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

/// Tables, derived tables and uses of CTEs in one FROM.
pub const RELATIONS: usize = 64;

/// Tables in a whole query, those of a CTE counted wherever it is used.
pub const TABLES: usize = 256;

/// How deep queries stand in each other, those of a CTE counted where it is used.
pub const QUERY_DEPTH: usize = 32;

/// Columns of a select list, `*` spelled out.
pub const ITEMS: usize = 10_000;

/// Keys of one GROUP BY or ORDER BY.
pub const KEYS: usize = 1_000;

/// Different aggregates of one select.
pub const AGGREGATES: usize = 4_096;

/// Queries of one WITH.
pub const CTES: usize = 256;

/// Nodes of the expressions of a resolved query. Only what is written once and computed twice can make so many: the
/// operand of a CASE, an alias, a position taken apart.
pub const NODES: usize = TOKENS as usize * 2;

/// Characters that a CAST makes at most.
pub const CAST_LENGTH: i64 = 1 << 20;
