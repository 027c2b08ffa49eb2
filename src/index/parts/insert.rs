//! INSERT, and UPDATE to another page: the bits of the new row's parts.
//!
//! Most are set already, by rows beside it, and most of those are remembered. The others are set under exclusive locks,
//! with a record for up to four pages, which are locked in the order of their numbers.

use super::class::Class;
use super::column::{Index, PartsColumn};
use super::gather::Gathered;
use super::known::{Part, is_known, remember};
use crate::index::keys::{Gather, places};
use crate::index::page::{damaged, prepare};
use crate::pg::call::error::Result;
use crate::pg::call::interrupt;
use crate::pg::storage::buffer::{Exclusive, Pin};
use crate::pg::storage::relation::Relation;
use crate::pg::storage::wal::{self, Change, Edit};
use crate::pg::value::varlena::Value;
use pg_bloom_core::index::keys::{Directory, Mark, changes};
use pg_bloom_core::index::page::RowId;
use pg_bloom_core::memory;
use pg_bloom_core::parts::text;
use pgrx::pg_sys::Datum;
use std::rc::Rc;

/// Hashes whose places are computed at once.
const AT_ONCE: usize = 4096;
/// Bytes of a text from which on its windows are gathered without those that are there several times.
const MANY_WINDOWS: usize = 1 << 16;

/// Adds the parts of a row on this page of the table.
///
/// # Errors
/// XX002 for damage; 54000 if there are no numbers left for pages or ranges.
///
/// # Safety
/// The value must be of the type of the index's column.
pub unsafe fn insert(relation: Relation, value: Datum, row: RowId) -> Result<()> {
    let index = Index::of(relation)?;
    // SAFETY: promised by the caller.
    let mut hashes = unsafe { distinct_parts(index.kind(), value)? };
    let mut directory = index.known_directory();
    let range = row.page / directory.options.pages_per_range;
    let part = |hash| Part { index: index.number(), range, hash };
    hashes.retain(|&hash| !is_known(&part(hash)));
    for hashes in hashes.chunks(AT_ONCE) {
        let mut marks = memory::list(2 * hashes.len());
        for &hash in hashes {
            let places = places(&index, &mut directory, range, hash)?;
            places.in_lock_order().for_each(|&mark| memory::push(&mut marks, mark));
        }
        add(&index, &directory, &marks)?;
        remember(hashes.iter().map(|&hash| part(hash)));
    }
    Ok(())
}

/// The hashes of a value's parts, each once.
///
/// # Safety
/// The value must be of the column's type.
unsafe fn distinct_parts(column: &PartsColumn, value: Datum) -> Result<Vec<u64>> {
    if column.class != Class::Text {
        let mut hashes = Vec::new();
        // SAFETY: promised by the caller.
        unsafe { column.each_part(value, |hash| memory::push(&mut hashes, hash))? };
        hashes.sort_unstable();
        hashes.dedup();
        return Ok(hashes);
    }
    // SAFETY: a text is of variable length.
    let text = unsafe { Value::detoast(value) };
    if text.len() > MANY_WINDOWS {
        let mut gathered = Gathered::new(column);
        // SAFETY: promised by the caller.
        unsafe { gathered.add(value)? };
        return Ok(gathered.take());
    }
    let mut windows = memory::list(text.len());
    text::each_window(&text, column.encoding, |window| memory::push(&mut windows, window));
    text.free();
    windows.sort_unstable();
    windows.dedup();
    Ok(text::hashes_of(windows.into_iter()))
}

/// Sets the bits of these marks that are not set yet.
fn add(index: &Index, directory: &Rc<Directory>, marks: &[Mark]) -> Result<()> {
    let mut in_order = memory::collect(marks.iter());
    in_order.sort_unstable_by_key(|mark| mark.page());
    let pages = memory::collect(in_order.chunk_by(|a, b| a.page() == b.page()));
    for of_record in pages.chunks(wal::MAX_PAGES) {
        interrupt::check_for_interrupts();
        let pages = index.pages();
        let pin = |marks: &&[&Mark]| pages.existing(marks[0].page(), directory.chain.allocated());
        let mut pins = memory::collect(of_record.iter().map(pin));
        set(index.relation, &mut pins, of_record)?;
    }
    Ok(())
}

/// Sets bits of pages, all of which are locked at once. Another session may have set some in the meantime.
fn set(relation: Relation, pins: &mut [Pin], of_pages: &[&[&Mark]]) -> Result<()> {
    let mut locked: Vec<(Exclusive<'_>, Vec<(u16, u8)>)> = memory::list(pins.len());
    for (pin, marks) in pins.iter_mut().zip(of_pages) {
        let mut page = pin.exclusive();
        prepare(relation, marks[0].special(), marks[0].page(), &mut page)?;
        let changes = changes(marks, &page).map_err(|damage| damaged(relation, &damage))?;
        if !changes.is_empty() {
            locked.push((page, changes));
        }
    }
    if locked.iter().all(|(_, changes)| changes.len() <= wal::MAX_PIECES) {
        let edits = locked.iter_mut().map(|(page, changes)| Edit::new(page, Change::Bytes(changes)));
        let mut edits = memory::collect(edits);
        if !edits.is_empty() {
            wal::change(relation, &mut edits);
        }
        return Ok(());
    }
    for (page, changes) in &mut locked {
        for changes in changes.chunks(wal::MAX_PIECES) {
            wal::change(relation, &mut [Edit::new(page, Change::Bytes(changes))]);
        }
    }
    Ok(())
}
