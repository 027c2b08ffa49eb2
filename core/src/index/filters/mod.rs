//! The index over a column of filters, as bytes: it finds the rows whose filters may have an
//! element.
//!
//! In filters of the same shape an element has the same block. So the filters of up to 127 rows
//! form a **tile**, in which block 0 of all of them comes first, then block 1 of all, and so on. A
//! lookup reads the one page with the element's block of 127 filters, instead of 127 places of the
//! table.
//!
//! ```text
//! filter of row    A        B        C                    page of a tile          row page
//!               ┌──────┐ ┌──────┐ ┌──────┐               ┌──────────────┐        ┌──────────────────┐
//!               │  0   │ │  0   │ │  0   │               │ A0  B0  C0 … │        │ slot 0: row of A │
//!               ├──────┤ ├──────┤ ├──────┤   ────────▶   ├──────────────┤        │ slot 1: row of B │
//!  element ───▶ │  1   │ │  1   │ │  1   │               │ A1  B1  C1 … │ ◀───   │ slot 2: row of C │
//!               ├──────┤ ├──────┤ ├──────┤               ├──────────────┤        │ …                │
//!               │  …   │ │  …   │ │  …   │               │ …            │        └──────────────────┘
//! ```
//!
//! | module | what it knows |
//! |---|---|
//! | `tile` | [`FilterGroup`]: filters that share tiles; [`Tile`]: where a slot's blocks are; probing a page |
//! | `row_page` | [`RowPage`]: the rows of the slots, and which slots are free |
//! | `directory` | [`Directory`]: where the tiles are |
//! | `record` | groups and tiles as bytes, and their checks |
//! | `meta` | reading the directory from its pages, and its metapage |
//! | `grow` | new tiles |
//! | `build` | an index from filters, in one pass |
//! | `search` | lookups |
//! | `memory` | an index in memory, for tests (feature `testing`) |
//!
//! | a filter | its slot has | a lookup finds it |
//! |---|---|---|
//! | of bits, `blocked` or `parquet` | its bits | if and only if the filter may have the element |
//! | that is a list | bits of its hashes, as many as these need | nearly so: it must be rechecked |
//! | of bits, `classic` | nothing | always, and it must be rechecked; so does a filter of another kind |
//! | without a kind, so without elements | it has no slot | never |
//!
//! Why "no" is certain: a slot is published after all of its blocks were written, and before its
//! row is committed. A lookup reads blocks first, and then the rows that they belong to. If a slot
//! was given to another row in between, that row was inserted after the lookup began, which can't
//! see it; and the old row was dead for every session.

mod build;
mod directory;
mod grow;
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
mod record;
mod row_page;
mod search;
mod tile;

pub use build::Build;
pub use directory::Directory;
pub use row_page::{RowPage, SlotState};
pub use search::{FilterCondition, FoundRow, Sought, search};
pub use tile::{FilterGroup, Holds, Slot, SlotChunk, Tile, slot_bits};

#[cfg(test)]
mod tests;
