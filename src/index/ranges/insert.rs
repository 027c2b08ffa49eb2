//! INSERT, and UPDATE to another page: sets the bits of the new row's keys. A number has one key, a
//! line of text a hundred (its windows), an array or a document as many as it has members.
//!
//! Nine in ten windows of a log line also occur in neighbouring lines. Each session therefore
//! remembers keys that it has recently set, or found set, in a range of an index, and skips them.
//! That is safe: bits are never cleared, and the WAL record that set one was written before it was
//! seen, so it precedes the commit of every row that relies on it. An index whose file gets other
//! contents gets another number: see [`crate::index::session`].
//!
//! The bits of the other keys are set under exclusive locks of their pages. Up to four pages are
//! locked at a time, in the order of their numbers, and share a WAL record. To look at the bits
//! under share locks first was slower, also where two sessions add the same keys.

use super::columns::{GatheredKeys, RangesIndex};
use super::sample::{self, LastPages};
use crate::index::page::prepare;
use crate::pg::call::{Result, SqlValue, interrupt};
use crate::pg::storage::buffer::Exclusive;
use crate::pg::storage::relation::{Opened, Relation};
use crate::pg::storage::wal::{self, Change, Edit};
use pg_bloom_core::index::page::{ByteChange, RowId};
use pg_bloom_core::index::ranges::{Directory, Level, Mark, SlotAddress, Split, changes};
use pg_bloom_core::memory::List;
use std::cell::RefCell;
use std::rc::Rc;

/// Keys of a batch: their bits are computed, then set. 4,096 marks take 100 kB.
const KEYS_PER_BATCH: usize = 4096;
/// Keys that a batch may have beyond that, if they belong to its last page. A page that isn't
/// overfull has fewer.
const MORE_KEYS_OF_LAST_PAGE: usize = 1 << 15;

/// Makes an index over ranges find a new row: sets the bits of the row's keys, and adds space for
/// them to the index if the row is on a page of the table behind all those that the index covers.
///
/// A *key* is a hash of the row's value, or of a part of it; a text has one for each window of some
/// characters. The index has a Bloom filter for each *range*, some neighbouring pages of the table.
/// Filters of many ranges share a *tile*. Keys that this session has recently set in the same range
/// are skipped. Pages of the index are locked exclusively, up to four at a time, and each change
/// has its WAL record when this returns.
///
/// Fails with 54000 if the index would have too many pages, and with XX002 if it is damaged.
///
/// # Safety
/// The value must be of the type of the index's column.
pub unsafe fn insert(relation: Relation, value: SqlValue, row: RowId) -> Result<()> {
    let index = &RangesIndex::open(relation)?;
    let mut all_keys = GatheredKeys::new(index.column());
    // SAFETY: promised by the caller.
    unsafe { all_keys.add(value)? };

    let known_range = index.known_directory().options.range_of(row);
    let mut new_keys = all_keys
        .take()
        .into_iter()
        .filter(|&key| !was_set_recently(index, known_range, key))
        .collect::<List<_>>();
    let Some(&first_key) = new_keys.first() else {
        return Ok(());
    };

    // The directory says where each tile is, and into which ranges the table is divided. One with
    // more tiles may divide the row's page in another way, so the range is looked up again.
    let directory = directory_with_tile(index, row, first_key)?;
    let range = directory.options.range_of(row);
    set_keys_of_range(index, &directory, range, &mut new_keys)?;

    for key in new_keys {
        remember_as_set(index, range, key);
    }
    Ok(())
}

