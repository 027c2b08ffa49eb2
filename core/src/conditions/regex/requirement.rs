//! What a text must have that takes one of several paths through a graph, and its condition.

use crate::conditions::text::all_windows;
use crate::conditions::{Condition, Window};
use crate::memory::List;

/// What a text must have: all of some windows, and of each choice what one of its alternatives
/// requires.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    /// In ascending order, each once.
    windows: List<Window>,
    /// Each with two alternatives or more, none of which requires nothing.
    choices: List<List<Requirement>>,
}

impl Requirement {
    /// Returns the requirement that a text has all of these windows.
    pub fn of_windows(mut windows: List<Window>) -> Requirement {
        windows.sort_unstable();
        windows.dedup();
        Requirement { windows, choices: List::new() }
    }

    /// Returns the requirement that a text has what all of these require: all of their windows, and
    /// one alternative of each of their choices. Without requirements, it requires nothing.
    pub fn all_of(requirements: List<Requirement>) -> Requirement {
        let mut windows = List::new();
        let mut choices = List::new();
        for requirement in requirements {
            for window in requirement.windows {
                windows.push(window);
            }
            for choice in requirement.choices {
                choices.push(choice);
            }
        }
        Requirement { choices, ..Requirement::of_windows(windows) }
    }

    /// Returns the requirement that a text has what at least one of these alternatives requires.
    ///
    /// Windows that all of them require are taken out and required once, beside the choice between
    /// the rest. There is no choice if one alternative has no rest. Example: *abcd and bcde* or
    /// *abcd and bcdx* becomes *abcd, and bcde or bcdx*; *abcd* or *abcd and bcdx* becomes *abcd*.
    pub fn one_of(mut alternatives: List<Requirement>) -> Requirement {
        alternatives.sort_unstable();
        alternatives.dedup();
        if alternatives.len() <= 1 {
            return alternatives.pop().unwrap_or_default();
        }

        let common = common_windows(&alternatives);
        for alternative in &mut alternatives {
            alternative
                .windows
                .retain(|window| common.binary_search(window).is_err());
        }

        let one_has_no_rest = alternatives.iter().any(Requirement::is_nothing);
        let choices = if one_has_no_rest { List::new() } else { List::from([alternatives]) };
        Requirement { windows: common, choices }
    }

    /// Returns whether any text has what is required.
    pub fn is_nothing(&self) -> bool {
        self.windows.is_empty() && self.choices.is_empty()
    }

    /// Returns how many windows are required, those of all alternatives together.
    pub fn size(&self) -> usize {
        let of_choices = self.choices.iter().flatten().map(Requirement::size);
        self.windows.len() + of_choices.sum::<usize>()
    }

    /// Returns the condition that a text has what is required.
    ///
    /// Windows come first, and then the choices, those with few alternatives first: most texts lack
    /// a window, and then nothing else is looked up.
    pub fn into_condition(mut self) -> Condition {
        self.choices.sort_by_key(List::len);
        let windows = all_windows(self.windows);
        let choices = self.choices.into_iter().map(|alternatives| {
            Condition::any(alternatives.into_iter().map(Requirement::into_condition))
        });
        Condition::all([windows].into_iter().chain(choices))
    }
}

/// Returns the windows that each of these requires, apart from those in choices.
fn common_windows(requirements: &[Requirement]) -> List<Window> {
    let Some((first, others)) = requirements.split_first() else {
        return List::new();
    };
    let is_common =
        |window: &&Window| others.iter().all(|other| other.windows.binary_search(window).is_ok());
    first.windows.iter().filter(is_common).copied().collect()
}
