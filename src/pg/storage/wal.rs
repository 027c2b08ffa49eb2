//! Changes of pages, each with its WAL record.
//!
//! Records are those of PostgreSQL's generic resource manager, which any server can replay, made by
//! hand: its own functions compare whole pages, which takes ten times as long as all else that an
//! insertion does.
//!
//! ```text
//! record         block 0 … 3, each:  pieces           offset u16 │ length u16 │ bytes …     copied into the page
//!                               or:  the whole page, without the hole between pd_lower and pd_upper
//! replay         copies the pieces, then zeroes the hole
//! ```
//!
//! Replay needs a page that was written before, so a page of zeros is first made an empty one, by a
//! record of its own with the whole page: all of it is hole, so that takes 80 bytes rather than
//! 8,192. The first pieces then come with `pd_lower`, set to `pd_upper`: from then on the page has
//! no hole. See [`make_empty`] and [`change`].
//!
//! In a critical section an error would stop the server. Nothing there can raise one but what
//! PostgreSQL itself does in such sections: what needs memory is made before.

use super::buffer::{Exclusive, Pin, extend};
use super::relation::{MAIN_FORK, PAGE_BYTES, Relation};
use crate::pg::call::{Error, Result};
use pg_bloom_core::index::page::{ByteChange, PageSink, SPECIAL_BYTES};
use pg_bloom_core::memory::List;
use pgrx::pg_sys;

/// Bytes of PostgreSQL's header of a page.
const HEADER_BYTES: usize = std::mem::offset_of!(pg_sys::PageHeaderData, pd_linp);
/// The place of `pd_lower` in a page; `pd_upper`, `pd_special` and the page's size and version
/// follow.
const LOWER_AT: usize = std::mem::offset_of!(pg_sys::PageHeaderData, pd_lower);
/// The most pages of one record, as PostgreSQL's generic resource manager has it.
pub const MAX_PAGES: usize = 4;
/// The most bytes that a page's pieces may change in one record.
pub const MAX_PIECES: usize = 64;

/// Where the hole of a page is, the unused bytes from `lower` to `upper`, and where its special
/// space begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    pub lower: u16,
    pub upper: u16,
    pub special: u16,
    /// Bytes of the page, and the version of its layout.
    pub size: u16,
}

impl PageLayout {
    /// A page that has nothing but a hole between its header and its special space.
    pub const EMPTY: PageLayout = PageLayout::new(HEADER_BYTES);
    /// A page without a hole.
    pub const FULL: PageLayout = PageLayout::new(PAGE_BYTES - SPECIAL_BYTES);

    /// Reads the header of a page. All numbers are 0 for a page that was not written yet.
    pub fn of(page: &[u8]) -> PageLayout {
        let number =
            |i: usize| u16::from_ne_bytes([page[LOWER_AT + 2 * i], page[LOWER_AT + 2 * i + 1]]);
        PageLayout {
            lower: number(0),
            upper: number(1),
            special: number(2),
            size: number(3),
        }
    }

    /// Returns the layout of a page of this extension whose hole begins at byte `lower`, and goes
    /// to the special space.
    const fn new(lower: usize) -> PageLayout {
        let special = (PAGE_BYTES - SPECIAL_BYTES) as u16;
        let size = PAGE_BYTES as u16 | pg_sys::PG_PAGE_LAYOUT_VERSION as u16;
        PageLayout { lower: lower as u16, upper: special, special, size }
    }

    /// Writes this into the header of a page.
    fn write(self, page: &mut [u8]) {
        for (i, number) in [self.lower, self.upper, self.special, self.size]
            .into_iter()
            .enumerate()
        {
            page[LOWER_AT + 2 * i..][..2].copy_from_slice(&number.to_ne_bytes());
        }
    }
}

