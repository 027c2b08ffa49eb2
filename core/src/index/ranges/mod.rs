//! The index over ranges of a table's pages, as bytes.
//!
//! A heap is divided into **ranges** of neighbouring pages, and each range has a Bloom filter of
//! the keys in it. A lookup must not read all of these filters. So the filters of up to 128
//! neighbouring ranges form a **tile**. They are transposed: the bits for the same position are
//! side by side, so that one page answers for all of the ranges. A level above has a filter for
//! each tile, and a third one for each tile of the second.
//!
//! ```text
//! level 2      ┌───────── tile ──────────┐               slot = tile of level 1, from some 34 million rows on
//!              └─│───────────────────────┘
//!                └┐
//! level 1      ┌──▼───────── tile ────────────┐          slot = tile of level 0, from 512 ranges on
//!              │ 0   1   2   3   …        127 │          one page is read: which tiles may have it?
//!              └─│───│───│────────────────────┘
//!                │   │   └──────────────┐
//! level 0      ┌─▼─┐ ┌─▼─┐          ┌─▼─ tile ───┐       slot = range
//!              └───┘ └───┘          │ 0 1 2 … 127│       one page of each of these: which ranges?
//!                                   └─│─────────│┘
//! heap         ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░       8 pages per range
//! ```
//!
//! | file | what it knows |
//! |---|---|
//! | `split` | which rows a range has: those of some pages, or some lines of a page |
//! | `shape` | the levels; how many pages, columns and slots a tile has, and which columns are a slot's |
//! | `tile` | where a key's bits are; probing a page, and what to change in it |
//! | `rate` | what is promised, the rates of the levels, and the pages that they need |
//! | `directory` | where the tiles are: runs of them; and where a key's bits belong on all levels |
//! | `meta` | the directory as bytes, and the checks of what was read from disk |
//! | `fill` | estimates from the bits of a tile |
//! | `grow` | new tiles for ranges that are appended |
//! | `build`, `pending`, `column_bits` | an index from ranges in order, in one pass; what it keeps until tiles are written |
//! | `search` | lookups |
//! | `inspect` | what the index promises and holds, and what a lookup costs |
//! | `memory` | an index in memory, for tests (feature `testing`) |
//!
//! Why "no" is certain: bits are only ever set; tiles never move; a directory that was read stays
//! true, and lacks at most what was added later, for rows that no lookup before could see; a range
//! without a tile, and a page without bits or after the end of the file, has no keys.
//!
//! Why three levels: with them a lookup of an absent key reads 6.6 index pages at a billion rows,
//! with two 132 (the example `index_figures`). Two levels that read as few need more bits, and 128
//! pages per range instead of 8.

mod build;
mod column_bits;
mod directory;
mod fill;
mod grow;
mod inspect;
#[cfg(any(test, feature = "testing"))]
#[path = "tests/memory.rs"]
#[allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "only tests use it"
)]
pub mod memory;
mod meta;
mod pending;
mod rate;
mod search;
mod shape;
mod split;
mod tile;

pub use crate::index::chain::{Chain, IndexDirectory, META_PAGE};
pub use crate::index::page::{Damage, PageKind, PageNumber, PageSink, PageSize, Pages, Special};
pub use build::{Build, width_for_slots};
pub use directory::{Directory, Options, TileRun};
pub use fill::Fill;
pub use inspect::{Expectation, Survey, mean_keys_per_range};
pub use rate::{
    MAX_FPR_MANY_KEYS, MAX_FPR_ONE_KEY, MIN_FPR, SlotTarget, complete_columns, mean_rate,
    rate_of_level, sized_for,
};
pub use search::{
    announce_search, estimate_ranges, sample_ranges, search, search_alternatives, search_condition,
};
pub use shape::{
    Level, MAX_HASHES, MAX_PAGES_PER_RANGE, MAX_WIDTH, MOST_ALWAYS_PROBED_SLOTS, TileShape, Width,
};
pub use split::{MAX_RANGES_PER_PAGE, PageContent, Split};
pub use tile::{Mark, SlotAddress, TileAddress, TileProbe, changes};

#[cfg(test)]
mod tests;
