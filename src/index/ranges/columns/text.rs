//! A column of texts. The keys of a text are its windows: the hashes of all runs of a few
//! characters that follow each other.

use super::class::{Strategy, unknown_strategy};
use crate::element::Column;
use crate::pg::call::{Result, SqlValue, interrupt};
use crate::pg::regex::CompiledRegex;
use crate::pg::storage::relation::Relation;
use crate::pg::value::encoding;
use crate::pg::value::varlena::{PgBuffer, Value};
use pg_bloom_core::conditions::regex::automaton::{Automaton, Transition};
use pg_bloom_core::conditions::text::{self, Encoding, LetterCase};
use pg_bloom_core::conditions::{Condition, regex};
use pg_bloom_core::memory::List;
use pgrx::pg_sys::{self, Oid};

/// An expression whose automaton has more states, or more arcs, restricts nothing. Reading one of
/// this size takes some milliseconds.
const MOST_STATES: usize = 10_000;
const MOST_ARCS: usize = 200_000;
/// At most this many characters of a color are read: a condition tries few of them one by one, and
/// takes a larger color for any character.
const MOST_CHARACTERS_OF_COLOR: usize = 64;

/// What decides which windows a text has, and what a pattern means.
pub struct TextColumn {
    /// The encoding of the database.
    pub encoding: Encoding,
    /// The collation of the column, which the operators of a query use, too.
    collation: Oid,
}

impl TextColumn {
    /// Describes the column of an index. Its type may have been altered to another one that has the
    /// same bytes, such as citext; it is read as text. Fails with 0A000 if its collation can't be
    /// in an index.
    pub fn of_index(relation: Relation) -> Result<TextColumn> {
        let collation = relation.column_class().collation;
        Column::new(relation.handler(), pg_sys::TEXTOID, collation)?;
        let encoding = if encoding::is_utf8() { Encoding::Utf8 } else { Encoding::Other };
        Ok(TextColumn { encoding, collation })
    }

    /// Returns the condition on a text's windows that is necessary for an operator of the query to
    /// hold between the text and `asked`: a pattern of LIKE, a regular expression or a text, by
    /// `strategy`. A *window* is some characters of a text that follow each other; the index keeps
    /// the hash of each. Fails with XX000 for the strategy of an operator that isn't one of texts;
    /// raises PostgreSQL's error 2201B if a regular expression is invalid.
    ///
    /// # Safety
    /// The value must be of the type of the operator's right side.
    pub unsafe fn condition(&self, strategy: Strategy, asked: SqlValue) -> Result<Condition> {
        // SAFETY: promised by the caller; the right side of each operator below is a text, which is
        // of variable length.
        let text = || unsafe { Value::detoast(asked.datum) };
        Ok(match strategy {
            Strategy::Like => text::like(&text(), self.encoding, LetterCase::Compared),
            Strategy::LikeIgnoringCase => text::like(&text(), self.encoding, LetterCase::Ignored),
            Strategy::Regex => self.regex_condition(&text(), LetterCase::Compared),
            Strategy::RegexIgnoringCase => self.regex_condition(&text(), LetterCase::Ignored),
            // The text has all windows of the other one.
            Strategy::Equal | Strategy::StartsWith => text::having(&text(), self.encoding),
            _ => return Err(unknown_strategy(strategy as i16)),
        })
    }

    /// Returns the condition on a text's windows, the hashes of some characters that follow each
    /// other, that is necessary for a regular expression to match the text. PostgreSQL compiles the
    /// expression to an automaton, from which the condition is computed. Raises 2201B if the
    /// expression is invalid.
    fn regex_condition(&self, expression: &Value, case: LetterCase) -> Condition {
        regex::condition(expression, self.encoding, case, |to_compile| {
            let ignore_case = case == LetterCase::Ignored;
            let text_pointer = PgBuffer::copy_of(to_compile).into_datum().cast_mut_ptr();
            // SAFETY: the expression is a text that was just made, and no other expression is
            // compiled before its automaton has been read.
            let compiled = unsafe { CompiledRegex::of(text_pointer, ignore_case, self.collation) };
            automaton_of(&compiled)
        })
    }
}

/// Returns the automaton of a compiled regular expression, copied from PostgreSQL: for each state
/// its transitions to others, by *colors*, classes of characters that the automaton doesn't
/// distinguish. A color is the list of its characters, or `None` for any character: if it has more
/// than 64, or if PostgreSQL doesn't list them. Returns `None` if the automaton has more than
/// 10,000 states or 200,000 transitions, which would take too long to read. The user can cancel
/// this.
fn automaton_of(compiled: &CompiledRegex) -> Option<Automaton> {
    let num_states = compiled.num_states();
    if num_states > MOST_STATES {
        return None;
    }
    let num_colors = compiled.num_colors();
    let mut colors = (0..num_colors)
        .map(|color| compiled.characters(color, MOST_CHARACTERS_OF_COLOR))
        .collect::<List<_>>();
    // One more color, of any character, for arcs that have none.
    colors.push(None);
    let any_color = num_colors;

    let mut transitions = List::with_capacity(num_states);
    let mut num_arcs = 0;
    for state in 0..num_states {
        interrupt::check_for_interrupts();
        let arcs = compiled.arcs(state);
        num_arcs += arcs.len();
        if num_arcs > MOST_ARCS {
            return None;
        }
        let transitions_of_state = arcs
            .into_iter()
            .map(|arc| Transition { color: arc.color.unwrap_or(any_color), to: arc.to });
        transitions.push(transitions_of_state.collect());
    }
    Some(Automaton {
        transitions,
        colors,
        initial: compiled.initial_state(),
        last: compiled.final_state(),
    })
}
