//! The tiles of an index that is being built, which this process makes, or a worker while this one reads the table:
//!
//! ```text
//! this process                             worker
//! table ─▶ rows ─▶ hashes of a range ─▶    tiles ─▶ pages ─▶ WAL, file
//!                                                      ╰───── at the end ──▶ metapage
//!
//! batch    pieces of ranges, each:  count · 2 + whether the range ends here   u64
//!                                   hashes                                    u64 each
//! ```

use super::new_index::{IndexFile, NewIndex, meta_page};
use crate::pg::error::{Result, raise};
use crate::pg::feed::{self, Eater, Feed};
use crate::pg::page_file::PageFile;
use pg_bloom_core::index::keys::{Build, Options};
use pg_bloom_core::memory;
use pgrx::pg_sys;

/// Bytes of the hashes that are handed over together.
const BATCH_BYTES: usize = 1 << 16;
const HASH_BYTES: usize = size_of::<u64>();

/// What a worker needs to make the tiles of an index.
#[derive(Clone, Copy)]
pub struct Task {
    file: PageFile,
    options: Options,
    /// How many hashes may be kept.
    hold: usize,
}

/// Makes the tiles of an index.
pub enum Tiles {
    /// This process.
    Here(Box<Maker>),
    /// A worker, and the bytes that the batch for it has.
    Worker(Feed<Task>, usize),
}

impl Tiles {
    /// Begins to make them, with a worker if that may be and the server has one. Up to `hold` hashes are kept.
    ///
    /// # Errors
    /// Those of [`Build::new`].
    pub fn begin(index: &NewIndex, options: Options, hold: usize, may_have_worker: bool) -> Result<Tiles> {
        let task = Task { file: index.file(), options, hold };
        if may_have_worker
            && task.file.can_be_shared()
            && let Some(feed) = Feed::start(c"pg_bloom_make_tiles", task, BATCH_BYTES)
        {
            return Ok(Tiles::Worker(feed, 0));
        }
        Ok(Tiles::Here(Box::new(Maker::begin(task)?)))
    }

    /// Adds the next range with the hashes of its rows.
    ///
    /// # Errors
    /// 54000 for too many pages.
    pub fn range(&mut self, hashes: &[u64]) -> Result<()> {
        match self {
            Tiles::Here(maker) => maker.range(hashes),
            Tiles::Worker(feed, used) => {
                hand_over(feed, used, hashes);
                Ok(())
            }
        }
    }

    /// Writes what is left, and returns the metapage. An error is raised here, while the pages are there that then need
    /// no WAL.
    pub fn finish(self) -> Vec<u8> {
        match self {
            Tiles::Here(maker) => maker.finish(),
            Tiles::Worker(mut feed, used) => {
                feed.hand_over(0, used);
                meta_page(|page| feed.finish(page))
            }
        }
    }
}

/// Puts the hashes of a range into the batch of which so many bytes are used, and into as many others as they need.
fn hand_over(feed: &mut Feed<Task>, used: &mut usize, mut hashes: &[u64]) {
    loop {
        if *used == BATCH_BYTES {
            feed.hand_over(0, std::mem::take(used));
        }
        let (head, room) = feed.batch()[*used..].split_at_mut(HASH_BYTES);
        let (now, later) = hashes.split_at(hashes.len().min(room.len() / HASH_BYTES));
        let ends = later.is_empty();
        head.copy_from_slice(&((now.len() as u64) << 1 | u64::from(ends)).to_ne_bytes());
        for (place, hash) in room.chunks_exact_mut(HASH_BYTES).zip(now) {
            place.copy_from_slice(&hash.to_ne_bytes());
        }
        *used += (1 + now.len()) * HASH_BYTES;
        hashes = later;
        if ends {
            return;
        }
    }
}

/// Makes tiles of ranges.
pub struct Maker {
    build: Build,
    pages: IndexFile,
    rows: u64,
    /// The hashes of a range that has not ended.
    begun: Vec<u64>,
}

impl Maker {
    fn begin(task: Task) -> Result<Maker> {
        let build = Build::new(task.options, task.hold)?;
        Ok(Maker { build, pages: IndexFile::begin(task.file, false), rows: 0, begun: Vec::new() })
    }

    fn range(&mut self, hashes: &[u64]) -> Result<()> {
        self.rows += hashes.len() as u64;
        self.build.range(&mut self.pages, hashes)
    }

    fn finish(mut self) -> Vec<u8> {
        let directory = self.build.finish(&mut self.pages, self.rows).unwrap_or_else(|error| raise(error));
        self.pages.finish();
        meta_page(|page| directory.write_meta(page))
    }
}

impl Eater for Maker {
    fn eat(&mut self, _number: u32, mut batch: &mut [u8]) {
        while let Some((head, rest)) = batch.split_at_mut_checked(HASH_BYTES) {
            let head = word(head);
            let (hashes, rest) = rest.split_at_mut((head >> 1) as usize * HASH_BYTES);
            batch = rest;
            memory::reserve(&mut self.begun, hashes.len() / HASH_BYTES);
            self.begun.extend(hashes.chunks_exact(HASH_BYTES).map(word));
            if head & 1 == 1 {
                let hashes = std::mem::take(&mut self.begun);
                self.range(&hashes).unwrap_or_else(|error| raise(error));
                self.begun = hashes;
                self.begun.clear();
            }
        }
    }

    fn finish(self, answer: &mut [u8]) {
        let meta = Maker::finish(self);
        answer[..meta.len()].copy_from_slice(&meta);
    }
}

/// The number in these bytes.
fn word(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().expect("bytes of a word"))
}

/// What the worker begins with.
///
/// # Safety
/// PostgreSQL calls it in a worker that [`Tiles::begin`] asked for.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn pg_bloom_make_tiles(
    _segment: *mut pg_sys::dsm_segment,
    contents: *mut pg_sys::shm_toc,
) {
    // SAFETY: the table of contents of that worker.
    unsafe { feed::eat(contents, |task: Task| Maker::begin(task).unwrap_or_else(|error| raise(error))) }
}
