//! Metapage and directory pages as bytes, and the one check of what was read from disk.
//!
//! ```text
//! metapage, payload                                directory page, payload
//!  0  magic              u32  "bfix"                0  previous       u32  directory page before it, or 0
//!  4  hash id            u8   1                     4  runs           u32
//!  5  reserved           3    0                     8  run …          20 bytes each
//!  8  rate               f64                           reserved       0 up to the end
//! 16  bytes of a page    u32
//! 20  pages per range    u32                       its number at the end of the page is how many
//! 24  rows per range     u32  while none are seen  directory pages are before it
//! 28  generation         u32
//! 32  pages given away   u32
//! 36  first covered tile u32  FFFFFFFF: none
//! 40  directory pages    u32
//! 44  newest of them     u32  or 0
//! 48  runs here          u32
//! 52  reserved           u32  0
//! 56  rows built from    u64
//! 64  run …                   20 bytes each, then 0 up to the end
//! ```

use super::address::Level;
use super::directory::{Directory, Options, Run};
use super::limits::MAX_HASHES;
use super::limits::RANGES_ALONE;
use super::rate::check_fpr;
use super::tile::{MAX_WIDTH, TileShape, Width};
use crate::hash::HASH_ID;
use crate::index::page::{Damage, Defect, RunProblem};
use crate::index::page::{PageKind, PageNumber};
use crate::index::page::{PageSize, Pages, Reader, Special};

/// The metapage.
pub const META_PAGE: PageNumber = 0;

const META: Special = Special { kind: PageKind::Meta, number: 0 };
const MAGIC: u32 = u32::from_le_bytes(*b"bfix");
const META_HEADER: usize = 64;
const DIRECTORY_HEADER: usize = 8;
const RUN_BYTES: usize = 20;
/// Where the generation stands in the metapage's payload.
const GENERATION: usize = 28;
/// No tile of level 0 has a slot in level 1.
const NONE_COVERED: u32 = u32::MAX;

/// Runs that the metapage has room for; a directory page has room for more.
pub(super) const fn open_runs(size: PageSize) -> usize {
    (size.payload_bytes() - META_HEADER) / RUN_BYTES
}

/// What the metapage says, apart from its runs.
struct Meta {
    rate: f64,
    page_bytes: u32,
    pages_per_range: u32,
    guess: u32,
    generation: u32,
    allocated: u32,
    covered_from: u32,
    directories: u32,
    newest: PageNumber,
    runs: u32,
    rows_built: u64,
}

fn field(field: &'static str, found: impl Into<u64>) -> Damage {
    Damage { page: META_PAGE, defect: Defect::Field { field, found: found.into() } }
}

fn require(holds: bool, damage: impl FnOnce() -> Damage) -> Result<(), Damage> {
    if holds { Ok(()) } else { Err(damage()) }
}

impl Meta {
    fn parse(payload: &[u8], size: PageSize) -> Result<Meta, Damage> {
        let mut bytes = Reader(payload);
        let magic = bytes.u32();
        require(magic == MAGIC, || field("magic number", magic))?;
        let [hash_id, reserved @ ..] = bytes.take::<4>();
        require(hash_id == HASH_ID, || field("hash function", hash_id))?;
        require(reserved == [0; 3], || field("reserved byte", reserved.into_iter().fold(0, u8::max)))?;
        let meta = Meta {
            rate: f64::from_bits(bytes.u64()),
            page_bytes: bytes.u32(),
            pages_per_range: bytes.u32(),
            guess: bytes.u32(),
            generation: bytes.u32(),
            allocated: bytes.u32(),
            covered_from: bytes.u32(),
            directories: bytes.u32(),
            newest: bytes.u32(),
            runs: bytes.u32(),
            rows_built: {
                let reserved = bytes.u32();
                require(reserved == 0, || field("reserved number", reserved))?;
                bytes.u64()
            },
        };
        require(check_fpr(meta.rate).is_ok(), || field("false positive rate", meta.rate.to_bits()))?;
        require(meta.page_bytes as usize == size.bytes(), || field("page size", meta.page_bytes))?;
        require(meta.pages_per_range > 0, || field("pages per range", 0u32))?;
        require(meta.allocated > 0 && meta.allocated < u32::MAX, || field("number of pages", meta.allocated))?;
        require((meta.directories == 0) == (meta.newest == 0), || field("newest directory page", meta.newest))?;
        require(meta.directories < meta.allocated, || field("number of directory pages", meta.directories))?;
        require(meta.newest < meta.allocated, || field("newest directory page", meta.newest))?;
        require(meta.runs as usize <= open_runs(size), || field("number of runs", meta.runs))?;
        Ok(meta)
    }

    fn directory(&self, size: PageSize) -> Directory {
        let options = Options { size, fpr: self.rate, pages_per_range: self.pages_per_range, guess: self.guess };
        let mut directory = Directory::empty(options);
        directory.rows_built = self.rows_built;
        directory.generation = self.generation;
        directory.allocated = self.allocated;
        directory.covered_from = (self.covered_from != NONE_COVERED).then_some(self.covered_from);
        directory
    }
}

