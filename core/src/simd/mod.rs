//! What a CPU can do beyond portable code, and the one place with `unsafe` in this crate. It is chosen when the program
//! runs, and does the very same.
//!
//! | module | what is faster |
//! |---|---|
//! | `blocks` | setting and asking bits of the `blocked` layout, with AVX-512 |
//! | `counts` | counting bits, with POPCNT |
//! | `prefetch` | fetching memory before it is needed |

mod blocks;
mod counts;
mod prefetch;

pub use blocks::{Blocks, POSITIONS_PER_WORD, PREFETCH_AHEAD, contains_each, insert_all};
pub use counts::{COUNTS, count_ones, tally_blocks};
pub use prefetch::{prefetch, prefetches_far};
