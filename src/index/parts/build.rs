//! CREATE INDEX and REINDEX: as for an index over keys, of parts and with other options.

use super::class::Class;
use super::column::PartsColumn;
use super::gather::Gathered;
use super::sample;
use crate::index::keys::{build_of, check_type_of_column};
use crate::index::new_index::{meta_page, write_empty};
use crate::index::options;
use crate::index::page::PAGE_SIZE;
use crate::index::session::Kind;
use crate::pg::call::error::Result;
use crate::pg::method::table::{Built, Wanted};
use crate::pg::storage::relation::{PAGE_BYTES, Relation};
use pg_bloom_core::index::keys::{Directory, MAX_PART_FPR, Options};

/// The bytes of a table that one distinct part is expected for, while there are none.
const BYTES_PER_PART: u32 = 20;
/// The rate of windows of texts, and the pages of their ranges, if nothing is said. A lookup asks for several of them,
/// and the rates of those multiply that a range doesn't have. So a hash gets 2.5 bits, of which it sets one: by a model
/// fewer bits and smaller ranges, or more bits and larger ones, read more of the text at the same size.
const WINDOWS: (f64, u32) = (0.33, 1);
/// Those of other parts.
const OTHERS: (f64, u32) = (0.003, 8);

/// Builds an index.
///
/// # Errors
/// 0A000 for a column that can't be in an index; 22023 for an invalid rate; 54000 for too many pages.
pub fn build(wanted: &Wanted<'_>) -> Result<Built> {
    let column = column_of_new(wanted.index)?;
    let mut options = core_options(&column, wanted.index, wanted.table.pages())?;
    if column.class == Class::Text && !options::are_pages_given(wanted.index) {
        options.split = sample::split(wanted.index, wanted.table);
    }
    build_of(wanted, options, Gathered::new(&column))
}

/// The column of an index that is built. A text of another type than the operator class's is refused if that can't be
/// an element; the other classes look at the column's own type in any case.
fn column_of_new(index: Relation) -> Result<PartsColumn> {
    let column = PartsColumn::of(index)?;
    if column.class == Class::Text {
        check_type_of_column(index)?;
    }
    Ok(column)
}

/// What an index is made with, on a table of so many pages.
fn core_options(column: &PartsColumn, index: Relation, table_pages: u32) -> Result<Options> {
    let is_flat = column.class == Class::Text;
    let (fpr, pages_per_range) = if is_flat { WINDOWS } else { OTHERS };
    let options = options::of(index, MAX_PART_FPR)?;
    let fpr = options.fpr.unwrap_or(fpr);
    let pages_per_range = options.pages_per_range.unwrap_or(pages_per_range);
    let guess = pages_per_range * (PAGE_BYTES as u32 / BYTES_PER_PART);
    Ok(Options { size: PAGE_SIZE, fpr: Some(fpr), pages_per_range, split: None, table_pages, guess, is_flat })
}

/// Writes what an unlogged index is after a crash: one without rows.
///
/// # Errors
/// As [`build`].
pub fn build_empty(index: Relation) -> Result<()> {
    let options = core_options(&column_of_new(index)?, index, 0)?;
    write_empty(index, &meta_page(|page| Directory::empty(options).write_meta(page)));
    Ok(())
}
