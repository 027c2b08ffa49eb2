//! Asking an index, while a query is planned, how many of its ranges may match.
//!
//! A range is some neighbouring pages of the table. A tile has the bits of many ranges, and a
//! lookup probes tiles for the hash of what it looks for. Planning has to take less time than a
//! scan, so only a sample of the tiles is probed.

use super::probes::Probes;
use crate::index::ranges::columns::RangesIndex;
use pg_bloom_core::conditions::Condition;
use pg_bloom_core::index::page::{PageNumber, Pages};
use pg_bloom_core::index::ranges::{
    Directory, Level, estimate_ranges, mean_keys_per_range, sample_ranges,
};
use pg_bloom_core::memory::List;

/// The pages of a range where no index tells: the default for most columns.
pub const TYPICAL_PAGES_PER_RANGE: f64 = 8.0;
/// The most tiles of each level that a sample probes for one condition.
const SAMPLED_TILES: u32 = 8;

/// An index that could be opened, and where its tiles are.
#[derive(Clone, Copy)]
pub struct KnownIndex<'k> {
    pub index: &'k RangesIndex<'k>,
    pub directory: &'k Directory,
    /// Whether the user of the query may see all rows of the table. Otherwise an estimate would
    /// tell whether a row has a key that the user doesn't see.
    pub may_be_asked: bool,
}

/// A range that may match, found in a tile of the sample.
struct SampledRange {
    number: u32,
    /// How many ranges it stands for. If one of three tiles is probed, each range found there
    /// stands for three.
    weight: f64,
}

/// What a sample of tiles says of a lookup.
pub struct SampledLookup {
    /// About how many ranges may have a row that meets the condition.
    pub ranges: f64,
    /// About how many pages of the index are probed.
    pub index_pages: f64,
}

/// Pages of an index, and how many of them were read.
struct CountedPages<P> {
    pages: P,
    count: f64,
}

impl<P: Pages> Pages for CountedPages<P> {
    type Error = P::Error;

    fn with_page<R>(
        &mut self,
        page: PageNumber,
        use_page: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Result<R, P::Error> {
        self.count += 1.0;
        self.pages.with_page(page, use_page)
    }
}

impl KnownIndex<'_> {
    /// Returns whether a sample probes all tiles, so that it finds every range that may match.
    pub fn is_sampled_completely(self) -> bool {
        self.directory.tile_count(Level::Zero) <= SAMPLED_TILES
    }

    /// Estimates, by a sample of the index's pages, in how many ranges a condition may hold, and
    /// how many index pages a lookup for the condition probes.
    ///
    /// A *range* is some neighbouring pages of the table; a *tile* has the bits of many ranges. At
    /// most 8 tiles of each level are probed here. Returns `None` if the index must not be asked,
    /// since the user may not see all rows of the table, or if it is damaged.
    pub fn lookup(self, condition: &Condition) -> Option<SampledLookup> {
        if !self.may_be_asked {
            return None;
        }
        let mut pages = CountedPages { pages: self.index.pages(), count: 0.0 };
        let ranges = estimate_ranges(self.directory, &mut pages, condition, SAMPLED_TILES).ok()?;

        let index_pages = if self.directory.options.is_flat {
            // A flat index has one level, so every lookup probes all tiles: as many pages of each
            // as the sample has read of one.
            let tiles = self.directory.tile_count(Level::Zero);
            let sampled_tiles = tiles.clamp(1, SAMPLED_TILES);
            pages.count * f64::from(tiles) / f64::from(sampled_tiles)
        } else {
            // Elsewhere a lookup doesn't probe tiles that the level above rules out. So the pages
            // follow from the form of the condition, and from how many ranges are found.
            let probes = Probes::for_condition(condition);
            let always_probed = f64::from(self.directory.always_probed());
            always_probed * probes.per_tile + ranges * probes.per_match
        };
        Some(SampledLookup { ranges, index_pages })
    }

    /// Returns about how many ranges (neighbouring pages of the table) may have a row that meets a
    /// condition, by at most 8 tiles of each level of the index. Returns `None` if the index must
    /// not be asked, since the user may not see all rows, or if it is damaged.
    pub fn ranges_matching(self, condition: &Condition) -> Option<f64> {
        if !self.may_be_asked {
            return None;
        }
        estimate_ranges(self.directory, &mut self.index.pages(), condition, SAMPLED_TILES).ok()
    }

    /// Returns about how many ranges (neighbouring pages of the table) may have a row with at least
    /// one of these hashes. A range that may have several of them counts once.
    ///
    /// For each hash a sample of at most 8 tiles of each level is probed. A range found there has a
    /// weight: how many ranges it stands for, such as 3 if one of three tiles was probed. The
    /// result is the sum of the weights. Returns `None` if the index must not be asked, since the
    /// user may not see all rows, or if it is damaged.
    pub fn ranges_with_any<'h>(self, hashes: impl Iterator<Item = &'h u64>) -> Option<f64> {
        if !self.may_be_asked {
            return None;
        }
        let mut pages = self.index.pages();
        let mut sampled: List<SampledRange> = List::new();
        for &hash in hashes {
            let condition = Condition::Has(hash);
            sample_ranges(
                self.directory,
                &mut pages,
                &condition,
                SAMPLED_TILES,
                |number, weight| {
                    sampled.push(SampledRange { number, weight });
                },
            )
            .ok()?;
        }

        // Samples for different hashes may weigh a range differently. Its largest weight is kept,
        // by sorting it before the others of that range, which are dropped.
        sampled.sort_unstable_by(|left, right| {
            let by_number = left.number.cmp(&right.number);
            by_number.then(right.weight.total_cmp(&left.weight))
        });
        sampled.dedup_by_key(|range| range.number);
        Some(sampled.iter().map(|range| range.weight).sum())
    }

    /// Returns the mean number of distinct elements of a range, by ranges in the middle of the
    /// table; `None` if these have no elements, or if the index is damaged.
    pub fn distinct_elements_per_range(self) -> Option<f64> {
        mean_keys_per_range(self.directory, &mut self.index.pages()).ok()?
    }
}
