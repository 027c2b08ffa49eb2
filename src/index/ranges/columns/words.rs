//! A column of tsvectors, whose keys are their words, and the conditions of tsqueries on them. Both
//! types are read as PostgreSQL stores them, without the length in front:
//!
//! ```text
//! tsvector    words u32 │ an entry of u32 for each: has positions 1 bit, length 11, offset 20 │ words …
//! tsquery     items u32 │ 12 bytes for each │ words …
//! item        a word       1 │ weights u8 │ is a prefix u8 │ 0 │ checksum u32 │ length 12 bits, offset 20
//!             an operator  2 │ which u8 │ distance u16 │ left operand u32
//! ```
//!
//! The items of a tsquery are in prefix notation: the items of an operand follow its operator. Read
//! from the last item to the first, the operands of each operator come before it.
//!
//! Example: `a & (b | c)` is stored as `& | c b a`. From the end, `a`, `b` and `c` are conditions
//! that wait for an operator, `|` takes `c` and `b`, and `&` takes that and `a`.

use crate::pg::call::{Error, SqlState, interrupt, raise};
use pg_bloom_core::conditions::{Condition, MAX_DEPTH, word};
use pg_bloom_core::memory::List;

/// Bytes of a number.
const NUMBER_BYTES: usize = 4;
/// Bytes of an item of a tsquery.
const ITEM_BYTES: usize = 12;
/// Where an item of a tsquery that is a word has the length and the offset of the word.
const WORD_AT: usize = 8;
/// Bits of the length of a word of a tsvector.
const TSVECTOR_LENGTH_BITS: u32 = 11;
/// Bits of the length of a word of a tsquery.
const TSQUERY_LENGTH_BITS: u32 = 12;
/// Bits of the offset of a word, in both.
const OFFSET_BITS: u32 = 20;

/// The types of items of a tsquery: QI_VAL and QI_OPR of PostgreSQL.
const VALUE: u8 = 1;
const OPERATOR: u8 = 2;
/// The operators of a tsquery: OP_NOT and so on.
const NOT: u8 = 1;
const AND: u8 = 2;
const OR: u8 = 3;
const PHRASE: u8 = 4;

/// Words that are hashed between two checks for interrupts.
const WORDS_PER_CHECK: usize = 4096;

/// Calls `visit` with the hash of each word (lexeme) of a tsvector, by which an index keeps it.
/// Positions and weights don't count. `tsvector` has the bytes of the value without its length.
/// Raises XX001 if the value is damaged. The user can cancel this.
pub fn each_word(tsvector: &[u8], mut visit: impl FnMut(u64)) {
    let num_words = number(tsvector, 0) as usize;
    let words = tsvector
        .get(NUMBER_BYTES * (1 + num_words)..)
        .unwrap_or_else(|| damaged("tsvector"));
    for i in 0..num_words {
        let entry = number(tsvector, NUMBER_BYTES * (1 + i));
        visit(word(lexeme(words, entry, TSVECTOR_LENGTH_BITS, "tsvector")));
        if i.is_multiple_of(WORDS_PER_CHECK) {
            interrupt::check_for_interrupts();
        }
    }
}

/// A condition that waits for its operator.
struct Operand {
    condition: Condition,
    /// How many conditions it has within each other; 0 for a word.
    depth: usize,
}

impl Operand {
    /// An operand of which the words of a tsvector tell nothing.
    const UNKNOWN: Operand = Operand { condition: Condition::Unknown, depth: 0 };

    /// Returns how deep the condition is as an operand of OR or of AND. An OR within an OR becomes
    /// one condition with it, and so does an AND within an AND.
    fn depth_within(&self, is_or: bool) -> usize {
        match self.condition {
            Condition::Any(_) if is_or => self.depth,
            Condition::All(_) if !is_or => self.depth,
            _ => self.depth + 1,
        }
    }
}

