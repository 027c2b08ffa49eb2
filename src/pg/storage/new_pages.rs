//! The pages of an index that is being made.

use super::buffer::{Pin, extend};
use super::relation::{MAIN_FORK, Relation};
use super::wal::write_whole;

/// New pages of an index that had none, in the order of their numbers.
pub struct NewPages<'r>(Relation<'r>);

impl<'r> NewPages<'r> {
    /// Begins, with a first page of zeros.
    pub fn start(index: Relation<'r>) -> NewPages<'r> {
        assert_eq!(index.pages(), 0, "pages of an index that is being made");
        extend(index, 1);
        NewPages(index)
    }

    /// Adds a page with these bytes, whose header is made here, and which has no hole since it will get more bits.
    pub fn add(&mut self, bytes: &[u8]) {
        write_whole(&mut Pin::add(self.0, MAIN_FORK).exclusive(), bytes, false, self.0.needs_wal());
    }

    /// Writes the first page, when all others were written.
    pub fn finish(self, first: &[u8]) {
        write_whole(&mut Pin::read(self.0, 0).exclusive(), first, true, self.0.needs_wal());
    }
}
