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
use super::sample::{self, LastPages};
use crate::index::page::prepare;
use crate::pg::call::{Element, Result, interrupt};
use crate::pg::storage::buffer::Exclusive;
use crate::pg::storage::relation::{Opened, Relation};
use crate::pg::storage::wal::{self, Change, Edit};
use pg_bloom_core::index::page::{ByteChange, RowId};
use pg_bloom_core::index::ranges::{Directory, Level, Mark, SlotAddress, Split, changes};
use pg_bloom_core::memory;
use std::cell::RefCell;
use std::rc::Rc;

/// Keys whose bits are computed, and then set, at once; more if they are of one page.
const KEYS_AT_ONCE: usize = 4096;
/// Of one page at most so many keys more: a page that is not overfull has fewer.
const KEYS_OF_PAGE_AT_ONCE: usize = 1 << 15;

/// Adds the keys of a row to the index.
///
/// Fails as [`IndexKind::insert`](crate::index::kind::IndexKind) does.
///
/// # Safety
/// The value must be of the type of the index's column.
pub unsafe fn insert(relation: Relation, value: Element, row: RowId) -> Result<()> {
    let index = &Index::of(relation)?;
    let mut keys = GatheredKeys::new(index.kind());
    // SAFETY: promised by the caller.
    unsafe { keys.add(value)? };

    let known_range = index.known_directory().options.range_of(row);
    let is_recent = |range, hash| RECENT.with(|recent| recent.has(&(index.number(), range, hash)));
    let new_keys = keys.take().into_iter().filter(|&hash| !is_recent(known_range, hash));
    let mut new_keys = memory::collect(new_keys);
    let Some(&first_key) = new_keys.first() else {
        return Ok(());
    };

    let directory = directory_with_tile(index, row, first_key)?;
    let range = directory.options.range_of(row);
    let slots = directory
        .slots_of_range(range)
        .expect("the range of the row has a tile");
    if new_keys.len() <= KEYS_AT_ONCE {
        set_keys(index, &directory, &slots, &new_keys)?;
    } else {
        // The keys of a wide value are spread over all pages of a tile, which may be thousands. In
        // the order of its pages each page is locked and logged once, not once for every 4,096
        // keys.
        for slot in &slots {
            new_keys.sort_unstable_by_key(|&hash| slot.page_of_key(hash));
            let mut keys_left = new_keys.as_slice();
            while !keys_left.is_empty() {
                let (keys, keys_after) = keys_left.split_at(end_of_batch(slot, keys_left));
                set_keys(index, &directory, std::slice::from_ref(slot), keys)?;
                keys_left = keys_after;
            }
        }
    }
    for hash in new_keys {
        RECENT.with(|recent| recent.add((index.number(), range, hash)));
    }
    Ok(())
}

/// Returns how many of these keys, which are in the order of their pages, are set at once. The last
/// page of a batch is completed, so that it is not locked and logged twice.
fn end_of_batch(slot: &SlotAddress, keys: &[u64]) -> usize {
    if keys.len() <= KEYS_AT_ONCE {
        return keys.len();
    }
    let last_page = slot.page_of_key(keys[KEYS_AT_ONCE - 1]);
    let keys_of_last_page = keys[KEYS_AT_ONCE..]
        .iter()
        .take(KEYS_OF_PAGE_AT_ONCE)
        .take_while(|&&hash| slot.page_of_key(hash) == last_page)
        .count();
    KEYS_AT_ONCE + keys_of_last_page
}

/// Returns a directory of the index in which the range of a row has a tile. Adds tiles up to it, if
/// it has none yet. `hash` is that of a key of the row.
///
/// Fails with 54000 if there are too many pages, with XX002 for damage, and if the user cancels.
fn directory_with_tile(index: &Index, row: RowId, hash: u64) -> Result<Rc<Directory>> {
    let mut directory = index.known_directory();
    loop {
        // By a newer directory the row may be of another range.
        let range = directory.options.range_of(row);
        if directory.tile_of(Level::Zero, range).is_some() {
            return Ok(directory);
        }
        // The tiles that are needed may be many, one after the other: if the user cancels this, those
        // that were added until then are as good as more.
        interrupt::check_for_interrupts();
        directory = grow(index, row, hash)?;
    }
}

/// Sets the bits of these keys in each of these slots of tiles.
fn set_keys(
    index: &Index,
    directory: &Directory,
    slots: &[SlotAddress],
    keys: &[u64],
) -> Result<()> {
    let marks = keys
        .iter()
        .flat_map(|&hash| slots.iter().map(move |slot| slot.mark(hash)));
    set(index, directory, &memory::collect(marks))
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
            write_many(page, changes);
        }
    } else if !changed.is_empty() {
        let edits = changed
            .iter_mut()
            .map(|(page, changes)| Edit::new(page, Change::Bytes(changes)));
        wal::change(&mut memory::collect(edits));
    }
}

