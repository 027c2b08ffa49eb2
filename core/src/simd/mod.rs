//! Code for particular CPUs, and the only place with `unsafe` in this crate. It is chosen at run time, and its results
//! are those of the portable code.
//!
//! | module | what is faster |
//! |---|---|
//! | `blocks` | setting and probing bits of the `blocked` layout, with AVX-512; prefetching memory |
//! | `counts` | counting bits, with POPCNT |

mod blocks;
mod counts;

pub use blocks::{Blocks, POSITIONS_PER_WORD, PREFETCH_AHEAD, contains_each, insert_all, prefetch};
pub use counts::count_ones;