/// A run as it stands in a page, not compared with others yet.
fn parse_run(bytes: &[u8]) -> Result<Run, RunProblem> {
    let mut bytes = Reader(bytes);
    let [level, width, num_hashes, reserved] = bytes.take();
    let (pages, tiles) = (bytes.u32(), bytes.u32());
    let (first_slot, first_page) = (bytes.u32(), bytes.u32());
    let level = Level::ALL.into_iter().find(|&l| l as u8 == level).ok_or(RunProblem::Level(level))?;
    let width = Width::new(width).ok_or(RunProblem::Width(width))?;
    if num_hashes == 0 || usize::from(num_hashes) > MAX_HASHES {
        return Err(RunProblem::Hashes(num_hashes));
    }
    if reserved != 0 {
        return Err(RunProblem::Reserved(reserved));
    }
    if pages == 0 || tiles == 0 || u64::from(pages) * u64::from(tiles) > u64::from(u32::MAX) {
        return Err(RunProblem::Pages { pages, tiles });
    }
    Ok(Run { shape: TileShape { level, width, num_hashes, pages }, tiles, first_slot, first_page })
}

fn write_run(run: &Run, bytes: &mut [u8]) {
    let TileShape { level, width, num_hashes, pages } = run.shape;
    bytes[..4].copy_from_slice(&[level as u8, width.slots() as u8, num_hashes, 0]);
    let numbers = [pages, run.tiles, run.first_slot, run.first_page];
    bytes[4..].as_chunks_mut().0.iter_mut().zip(numbers).for_each(|(b, number)| *b = number.to_le_bytes());
}

fn write_runs(runs: &[Run], bytes: &mut [u8]) {
    bytes.fill(0);
    runs.iter().zip(bytes.chunks_exact_mut(RUN_BYTES)).for_each(|(run, bytes)| write_run(run, bytes));
}

/// The runs of a page, of which there are `count`, a number that fits. All that follows them is zero.
fn parse_runs(bytes: &[u8], count: usize, page: PageNumber) -> Result<Vec<Run>, Damage> {
    let (runs, rest) = bytes.split_at(count * RUN_BYTES);
    let unused = rest.iter().find(|&&byte| byte != 0);
    let damage = |found: &u8| Damage { page, defect: Defect::Field { field: "unused byte", found: (*found).into() } };
    unused.map_or(Ok(()), |found| Err(damage(found)))?;
    let run = |(bytes, run): (&[u8], u32)| {
        parse_run(bytes).map_err(|problem| Damage { page, defect: Defect::Run { run, problem } })
    };
    runs.chunks_exact(RUN_BYTES).zip(0..).map(run).collect()
}

/// A directory page: the one before it, and its runs.
fn parse_closed(page: Option<&[u8]>, at: PageNumber, size: PageSize, number: u32) -> Result<(u32, Vec<Run>), Damage> {
    let page = page.ok_or(Damage { page: at, defect: Defect::NewPage })?;
    Special { kind: PageKind::Directory, number }.check(page, size, at)?;
    let damage = |field, found: u32| Damage { page: at, defect: Defect::Field { field, found: found.into() } };
    let mut bytes = Reader(&page[size.payload()]);
    let (previous, count) = (bytes.u32(), bytes.u32());
    require((number == 0) == (previous == 0) && previous < at, || damage("previous directory page", previous))?;
    require(count > 0 && count as usize <= bytes.0.len() / RUN_BYTES, || damage("number of runs", count))?;
    Ok((previous, parse_runs(bytes.0, count as usize, at)?))
}

impl Directory {
    /// Reads metapage and directory pages.
    ///
    /// # Errors
    /// [`Damage`] for what nothing here would have written; those of reading.
    pub fn read<P: Pages>(pages: &mut P, size: PageSize) -> Result<Directory, P::Error> {
        let (meta, open) = pages.with(META_PAGE, |page| {
            let page = page.ok_or(Damage { page: META_PAGE, defect: Defect::NewPage })?;
            META.check(page, size, META_PAGE)?;
            let payload = &page[size.payload()];
            let meta = Meta::parse(payload, size)?;
            let open = parse_runs(&payload[META_HEADER..], meta.runs as usize, META_PAGE)?;
            Ok::<_, Damage>((meta, open))
        })??;
        // From the newest back: each lies before the one that names it, so this ends.
        let mut closed = Vec::new();
        let mut at = meta.newest;
        for number in (0..meta.directories).rev() {
            let (previous, runs) = pages.with(at, |page| parse_closed(page, at, size, number))??;
            closed.push((at, runs));
            at = previous;
        }
        let mut directory = meta.directory(size);
        let mut end = 1;
        for (at, runs) in closed.iter().rev() {
            directory.add_checked(runs, *at, &mut end)?;
            if u64::from(*at) < end {
                let problem = RunProblem::Overlaps { first_page: *at, end };
                let run = runs.len() as u32 - 1;
                return Err(Damage { page: *at, defect: Defect::Run { run, problem } }.into());
            }
            end = u64::from(*at) + 1;
            directory.closed.push(*at);
        }
        directory.add_checked(&open, META_PAGE, &mut end)?;
        directory.open = open;
        directory.check_covered()?;
        Ok(directory)
    }

