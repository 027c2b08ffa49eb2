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
use pgrx::pg_sys;

const HEADER_BYTES: usize = std::mem::offset_of!(pg_sys::PageHeaderData, pd_linp);
/// Where `pd_lower` is in a page; `pd_upper`, `pd_special` and the page's size and version follow.
const LOWER_AT: usize = std::mem::offset_of!(pg_sys::PageHeaderData, pd_lower);
pub const MAX_PAGES: usize = 4;
/// The most bytes that a page's pieces may change in one record.
pub const MAX_PIECES: usize = 64;

/// Where the hole of a page is, which ends at `upper`, and where its special space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub lower: u16,
    pub upper: u16,
    pub special: u16,
    /// Bytes of the page, and the version of its layout.
    pub size: u16,
}

impl Layout {
    /// That of a page that is nothing but a hole.
    pub const EMPTY: Layout = Layout::new(HEADER_BYTES);
    /// That of a page without a hole.
    pub const FULL: Layout = Layout::new(PAGE_BYTES - SPECIAL_BYTES);

    /// What the header of a page says; all zero for a page that was not written yet.
    pub fn of(page: &[u8]) -> Layout {
        let number =
            |i: usize| u16::from_ne_bytes([page[LOWER_AT + 2 * i], page[LOWER_AT + 2 * i + 1]]);
        Layout {
            lower: number(0),
            upper: number(1),
            special: number(2),
            size: number(3),
        }
    }

    /// That of a page whose hole begins at `lower`.
    const fn new(lower: usize) -> Layout {
        let special = (PAGE_BYTES - SPECIAL_BYTES) as u16;
        let size = PAGE_BYTES as u16 | pg_sys::PG_PAGE_LAYOUT_VERSION as u16;
        Layout { lower: lower as u16, upper: special, special, size }
    }

    fn write(self, page: &mut [u8]) {
        for (i, number) in [self.lower, self.upper, self.special, self.size]
            .into_iter()
            .enumerate()
        {
            page[LOWER_AT + 2 * i..][..2].copy_from_slice(&number.to_ne_bytes());
        }
    }
}