/// A change of one page.
pub enum Change<'a> {
    /// Single bytes to be set, behind the header, in a page that was written before. The page then
    /// has no hole.
    Bytes(&'a [ByteChange]),
    /// Neighbouring bytes to be set, the first one at this offset in the page. What `Bytes` says of
    /// the page holds here, too.
    Piece { offset: u16, bytes: &'a [u8] },
    /// The whole page. Its PostgreSQL header is made by this module: zeros before the special space
    /// become the hole.
    Page(&'a [u8]),
}

/// A page that is locked exclusively, with the change that [`change`] will make to it.
pub struct Edit<'e> {
    buffer: pg_sys::Buffer,
    /// Whether the change needs a WAL record.
    is_logged: bool,
    page: &'e mut [u8],
    /// The bytes of the new page, if the page is replaced as a whole.
    new_page: Option<&'e [u8]>,
    /// What is copied into the page otherwise, in the form of the WAL record: for each piece its
    /// offset in the page, its length and its bytes.
    pieces: List<u8>,
}

impl<'e> Edit<'e> {
    /// Prepares a change of a page that is locked exclusively: what a WAL record must say of it.
    /// The page stays as it is until the result is passed to [`change`], which changes the page and
    /// writes the record. That allocates memory, which must not fail once a page has been changed,
    /// so it is done here.
    ///
    /// Panics if `change` has more than 64 single bytes, or bytes of PostgreSQL's page header. Also
    /// panics if the page is still all zeros, as it was when the file was extended, unless `change`
    /// is a whole page.
    pub fn prepare(page: &'e mut Exclusive<'_>, change: Change<'e>) -> Edit<'e> {
        let mut edit = Edit {
            buffer: page.buffer,
            is_logged: page.relation().needs_wal(),
            page: page.bytes_mut(),
            new_page: None,
            pieces: List::new(),
        };
        match change {
            Change::Bytes(bytes) => {
                assert!(bytes.len() <= MAX_PIECES, "too many pieces");
                for change in bytes {
                    edit.add_piece(change.offset, std::slice::from_ref(&change.value));
                }
            }
            Change::Piece { offset, bytes } => edit.add_piece(offset, bytes),
            Change::Page(bytes) => {
                assert_eq!(bytes.len(), PAGE_BYTES, "the size of a page");
                edit.new_page = Some(bytes);
            }
        }
        edit
    }

    /// Adds a *piece* to the WAL record: bytes, and the offset in the page to which replay copies
    /// them.
    ///
    /// After the last piece replay zeroes the page's *hole*, the bytes from `pd_lower` to `pd_upper`
    /// that the page's header calls unused. So if the page has a hole, the first piece is preceded
    /// by one that sets `pd_lower` to `pd_upper`. Panics for a page that was never written, and for
    /// bytes of the page's header or behind its end.
    fn add_piece(&mut self, offset: u16, bytes: &[u8]) {
        let PageLayout { lower, upper, .. } = PageLayout::of(self.page);
        let start = usize::from(offset);
        assert_ne!(upper, 0, "a page that was written");
        assert!(
            start >= HEADER_BYTES && start + bytes.len() <= PAGE_BYTES,
            "bytes behind the header"
        );

        let has_hole = lower != upper;
        if has_hole && self.pieces.is_empty() {
            self.append_piece(LOWER_AT as u16, &upper.to_ne_bytes());
        }
        self.append_piece(offset, bytes);
    }

    /// Appends a piece as replay reads it: offset, length, bytes.
    fn append_piece(&mut self, offset: u16, bytes: &[u8]) {
        self.pieces.extend_from_slice(&offset.to_ne_bytes());
        self.pieces.extend_from_slice(&(bytes.len() as u16).to_ne_bytes());
        self.pieces.extend_from_slice(bytes);
    }
}

/// Changes up to four pages of one relation, and writes one WAL record for all of them if the
/// relation needs WAL. Either all changes survive a crash, or none does. The pages stay locked.
///
/// Panics for more pages, and for pages of which some need a record and others don't. An error
/// within stops the server, since it would leave a change without its record.
pub fn change(edits: &mut [Edit<'_>]) {
    assert!(edits.len() <= MAX_PAGES, "a generic record has four pages");
    let is_logged = edits.iter().any(|edit| edit.is_logged);
    if is_logged {
        assert!(edits.iter().all(|edit| edit.is_logged), "pages of one relation");
        // SAFETY: this session writes no other record now.
        unsafe { pg_sys::XLogBeginInsert() };
    }
    critical_section(|| {
        for (edit, number) in edits.iter_mut().zip(0..) {
            match edit.new_page {
                Some(bytes) => fill(edit.page, bytes),
                None => apply(edit.page, &edit.pieces),
            }
            mark_dirty(edit);
            if is_logged {
                register(edit, number);
            }
        }
        if is_logged {
            finish(edits);
        }
    });
}

/// Copies pieces into a page, as PostgreSQL does when it replays the WAL record. Each piece is its
/// offset in the page (u16), its length (u16) and its bytes.
fn apply(page: &mut [u8], mut pieces: &[u8]) {
    while let Some((&[offset_0, offset_1, length_0, length_1], rest)) = pieces.split_first_chunk() {
        let offset = usize::from(u16::from_ne_bytes([offset_0, offset_1]));
        let length = usize::from(u16::from_ne_bytes([length_0, length_1]));
        let (bytes, rest) = rest.split_at(length);
        page[offset..][..length].copy_from_slice(bytes);
        pieces = rest;
    }
}

/// Replaces a whole page except for the LSN, the position of its last WAL record, in its first
/// eight bytes. Its header is made so that trailing zeros before the special space are the hole.
fn fill(page: &mut [u8], bytes: &[u8]) {
    let payload = &bytes[HEADER_BYTES..PAGE_BYTES - SPECIAL_BYTES];
    let trailing_zeros = payload.iter().rev().take_while(|&&byte| byte == 0).count();
    let used = payload.len() - trailing_zeros;
    page[size_of::<u64>()..HEADER_BYTES].fill(0);
    page[HEADER_BYTES..].copy_from_slice(&bytes[HEADER_BYTES..]);
    PageLayout::new(HEADER_BYTES + used).write(page);
}

/// Notes that a changed page must be written to disk.
fn mark_dirty(edit: &Edit<'_>) {
    // SAFETY: an `Edit` borrows a page that is pinned and locked exclusively.
    unsafe { pg_sys::MarkBufferDirty(edit.buffer) };
}

/// Adds the change of a page to the WAL record that was begun, as block `number` of the record,
/// from 0: the whole page, or the pieces that replay copies into it.
fn register(edit: &Edit<'_>, number: u8) {
    let standard = pg_sys::REGBUF_STANDARD as u8;
    let with_whole_page = pg_sys::REGBUF_FORCE_IMAGE as u8;
    // SAFETY: an `Edit` borrows a page that is pinned and locked exclusively, and its pieces exist
    // until the record is written.
    unsafe {
        if edit.new_page.is_some() {
            pg_sys::XLogRegisterBuffer(number, edit.buffer, standard | with_whole_page);
            return;
        }
        pg_sys::XLogRegisterBuffer(number, edit.buffer, standard);
        pg_sys::XLogRegisterBufData(
            number,
            edit.pieces.as_ptr().cast_mut().cast(),
            edit.pieces.len() as _,
        );
    }
}

/// Writes the WAL record that was begun, and its position into the pages.
fn finish(edits: &mut [Edit<'_>]) {
    // SAFETY: `change` has begun the record and registered its pages.
    let lsn = unsafe { pg_sys::XLogInsert(pg_sys::RmgrIds::RM_GENERIC_ID as _, 0) };
    for Edit { page, .. } in edits {
        page[..4].copy_from_slice(&((lsn >> 32) as u32).to_ne_bytes());
        page[4..8].copy_from_slice(&(lsn as u32).to_ne_bytes());
    }
}

/// Makes a page of zeros an empty page, whose special space has these bytes, with a WAL record if
/// the index needs one. Panics if the page was written before.
pub fn make_empty(page: &mut Exclusive, special: &[u8; SPECIAL_BYTES]) {
    assert_eq!(
        PageLayout::of(page),
        PageLayout { lower: 0, upper: 0, special: 0, size: 0 },
        "a page of zeros"
    );
    let mut bytes = [0; PAGE_BYTES];
    bytes[PAGE_BYTES - SPECIAL_BYTES..].copy_from_slice(special);
    change(&mut [Edit::prepare(page, Change::Page(&bytes))]);
}

/// Calls `change_pages` in a critical section: an error or a panic within stops the server, since
/// pages may then be changed without a WAL record. After the restart, they are as the WAL has them.
fn critical_section(change_pages: impl FnOnce()) {
    // SAFETY: the counter belongs to this session. A panic leaves it increased, so that the error
    // that the panic becomes stops the server.
    unsafe {
        pg_sys::CritSectionCount += 1;
        change_pages();
        pg_sys::CritSectionCount -= 1;
    }
}

/// Writes the only page of the init fork, a file by which PostgreSQL replaces an unlogged relation
/// after a crash. The page goes into the WAL although the relation's changes don't.
pub fn write_init_page(relation: Relation, bytes: &[u8]) {
    let mut page = Pin::add(relation, pg_sys::ForkNumber::INIT_FORKNUM).exclusive();
    let is_logged = true;
    write_whole(&mut page, bytes, Hole::OfTrailingZeros, is_logged);
}

/// Writes the first pages of an index, in the order of their numbers. Pages but the first have no
/// hole, since bits will be set in them.
pub struct NewPages<'r>(Relation<'r>);

impl<'r> NewPages<'r> {
    /// Begins with a first page of zeros, which [`NewPages::finish`] will write. Panics if the
    /// index has pages.
    pub fn start(index: Relation<'r>) -> NewPages<'r> {
        assert_eq!(index.pages(), 0, "pages of an index that is being made");
        extend(index, 1);
        NewPages(index)
    }

    /// Writes the first page, once all others are written.
    pub fn finish(self, first: &[u8]) {
        let mut page = Pin::read(self.0, 0).exclusive();
        write_whole(&mut page, first, Hole::OfTrailingZeros, self.0.needs_wal());
    }
}

impl PageSink for NewPages<'_> {
    type Error = Error;

    /// Adds a page with these bytes at the end of the index.
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let mut page = Pin::add(self.0, MAIN_FORK).exclusive();
        write_whole(&mut page, bytes, Hole::None, self.0.needs_wal());
        Ok(())
    }
}

/// The unused bytes that a page's header declares, which WAL records leave out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hole {
    None,
    /// The zeros before the special space.
    OfTrailingZeros,
}

/// Replaces all bytes of a page that is locked exclusively, with a WAL record of its own if
/// `is_logged`. `hole` says whether the page's header calls the trailing zeros unused, so that the
/// record leaves them out. Panics if `bytes` are not as many as a page has.
fn write_whole(page: &mut Exclusive, bytes: &[u8], hole: Hole, is_logged: bool) {
    assert_eq!(bytes.len(), PAGE_BYTES, "the size of a page");
    critical_section(|| {
        fill(page.bytes_mut(), bytes);
        if hole == Hole::None {
            PageLayout::FULL.write(page.bytes_mut());
        }
        let has_standard_header = true;
        // SAFETY: the page is pinned and locked exclusively.
        unsafe {
            pg_sys::MarkBufferDirty(page.buffer);
            if is_logged {
                pg_sys::log_newpage_buffer(page.buffer, has_standard_header);
            }
        }
    });
}