    /// Adds the runs of a page, of which the first page may be `end` or later.
    fn add_checked(&mut self, runs: &[Run], page: PageNumber, end: &mut u64) -> Result<(), Damage> {
        for (run, number) in runs.iter().zip(0..) {
            let expected = self.end_slot(run.shape.level);
            let problem = if u64::from(run.first_slot) != expected {
                Some(RunProblem::FirstSlot { found: run.first_slot, expected })
            } else if run.end_slot() > 1 << 32 {
                Some(RunProblem::Slots(run.end_slot()))
            } else if u64::from(run.first_page) < *end {
                Some(RunProblem::Overlaps { first_page: run.first_page, end: *end })
            } else if run.end_page() > u64::from(self.allocated) {
                Some(RunProblem::Beyond { end: run.end_page(), allocated: self.allocated })
            } else {
                None
            };
            if let Some(problem) = problem {
                return Err(Damage { page, defect: Defect::Run { run: number, problem } });
            }
            *end = run.end_page();
            self.place(*run);
        }
        Ok(())
    }

    /// Checks that tiles of level 0 have their slots in level 1 from the first covered one on, and that no question
    /// asks more tiles than it must.
    fn check_covered(&self) -> Result<(), Damage> {
        let (tiles, slots) = (u64::from(self.tiles(Level::Zero)), self.end_slot(Level::One));
        let above = self.tiles(Level::One);
        let first = self.covered_from.map_or(tiles, u64::from);
        require(first < tiles || self.covered_from.is_none(), || field("first covered tile", first))?;
        require(self.covered_from.is_some() || above == 0, || field("first covered tile", NONE_COVERED))?;
        let uncovered = || Damage { page: META_PAGE, defect: Defect::Uncovered { tile: slots, tiles } };
        require(first == tiles || slots >= tiles, uncovered)?;
        require(above == 0 || slots < tiles + u64::from(MAX_WIDTH), || field("slots of level 1", slots))?;
        let last_alone = self.tiles_alone().checked_sub(1).and_then(|last| self.tile(Level::Zero, last));
        let alone = last_alone.map_or(0, |last| u64::from(last.first_slot) + u64::from(last.shape.width.slots()));
        require(alone <= RANGES_ALONE, || field("ranges without level 1", alone))
    }

    /// Whether a metapage is still the one that this directory was read from. It is not checked otherwise.
    pub fn is_current(&self, metapage: &[u8]) -> bool {
        let payload = metapage.get(self.options.size.payload());
        payload.is_some_and(|bytes| Reader(&bytes[GENERATION..]).u32() == self.generation)
    }

    /// Writes the metapage, but for PostgreSQL's header.
    ///
    /// # Panics
    /// If the page has another size.
    pub fn write_meta(&self, page: &mut [u8]) {
        assert_eq!(page.len(), self.options.size.bytes(), "the size of a page");
        META.write(page);
        let payload = &mut page[self.options.size.payload()];
        payload[..4].copy_from_slice(&MAGIC.to_le_bytes());
        payload[4..8].copy_from_slice(&[HASH_ID, 0, 0, 0]);
        payload[8..16].copy_from_slice(&self.options.fpr.to_bits().to_le_bytes());
        let numbers = [
            self.options.size.bytes() as u32,
            self.options.pages_per_range,
            self.options.guess,
            self.generation,
            self.allocated,
            self.covered_from.unwrap_or(NONE_COVERED),
            self.closed.len() as u32,
            self.closed.last().copied().unwrap_or(0),
            self.open.len() as u32,
            0,
        ];
        payload[16..56].as_chunks_mut().0.iter_mut().zip(numbers).for_each(|(b, n)| *b = n.to_le_bytes());
        payload[56..64].copy_from_slice(&self.rows_built.to_le_bytes());
        write_runs(&self.open, &mut payload[META_HEADER..]);
    }

    /// Moves the runs of the metapage to a new directory page, and returns that with its number.
    pub(super) fn close(&mut self) -> (PageNumber, Vec<u8>) {
        let size = self.options.size;
        let (number, at) = (self.closed.len() as u32, self.allocated);
        let mut page = vec![0; size.bytes()];
        Special { kind: PageKind::Directory, number }.write(&mut page);
        let payload = &mut page[size.payload()];
        payload[..4].copy_from_slice(&self.closed.last().copied().unwrap_or(0).to_le_bytes());
        payload[4..8].copy_from_slice(&(self.open.len() as u32).to_le_bytes());
        write_runs(&self.open, &mut payload[DIRECTORY_HEADER..]);
        self.closed.push(at);
        self.allocated += 1;
        self.open.clear();
        (at, page)
    }
}
