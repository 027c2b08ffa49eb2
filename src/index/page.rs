//! The pages of an index: in PostgreSQL's buffers, and while the index is being built. Also the
//! errors about damaged indexes.

use crate::pg::call::{Error, Result, SqlState, interrupt};
use crate::pg::storage::announce::{self, LEAST_PAGES_ANNOUNCED};
use crate::pg::storage::buffer::{self, Exclusive, Pin};
use crate::pg::storage::relation::{PAGE_BYTES, Relation};
use crate::pg::storage::wal::{self, NewPages, PageLayout};
use pg_bloom_core::index::chain::{Chain, META_PAGE};
use pg_bloom_core::index::page::{
    Damage, PAGE_HEADER_BYTES, PageSize, Pages, RowId, SPECIAL_BYTES, Special,
};
use pg_bloom_core::memory::List;
use pgrx::pg_sys;
use std::cell::Cell;
use std::mem::offset_of;
use std::ops::Range;

// The core has the size of a page's header as a number.
const _: () = assert!(PAGE_HEADER_BYTES == offset_of!(pg_sys::PageHeaderData, pd_linp));

/// The size of PostgreSQL's pages.
pub const PAGE_SIZE: PageSize = PageSize::new(PAGE_BYTES).expect("PostgreSQL has such pages");

/// How many pages of an index lookups must find in memory, one after the other, before they take
/// the index for one that is in memory. Looking up pages that are announced, for nothing, would
/// then take up to a tenth of the time of a lookup.
const PAGES_OF_INDEX_IN_MEMORY: u32 = 64;

/// Returns the error (XX002) for a damaged page of an index.
#[cold]
pub fn damaged(index: Relation, Damage { page, problem }: Damage) -> Error {
    Error::new(
        SqlState::ERRCODE_INDEX_CORRUPTED,
        format!("block {page} of index \"{}\" is damaged", index.name()),
    )
    .detail(format!("As a page of a bloom_filter index, {problem}."))
    .hint("REINDEX it.")
}

/// Returns the error (XX001) for a page of a table that PostgreSQL can't scan.
#[cold]
pub fn damaged_table_page(table: Relation, page: u32, problem: &str) -> Error {
    let message = format!("block {page} of table \"{}\" is damaged", table.name());
    Error::new(SqlState::ERRCODE_DATA_CORRUPTED, message)
        .detail(format!("As a page of a table, {problem}."))
        .hint("Examine the table with verify_heapam() of the extension amcheck. Its indexes are not the cause.")
}

/// Returns the error (XX000) for an element without a hash. That can't happen: numbers have one
/// width in an index, so each has a hash. It is an error all the same, since an index that left
/// such a row out would miss it.
#[cold]
pub fn unhashed() -> Error {
    Error::new(SqlState::ERRCODE_INTERNAL_ERROR, "element has no hash")
}

/// What a session knows about the file of an index.
#[derive(Default)]
pub struct IndexFile {
    /// How many pages the file had when last seen. It never gets shorter.
    pages: Cell<u32>,
    /// How many pages lookups have found in memory since they last read one from disk.
    pages_found_in_memory: Cell<u32>,
    /// How many pages the session has read so far, from memory or from disk.
    pages_read: Cell<u64>,
}

impl IndexFile {
    /// Returns how many pages the session has read so far, from memory or from disk.
    pub fn pages_read(&self) -> u64 {
        self.pages_read.get()
    }
}

/// The pages of an index that is open.
pub struct IndexPages<'a> {
    pub relation: Relation<'a>,
    file: &'a IndexFile,
    /// Pages that were announced and not read yet, in the order of their announcements.
    announced: List<u32>,
    /// The most pages that are announced and not read; `None` if that wasn't asked for yet.
    most_announced: Option<usize>,
}

