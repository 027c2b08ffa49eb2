//! Elements in the order of their shards, in which rows are locked, so that no two batches deadlock.

use super::table::Site;
use crate::pg::call::Element;
use crate::pg::call::interrupt;
use pg_bloom_core::{Layout, hash, memory};

/// An element of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    /// The hash that gives its shard, whatever their number.
    pub shard_hash: u64,
    /// Its hash.
    pub hash: u64,
    /// Its place in the array.
    pub place: usize,
}

impl Item {
    /// Its shard of `shards`.
    pub fn shard(&self, shards: u32) -> u32 {
        hash::shard_of(self.shard_hash, shards)
    }
}

/// The item of one element; `None` for NULL.
pub fn item(site: &Site, element: Element) -> Option<Item> {
    let hash = site.element.hasher(Layout::Blocked).hash(element)?;
    Some(Item { shard_hash: hash::shard_hash(hash), hash, place: 0 })
}

/// Elements in the order of their shards, equal ones in their own order.
pub fn items(site: &Site, elements: &[Element]) -> Vec<Item> {
    let hasher = site.element.hasher(Layout::Blocked);
    let mut items = memory::list(elements.len());
    for (place, &element) in elements.iter().enumerate() {
        check_often(place);
        if let Some(hash) = hasher.hash(element) {
            memory::push(&mut items, Item { shard_hash: hash::shard_hash(hash), hash, place });
        }
    }
    let mut compared = 0;
    items.sort_unstable_by(|a, b| {
        compared += 1;
        check_often(compared);
        a.cmp(b)
    });
    items
}

/// Checks for interrupts now and then.
#[inline]
pub fn check_often(count: usize) {
    if count.is_multiple_of(1 << 16) {
        interrupt::check_for_interrupts();
    }
}

/// The same, with only the first of equal elements.
pub fn distinct_items(site: &Site, elements: &[Element]) -> Vec<Item> {
    let mut items = items(site, elements);
    items.dedup_by_key(|item| item.hash);
    items
}

/// Groups of items with the same shard.
pub fn by_shard(items: &[Item], shards: u32) -> impl Iterator<Item = &[Item]> {
    items.chunk_by(move |a, b| a.shard(shards) == b.shard(shards))
}

/// The elements whose places are `wanted`, in their order.
pub fn chosen(elements: Vec<Element>, wanted: &[bool]) -> Vec<Element> {
    let mut chosen = elements;
    let mut wanted = wanted.iter();
    chosen.retain(|_| wanted.next() == Some(&true));
    chosen
}