/// Sets the bits of keys in the filter of a range, some neighbouring pages of the table, and in the
/// filters of higher levels that also cover the range. The index must have a tile (the pages with
/// the filters of many ranges) for the range. Changes the order of the keys.
///
/// Locks up to four pages of the index at a time, and logs each change. Fails with XX002 if the
/// index is damaged.
fn set_keys_of_range(
    index: &RangesIndex,
    directory: &Directory,
    range: u32,
    keys: &mut [u64],
) -> Result<()> {
    let slots = directory
        .slots_of_range(range)
        .expect("the range of the row has a tile");
    if keys.len() <= KEYS_PER_BATCH {
        return set_keys(index, directory, &slots, keys);
    }

    // The keys of a wide value are spread over all pages of a tile, which may be thousands. In the
    // order of its pages each page is locked and logged once, not once a batch.
    for slot in &slots {
        keys.sort_unstable_by_key(|&key| slot.page_of_key(key));
        let mut keys_left = &*keys;
        while !keys_left.is_empty() {
            let (batch, keys_after) = keys_left.split_at(length_of_batch(slot, keys_left));
            set_keys(index, directory, std::slice::from_ref(slot), batch)?;
            keys_left = keys_after;
        }
    }
    Ok(())
}

/// Returns how many of these keys, from the first one on, should be set together: 4,096, and up to
/// 32,768 more that belong to the same page of the index as the last of them. So no page is locked
/// and logged twice.
///
/// `slot` is the filter whose bits the keys have. The keys must be in the order of the pages on
/// which they have these bits.
fn length_of_batch(slot: &SlotAddress, keys: &[u64]) -> usize {
    if keys.len() <= KEYS_PER_BATCH {
        return keys.len();
    }
    let (batch, keys_after) = keys.split_at(KEYS_PER_BATCH);
    let last_page = slot.page_of_key(batch[KEYS_PER_BATCH - 1]);
    let more_keys_of_last_page = keys_after
        .iter()
        .take(MORE_KEYS_OF_LAST_PAGE)
        .take_while(|&&key| slot.page_of_key(key) == last_page)
        .count();
    KEYS_PER_BATCH + more_keys_of_last_page
}

/// Returns a directory of the index that covers a row: it says on which pages the bits of the row's
/// range, some neighbouring pages of the table, are. Those pages are a part of a *tile*; if the
/// range has none, tiles are added to the index up to it. `key` is the hash of a key of the row.
///
/// The caller must not hold a page lock. Fails with 54000 if the index would have too many pages,
/// with XX002 if it is damaged, and if the user cancels the statement.
fn directory_with_tile(index: &RangesIndex, row: RowId, key: u64) -> Result<Rc<Directory>> {
    let mut directory = index.known_directory();
    loop {
        // A newer directory may put the row into another range.
        let range = directory.options.range_of(row);
        if directory.tile_of(Level::Zero, range).is_some() {
            return Ok(directory);
        }
        // Many tiles may be missing. Where the user cancels, the index keeps those that it has got:
        // it is sound with any number of them.
        interrupt::check_for_interrupts();
        directory = grow(index, row, key)?;
    }
}

/// Sets the bits of these keys in each of these slots.
fn set_keys(
    index: &RangesIndex,
    directory: &Directory,
    slots: &[SlotAddress],
    keys: &[u64],
) -> Result<()> {
    let marks = keys
        .iter()
        .flat_map(|&key| slots.iter().map(move |slot| slot.mark(key)));
    set_marks(index, directory, &marks.collect::<List<_>>())
}

/// A page that is locked, and the bytes that will change in it.
struct PageChange<'r> {
    page: Exclusive<'r>,
    bytes: List<ByteChange>,
}

/// Sets the bits of these marks in the pages of an index, and writes WAL records for the bits that
/// were not set yet. A *mark* is a key's bits on one page. The index's file is made long enough
/// first.
///
/// Up to four pages are locked exclusively at a time, in the order of their numbers, so that
/// sessions can't wait for each other in a circle. These pages share a WAL record. Fails with XX002
/// if a page is damaged.
fn set_marks(index: &RangesIndex, directory: &Directory, marks: &[Mark]) -> Result<()> {
    let pages = index.pages();
    let mut marks_by_page = marks.iter().collect::<List<_>>();
    marks_by_page.sort_unstable_by_key(|mark| mark.page());
    if let Some(last) = marks_by_page.last() {
        // A file can't be extended while a page of it is locked.
        pages.extend_to(last.page(), &directory.chain)?;
    }

    let mut page_changes: List<PageChange> = List::with_capacity(wal::MAX_PAGES);
    for marks_of_page in marks_by_page.chunk_by(|a, b| a.page() == b.page()) {
        interrupt::check_for_interrupts();
        let number = marks_of_page[0].page();
        let special = marks_of_page[0].special();
        let mut page = pages.existing(number, &directory.chain)?.exclusive();
        prepare(index.relation, special, number, &mut page)?;

        let bytes = index.checked(changes(marks_of_page, &page))?;
        if !bytes.is_empty() {
            page_changes.push(PageChange { page, bytes });
        }
        if page_changes.len() == wal::MAX_PAGES {
            write(&mut page_changes);
            page_changes.clear();
        }
    }
    write(&mut page_changes);
    Ok(())
}

