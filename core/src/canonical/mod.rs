//! Canonical bytes: what an element is hashed as. Equal elements have the same.
//!
//! Those that may be many are written piece by piece to a [`Sink`]: decimals, JSON, and composed
//! values. Those of all other kinds are returned as a whole, by [`scalar`].
//!
//! | key kind | canonical bytes |
//! |---|---|
//! | numeric | [`numeric`]: plain decimal text without zeros at its end |
//! | jsonb | [`json`]: compact text |
//! | array, row, range, multirange | [`members`]: a frame, and the canonical bytes of the members |
//! | the others | [`scalar`] |

pub mod json;
pub mod members;
pub mod numeric;
pub mod scalar;

use crate::interrupt::Meter;
use crate::memory::List;

/// A destination for canonical bytes: a hash, a counter or a list.
pub trait Sink {
    /// Takes the next bytes. May check for interrupts.
    fn write(&mut self, bytes: &[u8]);
}

impl Sink for List<u8> {
    fn write(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// A sink that only counts the bytes. It can be cancelled.
#[derive(Debug, Default)]
pub struct ByteCounter {
    total: u64,
    /// Checks for interrupts after some bytes.
    meter: Meter,
}

impl ByteCounter {
    /// Returns how many canonical bytes a value has: calls `write_value` with a sink to which it
    /// must write them, and which only counts.
    pub fn count(write_value: impl FnOnce(&mut ByteCounter)) -> u64 {
        let mut counter = ByteCounter::default();
        write_value(&mut counter);
        counter.total
    }
}

impl Sink for ByteCounter {
    fn write(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.meter.add_bytes(bytes.len());
    }
}
