//! `bloom_set_contains`, `bloom_set_present`, `bloom_set_absent`: asking with the snapshot of the query.

use super::items::{Item, all, check_often, one};
use super::table::{Purpose, Set};
use crate::pg::call::error::Result;
use crate::pg::sql::connected;

/// Calls `is_there` with the places of those items that may be in the set.
fn look_up(set: &Set, items: &[Item], is_there: &mut dyn FnMut(usize)) -> Result<()> {
    let (form, now) = (set.known.form, set.now());
    let note = |row: &pg_bloom_core::set::Row, items: &[Item]| {
        for (i, item) in items.iter().enumerate() {
            check_often(i);
            if row.slice_of(form.prefix(item.hash)).is_some_and(|slice| form.remembers(slice, now)) {
                is_there(item.place);
            }
        }
        Ok(())
    };
    connected(|| set.read_leaves(items, note))
}

pg_functions! {
    bloom_set_contains => |call| one(call, Purpose::Ask, "bloom_set_contains", look_up);
    bloom_set_present => |call| all(call, Purpose::Ask, "bloom_set_present", true, look_up);
    bloom_set_absent => |call| all(call, Purpose::Ask, "bloom_set_absent", false, look_up);
}