impl<'a> IndexPages<'a> {
    /// Returns the pages of an open index. `file` is what this session knows about its file.
    pub fn new(relation: Relation<'a>, file: &'a IndexFile) -> IndexPages<'a> {
        IndexPages { relation, file, announced: List::new(), most_announced: None }
    }

    /// Returns whether the file has a page. Asks the operating system only for pages behind the end
    /// that this session has seen.
    pub fn has(&self, page: u32) -> bool {
        let known = &self.file.pages;
        page < known.get() || {
            known.set(self.relation.pages());
            page < known.get()
        }
    }

    /// Returns the metapage, pinned. Fails with XX002 if there is none.
    pub fn meta(&self) -> Result<Pin<'a>> {
        if !self.has(META_PAGE) {
            return Err(damaged(self.relation, Damage::empty(META_PAGE)));
        }
        Ok(self.pin(META_PAGE))
    }

    /// Pins a page, which the file must have.
    fn pin(&self, page: u32) -> Pin<'a> {
        let pages_read = &self.file.pages_read;
        pages_read.set(pages_read.get() + 1);
        Pin::read(self.relation, page)
    }

    /// Returns what `read` returns for the bytes of a page of the index, which is locked for
    /// sharing meanwhile. `read` gets `None` for a page behind the end of the file. The user can
    /// cancel this.
    pub fn read<R>(&self, page: u32, read: impl FnOnce(Option<&[u8]>) -> R) -> R {
        interrupt::check_for_interrupts();
        if self.has(page) { read(Some(&self.pin(page).shared())) } else { read(None) }
    }

    /// Returns a page to write to, pinned. Fails as [`IndexPages::extend_to`] does.
    pub fn existing(&self, page: u32, chain: &Chain) -> Result<Pin<'a>> {
        self.extend_to(page, chain)?;
        Ok(self.pin(page))
    }

    /// Makes the file of an index long enough for a page. If the page is missing, pages of zeros
    /// are added up to it, and up to 255 after it, as far as they are *allocated*: `chain` says how
    /// many pages belong to something in the index. After a jump in the table that may be
    /// gigabytes, and the user can cancel it, unless a page is locked. Fails with XX002 if the page
    /// was not allocated.
    pub fn extend_to(&self, page: u32, chain: &Chain) -> Result<()> {
        const AHEAD: u32 = 256;
        let allocated = chain.allocated;
        if page >= allocated {
            return Err(damaged(self.relation, Damage::field(page, "number of pages", allocated)));
        }
        if !self.has(page) {
            self.file
                .pages
                .set(buffer::extend(self.relation, allocated.min(page.saturating_add(AHEAD))));
        }
        Ok(())
    }

    /// Checks that the pages that are about to be allocated, from the end of `before` to the end of
    /// `after`, are zero in every byte, as far as the file has them: nothing in the index uses them
    /// so far. Fails with XX002 for the first one that isn't.
    pub fn check_new(&self, before: &Chain, after: &Chain) -> Result<()> {
        let is_written = |&at: &u32| {
            self.read(at, |page| page.is_some_and(|page| page.iter().any(|&byte| byte != 0)))
        };
        let problem = "it must be empty, since it was not allocated yet";
        match (before.allocated..after.allocated)
            .take_while(|&at| self.has(at))
            .find(is_written)
        {
            Some(page) => Err(damaged(self.relation, Damage::new(page, problem))),
            None => Ok(()),
        }
    }

    /// Checks those of neighbouring pages that the file has. Fails with XX002 for one that was
    /// written, and is not what `special` says.
    pub fn check_each(&self, pages: Range<u32>, special: Special) -> Result<()> {
        pages.take_while(|&at| self.has(at)).try_for_each(|at| {
            self.read(at, |page| check_written(self.relation, special, at, page))
                .map(drop)
        })
    }
}

impl Pages for IndexPages<'_> {
    type Error = Damage;

    /// Calls `use_page` with the bytes of a page of the index, which is locked for sharing
    /// meanwhile, and returns its result. `use_page` gets `None` if the file ends before the page:
    /// a page that was never written need not be in the file.
    ///
    /// Counts how many pages in a row were already in PostgreSQL's cache. While they are many, the
    /// index is taken for cached as a whole, and callers are told by `can_announce` not to
    /// *announce* pages, that is to ask the operating system to read them ahead.
    fn with_page<R>(
        &mut self,
        page: u32,
        use_page: impl FnOnce(Option<&[u8]>) -> R,
    ) -> std::result::Result<R, Damage> {
        // Pages are read in about the order of their announcements. If earlier ones were not read,
        // they won't be any more, so they don't count as announced either.
        if let Some(index) = self.announced.iter().position(|&announced| announced == page) {
            self.announced.drain(..=index);
        }

        let read_before = announce::pages_read_from_disk();
        let result = self.read(page, use_page);
        let is_from_disk = announce::pages_read_from_disk() > read_before;

        let pages_found_in_memory = &self.file.pages_found_in_memory;
        let one_more = pages_found_in_memory.get().saturating_add(1);
        pages_found_in_memory.set(if is_from_disk { 0 } else { one_more });
        Ok(result)
    }

    /// Returns whether one more page may be announced, so that the operating system reads it from
    /// disk while other pages are in use. Returns `false` if enough pages are announced, while the
    /// index seems to be in memory, and if `effective_io_concurrency` is 0.
    fn can_announce(&mut self) -> bool {
        if self.file.pages_found_in_memory.get() >= PAGES_OF_INDEX_IN_MEMORY {
            return false;
        }
        let relation = self.relation;
        let most =
            self.most_announced
                .get_or_insert_with(|| match announce::io_concurrency(relation) {
                    0 => 0,
                    concurrency => (concurrency as usize).max(LEAST_PAGES_ANNOUNCED),
                });
        self.announced.len() < *most
    }

    fn announce(&mut self, page: u32) {
        // If the file ends before the page, the page has no bits, and can't be announced.
        if !self.announced.contains(&page) && self.has(page) {
            announce::announce(self.relation, page);
            self.announced.push(page);
        }
    }
}

