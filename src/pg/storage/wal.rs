//! Changes of pages, each with its WAL record.
//!
//! Records are those of PostgreSQL's generic resource manager, which any server can replay, made by hand: its own
//! functions compare whole pages, which takes ten times as long as all else that an insertion does.
//!
//! ```text
//! record         block 0 … 3, each:  pieces           offset u16 │ length u16 │ bytes …     copied into the page
//!                               or:  the whole page, without the hole between pd_lower and pd_upper
//! replay         copies the pieces, then zeroes the hole
//! ```
//!
//! Replay needs a page that was written before, so a page of zeros is first made an empty one, by a record of its own
//! with the whole page: all of it is hole, so that takes 80 bytes rather than 8,192. The first pieces then come with
//! `pd_lower`, set to `pd_upper`: from then on the page has no hole. See [`make_empty`] and [`change`].
//!
//! In a critical section an error would stop the server. Nothing there can raise one but what PostgreSQL itself does
//! in such sections: what needs memory is made before.

use super::buffer::{Exclusive, Pin};
use super::relation::{PAGE_BYTES, Relation};
use pg_bloom_core::index::page::SPECIAL_BYTES;
use pgrx::pg_sys;

const HEADER_BYTES: usize = std::mem::offset_of!(pg_sys::PageHeaderData, pd_linp);
/// Where `pd_lower` is in a page; `pd_upper`, `pd_special` and the page's size and version follow.
const LOWER_AT: usize = std::mem::offset_of!(pg_sys::PageHeaderData, pd_lower);
/// The version of the layout of pages, which stands in the lowest byte of their size.
const LAYOUT_VERSION: usize = pg_sys::PG_PAGE_LAYOUT_VERSION as usize;
pub const MAX_PAGES: usize = 4;
/// The most bytes that a page's pieces may change in one record.
pub const MAX_PIECES: usize = 64;
const PIECE_HEADER: usize = 4;

/// Where the hole of a page is, which ends at `upper`, and where its special space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub lower: u16,
    pub upper: u16,
    pub special: u16,
    /// Bytes of the page, and its version.
    pub size: u16,
}

impl Layout {
    /// That of a page that is nothing but a hole.
    pub const EMPTY: Layout = Layout::new(HEADER_BYTES);
    /// That of a page without a hole.
    pub const FULL: Layout = Layout::new(PAGE_BYTES - SPECIAL_BYTES);

    /// What the header of a page says; all zero for a page that was not written yet.
    pub fn of(page: &[u8]) -> Layout {
        let number = |i: usize| u16::from_ne_bytes([page[LOWER_AT + 2 * i], page[LOWER_AT + 2 * i + 1]]);
        Layout { lower: number(0), upper: number(1), special: number(2), size: number(3) }
    }

    /// That of a page whose hole begins at `lower`.
    const fn new(lower: usize) -> Layout {
        let special = (PAGE_BYTES - SPECIAL_BYTES) as u16;
        Layout { lower: lower as u16, upper: special, special, size: (PAGE_BYTES | LAYOUT_VERSION) as u16 }
    }

    pub(in crate::pg) fn write(self, page: &mut [u8]) {
        for (i, number) in [self.lower, self.upper, self.special, self.size].into_iter().enumerate() {
            page[LOWER_AT + 2 * i..][..2].copy_from_slice(&number.to_ne_bytes());
        }
    }
}