/// Changes bytes of at most four pages that are locked exclusively, and writes WAL records: one for
/// all pages if none has more than 64 changes, for which a record has room; else one or more for
/// each page.
fn write(changes: &mut [PageChange]) {
    let fits_record = |change: &PageChange| change.bytes.len() <= wal::MAX_PIECES;
    if !changes.iter().all(fits_record) {
        for PageChange { page, bytes } in changes {
            write_many(page, bytes);
        }
    } else if !changes.is_empty() {
        let edits = changes
            .iter_mut()
            .map(|change| Edit::prepare(&mut change.page, Change::Bytes(&change.bytes)));
        wal::change(&mut edits.collect::<List<_>>());
    }
}

/// Changes any number of bytes of one page and writes the WAL records, in the form that takes the
/// least room: the bytes from the first to the last change as one piece, or records of up to 64
/// single bytes. The changes must be in ascending order of their offsets.
fn write_many(page: &mut Exclusive<'_>, changes: &[ByteChange]) {
    /// Bytes of a record for each byte that is changed by itself: its offset, its length, its
    /// value.
    const BYTES_PER_CHANGE: usize = 5;

    let (Some(first), Some(last)) = (changes.first(), changes.last()) else {
        return;
    };
    let from_first_to_last = usize::from(first.offset)..=usize::from(last.offset);
    let mut piece = page[from_first_to_last].iter().copied().collect::<List<_>>();
    if piece.len() > changes.len() * BYTES_PER_CHANGE {
        for changes_of_record in changes.chunks(wal::MAX_PIECES) {
            wal::change(&mut [Edit::prepare(page, Change::Bytes(changes_of_record))]);
        }
        return;
    }

    // One piece with all bytes from the first to the last one that changes takes less room.
    for change in changes {
        piece[usize::from(change.offset - first.offset)] = change.value;
    }
    wal::change(&mut [Edit::prepare(
        page,
        Change::Piece { offset: first.offset, bytes: &piece },
    )]);
}

/// How the pages of the table that have no tile yet should be divided into ranges.
enum Division {
    /// As the directory says.
    Unchanged,
    /// Each page into several ranges, since a page has much text.
    Split(Split),
    /// Each page is a range by itself again: those before them are split too finely.
    WholePages,
}

/// Returns how the pages of the table that the index doesn't cover yet should be divided into
/// *ranges*, parts of the table that have a Bloom filter each:
///
/// | result | when |
/// |---|---|
/// | `Unchanged` | as now: nothing may change, or the last pages have too few rows to tell |
/// | `Split` | pages are whole ranges now, and have so much text that each should be several ranges |
/// | `WholePages` | pages are split now, into at least four times the ranges that their text needs |
///
/// The last pages of the table, up to the one of the row that is being inserted, tell how much text
/// pages have. `directory` says how pages are divided now.
///
/// Pages of the table are read, so the caller must not hold the lock of a page of the index. Fails
/// with XX002 if the index is damaged.
fn division_of_new_pages(
    index: &RangesIndex,
    directory: &Directory,
    row: RowId,
) -> Result<Division> {
    /// A split is too fine if a page has this many times the ranges that it should have.
    const TOO_MANY_TIMES: u16 = 4;

    if !may_division_change(index, directory)? {
        return Ok(Division::Unchanged);
    }
    let table = Opened::table_of(index.relation);
    let wanted_split =
        match sample::division_by_last_pages(index.relation, table.relation(), row.page) {
            LastPages::TooFew => return Ok(Division::Unchanged),
            LastPages::Whole => None,
            LastPages::Split(split) => Some(split),
        };

    match (split_of_new_pages(directory), wanted_split) {
        (None, None) => Ok(Division::Unchanged),
        (None, Some(wanted_split)) => Ok(Division::Split(wanted_split)),
        (Some(split), wanted_split) => {
            let wanted_ranges = wanted_split.map_or(1, |wanted| wanted.ranges_per_page);
            let is_too_fine = split.ranges_per_page >= TOO_MANY_TIMES * wanted_ranges;
            Ok(if is_too_fine { Division::WholePages } else { Division::Unchanged })
        }
    }
}

