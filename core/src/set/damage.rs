//! What is wrong with bytes that should be a row of a set.

use std::fmt;

/// Why bytes are not a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowDamage {
    /// No bucket of a set has this number.
    Bucket(i64),
    /// They are not as many as a row with its number of hashes has.
    Length(usize),
    /// Another version of the stored form.
    Version(u8),
    /// They belong to a set of another form: its number of bits, with the highest bit set if it forgets.
    Form(u8),
    /// The checksum, of the bytes and of the bucket, is another.
    Checksum,
    /// The hashes are not in order, or not in the bucket.
    Order,
    /// Bits that must be zero are not.
    Padding,
}

impl fmt::Display for RowDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RowDamage::Bucket(bucket) => write!(f, "there can be no bucket {bucket}"),
            RowDamage::Length(bytes) => write!(f, "it cannot have {bytes} bytes"),
            RowDamage::Version(version) => write!(f, "its version is {version}"),
            RowDamage::Form(form) => {
                let forgets = if form & 0x80 == 0 { "does not forget" } else { "forgets" };
                write!(f, "it is of a set with {} bits of each hash that {forgets}", form & 0x7f)
            }
            RowDamage::Checksum => write!(f, "its checksum does not fit its bytes and its bucket"),
            RowDamage::Order => write!(f, "its hashes are out of order"),
            RowDamage::Padding => write!(f, "it has bits behind its last hash"),
        }
    }
}
