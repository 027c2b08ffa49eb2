//! The index over a column of filters, as bytes: which rows' filters may have an element?
//!
//! Filters of one shape choose the same block for an element. So the filters of up to 127 rows are a **tile**, in which
//! block 0 of all of them comes first, then block 1 of all, and so on: a question reads the one page that has the
//! element's block of 127 filters, where the table has it in 127 places.
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
//! | `group` | [`Group`]: which filters are in tiles together |
//! | `tile` | [`Tile`]: where a slot's blocks are; asking a page |
//! | `row_page` | [`RowPage`]: which rows the slots belong to, and which are free |
//! | `directory` | [`Directory`]: where the tiles are |
//! | `meta` | the directory as bytes, read with the one check |
//! | `grow` | new tiles |
//! | `build` | an index from filters, in one pass |
//! | `search` | asking |
//! | `memory` | an index in memory, for tests (feature `testing`) |
//!
//! docs/format.md has the bytes in its section 16.
//!
//! # What is kept of a filter
//!
//! | a filter | its slot has | a question finds it |
//! |---|---|---|
//! | of bits, `blocked` or `parquet` | its bits | if and only if the filter may have the element |
//! | that is a list | bits of its hashes, as many as the list needs, not its capacity | nearly so: it is asked again |
//! | of bits, `classic` | nothing | always, as is one of another kind: its row is asked again |
//! | without a kind, so without elements | it has no slot | never |
//!
//! # For the access method
//!
//! | it wants to | it calls |
//! |---|---|
//! | build | [`Build::add`] for each row, [`Build::finish`] |
//! | insert | [`Directory::row_pages`], [`RowPage::first_free`]; [`Slot`] has the steps |
//! | add a tile | [`Directory::grow`], where no slot is free: the metapage and a directory page |
//! | remove | [`RowPage::rows`], [`RowPage::free`]: blocks stay, and are written over |
//! | ask | [`Directory::search`]; one share lock at a time |
//!
//! What makes "no" certain: a slot is published when all of its blocks are written, and before its row is committed. A
//! question reads blocks first and then whose they are. Had the slot another owner in between, the new one began after
//! the question, which can't see it; and the old one was dead to everybody.

mod build;
mod directory;
mod group;
mod grow;
#[cfg(any(test, feature = "testing"))]
pub mod memory;
mod meta;
mod row_page;
mod search;
mod tile;

pub use build::Build;
pub use directory::Directory;
pub use group::{Group, Holds, slot_bits};
pub use grow::Growth;
pub use row_page::{Piece, RowPage, State};
pub use search::{Condition, Sought};
pub use tile::{Slot, Tile};

#[cfg(test)]
mod tests;
