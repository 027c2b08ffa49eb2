//! Canonical bytes that are written piece by piece, because there may be many: decimals, JSON, and composed values.
//! Those of the other kinds are in [`scalar`].
//!
//! | key kind | canonical bytes |
//! |---|---|
//! | numeric | [`decimal`]: plain decimal text without zeros at its end; [`numeric`] reads other text |
//! | jsonb | [`json`]: compact text |
//! | array, row, range, multirange | [`members`]: a frame, and the canonical bytes of the members |
//!
//! `sink` is what they are written to.

pub mod decimal;
pub mod json;
pub mod members;
pub mod numeric;
pub mod scalar;
mod sink;

pub use sink::{Count, Sink};