pub enum Change<'a> {
    /// Bytes to set of a page that was written before, behind the header and outside the hole: that
    /// closes.
    Bytes(&'a [ByteChange]),
    /// Bytes to set that follow each other, from this place on. As above.
    Piece(u16, &'a [u8]),
    /// The whole page, whose PostgreSQL header is made here: zeros before its special space become
    /// its hole.
    Page(&'a [u8]),
}

pub struct Edit<'e> {
    buffer: pg_sys::Buffer,
    logged: bool,
    page: &'e mut [u8],
    /// All of the page, if that is to be another one.
    whole: Option<&'e [u8]>,
    /// What else is changed, as a record has it.
    pieces: Vec<u8>,
}

impl<'e> Edit<'e> {
    /// Panics for more bytes than a record takes, and for those of a header or of a page that was
    /// not written before.
    pub fn new(page: &'e mut Exclusive<'_>, change: Change<'e>) -> Edit<'e> {
        let (buffer, logged, page) = (page.buffer, page.relation().needs_wal(), page.bytes_mut());
        let mut edit = Edit { buffer, logged, page, whole: None, pieces: Vec::new() };
        match change {
            Change::Bytes(bytes) => {
                assert!(bytes.len() <= MAX_PIECES, "too many pieces");
                for change in bytes {
                    edit.add(change.offset, std::slice::from_ref(&change.value));
                }
            }
            Change::Piece(offset, bytes) => edit.add(offset, bytes),
            Change::Page(bytes) => {
                assert_eq!(bytes.len(), PAGE_BYTES, "the size of a page");
                edit.whole = Some(bytes);
            }
        }
        edit
    }

    /// Adds a piece; before the first one that which closes the hole, if the page has one.
    fn add(&mut self, offset: u16, bytes: &[u8]) {
        let (from, Layout { lower, upper, .. }) = (usize::from(offset), Layout::of(self.page));
        assert_ne!(upper, 0, "a page that was written");
        assert!(
            from >= HEADER_BYTES && from + bytes.len() <= PAGE_BYTES,
            "bytes behind the header"
        );
        let (has_hole, end) = (lower != upper && self.pieces.is_empty(), upper.to_ne_bytes());
        let closing = has_hole.then_some((LOWER_AT as u16, &end[..]));
        for (offset, bytes) in closing.into_iter().chain([(offset, bytes)]) {
            self.pieces.extend_from_slice(&offset.to_ne_bytes());
            self.pieces.extend_from_slice(&(bytes.len() as u16).to_ne_bytes());
            self.pieces.extend_from_slice(bytes);
        }
    }
}

/// Changes up to four pages with one WAL record. Panics if there are more pages, or some of them
/// need no record.
pub fn change(edits: &mut [Edit<'_>]) {
    assert!(edits.len() <= MAX_PAGES, "a generic record has four pages");
    let logged = edits.iter().any(|edit| edit.logged);
    if logged {
        assert!(edits.iter().all(|edit| edit.logged), "pages of one relation");
        // SAFETY: nothing else of this session writes a record now.
        unsafe { pg_sys::XLogBeginInsert() };
    }
    critical_section(|| {
        for (edit, number) in edits.iter_mut().zip(0..) {
            match edit.whole {
                Some(bytes) => fill(edit.page, bytes),
                None => apply(edit.page, &edit.pieces),
            }
            register(edit, number, logged);
        }
        if logged {
            finish(edits);
        }
    });
}

/// Copies pieces into a page, as replay does.
fn apply(page: &mut [u8], mut pieces: &[u8]) {
    while let Some((&[a, b, c, d], rest)) = pieces.split_first_chunk() {
        let (bytes, rest) = rest.split_at(u16::from_ne_bytes([c, d]).into());
        page[usize::from(u16::from_ne_bytes([a, b]))..][..bytes.len()].copy_from_slice(bytes);
        pieces = rest;
    }
}

/// Writes a whole page with its header, keeping the LSN.
fn fill(page: &mut [u8], bytes: &[u8]) {
    let payload = &bytes[HEADER_BYTES..PAGE_BYTES - SPECIAL_BYTES];
    let used = payload.len() - payload.iter().rev().take_while(|&&byte| byte == 0).count();
    page[size_of::<u64>()..HEADER_BYTES].fill(0);
    page[HEADER_BYTES..].copy_from_slice(&bytes[HEADER_BYTES..]);
    Layout::new(HEADER_BYTES + used).write(page);
}

fn register(edit: &Edit<'_>, number: u8, logged: bool) {
    let (standard, forced) = (pg_sys::REGBUF_STANDARD as u8, pg_sys::REGBUF_FORCE_IMAGE as u8);
    // SAFETY: the page is pinned and locked exclusively; the pieces live until the record is
    // written.
    unsafe {
        pg_sys::MarkBufferDirty(edit.buffer);
        if !logged {
            return;
        }
        if edit.whole.is_some() {
            pg_sys::XLogRegisterBuffer(number, edit.buffer, standard | forced);
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

/// Writes the record, and its position into the pages.
fn finish(edits: &mut [Edit<'_>]) {
    // SAFETY: the record was begun, and its pages were registered.
    let lsn = unsafe { pg_sys::XLogInsert(pg_sys::RmgrIds::RM_GENERIC_ID as _, 0) };
    for Edit { page, .. } in edits {
        page[..4].copy_from_slice(&((lsn >> 32) as u32).to_ne_bytes());
        page[4..8].copy_from_slice(&(lsn as u32).to_ne_bytes());
    }
}

/// Makes a page of zeros an empty one, whose special space has these bytes. Panics if the page is
/// none of zeros.
pub fn make_empty(page: &mut Exclusive, special: &[u8; SPECIAL_BYTES]) {
    assert_eq!(
        Layout::of(page),
        Layout { lower: 0, upper: 0, special: 0, size: 0 },
        "a page of zeros"
    );
    let mut bytes = [0; PAGE_BYTES];
    bytes[PAGE_BYTES - SPECIAL_BYTES..].copy_from_slice(special);
    change(&mut [Edit::new(page, Change::Page(&bytes))]);
}

fn critical_section(work: impl FnOnce()) {
    // SAFETY: the counter of this session. After a panic it stays: the error that becomes of it
    // then stops the server, which is what must happen to a change without its record.
    unsafe {
        pg_sys::CritSectionCount += 1;
        work();
        pg_sys::CritSectionCount -= 1;
    }
}

/// Writes the only page of the fork that an unlogged relation is reset to. It goes into the WAL.
pub fn write_init_page(relation: Relation, bytes: &[u8]) {
    write_whole(
        &mut Pin::add(relation, pg_sys::ForkNumber::INIT_FORKNUM).exclusive(),
        bytes,
        true,
        true,
    );
}

/// New pages of an index that had none, in the order of their numbers; without a hole, since they
/// will get more bits.
pub struct NewPages<'r>(Relation<'r>);

impl<'r> NewPages<'r> {
    /// Begins, with a first page of zeros.
    pub fn start(index: Relation<'r>) -> NewPages<'r> {
        assert_eq!(index.pages(), 0, "pages of an index that is being made");
        extend(index, 1);
        NewPages(index)
    }

    /// Writes the first page, when all others were written.
    pub fn finish(self, first: &[u8]) {
        write_whole(&mut Pin::read(self.0, 0).exclusive(), first, true, self.0.needs_wal());
    }
}

impl PageSink for NewPages<'_> {
    type Error = Error;

    fn write(&mut self, page: &[u8]) -> Result<()> {
        write_whole(&mut Pin::add(self.0, MAIN_FORK).exclusive(), page, false, self.0.needs_wal());
        Ok(())
    }
}

/// Writes a whole page, with or without a hole, and with a record of its own if `logged`.
fn write_whole(page: &mut Exclusive, bytes: &[u8], has_hole: bool, logged: bool) {
    assert_eq!(bytes.len(), PAGE_BYTES, "the size of a page");
    critical_section(|| {
        fill(page.bytes_mut(), bytes);
        if !has_hole {
            Layout::FULL.write(page.bytes_mut());
        }
        // SAFETY: the page is pinned and locked exclusively.
        unsafe {
            pg_sys::MarkBufferDirty(page.buffer);
            if logged {
                pg_sys::log_newpage_buffer(page.buffer, true);
            }
        }
    });
}
