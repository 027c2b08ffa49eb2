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
pub struct Count {
    total: u64,
    meter: Meter,
}

impl Count {
    /// How many bytes `write` writes.
    pub fn of(write: impl FnOnce(&mut Count)) -> u64 {
        let mut count = Count::default();
        write(&mut count);
        count.total
    }
}

impl Sink for Count {
    fn write(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.meter.add(bytes.len());
    }
}

impl Sink for Vec<u8> {
    fn write(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
