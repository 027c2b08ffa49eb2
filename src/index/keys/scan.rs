//! Bitmap scans: the rows of ranges that may have a key, clamped to the pages that the table has.

use super::column::Index;
use super::heap_filter::HeapFilter;
use crate::index::page::unhashed;
use crate::pg::call::error::Result;
use crate::pg::call::interrupt;
use crate::pg::memory::Scratch;
use crate::pg::method::scan::{Key, RowBatch, Sought};
use crate::pg::method::table;
use crate::pg::storage::buffer;
use crate::pg::storage::relation::Relation;
use pg_bloom_core::index::keys::Directory;
use pg_bloom_core::memory;

/// Adds the rows that may have these keys, all of them.
///
/// # Errors
/// XX002 for damage; 0A000 for a comparison that the index can't answer.
pub fn bitmap(relation: Relation, keys: &[Key], rows: &mut RowBatch) -> Result<()> {
    let index = Index::of(relation)?;
    let directory = index.directory()?;
    let mut ranges = Ranges::Few(Vec::new());
    let mut hashes_of_keys = Vec::new();
    for key in keys {
        let (hashes, found) = look_up(&index, &directory, key)?;
        ranges = if hashes_of_keys.is_empty() { found } else { ranges.common(&found) };
        if ranges.iter().next().is_none() {
            return Ok(());
        }
        memory::push(&mut hashes_of_keys, hashes);
    }
    // Absent keys never come here: the table needn't be opened for them.
    let table = table::of_index(relation);
    let table = table.relation();
    let end = u64::from(table.pages());
    let pages_per_range = u64::from(directory.options.pages_per_range);
    let pages_of = |range: u32| {
        let first = u64::from(range) * pages_per_range;
        (first..(first + pages_per_range).min(end)).map(|page| page as u32)
    };
    match HeapFilter::new(&index, table) {
        Some(filter) => add_rows(&filter, table, &ranges, pages_of, &hashes_of_keys, rows),
        None => ranges.iter().flat_map(pages_of).for_each(|page| {
            interrupt::check_for_interrupts();
            rows.add_page(page);
        }),
    }
    Ok(())
}

/// Adds what a filter finds in the pages of ranges, for keys of each of which a row must have one of these hashes,
/// ascending.
fn add_rows<P: Iterator<Item = u32>>(
    filter: &HeapFilter,
    table: Relation,
    ranges: &Ranges,
    pages_of: impl Fn(u32) -> P,
    hashes_of_keys: &[Vec<u64>],
    rows: &mut RowBatch,
) {
    // The pages of a range follow each other: those of the others are read ahead, so many at a time.
    let concurrency = buffer::io_concurrency(table) as usize;
    let mut ahead = ranges.iter().skip(1).flat_map(&pages_of);
    let mut read_ahead = |pages| ahead.by_ref().take(pages).for_each(|page| buffer::prefetch(table, page));
    read_ahead(concurrency);
    for (range, i) in ranges.iter().zip(0..) {
        for page in pages_of(range) {
            interrupt::check_for_interrupts();
            read_ahead(if i > 0 { concurrency.min(1) } else { 0 });
            filter.add_rows(page, hashes_of_keys, rows);
        }
    }
}

/// The hashes of which an element must have one to match a key, and the ranges that may have these. Both ascend.
fn look_up(index: &Index, directory: &Directory, key: &Key) -> Result<(Vec<u64>, Ranges)> {
    // A nested loop asks again and again.
    let _scratch = key.is_array.then(Scratch::new);
    let hasher = index.hasher_of(key.asked_type)?;
    let hash_of = |element| hasher.hash(element).ok_or_else(unhashed);
    let mut hashes = Vec::new();
    match key.sought() {
        Sought::Nothing => {}
        Sought::Value(element) => memory::push(&mut hashes, hash_of(element)?),
        Sought::AnyOf(elements) => {
            for element in elements {
                memory::push(&mut hashes, hash_of(element)?);
            }
            hashes.sort_unstable();
            hashes.dedup();
        }
    }
    let mut ranges = if hashes.len() > 1 { Ranges::Many(Vec::new()) } else { Ranges::Few(Vec::new()) };
    let mut pages = index.pages();
    for &hash in &hashes {
        interrupt::check_for_interrupts();
        let found = directory.search(&mut pages, hash, |range| ranges.add(range));
        found.map_err(|failure| failure.of(index.relation))?;
    }
    Ok((hashes, ranges))
}

/// A set of ranges. That of many keys has a bit for each range up to the last one, however often a range is found: 300
/// kB for a billion rows. That of one key is a list, since its ranges are few and come in order.
enum Ranges {
    Few(Vec<u32>),
    Many(Vec<u64>),
}

impl Ranges {
    /// Adds a range; to a list, the ranges in their order.
    fn add(&mut self, range: u32) {
        match self {
            Ranges::Few(list) => memory::push(list, range),
            Ranges::Many(words) => {
                let at = (range / u64::BITS) as usize;
                if at >= words.len() {
                    memory::reserve(words, at + 1 - words.len());
                    words.resize(at + 1, 0);
                }
                words[at] |= 1 << (range % u64::BITS);
            }
        }
    }

    fn has(&self, range: u32) -> bool {
        match self {
            Ranges::Few(list) => list.binary_search(&range).is_ok(),
            Ranges::Many(words) => {
                words.get((range / u64::BITS) as usize).is_some_and(|word| word >> (range % u64::BITS) & 1 == 1)
            }
        }
    }

    /// The ranges, ascending.
    fn iter(&self) -> impl Iterator<Item = u32> {
        let (list, words) = match self {
            Ranges::Few(list) => (list.as_slice(), &[][..]),
            Ranges::Many(words) => (&[][..], words.as_slice()),
        };
        let bits = (0u32..).zip(words).filter(|(_, word)| **word != 0);
        let of_word = |(at, word): (u32, &u64)| {
            let word = *word;
            (0..u64::BITS).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * u64::BITS + bit)
        };
        list.iter().copied().chain(bits.flat_map(of_word))
    }

    /// Those that both have.
    fn common(&self, other: &Ranges) -> Ranges {
        let mut common = match (self, other) {
            (Ranges::Many(_), Ranges::Many(_)) => Ranges::Many(Vec::new()),
            _ => Ranges::Few(Vec::new()),
        };
        self.iter().filter(|&range| other.has(range)).for_each(|range| common.add(range));
        common
    }
}
