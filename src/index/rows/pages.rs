//! Pages that are about to be changed.

use super::super::page::{PAGE_SIZE, damaged};
use crate::pg::buffer::Exclusive;
use crate::pg::error::Result;
use crate::pg::relation::{PAGE_BYTES, Relation};
use crate::pg::wal::{self, Layout};
use pg_bloom_core::page::{Damage, Defect, PAGE_HEADER_BYTES, SPECIAL_BYTES, Special};

/// Makes a page ready for its first bytes, and checks that one that has some is the one that it should be, with the
/// header that keeps them.
///
/// # Errors
/// XX002 for a page that was not made here.
pub fn prepare(index: Relation, special: Special, at: u32, page: &mut Exclusive<'_>) -> Result<()> {
    match special.check(page, PAGE_SIZE, at) {
        Ok(()) => {}
        Err(Damage { defect: Defect::NewPage, .. }) => {
            let mut bytes = [0; SPECIAL_BYTES];
            special.write(&mut bytes);
            wal::make_empty(index, page, &bytes);
            return Ok(());
        }
        Err(damage) => return Err(damaged(index, &damage)),
    }
    let layout = Layout::of(page);
    let is_empty = || page[PAGE_HEADER_BYTES..PAGE_BYTES - SPECIAL_BYTES].iter().all(|&byte| byte == 0);
    if layout == Layout::full(SPECIAL_BYTES) || layout == Layout::empty(SPECIAL_BYTES) && is_empty() {
        return Ok(());
    }
    let found = u64::from(layout.lower) << 16 | u64::from(layout.upper);
    Err(damaged(index, &Damage { page: at, defect: Defect::Field { field: "the page header", found } }))
}
