//! Tiles and pages of the index `USING bloom_filter`, as bytes: no PostgreSQL in it.
//!
//! A heap is divided into **ranges** of neighbouring pages, and each range has a Bloom filter of the elements in it. A
//! lookup must not read all of these filters. So the filters of up to 128 neighbouring ranges form a **tile**. They are
//! transposed: the bits for the same position are side by side, so that one page answers for all of the ranges. A level
//! above has a filter for each tile.
//!
//! ```text
//! level 1      ┌──────────── tile ────────────┐          slot = tile of level 0
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
//! | `level` | the levels, and limits |
//! | `tile` | where an element's bits are; probing a page, and what to change in it |
//! | `rate` | the rates of the levels, and the pages that they need |
//! | `directory` | where the tiles are: runs of them |
//! | `meta` | the directory as bytes, read with the one check |
//! | `fill` | estimates from the bits of a tile |
//! | `grow` | new tiles for ranges that are appended |
//! | `build`, `gather` | an index from ranges in order, in one pass |
//! | `search` | lookups, and the pages that an insertion locks |
//! | `inspect` | what the index promises and holds, and what a lookup costs |
//! | `memory` | an index in memory, for tests (feature `testing`) |
//!
//! docs/format.md has the bytes in its section 13.
//!
//! # For the access method
//!
//! | to | it calls |
//! |---|---|
//! | build | [`Build::range`] for each range, [`Build::finish`]; [`Sink`] takes the pages; [`Directory::write_meta`] |
//! | read the directory | [`Directory::read`]; later [`Chain::is_current`] on the metapage |
//! | insert | [`Directory::places`]: at most one page of each level. [`Places`] has the steps and the order of locks |
//! | add a tile | [`Directory::grow`], if `places` returns `None`: changes the metapage and perhaps a directory page |
//! | look up | [`Directory::search`]; one share lock at a time, which [`Pages::with`] takes |
//! | plan, inspect | [`Directory::expectation`], [`Directory::survey`] |
//!
//! Why "no" is certain: bits are only ever set; tiles never move; a directory that was read stays true, and lacks at
//! most what was added later; a page without bits, or after the end of the file, was never written, so it has no
//! elements.
//!
//! # Figures
//!
//! By `cargo run --release -p pg_bloom_core --example index_figures`: 65 rows per page, 8 pages per range, all elements
//! different, the default rate of 2e-5. Pages include the metapage. "Ranges beside" is how many ranges a lookup of a
//! present key finds besides its own: those of its tile at the rate of level 0, all others at the rate of the index.
//!
//! | rows | | bytes per row | pages, absent key | expected | rate | ranges beside | runs |
//! |---:|---|---:|---:|---:|---:|---:|---:|
//! | 60,000 | built | 3.96 | 2.00 | 2.00 | 1.5e-5 | 0.002 | 1 |
//! | | appended | 4.23 | 5.00 | 5.00 | 1.4e-5 | 0.002 | 3 |
//! | 600,000 | built | 4.06 | 3.09 | 3.11 | 1.4e-5 | 0.18 | 3 |
//! | | appended | 3.51 | 8.06 | 8.06 | 1.4e-5 | 0.13 | 6 |
//! | 6,000,000 | built | 3.16 | 3.94 | 3.97 | 1.4e-5 | 0.33 | 4 |
//! | | appended | 3.55 | 11.92 | 11.94 | 1.4e-5 | 0.33 | 12 |
//! | 60,000,000 | built | 3.08 | 18.44 | 18.59 | 1.4e-5 | 1.80 | 17 |
//! | | appended | 3.24 | 27.49 | 27.55 | 1.4e-5 | 1.82 | 26 |
//!
//! For heaps of more than about 5 GB, 16 or 32 pages per range are better: 60 million rows are 902 tiles, of which
//! level 1 reports 9.5 wrongly; with 32 pages a quarter of that.
//!
//! Six million rows are built in 0.7 s and appended in 5.7 s. A lookup of an absent key takes 1.1 µs in an index that
//! was built, 2.8 µs in one that was appended. All of this is in memory, with the element already hashed. An added row
//! changes 11.1 bytes of two pages, each with five bytes of WAL.

mod build;
mod directory;
mod fill;
mod gather;
mod grow;
mod inspect;
mod level;
#[cfg(any(test, feature = "testing"))]
pub mod memory;
mod meta;
mod rate;
mod search;
mod tile;

pub use crate::index::chain::{Chain, META_PAGE};
pub use crate::index::page::{
    Damage, Defect, PAGE_HEADER_BYTES, PAGE_ID, PAGE_VERSION, PageKind, PageNumber, PageSize, Pages, RunProblem,
    SPECIAL_BYTES, Sink, Special,
};
pub use build::Build;
pub use directory::{Directory, Options, Run};
pub use fill::Fill;
pub use grow::{Growth, next_width};
pub use inspect::{Expectation, Survey};
pub use level::{Level, MAX_HASHES, RANGES_ALONE};
pub use rate::{
    DEFAULT_FPR, MAX_FPR, MAX_PART_FPR, MIN_FPR, Rates, Target, check_fpr, may_stay, mean_rate, pages_for, split,
    typical,
};
pub use search::Places;
pub use tile::{Deltas, MAX_WIDTH, Mark, Probe, Slots, TileAddress, TileShape, Width, changes};

#[cfg(test)]
mod tests;
