//! A stored filter, or the state of a build, read in place; and the checks of its bytes: their
//! length, their version, every field, and what follows from the fields. All values from outside
//! come through here.

use super::header::{
    COUNTERS, Capacity, DENSE, HEADER_BYTES, Header, Raw, SPARSE, VERSION, payload_mut,
};
use super::sparse;
use crate::error::{Error, InvalidBinary, Result};
use crate::hash::HASH_ID;
use crate::interrupt;
use crate::kind::{self, Kind, Tag};
use crate::layout::{Layout, MAX_HASHES, PARQUET_HASHES};
use crate::memory::Buffer;
use crate::sizing::{MAX_STORED_BYTES, density, is_possible_fpr, max_blocks};

/// The elements of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body<'a> {
    /// Their hashes, eight bytes each, ascending.
    Sparse(&'a [[u8; 8]]),
    /// Their bits.
    Dense(&'a [u8]),
}

/// A stored filter that was validated, read in place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View<'a> {
    pub header: Header<'a>,
    pub body: Body<'a>,
}

impl<'a> View<'a> {
    /// Reads a stored filter. Errors: [`crate::Class::InvalidBinary`] for a value that this crate
    /// doesn't write.
    pub fn parse(bytes: &'a [u8]) -> Result<View<'a>> {
        let view = View::parse_trusted(bytes)?;
        check_contents(&view).map(|()| view)
    }

    /// Reads a value whose bytes [`View::parse`] accepted before. Checks everything except the
    /// order of a sparse filter's hashes and the zeros of a filter without a kind, which takes time
    /// that grows with the filter. Other bytes can give wrong answers, but nothing worse. Errors:
    /// as [`View::parse`].
    #[inline]
    pub fn parse_trusted(bytes: &'a [u8]) -> Result<View<'a>> {
        let view = read(bytes)?;
        check_is_whole(&view.header, matches!(view.body, Body::Sparse([]))).map(|()| view)
    }

    /// Reads the state of a build that one process passes to another: a filter in its stored form,
    /// or one of two forms that no stored value has. Errors: [`crate::Class::InvalidBinary`] for a
    /// value that no aggregate writes.
    ///
    /// ```text
    /// blocks  capacity  payload
    /// 0       0         hashes      an unsized build, exact
    /// 2^e     0         bits        an unsized build with more blocks than it will need, to be folded in the end
    /// ```
    pub fn parse_partial(bytes: &'a [u8]) -> Result<View<'a>> {
        let view = read(bytes)?;
        check_contents(&view)?;
        match (view.header.capacity, view.body) {
            (Capacity::ToBeFolded, _) => check_foldable(&view.header)?,
            (Capacity::Unsized, Body::Sparse([])) if !view.header.kind.is_none() => {
                return Err(invalid("a filter of no size has a key kind but no elements"));
            }
            _ => {}
        }
        Ok(view)
    }

    /// How many bytes the payload has as stored.
    pub fn payload_bytes(&self) -> usize {
        match self.body {
            Body::Sparse(hashes) => hashes.len() * 8,
            Body::Dense(bits) => bits.len(),
        }
    }

    /// How many bytes the stored form has.
    pub fn stored_bytes(&self) -> usize {
        self.header.prefix_bytes() + self.payload_bytes()
    }

    /// A copy of the stored form.
    pub fn to_buffer<B: Buffer>(&self) -> B {
        let (mut value, payload): (B, _) = match self.body {
            Body::Sparse(hashes) => (self.header.sparse(hashes.len()), hashes.as_flattened()),
            Body::Dense(bits) => (self.header.dense(), bits),
        };
        interrupt::copy(payload_mut(&mut value, &self.header), payload);
        value
    }
}

/// Reads a filter or a partial state, without the checks that take time that grows with the
/// payload.
#[inline]
fn read(bytes: &[u8]) -> Result<View<'_>> {
    let (header, hashes) = parse_start(bytes, bytes.len())?;
    let payload = &bytes[header.prefix_bytes()..];
    if hashes.is_some() {
        return Ok(View { header, body: Body::Sparse(payload.as_chunks::<8>().0) });
    }
    let unused = payload.len() as u64 * 8 - header.blocks * header.layout.block_bits();
    let is_clear = payload
        .last()
        .is_some_and(|&last| u64::from(last.leading_zeros()) >= unused);
    require(is_clear, || "bits are set after the last".into())?;
    Ok(View { header, body: Body::Dense(payload) })
}

/// Checks the rest: hashes ascend, and a filter without a kind has no bits set. Two empty filters
/// of different sizes merge to one that is dense and has no kind yet.
fn check_contents(view: &View<'_>) -> Result<()> {
    match view.body {
        Body::Sparse(hashes) => {
            require(sparse::is_ascending(hashes), || "hashes are not in ascending order".into())
        }
        Body::Dense(bits) => {
            require(!view.header.kind.is_none() || interrupt::is_zero(bits), || {
                "bits of elements without a key kind are set".into()
            })
        }
    }
}

pub(crate) fn invalid(what: impl Into<String>) -> Error {
    InvalidBinary::Damaged(what.into()).into()
}

pub(crate) fn require(holds: bool, what: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(invalid(what())) }
}

/// Header and representation, read from everything before the payload of a filter of counters or of
/// bits.
pub(crate) fn parse_header(bytes: &[u8], has_counters: bool) -> Result<(Header<'_>, u8)> {
    require(bytes.len() >= HEADER_BYTES, || {
        format!("{} bytes where a header has {HEADER_BYTES}", bytes.len())
    })?;
    require(bytes.len() as u64 <= MAX_STORED_BYTES, || {
        format!("{} bytes are too many", bytes.len())
    })?;
    if bytes[0] != VERSION {
        return Err(InvalidBinary::UnknownVersion(bytes[0], VERSION).into());
    }
    let raw: Raw =
        bincode::deserialize(&bytes[..HEADER_BYTES]).map_err(|e| invalid(e.to_string()))?;
    let layout = Layout::from_code(raw.layout)
        .ok_or_else(|| invalid(format!("layout {} is unknown", raw.layout)))?;
    let tag = Tag::from_code(raw.kind)
        .ok_or_else(|| invalid(format!("key kind {} is unknown", raw.kind)))?;
    require(tag.allowed_in(layout == Layout::Parquet), || {
        format!("layout \"{}\" has no elements of kind {}", layout.name(), tag.name())
    })?;
    match (raw.representation, has_counters) {
        (COUNTERS, false) => return Err(InvalidBinary::Counters(COUNTERS).into()),
        (found @ (SPARSE | DENSE), true) => return Err(InvalidBinary::NoCounters(found).into()),
        (found, _) => require(found <= COUNTERS, || format!("representation {found} is unknown"))?,
    }
    require(raw.hash_id == HASH_ID, || format!("hash function {} is unknown", raw.hash_id))?;
    require(raw.reserved == 0, || format!("reserved bytes are {}, not 0", raw.reserved))?;
    require(is_possible_fpr(layout, raw.fpr), || {
        format!("false positive rate is {} in layout \"{}\"", raw.fpr, layout.name())
    })?;
    let name = parse_name(tag, usize::from(raw.name_len), &bytes[HEADER_BYTES..])?;
    let capacity = match (raw.blocks, raw.capacity) {
        (0, _) => Capacity::Unsized,
        (_, 0) => Capacity::ToBeFolded,
        (_, elements) => Capacity::Elements(elements),
    };
    let (num_hashes, kind) = (u32::from(raw.num_hashes), Kind { tag, name });
    let Raw { blocks, base_blocks, fpr, .. } = raw;
    let header = Header { layout, num_hashes, blocks, base_blocks, capacity, fpr, kind };
    check_shape(&header, raw.capacity)?;
    Ok((header, raw.representation))
}

fn parse_name(tag: Tag, len: usize, after_header: &[u8]) -> Result<&str> {
    require(tag.has_name() == (len > 0) && len <= kind::MAX_NAME, || {
        format!("a name of {len} bytes for kind {}", tag.name())
    })?;
    let padded = after_header.get(..len.next_multiple_of(8));
    let (name, padding) = padded
        .ok_or_else(|| invalid("the name of its elements' type is cut off"))?
        .split_at(len);
    require(padding.iter().all(|&b| b == 0), || "padding is not zero".into())?;
    let name = std::str::from_utf8(name).ok().filter(|name| !name.contains('\0'));
    name.ok_or_else(|| invalid("the name of its elements' type is not UTF-8"))
}

/// Checks hashes, blocks and the stored capacity against each other.
fn check_shape(h: &Header<'_>, capacity: u64) -> Result<()> {
    if h.is_unsized() {
        return require(h.base_blocks == 0 && capacity == 0 && h.num_hashes == 0, || {
            format!(
                "no blocks, but {} base blocks, capacity {capacity} and {} hashes",
                h.base_blocks, h.num_hashes
            )
        });
    }
    let hashes = if h.layout == Layout::Parquet {
        PARQUET_HASHES..=PARQUET_HASHES
    } else {
        1..=MAX_HASHES
    };
    require(hashes.contains(&h.num_hashes), || {
        format!("{} hashes in layout \"{}\"", h.num_hashes, h.layout.name())
    })?;
    require(h.blocks <= max_blocks(h.layout) && h.dense_bytes() <= MAX_STORED_BYTES, || {
        format!("{} blocks are too many", h.blocks)
    })?;
    require(h.base_blocks > 0 && h.blocks.is_multiple_of(h.base_blocks), || {
        format!("{} blocks are no multiple of {}", h.blocks, h.base_blocks)
    })?;
    require(capacity <= i64::MAX as u64, || format!("capacity is {capacity}"))
}

/// Checks that a header is that of a stored filter, not of a partial state.
pub(crate) fn check_is_whole(h: &Header<'_>, is_empty_list: bool) -> Result<()> {
    match h.capacity {
        Capacity::Elements(_) => Ok(()),
        Capacity::ToBeFolded => Err(invalid("capacity is 0")),
        Capacity::Unsized if !is_empty_list => Err(invalid("a filter of no size holds elements")),
        Capacity::Unsized => {
            require(h.kind.is_none(), || "a filter of no size has a key kind".into())
        }
    }
}

/// Checks that a filter without a final size can be folded to any smaller size without losing
/// elements.
fn check_foldable(h: &Header<'_>) -> Result<()> {
    require(h.blocks.is_power_of_two(), || {
        format!("{} blocks of a filter to be folded are no power of two", h.blocks)
    })?;
    let num_hashes = density(h.layout, h.fpr)
        .map_err(|error| invalid(error.to_string()))?
        .num_hashes;
    require(h.num_hashes == num_hashes, || {
        format!("{} hashes at a rate that has {num_hashes}", h.num_hashes)
    })
}

/// Reads the header at the start of a value of `length` bytes. Returns the number of its hashes, if
/// it is sparse.
pub(crate) fn parse_start(bytes: &[u8], length: usize) -> Result<(Header<'_>, Option<usize>)> {
    let (header, representation) = parse_header(bytes, false)?;
    let payload = length
        .checked_sub(header.prefix_bytes())
        .ok_or_else(|| invalid("it is cut off"))?;
    if representation == SPARSE {
        let hashes = payload / 8;
        require(payload.is_multiple_of(8), || {
            format!("{payload} bytes of hashes are no multiple of 8")
        })?;
        require(header.capacity != Capacity::ToBeFolded, || {
            "a sparse filter has capacity 0".into()
        })?;
        require(header.fits_sparse(hashes), || {
            format!("{hashes} hashes are more than a sparse filter of {} blocks has", header.blocks)
        })?;
        require(!header.kind.is_none() || hashes == 0, || "elements have no key kind".into())?;
        return Ok((header, Some(hashes)));
    }
    require(!header.is_unsized(), || "a filter of no size is dense".into())?;
    require(payload as u64 == header.payload_bytes(), || {
        format!(
            "{payload} bytes of bits where {} blocks have {}",
            header.blocks,
            header.payload_bytes()
        )
    })?;
    Ok((header, None))
}

#[cfg(test)]
pub(crate) mod tests;
