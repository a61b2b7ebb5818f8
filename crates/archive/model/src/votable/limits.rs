//! Bounds of the VOTable reader, each with its unit, and the sizes of the writer's buffers.

/// Most elements open at once.
pub const DEPTH: usize = 64;
/// Most FIELD elements of a table.
pub const FIELDS: usize = 10_000;
/// Most bytes of one tag with its attributes.
pub const TAG_BYTES: usize = 1 << 20;
/// Most bytes of one cell, as text or as binary.
pub const CELL_BYTES: usize = 16 << 20;
/// Most bytes of one row, as text or as binary.
pub const ROW_BYTES: usize = 64 << 20;
/// A batch ends with the row in which its values pass this many bytes.
pub const BATCH_BYTES: usize = 8 << 20;
/// Most INFO elements that are kept; further ones are passed over.
pub const INFOS: usize = 1_000;
/// Most bytes of all INFO and DESCRIPTION elements that are kept.
pub const TEXT_BYTES: usize = 4 << 20;
/// Most dimensions of an array.
pub const DIMENSIONS: usize = 16;
/// Most TABLE elements whose columns are remembered for `<TABLE ref="...">`.
pub const TABLES: usize = 256;
/// Most bytes of a value quoted in a message.
pub const QUOTED_BYTES: usize = 64;
/// Most items of a fixed array, and most characters of a fixed string, that the writer declares as such: each NULL
/// takes the room of all of them.
pub const FIXED_ITEMS: usize = 16 << 10;

/// Bytes of binary data in one line of base64: a multiple of three, so that lines need no padding.
pub(super) const LINE_BYTES: usize = 768;
/// Binary rows are turned into base64 when this many bytes have gathered: small enough to stay in the first cache.
pub(super) const GATHER_BYTES: usize = 12 << 10;

const _: () = assert!(LINE_BYTES.is_multiple_of(6) && GATHER_BYTES >= LINE_BYTES);
const _: () = assert!(CELL_BYTES <= ROW_BYTES && ROW_BYTES + BATCH_BYTES < i32::MAX as usize);