/// Writes any number of changes of one page.
fn write_many(page: &mut Exclusive<'_>, changes: &[ByteChange]) {
    /// Bytes of a record for each byte that is changed by itself: its offset, its length, its value.
    const BYTES_PER_CHANGE: usize = 5;

    let (Some(first), Some(last)) = (changes.first(), changes.last()) else {
        return;
    };
    let from_first_to_last = usize::from(first.offset)..=usize::from(last.offset);
    let mut bytes = memory::collect(page[from_first_to_last].iter().copied());
    if bytes.len() > changes.len() * BYTES_PER_CHANGE {
        for changes in changes.chunks(wal::MAX_PIECES) {
            wal::change(&mut [Edit::new(page, Change::Bytes(changes))]);
        }
        return;
    }
    // All bytes from the first to the last one that changes take less room.
    for change in changes {
        bytes[usize::from(change.offset - first.offset)] = change.value;
    }
    wal::change(&mut [Edit::new(page, Change::Piece(first.offset, &bytes))]);
}

/// How the pages of the table that have no tile yet are divided into ranges.
enum Division {
    /// As the directory says.
    Keep,
    /// Each into several ranges, since a page stands for much text.
    Split(Split),
    /// Each is a range by itself again, where those before them are split too finely.
    WholePages,
}

/// Returns how pages that have no tile yet should be divided, by the last pages of the table up to
/// that of a row. `directory` says how they are divided now.
///
/// Pages of the table are read, so the caller must not hold the lock of a page of the index. Fails
/// with XX002 for damage of the index.
fn division_of_new_pages(index: &Index, directory: &Directory, row: RowId) -> Result<Division> {
    /// If fewer of the last tile's columns have keys, ranges may be too small: few rows may be on a
    /// page because they are wide, or because nobody has filled it yet.
    const FEW_COLUMNS: f64 = 0.25;
    /// A split is too fine if it has so many times the ranges that a page should have.
    const TOO_MANY_TIMES: u16 = 4;

    let open_split = directory.options.split.filter(|split| split.is_open());
    let may_be_too_fine = match open_split {
        Some(_) => index.checked(directory.used_share(&mut index.pages()))? < FEW_COLUMNS,
        None => false,
    };
    if !directory.may_split_new_pages() && !may_be_too_fine {
        return Ok(Division::Keep);
    }

    let table = Opened::table_of(index.relation);
    let wanted = match sample::division_of_last(index.relation, table.relation(), row.page) {
        LastPages::TooFew => return Ok(Division::Keep),
        LastPages::Whole => None,
        LastPages::Split(split) => Some(split),
    };
    Ok(match (open_split, wanted) {
        (None, Some(split)) => Division::Split(split),
        (None, None) => Division::Keep,
        (Some(now), wanted) => {
            let wanted_ranges = wanted.map_or(1, |split| split.ranges_per_page);
            if now.ranges_per_page >= TOO_MANY_TIMES * wanted_ranges {
                Division::WholePages
            } else {
                Division::Keep
            }
        }
    })
}

/// Adds tiles for pages up to that of a row, or for some of them, if no other session did in the
/// meantime. Returns the newest directory; call it until the range of the row has a tile.
///
/// `hash` is that of a key of the row. Nothing is written unless the pages of the new tiles have no
/// contents, and those with the bits of the key are sound. Fails with 54000 if there are too many
/// pages, and with XX002 for damage.
#[cold]
fn grow(index: &Index, row: RowId, hash: u64) -> Result<Rc<Directory>> {
    let seen = index.directory()?;
    let mut directory = seen.clone();
    let seen_keys = |level| index.checked(seen.keys_in_last_tile(&mut index.pages(), level));
    let is_far = seen.grow_over_skipped(row.page, seen_keys)?.is_some();
    // Pages of the table are read before any of the index is locked.
    let division = if is_far { Division::Keep } else { division_of_new_pages(index, &seen, row)? };

    let meta = index.pages().meta()?.exclusive();
    let newest = index.directory_under(&meta)?;
    if newest.chain != seen.chain {
        // Another session has added tiles, or divides pages in another way.
        return Ok(newest);
    }
    match division {
        Division::Keep => {}
        Division::Split(split) => Rc::make_mut(&mut directory).split_new_pages(split),
        Division::WholePages => Rc::make_mut(&mut directory).make_new_pages_whole(),
    }
    let range = directory.options.range_of(row);
    let seen_keys = |level| index.checked(directory.keys_in_last_tile(&mut index.pages(), level));
    let growth = match directory.grow_over_skipped(row.page, seen_keys)? {
        Some(growth) => growth,
        None => directory.grow(range, seen_keys)?,
    };
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
