//! Pages in memory: what the access method does with buffers, without them. For tests, measurements
//! and fuzzing.

use super::{Damage, PageNumber, PageSink, PageSize, Pages};
use crate::error::Error;
use crate::index::chain::IndexDirectory;

/// An index in memory.
#[derive(Clone, Debug)]
pub struct MemoryIndex<D> {
    /// Its pages.
    pub memory: Memory,
    /// What its metapage says.
    pub directory: D,
}

impl<D: IndexDirectory> MemoryIndex<D> {
    /// Reads an index from its pages. Errors: those of [`IndexDirectory::read`].
    pub fn open(mut memory: Memory, size: PageSize) -> Result<MemoryIndex<D>, Failure> {
        let directory = D::read(&mut memory, size)?;
        Ok(MemoryIndex { memory, directory })
    }
}

/// Pages in memory, the first being page 0.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The pages that were written.
    pub pages: Vec<Vec<u8>>,
    /// How often a page was read.
    pub reads: u64,
}

/// What an index in memory can fail with.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// A damaged page.
    Damage(Damage),
    /// Anything else.
    Error(Error),
}

impl From<Damage> for Failure {
    fn from(damage: Damage) -> Self {
        Failure::Damage(damage)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

impl Memory {
    /// A file with an empty metapage.
    pub fn new(size: PageSize) -> Memory {
        Memory { pages: vec![vec![0; size.bytes()]], reads: 0 }
    }

    /// The same file without the pages at its end that have no bits: it may end there.
    pub fn shortest(mut self) -> Memory {
        let used = self
            .pages
            .iter()
            .rposition(|page| page.iter().any(|&byte| byte != 0))
            .map_or(0, |last| last + 1);
        self.pages.truncate(used);
        self
    }

    /// A page to write to. The file is extended if necessary.
    pub fn writable(&mut self, page: PageNumber, size: PageSize) -> &mut [u8] {
        let page = page as usize;
        if self.pages.len() <= page {
            self.pages.resize(page + 1, vec![0; size.bytes()]);
        }
        &mut self.pages[page]
    }
}

impl Pages for Memory {
    type Error = Failure;

    fn with_page<R>(
        &mut self,
        page: PageNumber,
        f: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Result<R, Failure> {
        self.reads += 1;
        Ok(f(self.pages.get(page as usize).map(Vec::as_slice)))
    }
}

impl PageSink for Memory {
    type Error = Failure;

    fn write(&mut self, page: &[u8]) -> Result<(), Failure> {
        self.pages.push(page.to_vec());
        Ok(())
    }
}
