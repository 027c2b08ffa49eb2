//! INSERT, and UPDATE to another page: the bits of the new row's keys. Of parts these are many.
//!
//! Of a line's hundred windows nine in ten are in the lines beside it: so a session remembers keys
//! that it has added to a range of an index, or seen there, and need not look at their bits again.
//! Bits are never cleared, and the WAL record that set one was written before it was seen, so it
//! precedes the commit of every row that relies on it. An index whose file gets other contents gets
//! another number: see [`crate::index::session`].
//!
//! The bits of the others are set under exclusive locks, with a record for up to four pages, which
//! are locked in the order of their numbers. Looking under a share lock first was slower, also
//! where two sessions add the same keys.

use super::columns::{GatheredKeys, Index};
use super::sample;
use crate::index::page::prepare;
use crate::pg::call::{Element, Result, interrupt};
use crate::pg::storage::buffer::Exclusive;
use crate::pg::storage::relation::{Opened, Relation};
use crate::pg::storage::wal::{self, Change, Edit};
use pg_bloom_core::index::page::{ByteChange, RowId};
use pg_bloom_core::index::ranges::{Directory, Level, Mark, Split, changes};
use pg_bloom_core::memory;
use std::cell::RefCell;
use std::rc::Rc;

/// Hashes whose places are computed at once.
const AT_ONCE: usize = 4096;

/// # Safety
/// The value must be of the type of the index's column.
pub unsafe fn insert(relation: Relation, value: Element, row: RowId) -> Result<()> {
    let index = &Index::of(relation)?;
    let mut keys = GatheredKeys::new(index.kind());
    // SAFETY: promised by the caller.
    unsafe { keys.add(value)? };
    let mut directory = index.known_directory();
    let key = |range, hash| (index.number(), range, hash);
    let range = directory.options.range_of(row);
    let is_new = |&hash: &u64| !RECENT.with(|recent| recent.has(&key(range, hash)));
    let new = memory::collect(keys.take().into_iter().filter(is_new));
    for hashes in new.chunks(AT_ONCE) {
        let mut marks = memory::with_capacity(hashes.len() * Level::ALL.len());
        for &hash in hashes {
            marks.extend(loop {
                if let Some(places) = directory.marks(directory.options.range_of(row), hash) {
                    break places;
                }
                // By the newer directory the row may be of another range. The tiles that are needed
                // may be many, one after the other: if the user cancels this, those that were added
                // until then are as good as more.
                interrupt::check_for_interrupts();
                directory = grow(index, row, hash)?;
            });
        }
        set(index, &directory, &marks)?;
        let range = directory.options.range_of(row);
        RECENT.with(|recent| hashes.iter().for_each(|&hash| recent.add(key(range, hash))));
    }
    Ok(())
}

/// A page that is locked, and what is to change in it.
type Changed<'r> = (Exclusive<'r>, Vec<ByteChange>);

/// Sets the bits of these marks that are not set yet.
fn set(index: &Index, directory: &Directory, marks: &[Mark]) -> Result<()> {
    let pages = index.pages();
    let mut in_order = memory::collect(marks.iter());
    in_order.sort_unstable_by_key(|mark| mark.page());
    if let Some(last) = in_order.last() {
        // Before any page is locked.
        pages.extend_to(last.page(), &directory.chain)?;
    }
    let mut changed: Vec<Changed> = memory::with_capacity(wal::MAX_PAGES);
    for of_page in in_order.chunk_by(|a, b| a.page() == b.page()) {
        interrupt::check_for_interrupts();
        let at = of_page[0].page();
        let mut page = pages.existing(at, &directory.chain)?.exclusive();
        prepare(index.relation, of_page[0].special(), at, &mut page)?;
        let changes = index.checked(changes(of_page, &page))?;
        if !changes.is_empty() {
            changed.push((page, changes));
        }
        if changed.len() == wal::MAX_PAGES {
            write(&mut changed);
            changed.clear();
        }
    }
    write(&mut changed);
    Ok(())
}