pub enum Change<'a> {
    /// Bytes to set of a page that was written before: where, and to what. They must be behind the header, and outside
    /// the hole, which this closes.
    Bytes(&'a [(u16, u8)]),
    /// Bytes to set that follow each other, from this place on. As above.
    Piece(u16, &'a [u8]),
    /// The whole page, whose PostgreSQL header is made here: zeros before its special space become its hole.
    Page(&'a [u8]),
}

pub struct Edit<'e> {
    buffer: pg_sys::Buffer,
    logged: bool,
    page: &'e mut [u8],
    change: Change<'e>,
}

impl<'e> Edit<'e> {
    pub fn new(page: &'e mut Exclusive<'_>, change: Change<'e>) -> Edit<'e> {
        Edit { buffer: page.number(), logged: page.relation().needs_wal(), page: page.bytes_mut(), change }
    }
}

/// The pieces of one page in a record.
struct Pieces {
    len: usize,
    bytes: [u8; (MAX_PIECES + 2) * (PIECE_HEADER + 1)],
}

impl Pieces {
    const NONE: Pieces = Pieces { len: 0, bytes: [0; (MAX_PIECES + 2) * (PIECE_HEADER + 1)] };

    fn add(&mut self, offset: usize, bytes: &[u8]) {
        self.begin(offset, bytes.len());
        self.bytes[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Begins a piece whose bytes follow.
    fn begin(&mut self, offset: usize, length: usize) {
        let to = &mut self.bytes[self.len..][..PIECE_HEADER];
        to[..2].copy_from_slice(&(offset as u16).to_ne_bytes());
        to[2..].copy_from_slice(&(length as u16).to_ne_bytes());
        self.len += PIECE_HEADER;
    }
}

/// Changes up to four pages with one WAL record. Panics if there are more pages, or more bytes of one than a record
/// takes; for bytes that are not in a page that was written before, or in its header; for pages of which some need no
/// record.
pub fn change(edits: &mut [Edit<'_>]) {
    assert!(edits.len() <= MAX_PAGES, "a generic record has four pages");
    let mut pieces = [Pieces::NONE; MAX_PAGES];
    for (edit, pieces) in edits.iter().zip(&mut pieces) {
        let Layout { lower, upper, .. } = Layout::of(edit.page);
        if !matches!(edit.change, Change::Page(_)) {
            assert_ne!(upper, 0, "a page that was written");
            if lower != upper {
                pieces.add(LOWER_AT, &upper.to_ne_bytes());
            }
        }
        match edit.change {
            Change::Bytes(bytes) => {
                assert!(bytes.len() <= MAX_PIECES, "too many pieces");
                for &(offset, value) in bytes {
                    assert!((HEADER_BYTES..PAGE_BYTES).contains(&offset.into()), "an offset behind the header");
                    pieces.add(usize::from(offset), &[value]);
                }
            }
            Change::Piece(offset, bytes) => {
                let from = usize::from(offset);
                assert!(from >= HEADER_BYTES && from + bytes.len() <= PAGE_BYTES, "bytes behind the header");
                pieces.begin(from, bytes.len());
            }
            Change::Page(page) => assert_eq!(page.len(), PAGE_BYTES, "the size of a page"),
        }
    }
    let logged = edits.iter().any(|edit| edit.logged);
    if logged {
        assert!(edits.iter().all(|edit| edit.logged), "pages of one relation");
        // SAFETY: nothing else of this session writes a record now.
        unsafe { pg_sys::XLogBeginInsert() };
    }
    critical_section(|| {
        for (edit, number) in edits.iter_mut().zip(0..) {
            apply(edit);
            register(edit, number, &pieces[usize::from(number)], logged);
        }
        if logged {
            finish(edits);
        }
    });
}

/// Makes the change of one page. Cannot fail: what it needs was checked before.
fn apply(edit: &mut Edit<'_>) {
    let page = &mut *edit.page;
    let Layout { upper, .. } = Layout::of(page);
    match edit.change {
        Change::Bytes(bytes) => bytes.iter().for_each(|&(offset, value)| page[usize::from(offset)] = value),
        Change::Piece(offset, bytes) => page[usize::from(offset)..][..bytes.len()].copy_from_slice(bytes),
        Change::Page(bytes) => return fill(page, bytes),
    }
    page[LOWER_AT..][..2].copy_from_slice(&upper.to_ne_bytes());
}

/// Writes a whole page with its header, keeping the LSN.
pub(in crate::pg) fn fill(page: &mut [u8], bytes: &[u8]) {
    let payload = &bytes[HEADER_BYTES..PAGE_BYTES - SPECIAL_BYTES];
    let used = payload.len() - payload.iter().rev().take_while(|&&byte| byte == 0).count();
    page[size_of::<u64>()..HEADER_BYTES].fill(0);
    page[HEADER_BYTES..].copy_from_slice(&bytes[HEADER_BYTES..]);
    Layout::new(HEADER_BYTES + used).write(page);
}

/// Marks a page as changed, and adds it to the record.
fn register(edit: &Edit<'_>, number: u8, pieces: &Pieces, logged: bool) {
    let standard = pg_sys::REGBUF_STANDARD as u8;
    // SAFETY: the page is pinned and locked exclusively; the pieces live until the record is written.
    unsafe {
        pg_sys::MarkBufferDirty(edit.buffer);
        if !logged {
            return;
        }
        if let Change::Page(_) = edit.change {
            pg_sys::XLogRegisterBuffer(number, edit.buffer, standard | pg_sys::REGBUF_FORCE_IMAGE as u8);
            return;
        }
        pg_sys::XLogRegisterBuffer(number, edit.buffer, standard);
        pg_sys::XLogRegisterBufData(number, pieces.bytes.as_ptr().cast_mut().cast(), pieces.len as _);
        if let Change::Piece(_, bytes) = edit.change {
            pg_sys::XLogRegisterBufData(number, bytes.as_ptr().cast_mut().cast(), bytes.len() as _);
        }
    }
}

/// Writes the record, and its position into the pages.
fn finish(edits: &mut [Edit<'_>]) {
    // SAFETY: the record was begun, and its pages were registered.
    let lsn = unsafe { pg_sys::XLogInsert(pg_sys::RmgrIds::RM_GENERIC_ID as _, 0) };
    for Edit { page, .. } in edits {
        page[..4].copy_from_slice(&((lsn >> 32) as u32).to_ne_bytes());
        page[4..8].copy_from_slice(&(lsn as u32).to_ne_bytes());
    }
}

/// Makes a page of zeros an empty one, whose special space has these bytes. Panics if the page is none of zeros.
pub fn make_empty(page: &mut Exclusive, special: &[u8; SPECIAL_BYTES]) {
    assert_eq!(Layout::of(page), Layout { lower: 0, upper: 0, special: 0, size: 0 }, "a page of zeros");
    let mut bytes = [0; PAGE_BYTES];
    bytes[PAGE_BYTES - SPECIAL_BYTES..].copy_from_slice(special);
    change(&mut [Edit::new(page, Change::Page(&bytes))]);
}

/// Runs what must not be interrupted by an error.
fn critical_section(work: impl FnOnce()) {
    // SAFETY: the counter of this session. After a panic it stays: the error that becomes of it then stops the server,
    // which is what must happen to a change without its record.
    unsafe {
        pg_sys::CritSectionCount += 1;
        work();
        pg_sys::CritSectionCount -= 1;
    }
}

/// Writes the only page of the fork that an unlogged relation is reset to. It goes into the WAL.
pub fn write_init_page(relation: Relation, bytes: &[u8]) {
    write_whole(&mut Pin::add_to_init_fork(relation).exclusive(), bytes, true);
}

/// Writes a whole page, with a record of its own if `logged`.
pub(in crate::pg) fn write_whole(page: &mut Exclusive, bytes: &[u8], logged: bool) {
    assert_eq!(bytes.len(), PAGE_BYTES, "the size of a page");
    critical_section(|| {
        fill(page.bytes_mut(), bytes);
        // SAFETY: the page is pinned and locked exclusively.
        unsafe {
            pg_sys::MarkBufferDirty(page.number());
            if logged {
                pg_sys::log_newpage_buffer(page.number(), true);
            }
        }
    });
}
