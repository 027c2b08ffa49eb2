//! Pages of the index in buffers, and what is said of damaged ones.

use crate::pg::call::error::{Error, Result, SqlState};
use crate::pg::call::interrupt;
use crate::pg::method::table::Row;
use crate::pg::storage::buffer::{self, Exclusive, Pin};
use crate::pg::storage::relation::{PAGE_BYTES, Relation};
use crate::pg::storage::wal::{self, Layout};
use pg_bloom_core::index::chain::{Chain, META_PAGE};
use pg_bloom_core::index::page::{Damage, PAGE_HEADER_BYTES, PageSize, Pages, RowId, SPECIAL_BYTES, Special};
use std::cell::Cell;
use std::ops::Range;

pub const PAGE_SIZE: PageSize = match PageSize::new(PAGE_BYTES) {
    Some(size) => size,
    None => panic!("PostgreSQL has no such pages"),
};

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
pub fn damaged(index: Relation, Damage { page, problem }: &Damage) -> Error {
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
    relation: Relation<'a>,
    /// How many pages the file had when last seen. It never gets shorter.
    known: &'a Cell<u32>,
    /// Candidates that were asked for in advance.
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

    /// A page to write to, as [`IndexPages::extend_to`] makes it.
    ///
    /// # Errors
    /// XX002 if the page was not allocated.
    pub fn existing(&self, page: u32, chain: &Chain) -> Result<Pin<'a>> {
        self.extend_to(page, chain)?;
        Ok(Pin::read(self.relation, page))
    }

    /// If the file lacks a page, the file is extended up to it and somewhat further, as far as pages were allocated.
    /// The user can cancel that, unless a page is locked: behind a jump in the table it may be gigabytes.
    ///
    /// # Errors
    /// XX002 if the page was not allocated.
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

    /// Checks that nobody has written to the pages that will be allocated.
    ///
    /// # Errors
    /// XX002 if some session has.
    pub fn check_new(&mut self, before: &Chain, after: &Chain) -> Result<()> {
        for at in before.allocated()..after.allocated() {
            if !self.has(at) {
                break;
            }
            let is_new = self.with(at, |page| page.is_none_or(|page| page.iter().all(|&byte| byte == 0)));
            if !is_new.map_err(|failure| failure.of(self.relation))? {
                let problem = "it must be empty, since it was not allocated yet";
                return Err(damaged(self.relation, &Damage::new(at, problem)));
            }
        }
        Ok(())
    }

    /// Checks those of neighbouring pages that the file has: each is as it was made here, or was not written.
    ///
    /// # Errors
    /// XX002 for one that is not.
    pub fn check_each(&mut self, pages: Range<u32>, special: Special) -> Result<()> {
        let index = self.relation;
        for at in pages {
            if !self.has(at) {
                break;
            }
            let checked = self.with(at, |page| check_written(index, special, at, page));
            checked.map_err(|failure| failure.of(index))??;
        }
        Ok(())
    }
}

impl Pages for IndexPages<'_> {
    type Error = Failure;

    fn with<R>(&mut self, page: u32, f: impl FnOnce(Option<&[u8]>) -> R) -> std::result::Result<R, Failure> {
        interrupt::check_for_interrupts();
        if !self.has(page) {
            return Ok(f(None));
        }
        let pin = Pin::read(self.relation, page);
        Ok(f(Some(&pin.shared())))
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

/// Makes a page ready for its first bytes, and checks that one that has some is the one that it should be.
///
/// # Errors
/// XX002 for a page that was not made here.
pub fn prepare(index: Relation, special: Special, at: u32, page: &mut Exclusive) -> Result<()> {
    if !check_written(index, special, at, Some(page))? {
        let mut bytes = [0; SPECIAL_BYTES];
        special.write(&mut bytes);
        wal::make_empty(page, &bytes);
    }
    Ok(())
}

/// Whether a page was written. Checks that it then is the one that it should be, with the header that keeps its bytes.
///
/// # Errors
/// XX002 for a page that was not made here.
pub fn check_written(index: Relation, special: Special, at: u32, page: Option<&[u8]>) -> Result<bool> {
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
    let message = format!(
        "index \"{}\" has row ({},{}), which table \"{}\" does not have",
        index.name(),
        row.page,
        row.line,
        table.name()
    );
    Error::new(SqlState::ERRCODE_INDEX_CORRUPTED, message).hint("REINDEX it.")
}

/// The error for a row that would not be found.
pub fn missed(index: Relation, table: Relation, row: Row) -> Error {
    wrong_row(index, table, row, "misses", "A query that uses the index does not find this row.")
}

/// The error for a row that the index treats so, and what follows for queries.
pub fn wrong_row(index: Relation, table: Relation, row: Row, problem: &str, detail: &str) -> Error {
    let (index, table) = (index.name(), table.name());
    let message = format!("index \"{index}\" {problem} row ({},{}) of table \"{table}\"", row.page, row.line);
    Error::new(SqlState::ERRCODE_INDEX_CORRUPTED, message).detail(detail).hint("REINDEX it.")
}