/// Returns the split that also applies to pages that the table will get; `None` if each of them
/// will be one range.
fn split_of_new_pages(directory: &Directory) -> Option<Split> {
    directory.options.split.filter(|split| split.is_open())
}

/// Returns whether it is worth a look at the table how new pages should be divided into ranges,
/// which have a Bloom filter each: pages are one range each and may be split, or they are split,
/// and so many ranges have no keys that the split may be too fine. Reads pages of the index. Fails
/// with XX002 if it is damaged.
fn may_division_change(index: &RangesIndex, directory: &Directory) -> Result<bool> {
    /// A *column* has the bits of one range. If fewer of the last tile's columns have keys, ranges
    /// may be too small: then pages have few rows, because these are wide, or because nobody has
    /// filled the pages yet.
    const FEW_COLUMNS: f64 = 0.25;

    if directory.may_split_new_pages() {
        return Ok(true);
    }
    if split_of_new_pages(directory).is_none() {
        return Ok(false);
    }
    let share_with_keys = index.checked(directory.used_share(&mut index.pages()))?;
    Ok(share_with_keys < FEW_COLUMNS)
}

/// Adds tiles to an index for a row on a page of the table that has no tile yet, and returns the
/// newest directory, the list of all tiles. A *tile* is the pages of the index with the Bloom
/// filters of some neighbouring *ranges*, parts of the table.
///
/// Where many pages before the row's have no tile either, a call adds only some tiles. It adds none
/// if another session has changed the directory in the meantime. So the caller calls this until the
/// directory has a tile for the row's range.
///
/// `key` is the hash of a key of the row, which the caller adds once there is a tile. Nothing is
/// written if that would fail then: the pages of the new tiles must be empty, and the pages on which
/// `key` will have its bits must not be damaged.
///
/// The metapage is locked exclusively, and pages of the table are read before that, so the caller
/// must not hold a page lock. Fails with 54000 if the index would have too many pages, and with
/// XX002 if it is damaged.
#[cold]
fn grow(index: &RangesIndex, row: RowId, key: u64) -> Result<Rc<Directory>> {
    let known = index.directory()?;
    // Pages of the table are read here, before any page of the index is locked. Pages that are
    // skipped stay whole, so the division is decided when they have their tiles.
    let division = if has_pages_to_skip(index, &known, row)? {
        Division::Unchanged
    } else {
        division_of_new_pages(index, &known, row)?
    };

    let meta = index.pages().meta()?.exclusive();
    let newest = index.directory_under(&meta)?;
    if newest.chain != known.chain {
        // Another session has added tiles, or divides pages in another way.
        return Ok(newest);
    }

    let directory = with_division(known, division);
    let range = directory.options.range_of(row);
    let keys_seen = |level| keys_in_last_tile(index, &directory, level);
    let growth = match directory.grow_over_skipped(row.page, keys_seen)? {
        Some(growth) => growth,
        None => directory.grow(range, keys_seen)?,
    };

    // Checked before anything is written: a page that can't be written later would leave a tile
    // without it.
    index.pages().check_new(&directory.chain, &growth.directory.chain)?;
    check_pages_of_key(index, &growth.directory, range, key)?;
    // If the directory can't be written yet, the division is decided anew at the next attempt.
    index.write_directory(meta, growth)
}

