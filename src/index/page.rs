//! Pages of the index: in buffers, and of one that is being built; and what is said of damaged ones.

use crate::pg::call::error::{Error, Result, SqlState};
use crate::pg::call::interrupt;
use crate::pg::method::table::Row;
use crate::pg::storage::buffer::{self, Exclusive, Pin};
use crate::pg::storage::bulk_write::BulkWrite;
use crate::pg::storage::relation::{PAGE_BYTES, Relation};
use crate::pg::storage::wal::{self, Layout};
use pg_bloom_core::index::chain::{Chain, META_PAGE};
use pg_bloom_core::index::page::{Damage, PAGE_HEADER_BYTES, PageSink, PageSize, Pages, RowId, SPECIAL_BYTES, Special};
use std::cell::Cell;
use std::ops::Range;

pub const PAGE_SIZE: PageSize = PageSize::new(PAGE_BYTES).expect("PostgreSQL has such pages");

/// What reading an index can fail with.
pub enum Failure {
    Damage(Damage),
    Error(Error),
}

impl From<Damage> for Failure {
    #[cold]
    fn from(damage: Damage) -> Failure {
        Failure::Damage(damage)
    }
}

impl From<pg_bloom_core::Error> for Failure {
    #[cold]
    fn from(error: pg_bloom_core::Error) -> Failure {
        Failure::Error(error.into())
    }
}

impl Failure {
    /// The error for the user: XX002 for damage.
    #[cold]
    pub fn of(self, index: Relation) -> Error {
        match self {
            Failure::Damage(damage) => damaged(index, &damage),
            Failure::Error(error) => error,
        }
    }
}

#[cold]
fn damaged(index: Relation, Damage { page, problem }: &Damage) -> Error {
    Error::new(SqlState::ERRCODE_INDEX_CORRUPTED, format!("block {page} of index \"{}\" is damaged", index.name()))
        .detail(format!("As a page of a bloom_filter index, {problem}."))
        .hint("REINDEX it.")
}

/// Numbers have one width in an index, so every element has a hash. A row without one must not be left out.
#[cold]
pub fn unhashed() -> Error {
    Error::new(SqlState::ERRCODE_INTERNAL_ERROR, "element has no hash")
}

/// The pages of an index that is open, where one behind the end of the file is `None`.
pub struct IndexPages<'a> {
    pub relation: Relation<'a>,
    /// How many pages the file had when last seen. It never gets shorter.
    known: &'a Cell<u32>,
    prefetched: u32,
}

impl<'a> IndexPages<'a> {
    pub fn new(relation: Relation<'a>, known: &'a Cell<u32>) -> IndexPages<'a> {
        IndexPages { relation, known, prefetched: 0 }
    }

    pub fn has(&self, page: u32) -> bool {
        page < self.known.get() || {
            self.known.set(self.relation.pages());
            page < self.known.get()
        }
    }

    /// The metapage: XX002 if there is none.
    pub fn meta(&self) -> Result<Pin<'a>> {
        if !self.has(META_PAGE) {
            return Err(damaged(self.relation, &Damage::empty(META_PAGE)));
        }
        Ok(Pin::read(self.relation, META_PAGE))
    }

    /// What `read` makes of the bytes of a page; `None` is one behind the end of the file.
    pub fn read<R>(&self, page: u32, read: impl FnOnce(Option<&[u8]>) -> R) -> R {
        interrupt::check_for_interrupts();
        if !self.has(page) {
            return read(None);
        }
        read(Some(&Pin::read(self.relation, page).shared()))
    }

    /// A page to write to, as [`IndexPages::extend_to`] makes it. Errors: as there.
    pub fn existing(&self, page: u32, chain: &Chain) -> Result<Pin<'a>> {
        self.extend_to(page, chain)?;
        Ok(Pin::read(self.relation, page))
    }

    /// If the file lacks a page, the file is extended up to it and somewhat further, as far as pages were allocated.
    /// The user can cancel that, unless a page is locked: behind a jump in the table it may be gigabytes. XX002 if the
    /// page was not allocated.
    pub fn extend_to(&self, page: u32, chain: &Chain) -> Result<()> {
        /// Pages by which the file is extended beyond the one that is needed, at most.
        const AHEAD: u32 = 256;
        let allocated = chain.allocated();
        if page >= allocated {
            return Err(damaged(self.relation, &Damage::field(page, "number of pages", allocated)));
        }
        if !self.has(page) {
            self.known.set(buffer::extend(self.relation, allocated.min(page.saturating_add(AHEAD))));
        }
        Ok(())
    }

    /// Checks that nobody has written to the pages that will be allocated: XX002 if some session has.
    pub fn check_new(&self, before: &Chain, after: &Chain) -> Result<()> {
        for page in (before.allocated()..after.allocated()).take_while(|&page| self.has(page)) {
            if !self.read(page, |page| page.is_none_or(|page| page.iter().all(|&byte| byte == 0))) {
                return Err(damaged(
                    self.relation,
                    &Damage::new(page, "it must be empty, since it was not allocated yet"),
                ));
            }
        }
        Ok(())
    }

    /// Checks those of neighbouring pages that the file has: XX002 for one that was written, and not made here.
    pub fn check_each(&self, pages: Range<u32>, special: Special) -> Result<()> {
        pages.take_while(|&at| self.has(at)).try_for_each(|at| self.check_one(at, special))
    }

    /// Checks a page, if it was written: XX002 for one that was not made here.
    pub fn check_one(&self, at: u32, special: Special) -> Result<()> {
        self.read(at, |page| check_written(self.relation, special, at, page)).map(drop)
    }
}

