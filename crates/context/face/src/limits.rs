//! Every bound of the HTTP binding, with its unit.

/// Elements of a page when the client names no `limit` (5.5.9).
pub(crate) const PAGE_ELEMENTS_DEFAULT: usize = 20;

/// Elements of a page at most; a greater `limit` is refused rather than cut.
pub(crate) const PAGE_ELEMENTS_MAX: usize = 1000;

/// Bytes of entities in one answer: a page of large ones, or one that repeats a large one, is held in memory while it
/// is sent.
pub(crate) const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Elements that `offset` may skip: skipping costs a step each.
pub(crate) const OFFSET_ELEMENTS_MAX: usize = 10_000_000;

/// Name and value pairs in one query string.
pub(crate) const QUERY_PAIRS_MAX: usize = 64;

/// Members of one list parameter (`id`, `attrs`, `pick`, `datasetId` and so on).
pub(crate) const LIST_MEMBERS_MAX: usize = 1000;

/// Links in the `Link` headers of one request.
pub(crate) const LINKS_MAX: usize = 16;

/// Media ranges in the `Accept` headers of one request.
pub(crate) const MEDIA_RANGES_MAX: usize = 32;

/// Hops of linked entity retrieval (`joinLevel`, 4.5.23).
pub(crate) const JOIN_LEVELS_MAX: usize = 10;

/// Linked entities that one answer may look up (4.5.23).
pub(crate) const LINKED_ENTITIES_MAX: usize = 10_000;
