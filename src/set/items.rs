//! Elements by their shards: in the order in which rows are locked, so that no two batches wait for each other in a
//! circle.

use super::table::Site;
use crate::pg::call::Element;
use crate::pg::call::interrupt;
use pg_bloom_core::{Layout, hash, memory};

/// An element of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    /// What places it among shards, however many there are.
    pub shard_hash: u64,
    /// Its hash.
    pub hash: u64,
    /// Its place in the batch.
    pub place: usize,
}

impl Item {
    /// The row it belongs to, of so many.
    pub fn shard(&self, shards: u32) -> u32 {
        hash::shard_of(self.shard_hash, shards)
    }
}

/// One element.
pub fn item(site: &Site, element: Element) -> Option<Item> {
    let hash = site.element.hasher(Layout::Blocked).hash(element)?;
    Some(Item { shard_hash: hash::shard_hash(hash), hash, place: 0 })
}

/// Elements in the order of their shards; equal ones as they were.
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

/// Lets the user cancel, once in a while.
#[inline]
pub fn check_often(count: usize) {
    if count.is_multiple_of(1 << 16) {
        interrupt::check_for_interrupts();
    }
}

/// The same, of equal elements the first only.
pub fn distinct_items(site: &Site, elements: &[Element]) -> Vec<Item> {
    let mut items = items(site, elements);
    items.dedup_by_key(|item| item.hash);
    items
}

/// The groups of one shard each.
pub fn by_shard(items: &[Item], shards: u32) -> impl Iterator<Item = &[Item]> {
    items.chunk_by(move |a, b| a.shard(shards) == b.shard(shards))
}

/// Those of the elements for whose place `wanted` says so, in their order.
pub fn chosen(elements: Vec<Element>, wanted: &[bool]) -> Vec<Element> {
    let mut chosen = elements;
    let mut wanted = wanted.iter();
    chosen.retain(|_| wanted.next() == Some(&true));
    chosen
}
