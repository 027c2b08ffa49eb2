//! The bits of one column of a tile in memory, while an index is built.
//!
//! The pages of a tile have the bits of all columns side by side. Here a column stands alone: its
//! blocks one after the other, each in whole words of 64 bits. Bits of the last word beyond those
//! of the block are never set.

use super::shape::TileShape;
use super::tile::Footprint;
use crate::index::page::PageSize;
use crate::memory::List;

/// The bits of a column, block by block.
pub(super) struct ColumnBits {
    words: List<u64>,
    words_per_block: usize,
}

impl ColumnBits {
    /// Returns the bits of a column without keys, in a tile of this shape.
    pub fn empty(shape: TileShape) -> ColumnBits {
        let words_per_block = words_per_block(shape.size);
        ColumnBits {
            words: List::zeroed(shape.blocks() as usize * words_per_block),
            words_per_block,
        }
    }

    /// Returns the bits of a column with the keys of these hashes, in a tile of this shape.
    pub fn with_keys(hashes: &[u64], shape: TileShape) -> ColumnBits {
        let mut bits = ColumnBits::empty(shape);
        bits.add_keys(hashes, shape);
        bits
    }

    /// Sets the bits of keys, given their hashes. The column must have as many blocks as the shape.
    pub fn add_keys(&mut self, hashes: &[u64], shape: TileShape) {
        for &hash in hashes {
            self.add_key(&Footprint::of_key(shape, hash), shape);
        }
    }

    /// Sets the bits of a key in a tile of this shape.
    #[inline]
    pub fn add_key(&mut self, footprint: &Footprint, shape: TileShape) {
        let first_word = footprint.block as usize * self.words_per_block;
        let block = &mut self.words[first_word..][..self.words_per_block];
        for &position in &footprint.positions[..usize::from(shape.num_hashes)] {
            block[usize::from(position / 64)] |= 1 << (position % 64);
        }
    }

    /// Returns a copy of the bits.
    pub fn copy(&self) -> ColumnBits {
        ColumnBits {
            words: self.words.iter().copied().collect(),
            words_per_block: self.words_per_block,
        }
    }

    /// Returns the words of a block. Bit i of word w is bit 64 w + i of the block.
    pub fn block(&self, number: usize) -> &[u64] {
        &self.words[number * self.words_per_block..][..self.words_per_block]
    }

    /// Returns how many blocks the column has.
    pub fn blocks(&self) -> u64 {
        (self.words.len() / self.words_per_block) as u64
    }

    /// Returns how many words of 64 bits the column takes.
    pub fn words(&self) -> usize {
        self.words.len()
    }

    /// Returns how many bits are set.
    pub fn ones(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns a column of half as many blocks with the same keys, which has the bits that it would
    /// have if the keys had been added to it. The number of blocks must be even.
    ///
    /// Hashes are divided evenly among the blocks in their order. So the keys of blocks 2 i and
    /// 2 i + 1 are those of block i in half as many, and their positions in a block stay.
    pub fn folded(&self) -> ColumnBits {
        let mut words = List::with_capacity(self.words.len() / 2);
        for two_blocks in self.words.chunks_exact(2 * self.words_per_block) {
            let (even, odd) = two_blocks.split_at(self.words_per_block);
            words.extend(even.iter().zip(odd).map(|(a, b)| a | b));
        }
        ColumnBits { words, words_per_block: self.words_per_block }
    }
}

/// Returns how many words of 64 bits a block takes.
fn words_per_block(size: PageSize) -> usize {
    size.block_bits().div_ceil(u64::BITS) as usize
}
