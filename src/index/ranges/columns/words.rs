//! The words of a tsvector, and what a tsquery asks of them. Both are read as PostgreSQL stores
//! them, given without the length before them.
//!
//! ```text
//! tsvector    words u32 │ an entry of u32 for each: has positions 1 bit, length 11, offset 20 │ words …
//! tsquery     items u32 │ 12 bytes for each │ words …
//! item        a word       1 │ weights u8 │ is a prefix u8 │ 0 │ checksum u32 │ length 12 bits, offset 20
//!             an operator  2 │ which u8 │ distance u16 │ left operand u32
//! ```
//!
//! Items are in prefix notation: those of an operand follow its operator. So reading them from the
//! last to the first has the operands of each before it.

use crate::pg::call::{Error, SqlState, interrupt, raise};
use pg_bloom_core::conditions::{Condition, MAX_DEPTH, word};
use pg_bloom_core::memory;

/// Bytes of a number, and of an item.
const WORD: usize = 4;
const ITEM: usize = 12;
/// Types of items, and operators.
const VALUE: u8 = 1;
const OPERATOR: u8 = 2;
const NOT: u8 = 1;
const AND: u8 = 2;
const OR: u8 = 3;
const PHRASE: u8 = 4;
/// Words between two looks whether to stop.
const CHECK_EVERY: usize = 4096;

/// Calls `visit` with the hash of each word of a tsvector.
pub fn each_word(tsvector: &[u8], mut visit: impl FnMut(u64)) {
    let count = number(tsvector, 0) as usize;
    let words = tsvector
        .get(WORD * (1 + count)..)
        .unwrap_or_else(|| damaged("tsvector"));
    for i in 0..count {
        let entry = number(tsvector, WORD * (1 + i));
        visit(word(lexeme(words, entry, 11, "tsvector")));
        if i.is_multiple_of(CHECK_EVERY) {
            interrupt::check_for_interrupts();
        }
    }
}

/// What the words of a tsvector must be that matches a tsquery. Where they are and their weights
/// are for PostgreSQL to compare; a prefix and NOT are not known here.
pub fn condition(tsquery: &[u8]) -> Condition {
    let count = number(tsquery, 0) as usize;
    if count == 0 {
        return Condition::NONE;
    }
    let items = tsquery
        .get(WORD..WORD + ITEM * count)
        .unwrap_or_else(|| damaged("tsquery"));
    let words = &tsquery[WORD + ITEM * count..];
    // Conditions whose operator comes, and how deep they are.
    let mut open: Vec<(Condition, usize)> = Vec::new();
    for item in items.as_chunks::<ITEM>().0.iter().rev() {
        let condition = match *item {
            [VALUE, _, prefix, ..] if prefix != 0 => (Condition::Unknown, 0),
            [VALUE, ..] => (Condition::Has(word(lexeme(words, number(item, 8), 12, "tsquery"))), 0),
            [OPERATOR, NOT, ..] => {
                open.pop().unwrap_or_else(|| damaged("tsquery"));
                (Condition::Unknown, 0)
            }
            [OPERATOR, operator @ (AND | OR | PHRASE), ..] => {
                let (a, b) = open.pop().zip(open.pop()).unwrap_or_else(|| damaged("tsquery"));
                let is_or = operator == OR;
                // ORs of ORs are one condition, and so are ANDs of ANDs.
                let depth_in = |(operand, depth): &(Condition, usize)| match operand {
                    Condition::Any(_) if is_or => *depth,
                    Condition::All(_) if !is_or => *depth,
                    _ => depth + 1,
                };
                match depth_in(&a).max(depth_in(&b)) {
                    depth if depth > MAX_DEPTH => (Condition::Unknown, 0),
                    depth if is_or => (Condition::any([a.0, b.0]), depth),
                    depth => (Condition::all([a.0, b.0]), depth),
                }
            }
            _ => damaged("tsquery"),
        };
        memory::push(&mut open, condition);
    }
    open.pop().unwrap_or_else(|| damaged("tsquery")).0
}

/// The word of a length of so many bits and an offset of 20, the last fields of a u32: compilers
/// begin with the lowest bit on little-endian machines, with the highest on others.
fn lexeme<'a>(words: &'a [u8], bits: u32, length_bits: u32, of: &str) -> &'a [u8] {
    const OFFSET_BITS: u32 = 20;
    let (length, offset) = if cfg!(target_endian = "little") {
        (bits >> (u32::BITS - OFFSET_BITS - length_bits), bits >> (u32::BITS - OFFSET_BITS))
    } else {
        (bits >> OFFSET_BITS, bits & ((1 << OFFSET_BITS) - 1))
    };
    let (length, offset) = ((length & ((1 << length_bits) - 1)) as usize, offset as usize);
    words.get(offset..offset + length).unwrap_or_else(|| damaged(of))
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let number = bytes.get(at..).and_then(|rest| rest.first_chunk::<WORD>());
    u32::from_ne_bytes(*number.unwrap_or_else(|| damaged("tsvector or tsquery")))
}

#[cold]
fn damaged(what: &str) -> ! {
    raise(
        Error::new(SqlState::ERRCODE_DATA_CORRUPTED, format!("invalid {what}"))
            .detail("The value is damaged."),
    )
}
