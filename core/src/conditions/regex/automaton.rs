//! The automaton of a regular expression: states, and what leads from one to another.

use crate::conditions::text::{Encoding, fold};
use crate::memory::List;

/// An automaton that finds a match once it is in its last state.
#[derive(Clone, Debug, Default)]
pub struct Automaton {
    /// The transitions out of each state.
    pub transitions: List<List<Transition>>,
    /// The characters of each color. `None`: any character, or none, as at the start of a text.
    pub colors: List<Option<List<u32>>>,
    /// The number of the state before the first character.
    pub initial: usize,
    /// The number of the state after a match.
    pub last: usize,
}

/// A way from a state to another one, for which one character is read.
#[derive(Clone, Copy, Debug)]
pub struct Transition {
    /// The number of the color that the character must have.
    pub color: usize,
    /// The number of the state that the transition leads to.
    pub to: usize,
}

/// What the automaton may read in a state to get to another state.
pub struct StateMove {
    /// The number of the state that it leads to.
    pub to: usize,
    /// The characters, one of each group of those that are equal once letter case is folded;
    /// `None`: any character, or none.
    pub characters: Option<List<u32>>,
}

impl Automaton {
    /// Replaces each character by the one that `new_name` returns for it.
    pub fn rename_characters(&mut self, new_name: impl Fn(u32) -> u32) {
        for characters in self.colors.iter_mut().flatten() {
            for character in characters {
                *character = new_name(*character);
            }
        }
    }

    /// Returns the moves out of each state, in a list by the number of the state. A move stands for
    /// all transitions of the automaton from one state to one other state, and has the characters
    /// of all of them.
    ///
    /// A move that would have more than `most` characters becomes one by any character, and so does
    /// one with a character whose case can't be folded in this encoding.
    pub fn moves(&self, encoding: Encoding, most: usize) -> List<List<StateMove>> {
        let mut characters_of_colors = List::with_capacity(self.colors.len());
        for color in &self.colors {
            let characters = match color {
                Some(characters) => distinct_when_folded(characters, encoding, most),
                None => None,
            };
            characters_of_colors.push(characters);
        }

        let mut moves = List::with_capacity(self.transitions.len());
        for transitions in &self.transitions {
            moves.push(moves_of_state(transitions, &characters_of_colors, most));
        }
        moves
    }
}

/// Unites the transitions out of one state of an automaton that lead to the same state: returns one
/// move for each state that they lead to, ordered by the numbers of these states.
///
/// A transition doesn't name characters, but a *color*, which stands for a set of them.
/// `characters_of_colors` has the characters of each color; `None` for a color of any character. A
/// move has the characters of all of its transitions. It is a move by any character (`None`) if one
/// of its transitions is, or if it would have more than `most` characters.
fn moves_of_state(
    transitions: &[Transition],
    characters_of_colors: &[Option<List<FoldedCharacter>>],
    most: usize,
) -> List<StateMove> {
    let mut sorted = List::from(transitions);
    sorted.sort_unstable_by_key(|transition| transition.to);

    let mut moves = List::new();
    for to_same_state in sorted.chunk_by(|a, b| a.to == b.to) {
        // `None`, any character, as soon as one transition is that or there are too many.
        let mut move_characters = Some(List::new());
        for transition in to_same_state {
            let transition_characters = &characters_of_colors[transition.color];
            move_characters = match (move_characters, transition_characters) {
                (Some(so_far), Some(added)) => with_characters(so_far, added, most),
                _ => None,
            };
        }

        let characters =
            move_characters.map(|list| list.iter().map(|entry| entry.character).collect());
        moves.push(StateMove { to: to_same_state[0].to, characters });
    }
    moves
}

/// A character, and what it folds to as one number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FoldedCharacter {
    folded: u64,
    character: u32,
}

/// Returns one of each group of characters that are equal once letter case is folded: of `A`, `a`
/// and `b`, one of the first two, and `b`. The result is ordered by the folded forms.
///
/// Returns `None` if there are more than `most` such groups, or if the folded form of a character
/// is not known: that of the character 0, which no text has, and, in encodings other than UTF-8, of
/// all beyond ASCII.
fn distinct_when_folded(
    characters: &[u32],
    encoding: Encoding,
    most: usize,
) -> Option<List<FoldedCharacter>> {
    // At most four characters are equal when folded. So these are more than `most` groups.
    if characters.len() > 4 * most {
        return None;
    }

    let mut folded_characters = List::with_capacity(characters.len());
    for &character in characters {
        let is_unknown = encoding == Encoding::Other && character >= 0x80;
        if character == 0 || is_unknown {
            return None;
        }
        let folded = folded_as_number(character);
        folded_characters.push(FoldedCharacter { folded, character });
    }
    one_of_each_group(folded_characters, most)
}

/// Adds the characters `added` to the list `all`, except for those that are equal to another one
/// once letter case is folded. Returns the list, ordered by the folded forms; `None` if it would
/// have more than `most` characters.
fn with_characters(
    mut all: List<FoldedCharacter>,
    added: &[FoldedCharacter],
    most: usize,
) -> Option<List<FoldedCharacter>> {
    for &character in added {
        all.push(character);
    }
    one_of_each_group(all, most)
}

/// Sorts characters by their folded forms, and keeps one of each group that has the same folded
/// form. Returns `None` if there are more than `most` groups.
fn one_of_each_group(
    mut characters: List<FoldedCharacter>,
    most: usize,
) -> Option<List<FoldedCharacter>> {
    characters.sort_unstable();
    characters.dedup_by_key(|character| character.folded);
    (characters.len() <= most).then_some(characters)
}

/// Returns the one or two characters that a character folds to, as one number; 0 if it folds to
/// none.
fn folded_as_number(character: u32) -> u64 {
    let mut number = 0;
    fold::fold(character, |folded| number = number << 32 | u64::from(folded));
    number
}
