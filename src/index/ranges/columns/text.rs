//! A column of texts: the keys of one are the hashes of its windows.

use super::class::Strategy;
use crate::element::Column;
use crate::pg::call::{Result, interrupt};
use crate::pg::regex::CompiledRegex;
use crate::pg::storage::relation::Relation;
use crate::pg::value::encoding;
use crate::pg::value::varlena::{PgBuffer, Value};
use pg_bloom_core::conditions::regex::automaton::{Automaton, Transition};
use pg_bloom_core::conditions::text::{self, Encoding, LetterCase};
use pg_bloom_core::conditions::{Condition, regex};
use pg_bloom_core::memory;
use pgrx::pg_sys::{self, Oid};

/// The most states of an automaton, and the most arcs. One with more has an unknown condition.
const MOST_STATES: usize = 10_000;
const MOST_ARCS: usize = 200_000;
/// The most characters of a color that are read: far more than a condition follows one by one.
const MOST_CHARACTERS_OF_COLOR: usize = 64;

/// What decides the windows of texts, and what a pattern means.
pub struct TextColumn {
    pub encoding: Encoding,
    /// That of the column, under which the operators of the query compare.
    collation: Oid,
}

impl TextColumn {
    /// The column of an index. Its type may have been altered to one with the same bytes, such as
    /// citext: it is read as text. 0A000 for a collation that can't be in an index.
    pub fn of(relation: Relation) -> Result<TextColumn> {
        let (_, _, collation) = relation.column_class();
        Column::new(relation.handler(), pg_sys::TEXTOID, collation)?;
        let encoding = if encoding::is_utf8() { Encoding::Utf8 } else { Encoding::Other };
        Ok(TextColumn { encoding, collation })
    }

    /// Returns what the windows of a text must be for which an operator holds with this text. Fails
    /// if a regular expression is invalid (SQLSTATE 2201B).
    pub fn condition(&self, strategy: Strategy, asked: &Value) -> Condition {
        match strategy {
            Strategy::Like => text::like(asked, self.encoding, LetterCase::Compared),
            Strategy::LikeIgnoringCase => text::like(asked, self.encoding, LetterCase::Ignored),
            Strategy::Regex => self.matching(asked, LetterCase::Compared),
            Strategy::RegexIgnoringCase => self.matching(asked, LetterCase::Ignored),
            _ => text::having(asked, self.encoding),
        }
    }

    /// Returns what the windows of a text must be in which a regular expression has a match.
    fn matching(&self, expression: &Value, case: LetterCase) -> Condition {
        regex::condition(expression, self.encoding, case, |expression| {
            let ignore_case = case == LetterCase::Ignored;
            let expression = PgBuffer::copy_of(expression).into_datum().cast_mut_ptr();
            // SAFETY: the expression is a text that was just made. None is compiled until its
            // automaton has been read.
            let compiled = unsafe { CompiledRegex::of(expression, ignore_case, self.collation) };
            automaton_of(&compiled)
        })
    }
}

/// Returns the automaton of a compiled expression; `None` if it is large.
fn automaton_of(compiled: &CompiledRegex) -> Option<Automaton> {
    let num_states = compiled.num_states();
    if num_states > MOST_STATES {
        return None;
    }
    let num_colors = compiled.num_colors();
    let of_color = |color| compiled.characters(color, MOST_CHARACTERS_OF_COLOR);
    let mut colors = memory::collect((0..num_colors).map(of_color));
    // For arcs that have no color.
    memory::push(&mut colors, None);
    let any_color = num_colors;

    let mut transitions = memory::with_capacity(num_states);
    let mut num_arcs = 0;
    for state in 0..num_states {
        interrupt::check_for_interrupts();
        let arcs = compiled.arcs(state);
        num_arcs += arcs.len();
        if num_arcs > MOST_ARCS {
            return None;
        }
        let of_state = arcs
            .into_iter()
            .map(|arc| Transition { color: arc.color.unwrap_or(any_color), to: arc.to });
        memory::push(&mut transitions, memory::collect(of_state));
    }
    Some(Automaton {
        transitions,
        colors,
        initial: compiled.initial_state(),
        last: compiled.final_state(),
    })
}
