//! A model of the index over texts: the windows and conditions of the core, a filter for each range
//! of a page or of some documents, and no pages of an index. What the index itself takes and reads
//! is judged by it.

use pg_bloom_core::conditions::text::{Encoding, LetterCase, each_window, like};

/// Bits of a filter for each different hash of its range.
const BITS: f64 = 2.5;
/// Bytes of a heap page that rows can have, and of a row beside its text.
const PAGE: usize = 8160;
const ROW: usize = 36;
/// A longer text is out of line: its row has a pointer.
const IN_LINE: usize = 2000;
const POINTER: usize = 18;
/// Bytes of text after which a range of documents ends.
const DOCUMENTS: usize = 16384;

struct Range {
    bytes: usize,
    hashes: Vec<u64>,
    bits: Vec<bool>,
}

/// The filters of texts, in the order of their rows.
pub struct Model {
    ranges: Vec<Range>,
}

impl Model {
    /// Of these texts.
    pub fn new(texts: &[String]) -> Model {
        let mut ranges = Vec::new();
        let (mut page, mut bytes, mut hashes) = (0, 0, Vec::new());
        for text in texts {
            let row = ROW + if text.len() > IN_LINE { POINTER } else { text.len() };
            if bytes > 0 && (page + row > PAGE || bytes + text.len() > DOCUMENTS) {
                ranges.push(Range::new(bytes, std::mem::take(&mut hashes)));
                (page, bytes) = (0, 0);
            }
            (page, bytes) = (page + row, bytes + text.len());
            each_window(text.as_bytes(), Encoding::Utf8, |window| hashes.extend(window.hashes()));
        }
        ranges.push(Range::new(bytes, hashes));
        Model { ranges }
    }

    /// Bytes of the filters by those of the texts.
    pub fn size(&self) -> f64 {
        let bits: usize = self.ranges.iter().map(|range| range.bits.len()).sum();
        bits as f64 / 8.0 / self.bytes() as f64
    }

    /// How much of the texts is read for these patterns of LIKE, and how much is if nothing is read
    /// by chance.
    pub fn read<'p>(&self, patterns: impl Iterator<Item = &'p str>) -> (f64, f64) {
        let (mut read, mut exact, mut count) = (0, 0, 0);
        for pattern in patterns {
            let condition = like(pattern.as_bytes(), Encoding::Utf8, LetterCase::Compared);
            for range in &self.ranges {
                if condition.holds(&|hash| range.bits[place(hash, range.bits.len())]) {
                    read += range.bytes;
                    exact += usize::from(
                        condition.holds(&|hash| range.hashes.binary_search(&hash).is_ok()),
                    ) * range.bytes;
                }
            }
            count += 1;
        }
        let all = (self.bytes() * count) as f64;
        (read as f64 / all, exact as f64 / all)
    }

    fn bytes(&self) -> usize {
        self.ranges.iter().map(|range| range.bytes).sum()
    }
}

impl Range {
    fn new(bytes: usize, mut hashes: Vec<u64>) -> Range {
        hashes.sort_unstable();
        hashes.dedup();
        let mut bits = vec![false; (hashes.len() as f64 * BITS) as usize + 1];
        for &hash in &hashes {
            let at = place(hash, bits.len());
            bits[at] = true;
        }
        Range { bytes, hashes, bits }
    }
}

/// The bit of a hash among so many.
fn place(hash: u64, bits: usize) -> usize {
    ((u128::from(hash) * bits as u128) >> 64) as usize
}
