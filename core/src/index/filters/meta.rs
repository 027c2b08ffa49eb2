//! Reading a directory from its pages, and the metapage as bytes. The metapage of this index has
//! neither fields of its own nor records: all records are in directory pages.

use super::directory::Directory;
use super::record::{Record, read_record};
use super::tile::Tile;
use crate::index::chain::{Chain, IndexDirectory, META_PAGE, MetaForm, StoredDirectory};
use crate::index::page::{Damage, PageNumber, PageSize, Pages, WrongField, check_field};
use crate::interrupt;
use crate::memory::List;
use std::ops::Range;

/// What distinguishes the metapage of this index.
const FORM: MetaForm = MetaForm { magic: *b"bfrw", own_bytes: 0 };

impl IndexDirectory for Directory {
    fn read<P: Pages>(pages: &mut P, size: PageSize) -> Result<Directory, P::Error> {
        let stored = StoredDirectory::read(&FORM, pages, size)?;
        Ok(Directory::parse(stored, size)?)
    }

    fn chain(&self) -> &Chain {
        &self.chain
    }

    fn metapage(&self) -> List<u8> {
        let no_fields = &[];
        let no_records = &[];
        self.chain.metapage(&FORM, self.size, no_fields, no_records)
    }
}

impl Directory {
    /// Reads the directory of an index, which says where its filters are, from the records on its
    /// directory pages. Pages have `size` bytes.
    ///
    /// There are two kinds of records. A *group* is what filters have in common that may share
    /// pages: shape, and kind of elements. A *tile* is some neighbouring pages with filters of one
    /// group side by side.
    ///
    /// The records decide where bits are written. So it is also checked that each allocated page of
    /// the index belongs to exactly one tile, or is a directory page.
    ///
    /// Fails if a record is invalid, or if an allocated page belongs to nothing, or to two things.
    fn parse(stored: StoredDirectory, size: PageSize) -> Result<Directory, Damage> {
        // The index over ranges has records in its metapage, too, but this index has none there.
        let bytes_in_metapage = stored.meta_records.len() as u64;
        check_field("bytes of records", bytes_in_metapage, bytes_in_metapage == 0)
            .map_err(|wrong| wrong.on(META_PAGE))?;

        let mut directory = Directory::empty(size);
        directory.chain = stored.chain;
        let mut directory_pages = stored.pages;
        let mut owned = OwnedPages::default();
        for page_records in &directory_pages {
            owned.add(page_records.page..page_records.page + 1);
            directory
                .add_records(&page_records.bytes, &mut owned)
                .map_err(|wrong| wrong.on(page_records.page))?;
        }

        // The next record will be added to the last page, so the directory keeps its bytes.
        if let Some(newest) = directory_pages.pop() {
            directory.newest_records = newest.bytes;
        }

        owned
            .check_all_allocated(directory.chain.allocated)
            .map_err(|wrong| wrong.on(META_PAGE))?;
        Ok(directory)
    }

    /// Adds the records of one directory page to the directory: tiles, and groups of filters that
    /// share tiles. Adds the pages of the tiles to `owned`.
    ///
    /// Fails if a record is invalid, or does not continue the records before it.
    fn add_records(&mut self, records: &[u8], owned: &mut OwnedPages) -> Result<(), WrongField> {
        let mut unread = records;
        while !unread.is_empty() {
            interrupt::check();
            match read_record(&mut unread, self)? {
                Record::Group(group) => self.add_group(group),
                Record::Tile(tile) => {
                    owned.add_tile(&tile);
                    self.add_tile(tile);
                }
            }
        }
        Ok(())
    }
}

/// The pages of an index that belong to a tile or are a directory page.
#[derive(Default)]
struct OwnedPages(List<Range<PageNumber>>);

impl OwnedPages {
    /// Adds the pages of one owner; the range may be empty.
    fn add(&mut self, pages: Range<PageNumber>) {
        if !pages.is_empty() {
            self.0.push(pages);
        }
    }

    /// Adds the pages of a tile, and its row page unless an earlier tile owns that.
    fn add_tile(&mut self, tile: &Tile) {
        // Tiles may share a row page. Only one of them begins with its first slot.
        if tile.first_slot == 0 {
            self.add(tile.row_page..tile.row_page + 1);
        }
        self.add(tile.pages());
    }

    /// Checks that each page from 1 to `allocated - 1` has an owner, that no page has two, and that
    /// no other page has one. Page 0 is the metapage, which needs no owner.
    ///
    /// Fails with the first page that is wrong.
    fn check_all_allocated(mut self, allocated: PageNumber) -> Result<(), WrongField> {
        self.0.sort_unstable_by_key(|pages| pages.start);

        let mut next_page = META_PAGE + 1;
        for pages in self.0 {
            check_field("a page with two owners", pages.start, pages.start >= next_page)?;
            check_field("a page without an owner", next_page, pages.start == next_page)?;
            next_page = pages.end;
        }
        check_field("number of allocated pages", allocated, allocated == next_page)
    }
}