/// Writes changes of at most four pages, with one record if that has room for them.
fn write(changed: &mut [Changed]) {
    if changed.iter().any(|(_, changes)| changes.len() > wal::MAX_PIECES) {
        for (page, changes) in changed {
            for changes in changes.chunks(wal::MAX_PIECES) {
                wal::change(&mut [Edit::new(page, Change::Bytes(changes))]);
            }
        }
    } else if !changed.is_empty() {
        let edits = changed
            .iter_mut()
            .map(|(page, changes)| Edit::new(page, Change::Bytes(changes)));
        wal::change(&mut memory::collect(edits));
    }
}

/// How pages are split, and how they would be by the last ones of the table. Nothing unless tiles
/// to come may be split, or most ranges of the last tile have no rows: few may be on a page because
/// they are wide, or because nobody has filled it yet.
fn sample_last_pages(index: &Index, row: RowId) -> Result<Option<(Option<Split>, Option<Split>)>> {
    /// The share of columns below which ranges may be too small.
    const FEW: f64 = 0.25;
    let directory = index.directory()?;
    let now = directory.options.split;
    let may_be_too_fine = now.is_some_and(|split| split.is_open());
    let used = || index.checked(directory.used_share(&mut index.pages()));
    if !(directory.may_split_new_pages() || may_be_too_fine && used()? < FEW) {
        return Ok(None);
    }
    let table = Opened::table_of(index.relation);
    Ok(Some((now, sample::split_of_last(index.relation, table.relation(), row.page))))
}

/// Adds tiles up to that of a row's range, or some of those before it, if nobody else did in the
/// meantime. Nothing is written unless the pages of the new tiles have no contents, and those that
/// an element of the range belongs to are sound.
#[cold]
fn grow(index: &Index, row: RowId, hash: u64) -> Result<Rc<Directory>> {
    // Pages of the table are read before any of the index is locked.
    let sample = sample_last_pages(index, row)?;
    let meta = index.pages().meta()?.exclusive();
    let mut directory = index.directory_under(&meta)?;
    if directory
        .tile_of(Level::Zero, directory.options.range_of(row))
        .is_some()
    {
        return Ok(directory);
    }
    // Pages that have no tile yet are divided in another way, if the sample says so, and was not
    // taken for something else: another session may have done so since.
    let is_too_fine = |now: Split, wanted: Option<Split>| {
        now.ranges_per_page >= 4 * wanted.map_or(1, |split| split.ranges_per_page)
    };
    match sample {
        Some((now, _)) if now != directory.options.split => {}
        Some((None, Some(split))) => Rc::make_mut(&mut directory).split_new_pages(split),
        Some((Some(now), wanted)) if is_too_fine(now, wanted) => {
            Rc::make_mut(&mut directory).make_new_pages_whole()
        }
        // Another session has added the first tile only now.
        None if directory.may_split_new_pages() => return Ok(directory),
        _ => {}
    }
    let range = directory.options.range_of(row);
    let growth = directory.grow(range, |level| {
        index.checked(directory.keys_in_last_tile(&mut index.pages(), level))
    })?;
    index.pages().check_new(&directory.chain, &growth.directory.chain)?;
    for mark in growth.directory.marks(range, hash).iter().flatten() {
        index
            .pages()
            .check_each(mark.page()..mark.page() + 1, mark.special())?;
    }
    // What was decided here is lost if it can't be written yet.
    index.write_directory(meta, growth)
}

/// Of all indexes: 192 kB. A range of log lines has some 6,000.
const REMEMBERED: usize = 1 << 13;

/// The number of an index, a range of it, and a hash.
type RecentKey = (u64, u32, u64);

/// Each key in the place that its hash says, in those of others; all zero where there is none.
#[derive(Default)]
pub struct RecentKeys(RefCell<Vec<RecentKey>>);

impl RecentKeys {
    pub fn has(&self, key: &RecentKey) -> bool {
        self.0.borrow().get(key.2 as usize % REMEMBERED) == Some(key)
    }

    /// Remembers a key whose bits are set.
    pub fn add(&self, key: RecentKey) {
        let mut keys = self.0.borrow_mut();
        if keys.is_empty() {
            *keys = memory::zeroed(REMEMBERED);
        }
        keys[key.2 as usize % REMEMBERED] = key;
    }
}

session_locals! {
    static RECENT: RecentKeys = const { RecentKeys(RefCell::new(Vec::new())) };
}