impl Pages for IndexPages<'_> {
    type Error = Failure;

    fn with<R>(&mut self, page: u32, f: impl FnOnce(Option<&[u8]>) -> R) -> std::result::Result<R, Failure> {
        Ok(self.read(page, f))
    }

    fn prefetch(&mut self, page: u32) {
        // The first one is read at once.
        let ahead = self.prefetched;
        self.prefetched += 1;
        if ahead > 0 && ahead <= buffer::io_concurrency(self.relation) && self.has(page) {
            buffer::prefetch(self.relation, page);
        }
    }
}

/// The same for many lookups in a small index: pages are fetched from memory whole, and some stay in their buffers.
pub struct PinnedPages<'a> {
    pages: IndexPages<'a>,
    /// Each page in the place that its number says.
    pinned: [Option<(u32, Pin<'a>)>; 8],
}

impl<'a> PinnedPages<'a> {
    pub fn new(pages: IndexPages<'a>) -> PinnedPages<'a> {
        PinnedPages { pages, pinned: [const { None }; 8] }
    }
}

impl Pages for PinnedPages<'_> {
    type Error = Failure;

    fn with<R>(&mut self, page: u32, f: impl FnOnce(Option<&[u8]>) -> R) -> std::result::Result<R, Failure> {
        interrupt::check_for_interrupts();
        let place = &mut self.pinned[page as usize % 8];
        if place.as_ref().is_none_or(|(number, _)| *number != page) {
            if !self.pages.has(page) {
                return Ok(f(None));
            }
            let pin = Pin::read(self.pages.relation, page);
            pin.approach();
            *place = Some((page, pin));
        }
        Ok(f(place.as_ref().map(|(_, pin)| pin.shared()).as_deref()))
    }
}

/// The pages of an index whose metapage is locked by the caller.
pub struct BelowMeta<'a> {
    pub meta: &'a [u8],
    pub pages: IndexPages<'a>,
}

impl Pages for BelowMeta<'_> {
    type Error = Failure;

    fn with<R>(&mut self, page: u32, f: impl FnOnce(Option<&[u8]>) -> R) -> std::result::Result<R, Failure> {
        if page == META_PAGE { Ok(f(Some(self.meta))) } else { self.pages.with(page, f) }
    }
}

/// A new index, whose pages behind the metapage are written one after the other.
pub struct NewIndex<'r>(BulkWrite<'r>);

impl<'r> NewIndex<'r> {
    /// Begins with an index without pages: 55000 if it has some.
    pub fn begin(relation: Relation<'r>) -> Result<NewIndex<'r>> {
        if relation.pages() > 0 {
            let message = format!("index \"{}\" already contains data", relation.name());
            return Err(Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message));
        }
        Ok(NewIndex(BulkWrite::start(relation)))
    }

    /// Writes the metapage, when all other pages were written.
    pub fn finish(self, meta: &[u8]) {
        self.0.finish(meta);
    }
}

impl PageSink for NewIndex<'_> {
    type Error = Error;

    fn write(&mut self, page: &[u8]) -> Result<()> {
        self.0.write(page);
        Ok(())
    }
}

/// Makes a page ready for its first bytes, and checks one that has some as [`check_written`] does.
pub fn prepare(index: Relation, special: Special, at: u32, page: &mut Exclusive) -> Result<()> {
    if !check_written(index, special, at, Some(page))? {
        let mut bytes = [0; SPECIAL_BYTES];
        special.write(&mut bytes);
        wal::make_empty(page, &bytes);
    }
    Ok(())
}

/// Whether a page was written. It then must be the one that it should be, with the header that keeps its bytes: XX002
/// for a page that was not made here.
fn check_written(index: Relation, special: Special, at: u32, page: Option<&[u8]>) -> Result<bool> {
    let written = special.written(page, PAGE_SIZE, at).map_err(|damage| damaged(index, &damage))?;
    let Some(page) = written else { return Ok(false) };
    let layout = Layout::of(page);
    let is_empty = || page[PAGE_HEADER_BYTES..PAGE_BYTES - SPECIAL_BYTES].iter().all(|&byte| byte == 0);
    if layout == Layout::FULL || layout == Layout::EMPTY && is_empty() {
        return Ok(true);
    }
    let found = u64::from(layout.lower) << 16 | u64::from(layout.upper);
    Err(damaged(index, &Damage::field(at, "the page header", found)))
}

/// The error for a row that is found, and can't be there.
pub fn impossible(index: Relation, table: Relation, row: RowId) -> Error {
    let (index, table) = (index.name(), table.name());
    let RowId { page, line } = row;
    let message = format!("index \"{index}\" has row ({page},{line}), which table \"{table}\" does not have");
    Error::new(SqlState::ERRCODE_INDEX_CORRUPTED, message).hint("REINDEX it.")
}

pub fn missed(index: Relation, table: Relation, row: Row) -> Error {
    wrong_row(index, table, row, "misses", "A query that uses the index does not find this row.")
}

/// The error for a row that the index treats so, and what follows for queries.
pub fn wrong_row(index: Relation, table: Relation, row: Row, problem: &str, detail: &str) -> Error {
    let (index, table) = (index.name(), table.name());
    let message = format!("index \"{index}\" {problem} row ({},{}) of table \"{table}\"", row.page, row.line);
    Error::new(SqlState::ERRCODE_INDEX_CORRUPTED, message).detail(detail).hint("REINDEX it.")
}
