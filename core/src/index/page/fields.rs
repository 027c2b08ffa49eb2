//! Structs as they are stored: numbers in the order of their bytes, little-endian, without padding.

use super::damage::WrongField;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Write;

/// Returns the value that a stored code stands for. Fails if `from_code` knows none for it.
pub(crate) fn decode<T>(
    field: &'static str,
    code: u8,
    from_code: impl FnOnce(u8) -> Option<T>,
) -> Result<T, WrongField> {
    from_code(code).ok_or_else(|| WrongField::new(field, code))
}

/// Reads a number, or a struct of numbers, and advances `bytes` past it.
///
/// Fails if `bytes` end too early.
pub(crate) fn read_fixed<T: DeserializeOwned>(bytes: &mut &[u8]) -> Result<T, WrongField> {
    let available = bytes.len() as u64;
    bincode::deserialize_from(bytes)
        .map_err(|_| WrongField::new("bytes left for a record", available))
}

/// Writes a number, or a struct of numbers, to memory that has room for it.
pub(crate) fn write_fixed(to: impl Write, record: &impl Serialize) {
    bincode::serialize_into(to, record).expect("numbers can be written where there is room");
}