/// Returns a directory that divides the pages of the table without a tile in this way.
fn with_division(mut directory: Rc<Directory>, division: Division) -> Rc<Directory> {
    match division {
        Division::Unchanged => {}
        Division::Split(split) => Rc::make_mut(&mut directory).split_new_pages(split),
        Division::WholePages => Rc::make_mut(&mut directory).make_new_pages_whole(),
    }
    directory
}

/// Returns whether a row is so far behind the pages of the table with a tile that [`grow`] will
/// *skip* pages between: give them small tiles, since they have hardly any rows. This plans the
/// growth, and adds nothing; the caller needs no lock. Fails as [`grow`] does.
fn has_pages_to_skip(index: &RangesIndex, directory: &Directory, row: RowId) -> Result<bool> {
    let keys_seen = |level| keys_in_last_tile(index, directory, level);
    let growth = directory.grow_over_skipped(row.page, keys_seen)?;
    Ok(growth.is_some())
}

/// Returns how many keys each column (the bits of one range) of a level's last tile has. The next
/// tile is sized by them. Reads pages of the index, and fails with XX002 if one is damaged.
fn keys_in_last_tile(
    index: &RangesIndex,
    directory: &Directory,
    level: Level,
) -> Result<List<f64>> {
    index.checked(directory.keys_in_last_tile(&mut index.pages(), level))
}

/// Checks the pages on which a key of a range has its bits, as far as the file has them. Fails with
/// XX002 if one of them is damaged: then the key couldn't be added.
fn check_pages_of_key(
    index: &RangesIndex,
    directory: &Directory,
    range: u32,
    key: u64,
) -> Result<()> {
    for mark in directory.marks(range, key).iter().flatten() {
        index
            .pages()
            .check_each(mark.page()..mark.page() + 1, mark.special())?;
    }
    Ok(())
}

/// Keys that a session remembers, over all indexes: 192 kB. A range of log lines has some 6,000.
const RECENT_KEYS: usize = 1 << 13;

/// A key whose bits are set in a range of an index.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct RecentKey {
    /// The number of the reading by which the session knows the index: see
    /// [`crate::index::session`].
    pub load_number: u64,
    pub range: u32,
    pub hash: u64,
}

/// The keys that this session has recently set, or found set. Each is in the place that its hash
/// names, and replaces the one that was there.
#[derive(Default)]
pub struct RecentKeys(RefCell<List<RecentKey>>);

impl RecentKeys {
    /// Returns whether a key was added and not replaced since.
    pub fn has(&self, key: &RecentKey) -> bool {
        self.0.borrow().get(Self::place_of(key)) == Some(key)
    }

    /// Remembers a key whose bits are set, and forgets another one that was in its place.
    pub fn add(&self, key: RecentKey) {
        let mut keys = self.0.borrow_mut();
        if keys.is_empty() {
            // No index has the number 0, so an empty place is no key.
            *keys = List::zeroed(RECENT_KEYS);
        }
        keys[Self::place_of(&key)] = key;
    }

    fn place_of(key: &RecentKey) -> usize {
        key.hash as usize % RECENT_KEYS
    }
}

/// Returns whether this session remembers that the bits of a key are set in a range.
fn was_set_recently(index: &RangesIndex, range: u32, hash: u64) -> bool {
    let key = RecentKey { load_number: index.load_number(), range, hash };
    RECENT.with(|recent| recent.has(&key))
}

/// Remembers that the bits of a key are set in a range. Call it after they are logged.
fn remember_as_set(index: &RangesIndex, range: u32, hash: u64) {
    let key = RecentKey { load_number: index.load_number(), range, hash };
    RECENT.with(|recent| recent.add(key));
}

session_locals! {
    static RECENT: RecentKeys = const { RecentKeys(RefCell::new(List::new())) };
}
