//! INSERT, and UPDATE to another page: the bits of the new row's keys.
//!
//! Most bits of parts are set already: of a line's hundred windows, nine in ten are in the lines beside it. So each
//! page is looked at under the share lock first. Whoever set a bit held the exclusive lock until its record was
//! written, so bits that are seen to be set are in the WAL before our commit, and nothing is left to do. What is
//! missing is set under exclusive locks, with a record for up to four pages, which are locked in the order of their
//! numbers.

use super::column::Index;
use crate::index::new_index::meta_page;
use crate::index::page::{BelowMeta, damaged, is_set, prepare, unhashed};
use crate::index::session::{self, Kind};
use crate::pg::call::error::Result;
use crate::pg::call::{Element, interrupt};
use crate::pg::storage::buffer::{Exclusive, Pin};
use crate::pg::storage::relation::Relation;
use crate::pg::storage::wal::{self, Change, Edit};
use pg_bloom_core::index::keys::{Directory, Level, Mark, Places, SPECIAL_BYTES, changes};
use pg_bloom_core::index::page::RowId;
use pg_bloom_core::memory;
use pgrx::pg_sys::Datum;
use std::rc::Rc;

/// Hashes whose places are computed at once.
const AT_ONCE: usize = 4096;

/// Adds the element of a row on this page of the table.
///
/// # Errors
/// XX002 for damage; 54000 if there are no numbers left for pages or ranges.
pub fn insert(relation: Relation, value: Datum, row: RowId) -> Result<()> {
    let index = Index::of(relation)?;
    let hash = index.column().hasher.hash(Element { datum: value }).ok_or_else(unhashed)?;
    add(&index, row, &[hash])
}

/// Adds the keys of a row.
///
/// # Errors
/// As [`insert`].
pub fn add<K: Kind<Directory = Directory>>(index: &session::Index<K>, row: RowId, hashes: &[u64]) -> Result<()> {
    let mut directory = index.known_directory();
    let range = row.page / directory.options.pages_per_range;
    for hashes in hashes.chunks(AT_ONCE) {
        let mut marks = memory::list(hashes.len() * Places::MOST);
        for &hash in hashes {
            let places = places(index, &mut directory, range, hash)?;
            places.marks().for_each(|&mark| memory::push(&mut marks, mark));
        }
        set_missing(index, &directory, marks)?;
    }
    Ok(())
}

/// Where an element of a range belongs. Adds tiles if the range has none, which needs a newer directory.
fn places<K: Kind<Directory = Directory>>(
    index: &session::Index<K>,
    directory: &mut Rc<Directory>,
    range: u32,
    hash: u64,
) -> Result<Places> {
    loop {
        match directory.places(range, hash) {
            Some(places) => return Ok(places),
            None => *directory = grow(index, range)?,
        }
    }
}

/// A page that lacks bits of these marks.
type Lacking = (Pin, Vec<Mark>);

/// Sets the bits of these marks that are not set yet.
fn set_missing<K: Kind>(index: &session::Index<K>, directory: &Directory, mut marks: Vec<Mark>) -> Result<()> {
    marks.sort_unstable_by_key(Mark::page);
    let mut lacking: Vec<Lacking> = memory::list(wal::MAX_PAGES);
    for of_page in marks.chunk_by(|a, b| a.page() == b.page()) {
        interrupt::check_for_interrupts();
        let pin = index.pages().existing(of_page[0].page(), directory.chain.allocated());
        let shared = pin.shared();
        let mut missing = Vec::new();
        for mark in of_page {
            if !is_set(index.relation, mark, &shared)? {
                memory::push(&mut missing, *mark);
            }
        }
        drop(shared);
        if !missing.is_empty() {
            lacking.push((pin, missing));
        }
        if lacking.len() == wal::MAX_PAGES {
            set(index.relation, &mut lacking)?;
            lacking.clear();
        }
    }
    set(index.relation, &mut lacking)
}

/// Sets bits of pages, all of which are locked at once. Another session may have set some in the meantime.
fn set(relation: Relation, lacking: &mut [Lacking]) -> Result<()> {
    if lacking.is_empty() {
        return Ok(());
    }
    let mut locked: Vec<(Exclusive<'_>, Vec<(u16, u8)>)> = memory::list(lacking.len());
    for (pin, marks) in lacking {
        let mut page = pin.exclusive();
        prepare(relation, marks[0].special(), marks[0].page(), &mut page)?;
        let changes = changes(marks, &page).map_err(|damage| damaged(relation, &damage))?;
        locked.push((page, changes));
    }
    if locked.iter().all(|(_, changes)| changes.len() <= wal::MAX_PIECES) {
        let edits = locked.iter_mut().map(|(page, changes)| Edit::new(page, Change::Bytes(changes)));
        wal::change(relation, &mut memory::collect(edits));
        return Ok(());
    }
    for (page, changes) in &mut locked {
        for changes in changes.chunks(wal::MAX_PIECES) {
            wal::change(relation, &mut [Edit::new(page, Change::Bytes(changes))]);
        }
    }
    Ok(())
}

/// Adds tiles up to that of a range, or some of those before it, if nobody else did in the meantime.
#[cold]
fn grow<K: Kind<Directory = Directory>>(index: &session::Index<K>, range: u32) -> Result<Rc<Directory>> {
    let relation = index.relation;
    let mut meta_pin = index.meta()?;
    let mut meta = meta_pin.exclusive();
    let directory = index.directory_under(&meta).map_err(|failure| failure.of(relation))?;
    if directory.tile_of(Level::Zero, range).is_some() {
        return Ok(directory);
    }
    let mut pages = BelowMeta { meta: &meta, pages: index.pages() };
    let growth = directory.grow(&mut pages, range).map_err(|failure| failure.of(relation))?;
    let bytes = meta_page(|page| growth.directory.write_meta(page));
    let change = Change::Page(&bytes, SPECIAL_BYTES);
    match &growth.closed {
        Some((number, closed)) => {
            let mut pin = index.pages().existing(*number, *number + 1);
            let mut page = pin.exclusive();
            let closed = Edit::new(&mut page, Change::Page(closed, SPECIAL_BYTES));
            wal::change(relation, &mut [Edit::new(&mut meta, change), closed]);
        }
        None => wal::change(relation, &mut [Edit::new(&mut meta, change)]),
    }
    Ok(index.remember(growth.directory))
}