/// Returns the condition on the words of a tsvector, by their hashes, that is necessary for it to
/// match a tsquery (`a & (b | c)`). `tsquery` has the bytes of the value without its length.
///
/// `a & (b | c)` is stored as `& | c b a`. The items of the query are read from the last to the
/// first, so that the operands of each operator come before it and wait in `operands`: `a`, `b` and
/// `c`, of which `|` takes the last two, and `&` that and `a`. A part that is nested deeper than
/// conditions may be ([`MAX_DEPTH`]) counts as unknown and restricts nothing. Positions and weights
/// of words are left to PostgreSQL, which compares the rows; a prefix (`a:*`) and NOT restrict
/// nothing. An empty query matches no row. Raises XX001 if the value is damaged.
pub fn condition(tsquery: &[u8]) -> Condition {
    let num_items = number(tsquery, 0) as usize;
    if num_items == 0 {
        return Condition::NONE;
    }
    let items = tsquery
        .get(NUMBER_BYTES..NUMBER_BYTES + ITEM_BYTES * num_items)
        .unwrap_or_else(|| damaged("tsquery"));
    let words = &tsquery[NUMBER_BYTES + ITEM_BYTES * num_items..];

    let mut operands: List<Operand> = List::new();
    for item in items.as_chunks::<ITEM_BYTES>().0.iter().rev() {
        let operand = match *item {
            [VALUE, _, is_prefix, ..] if is_prefix != 0 => Operand::UNKNOWN,
            [VALUE, ..] => {
                let place_of_word = number(item, WORD_AT);
                let lexeme = lexeme(words, place_of_word, TSQUERY_LENGTH_BITS, "tsquery");
                Operand { condition: Condition::Has(word(lexeme)), depth: 0 }
            }
            [OPERATOR, NOT, ..] => {
                pop(&mut operands);
                Operand::UNKNOWN
            }
            [OPERATOR, operator @ (AND | OR | PHRASE), ..] => {
                let left = pop(&mut operands);
                let right = pop(&mut operands);
                joined(operator == OR, left, right)
            }
            _ => damaged("tsquery"),
        };
        operands.push(operand);
    }
    pop(&mut operands).condition
}

/// Takes the operand that was added last.
fn pop(operands: &mut List<Operand>) -> Operand {
    operands.pop().unwrap_or_else(|| damaged("tsquery"))
}

/// Returns the OR of two operands, or their AND. It is unknown if it would be too deep for a
/// condition.
fn joined(is_or: bool, left: Operand, right: Operand) -> Operand {
    let depth = left.depth_within(is_or).max(right.depth_within(is_or));
    if depth > MAX_DEPTH {
        return Operand::UNKNOWN;
    }
    let operands = [left.condition, right.condition];
    let condition = if is_or { Condition::any(operands) } else { Condition::all(operands) };
    Operand { condition, depth }
}

/// Returns the word whose place in `words` a number of a tsvector or a tsquery gives. The two last
/// bit fields of the number are the word's length, of `length_bits` bits, and its offset, of 20
/// bits. `of` is the type's name, for the message. Raises XX001 if the word isn't in the value,
/// which is damaged then.
fn lexeme<'a>(words: &'a [u8], fields: u32, length_bits: u32, of: &str) -> &'a [u8] {
    // C's compilers place the fields of a struct from the lowest bit up on little-endian machines,
    // from the highest down on others.
    let (length, offset) = if cfg!(target_endian = "little") {
        let offset = fields >> (u32::BITS - OFFSET_BITS);
        (fields >> (u32::BITS - OFFSET_BITS - length_bits), offset)
    } else {
        (fields >> OFFSET_BITS, fields & ((1 << OFFSET_BITS) - 1))
    };
    let length = (length & ((1 << length_bits) - 1)) as usize;
    let start = offset as usize;
    words.get(start..start + length).unwrap_or_else(|| damaged(of))
}

/// Returns the u32 at an offset.
fn number(bytes: &[u8], offset: usize) -> u32 {
    let number = bytes
        .get(offset..)
        .and_then(|rest| rest.first_chunk::<NUMBER_BYTES>());
    u32::from_ne_bytes(*number.unwrap_or_else(|| damaged("tsvector or tsquery")))
}

/// Raises XX001 for a damaged value of this type.
#[cold]
fn damaged(what: &str) -> ! {
    raise(
        Error::new(SqlState::ERRCODE_DATA_CORRUPTED, format!("invalid {what}"))
            .detail("The value is damaged."),
    )
}
