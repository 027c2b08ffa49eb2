//! The condition of a regular expression: windows of a text without which the expression has no
//! match in it.
//!
//! [`condition`] walks from the expression to its condition, in these steps:
//!
//! | module | what it does |
//! |---|---|
//! | `stand_ins` | replaces characters that PostgreSQL doesn't name in automatons by letters |
//! | – | PostgreSQL compiles the expression: the caller does that, and returns the automaton |
//! | `automaton` | the automaton, and by which characters it moves from state to state |
//! | `graph` | which windows a text has that takes a way through the automaton |
//! | `paths` | what all paths through the graph require |
//! | `section` | parts of a graph, one after the other and beside each other |
//! | `cut` | the narrowest cut of a section, where paths cross |
//! | `requirement` | what is required, as a condition |
//!
//! ```text
//! expression    disk (full|failed)
//! graph         . ─disk→ . ─isk␣→ A ─sk␣f→ . ─k␣fu→ . ─␣ful→ . ─full→ B
//!                                  └sk␣f→ . ─k␣fa→ . ─␣fai→ … ─iled→ ┘
//! condition     disk AND isk␣ AND sk␣f AND ((k␣fu AND ␣ful AND full) OR (k␣fa AND ␣fai AND … AND iled))
//! ```

pub mod automaton;
mod cut;
mod graph;
mod paths;
mod requirement;
mod section;
mod stand_ins;

use automaton::Automaton;
use graph::Graph;
use stand_ins::StandIns;

use crate::conditions::Condition;
use crate::conditions::text::{Encoding, LetterCase};

/// The most characters of a move of an automaton that are followed one by one. A move by more, such
/// as by the digits, is first taken for one by any character: most texts have one of its windows,
/// so that looking them up rules out little. Only if nothing is required then, the second limit is
/// tried.
const MOST_CHARACTERS: [usize; 2] = [4, 16];

/// Returns a condition that holds for every text in which a regular expression has a match: which
/// *windows* such a text must have. A window is a few neighbouring characters, mostly four, and an
/// index has the windows of its texts as keys. Other texts may meet the condition as well.
///
/// `compile` must have PostgreSQL compile an expression, and return the resulting automaton; `None`
/// if that is too large. It is called once: with `expression`; or, as PostgreSQL's automatons don't
/// name characters from U+0800 on, with an expression in which letters replace such characters.
///
/// `case` says whether the operator ignores letter case.
///
/// Returns [`Condition::Unknown`], which any text meets, if a match need not have any window, or if
/// finding out would take too long.
pub fn condition(
    expression: &[u8],
    encoding: Encoding,
    case: LetterCase,
    compile: impl FnOnce(&[u8]) -> Option<Automaton>,
) -> Condition {
    // In other encodings only ASCII characters are used for windows, and PostgreSQL names these.
    let stand_ins = match encoding {
        Encoding::Utf8 => StandIns::replace_in(expression, case),
        Encoding::Other => None,
    };
    let compiled = match &stand_ins {
        Some(stand_ins) => compile(&stand_ins.pattern),
        None => compile(expression),
    };
    let Some(mut automaton) = compiled else {
        return Condition::Unknown;
    };
    if let Some(stand_ins) = stand_ins {
        automaton.rename_characters(|letter| stand_ins.original(letter));
    }
    automaton.condition(encoding)
}

impl Automaton {
    /// Returns a condition that holds for every text in which the automaton finds a match.
    pub(super) fn condition(&self, encoding: Encoding) -> Condition {
        for most_characters in MOST_CHARACTERS {
            if let Some(graph) = Graph::from_automaton(self, encoding, most_characters) {
                let condition = paths::requirement(&graph).into_condition();
                if !condition.is_unknown() {
                    return condition;
                }
            }
        }
        Condition::Unknown
    }
}

#[cfg(test)]
mod tests;
