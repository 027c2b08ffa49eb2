//! Elements in the order of their hashes, which is that of their leaves.

use super::table::Site;
use crate::pg::call::Element;
use crate::pg::call::interrupt;
use pg_bloom_core::{Layout, memory};

/// An element of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    /// Its hash.
    pub hash: u64,
    /// Its place in the array.
    pub place: usize,
}

/// The item of one element; `None` for NULL.
pub fn item(site: &Site, element: Element) -> Option<Item> {
    let hash = site.element.hasher(Layout::Blocked).hash(element)?;
    Some(Item { hash, place: 0 })
}

/// Elements in the order of their hashes, equal ones in their own order.
pub fn items(site: &Site, elements: &[Element]) -> Vec<Item> {
    let hasher = site.element.hasher(Layout::Blocked);
    let mut items = memory::list(elements.len());
    for (place, &element) in elements.iter().enumerate() {
        check_often(place);
        if let Some(hash) = hasher.hash(element) {
            memory::push(&mut items, Item { hash, place });
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

/// The same, with only the first of equal elements.
pub fn distinct_items(site: &Site, elements: &[Element]) -> Vec<Item> {
    let mut items = items(site, elements);
    items.dedup_by_key(|item| item.hash);
    items
}

/// Checks for interrupts now and then.
#[inline]
pub fn check_often(count: usize) {
    if count.is_multiple_of(1 << 16) {
        interrupt::check_for_interrupts();
    }
}

/// The elements whose places are `wanted`, in their order.
pub fn chosen(elements: Vec<Element>, wanted: &[bool]) -> Vec<Element> {
    let mut chosen = elements;
    let mut wanted = wanted.iter();
    chosen.retain(|_| wanted.next() == Some(&true));
    chosen
}