/// The pages of an index whose metapage is locked by the caller.
pub struct BelowMeta<'a> {
    pub meta: &'a [u8],
    pub pages: IndexPages<'a>,
}

impl Pages for BelowMeta<'_> {
    type Error = Damage;

    fn with_page<R>(
        &mut self,
        page: u32,
        use_page: impl FnOnce(Option<&[u8]>) -> R,
    ) -> std::result::Result<R, Damage> {
        // The caller has locked this page already.
        if page == META_PAGE {
            Ok(use_page(Some(self.meta)))
        } else {
            self.pages.with_page(page, use_page)
        }
    }
}

/// Begins to write the pages of a new index. Fails with 55000 if the index has pages.
pub fn begin_index(relation: Relation<'_>) -> Result<NewPages<'_>> {
    if relation.pages() > 0 {
        let message = format!("index \"{}\" already contains data", relation.name());
        return Err(Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message));
    }
    Ok(NewPages::start(relation))
}

/// Makes a page that is locked exclusively ready for changes of single bytes: if it was never
/// written, it becomes an empty page that ends in `special`, with a WAL record; or else it is
/// checked. `at` is its number. Fails with XX002 if it isn't the page that `special` and its number
/// say.
pub fn prepare(index: Relation, special: Special, at: u32, page: &mut Exclusive) -> Result<()> {
    if !check_written(index, special, at, Some(page))? {
        let mut bytes = [0; SPECIAL_BYTES];
        special.write(&mut bytes);
        wal::make_empty(page, &bytes);
    }
    Ok(())
}

/// Checks the page of an index with number `at`, and returns whether it was written yet. A page of
/// zeros wasn't, and neither was one behind the end of the file, for which `page` is `None`.
///
/// Fails with XX002 if the page was written, but isn't the one that `special`, the last bytes of
/// such a page, should say. Also fails if its header calls bytes unused (the *hole* of a page) that
/// may not be zero, since PostgreSQL leaves these out when it logs the page: pages have no hole, or
/// one over all bytes between header and special space, which are zeros then.
fn check_written(index: Relation, special: Special, at: u32, page: Option<&[u8]>) -> Result<bool> {
    let written = special
        .bytes_if_written(page, PAGE_SIZE, at)
        .map_err(|damage| damaged(index, damage))?;
    let Some(page) = written else {
        return Ok(false);
    };
    let layout = PageLayout::of(page);
    let is_empty = || {
        page[PAGE_HEADER_BYTES..PAGE_BYTES - SPECIAL_BYTES]
            .iter()
            .all(|&byte| byte == 0)
    };
    if layout == PageLayout::FULL || (layout == PageLayout::EMPTY && is_empty()) {
        return Ok(true);
    }
    // The two fields that say where the hole is.
    let lower_and_upper = u64::from(layout.lower) << 16 | u64::from(layout.upper);
    Err(damaged(index, Damage::field(at, "the page header", lower_and_upper)))
}

/// Returns the error (XX002) for a row of an index that its table can't have.
pub fn impossible(index: Relation, table: Relation, RowId { page, line }: RowId) -> Error {
    let (index, table) = (index.name(), table.name());
    let message =
        format!("index \"{index}\" has row ({page},{line}), which table \"{table}\" does not have");
    Error::new(SqlState::ERRCODE_INDEX_CORRUPTED, message).hint("REINDEX it.")
}

/// Returns the error (XX002) for a row of a table that its index doesn't find.
pub fn missed(index: Relation, table: Relation, row: RowId) -> Error {
    wrong_row(index, table, row, "misses", "A query that uses the index does not find this row.")
}

/// Returns an error (XX002) about a row of a table, for which the index is wrong: `problem` is the
/// verb of the message, `detail` says what queries meet.
pub fn wrong_row(
    index: Relation,
    table: Relation,
    row: RowId,
    problem: &str,
    detail: &str,
) -> Error {
    let (index, table) = (index.name(), table.name());
    let message =
        format!("index \"{index}\" {problem} row ({},{}) of table \"{table}\"", row.page, row.line);
    Error::new(SqlState::ERRCODE_INDEX_CORRUPTED, message)
        .detail(detail)
        .hint("REINDEX it.")
}
