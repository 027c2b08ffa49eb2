//! `bloom_set_add`, `bloom_set_add_all`, `bloom_set_remove`, `bloom_set_remove_all`.

use super::change::{Verb, change};
use super::items::{Item, all, one};
use super::table::{Purpose, Set};
use crate::pg::call::error::Result;

fn add(set: &Set, items: &[Item], is_new: &mut dyn FnMut(usize)) -> Result<()> {
    change(set, Verb::Add, items, is_new)
}

fn remove(set: &Set, items: &[Item], is_removed: &mut dyn FnMut(usize)) -> Result<()> {
    change(set, Verb::Remove, items, is_removed)
}

pg_functions! {
    bloom_set_add => |call| one(call, Purpose::Change, "bloom_set_add", add);
    bloom_set_add_all => |call| all(call, Purpose::Change, "bloom_set_add_all", true, add);
    bloom_set_remove => |call| one(call, Purpose::Change, "bloom_set_remove", remove);
    bloom_set_remove_all => |call| all(call, Purpose::Change, "bloom_set_remove_all", true, remove);
}
