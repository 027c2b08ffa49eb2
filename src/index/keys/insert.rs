//! INSERT, and UPDATE to another page: the bits of the new row's element.
//!
//! They are looked at under the share lock first. Whoever set a bit held the exclusive lock until its record was
//! written, so bits that are seen to be set are in the WAL before our commit, and nothing is left to do. Those that are
//! not are set under the exclusive locks, from the highest level down, with one record.

use super::column::Index;
use crate::index::new_index::meta_page;
use crate::index::page::{BelowMeta, damaged, is_set, prepare, unhashed};
use crate::index::session::{self, Kind};
use crate::pg::call::Element;
use crate::pg::call::error::Result;
use crate::pg::storage::buffer::{Exclusive, Pin};
use crate::pg::storage::relation::Relation;
use crate::pg::storage::wal::{self, Change, Edit};
use pg_bloom_core::index::keys::{Directory, Level, Mark, Places, SPECIAL_BYTES, changes};
use pg_bloom_core::index::page::RowId;
use pgrx::pg_sys::Datum;
use std::rc::Rc;

/// Adds the element of a row on this page of the table.
///
/// # Errors
/// XX002 for damage; 54000 if there are no numbers left for pages or ranges.
pub fn insert(relation: Relation, value: Datum, row: RowId) -> Result<()> {
    let index = Index::of(relation)?;
    let hash = index.column().hasher.hash(Element { datum: value }).ok_or_else(unhashed)?;
    let mut directory = index.known_directory();
    let range = row.page / directory.options.pages_per_range;
    let places = places(&index, &mut directory, range, hash)?;
    add(&index, &directory, &places)
}

/// Where an element of a range belongs. Adds tiles if the range has none, which needs a newer directory.
///
/// # Errors
/// As [`insert`].
pub fn places<K: Kind<Directory = Directory>>(
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

/// Sets the bits of an element that are not set yet. Another session may set some of them in the meantime.
fn add(index: &Index, directory: &Directory, places: &Places) -> Result<()> {
    let pages = index.pages();
    let mut missing: [Option<(&Mark, Pin)>; Places::MOST] = Default::default();
    for (mark, slot) in places.in_lock_order().zip(&mut missing) {
        let pin = pages.existing(mark.page(), directory.chain.allocated());
        mark.offsets().for_each(|offset| pin.approach_byte(usize::from(offset)));
        *slot = Some((mark, pin));
    }
    for slot in &mut missing {
        if let Some((mark, pin)) = slot
            && is_set(index.relation, mark, &pin.shared())?
        {
            *slot = None;
        }
    }
    let mut locked: [Option<(Vec<_>, Exclusive<'_>)>; Places::MOST] = Default::default();
    for (slot, missing) in locked.iter_mut().zip(&mut missing) {
        if let Some((mark, pin)) = missing {
            let mut page = pin.exclusive();
            prepare(index.relation, mark.special(), mark.page(), &mut page)?;
            let changes = changes(&[**mark], &page).map_err(|damage| damaged(index.relation, &damage))?;
            *slot = Some((changes, page));
        }
    }
    let edits = locked.iter_mut().flatten();
    let mut edits = edits.map(|(changes, page)| Edit::new(page, Change::Bytes(changes)));
    // A record without an array of any length: most rows have all of their pages, or one.
    match [edits.next(), edits.next(), edits.next()] {
        [Some(a), Some(b), Some(c)] => wal::change(index.relation, &mut [a, b, c]),
        [Some(a), Some(b), None] => wal::change(index.relation, &mut [a, b]),
        [Some(a), None, _] => wal::change(index.relation, &mut [a]),
        [None, ..] => {}
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
