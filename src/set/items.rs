//! Elements by their shards: in the order in which rows are locked, so that no two batches wait for each other in a
//! circle.

use super::table::Site;
use crate::pg::call::Element;
use crate::pg::call::interrupt;
use pg_bloom_core::{Layout, hash, memory};

/// An element of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    /// The row it belongs to.
    pub shard: u32,
    /// Its hash.
    pub hash: u64,
    /// Its place in the batch.
    pub place: usize,
}

/// One element.
pub fn item(site: &Site, shards: u32, element: Element) -> Option<Item> {
    let hash = site.element.hasher(Layout::Blocked).hash(element)?;
    Some(Item { shard: hash::shard(hash, shards), hash, place: 0 })
}

/// Elements in the order of their shards, in a shard of their hashes; equal ones as they were.
pub fn items(site: &Site, shards: u32, elements: &[Element]) -> Vec<Item> {
    let hasher = site.element.hasher(Layout::Blocked);
    let mut items = memory::list(elements.len());
    for (place, &element) in elements.iter().enumerate() {
        check_often(place);
        if let Some(hash) = hasher.hash(element) {
            memory::push(&mut items, Item { shard: hash::shard(hash, shards), hash, place });
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
pub fn distinct_items(site: &Site, shards: u32, elements: &[Element]) -> Vec<Item> {
    let mut items = items(site, shards, elements);
    items.dedup_by_key(|item| item.hash);
    items
}

/// The most shards that are in memory at once: some megabytes, whatever the size of an array.
pub const MOST_SHARDS_AT_ONCE: usize = 1024;

/// Items, in the order of their shards, in parts of at most [`MOST_SHARDS_AT_ONCE`] shards.
pub fn batches(items: &[Item]) -> impl Iterator<Item = &[Item]> {
    let mut rest = items;
    std::iter::from_fn(move || {
        let items: usize = by_shard(rest).take(MOST_SHARDS_AT_ONCE).map(<[Item]>::len).sum();
        let (batch, later) = rest.split_at(items);
        rest = later;
        (!batch.is_empty()).then_some(batch)
    })
}

/// The shards of items, which are in their order.
pub fn shards_of(items: &[Item]) -> Vec<u32> {
    memory::collect(by_shard(items).map(|group| group[0].shard))
}

/// The groups of one shard each.
pub fn by_shard(items: &[Item]) -> impl Iterator<Item = &[Item]> {
    items.chunk_by(|a, b| a.shard == b.shard)
}

/// Those of the elements for whose place `wanted` says so, in their order.
pub fn chosen(elements: Vec<Element>, wanted: &[bool]) -> Vec<Element> {
    let mut chosen = elements;
    let mut wanted = wanted.iter();
    chosen.retain(|_| wanted.next() == Some(&true));
    chosen
}
