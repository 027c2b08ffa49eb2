//! Canonical bytes that are written piece by piece, because there may be many: decimals, JSON, and
//! composed values. Those of the other kinds are in [`scalar`].
//!
//! | key kind | canonical bytes |
//! |---|---|
//! | numeric | [`numeric`]: plain decimal text without zeros at its end |
//! | jsonb | [`json`]: compact text |
//! | array, row, range, multirange | [`members`]: a frame, and the canonical bytes of the members |

pub mod json;
pub mod members;
pub mod numeric;
pub mod scalar;

use crate::interrupt::Meter;

/// What canonical bytes are written to.
pub trait Sink {
    /// Takes the next bytes. Long series of calls can be cancelled.
    fn write(&mut self, bytes: &[u8]);
}

/// Counts bytes.
#[derive(Debug, Default)]
pub struct ByteCounter {
    total: u64,
    meter: Meter,
}

impl ByteCounter {
    /// How many bytes `write` writes.
    pub fn count(write: impl FnOnce(&mut ByteCounter)) -> u64 {
        let mut counter = ByteCounter::default();
        write(&mut counter);
        counter.total
    }
}

impl Sink for ByteCounter {
    fn write(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.meter.add_bytes(bytes.len());
    }
}

impl Sink for Vec<u8> {
    fn write(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
