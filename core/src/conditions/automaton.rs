//! What every text has in it in which an automaton finds a match: for regular expressions.
//!
//! The automaton reads characters. A path through it, from the initial to the last state, is a way
//! to match, and the windows of the characters on the path are in the text. Two paths that meet in
//! a state with other characters behind them are distinct: a node is a state and the characters
//! that windows to come may begin with.
//!
//! ```text
//! ab(cd|xy)ef      abc, abx │ bcd, bxy │ cde, xye │ def, yef     windows of three, for brevity
//!                     cut 1 │    cut 2 │    cut 3 │    cut 4
//! ```
//!
//! A node's distance is how many steps with windows a path to it has at least. A step leads at most
//! one further. So each path to a last state at distance `n` has, for each `i` below `n`, a step
//! from distance `i` to `i + 1`: these steps are a **cut**, and a text that matches has the windows
//! of one step of each cut.
//!
//! Forgetting characters is always right: it leaves out windows. So a node whose characters end
//! with those of another node of the same state, no further away, is that one: what loops over any
//! character doesn't count them.
//!
//! # Characters whose arcs PostgreSQL doesn't name
//!
//! An automaton that PostgreSQL exports names the characters of an arc only below U+0800: those of
//! Han, kana and Hangul are above. So each of these in the expression gets another character that
//! stands for it, a letter of Thaana, which has no case, and the automaton is that of the
//! expression with these.
//!
//! That is the same automaton with the characters renamed, wherever an expression can only compare
//! characters. It isn't where it can order or classify them: where it has a range with such a
//! character, a class, a collating element, an escape such as `\w` or `\y` (`\d` and `\s` never
//! match a letter), an option at its start (`(?x)` ignores blanks), or a letter of Thaana. There
//! nothing stands for anything.

use super::text::{Encoding, Last, MOST_HASHES, WEIGHT, all_windows, fold, hashes_of, weight};
use crate::conditions::{Condition, Window};
use crate::{interrupt, memory};
use std::collections::HashMap;
use std::str;

/// Nodes of a search; an automaton with more says nothing.
const MOST_NODES: usize = 2000;
/// Steps with windows, likewise.
const MOST_STEPS: usize = 1 << 16;
/// Steps of a cut; a larger one is left out.
const MOST_OF_CUT: usize = 64;
/// Characters of an arc that are followed one by one, tried in this order; an arc with more has
/// any.
const MOST_CHARACTERS: [usize; 2] = [16, 3];

/// An automaton, which finds a match once it is in its last state.
#[derive(Clone, Debug, Default)]
pub struct Automaton {
    /// The arcs of each state: a number in `colors`, and the state that the arc leads to.
    pub arcs: Vec<Vec<(usize, usize)>>,
    /// The characters of each color, one of which its arcs read. `None`: any, or none.
    pub colors: Vec<Option<Vec<u32>>>,
    pub initial: usize,
    pub last: usize,
}

/// A state, and the characters of windows to come.
type Node = (usize, Last);

/// The steps of a cut, by their windows.
type Cut = Vec<Vec<Window>>;

impl Automaton {
    /// What a text must have in which there is a match.
    pub fn condition(&self, encoding: Encoding) -> Condition {
        let mut conditions = MOST_CHARACTERS.iter().filter_map(|&most| {
            let distinct = |color: &Option<Vec<u32>>| distinct(color.as_ref()?, encoding, most);
            self.cuts(&memory::collect(self.colors.iter().map(distinct)))
                .map(condition_of_cuts)
        });
        conditions
            .find(|condition| !condition.is_unknown())
            .unwrap_or(Condition::Unknown)
    }

    /// The cuts up to the nearest last state. `None` if nodes or steps are too many, if no path has
    /// windows, or if none leads there.
    fn cuts(&self, colors: &[Option<Vec<u32>>]) -> Option<Vec<Cut>> {
        let (mut nodes, mut cuts, mut count) = (HashMap::new(), Vec::new(), 0);
        // The nodes at the distance that there are cuts for.
        let mut here = Vec::new();
        reach(&mut nodes, (self.initial, Last::default()), 0, &mut here);
        while !here.is_empty() {
            let (distance, mut steps, mut next) = (cuts.len(), Vec::new(), 0);
            while let Some(&(state, last)) = here.get(next) {
                interrupt::check();
                if state == self.last {
                    return (distance > 0).then_some(cuts);
                }
                next += 1;
                let (any, known): (Vec<_>, Vec<_>) = self.arcs[state]
                    .iter()
                    .partition(|(color, _)| colors[*color].is_none());
                any.into_iter().for_each(|(_, to)| {
                    _ = reach(&mut nodes, (to, Last::default()), distance, &mut here)
                });
                for (color, to) in known {
                    for &c in colors[color].iter().flatten() {
                        let (kept, windows) = last.followed_by(c);
                        if windows.is_empty() {
                            reach(&mut nodes, (to, kept), distance, &mut here);
                        } else {
                            memory::push(&mut steps, ((to, kept), windows));
                            count += 1;
                        }
                    }
                }
                if nodes.len() > MOST_NODES || count > MOST_STEPS {
                    return None;
                }
            }
            here.clear();
            let mut is_further = |node| reach(&mut nodes, node, distance + 1, &mut here) > distance;
            cuts.push(memory::collect(
                steps
                    .into_iter()
                    .filter_map(|(to, windows)| is_further(to).then_some(windows)),
            ));
        }
        None
    }
}

/// The distance of a node that a path leads to, or of one that stands for it. Without either, adds
/// it to `new`.
fn reach(
    nodes: &mut HashMap<Node, usize>,
    node: Node,
    distance: usize,
    new: &mut Vec<Node>,
) -> usize {
    let (state, last) = node;
    let known = last
        .endings()
        .filter_map(|ending| nodes.get(&(state, ending)).copied())
        .min();
    known.unwrap_or_else(|| {
        nodes.insert(node, distance);
        memory::push(new, node);
        distance
    })
}

/// The folded characters of a color, each one or two, or none; `None` if they are too many or not
/// known.
fn distinct(color: &[u32], encoding: Encoding, most: usize) -> Option<Vec<u32>> {
    if color.len() > 4 * most
        || color
            .iter()
            .any(|&c| c == 0 || (encoding == Encoding::Other && c >= 0x80))
    {
        return None;
    }
    let folded = |&c: &u32| {
        let mut all = 0u64;
        fold::fold(c, |c| all = all << 32 | u64::from(c));
        (all, c)
    };
    // One of those that fold to the same stands for all.
    let mut folded = memory::collect(color.iter().map(folded));
    folded.sort_unstable();
    folded.dedup_by_key(|(all, _)| *all);
    (folded.len() <= most).then(|| memory::collect(folded.into_iter().map(|(_, c)| c)))
}

impl Last {
    /// The characters to keep after one more, and the distinct windows that it completes.
    fn followed_by(mut self, c: u32) -> (Last, Vec<Window>) {
        let mut windows = Vec::new();
        fold::fold(c, |c| self.add(c, &mut |window| memory::push(&mut windows, window)));
        windows.sort_unstable();
        windows.dedup();
        (self.kept(), windows)
    }

    /// The characters that a window to come may begin with: as many from the last one on as weigh
    /// less than a window.
    fn kept(self) -> Last {
        let weighs = |of: &Last| {
            let characters = (0..WEIGHT).map(|back| (of.characters >> (32 * back)) as u32);
            characters.filter(|&c| c > 0).map(weight).sum::<u32>()
        };
        self.endings()
            .take_while(|ending| weighs(ending) < WEIGHT)
            .last()
            .unwrap_or_default()
    }

    /// All endings of these characters, from none to all of them.
    fn endings(self) -> impl Iterator<Item = Last> {
        (0..WEIGHT)
            .filter(move |count| *count == 0 || self.characters >> (32 * (count - 1)) > 0)
            .map(move |count| Last {
                characters: self.characters & ((1 << (32 * count)) - 1),
                narrow: self.narrow.min(count),
            })
    }
}

/// A text must have one of the alternatives of each cut. Those with the fewest come first, and the
/// last are left out.
fn condition_of_cuts(mut cuts: Vec<Cut>) -> Condition {
    cuts.iter_mut().for_each(|cut| {
        cut.sort_unstable();
        cut.dedup();
    });
    cuts.retain(|cut| (1..=MOST_OF_CUT).contains(&cut.len()));
    cuts.sort_by_key(Vec::len);
    let mut left = MOST_HASHES;
    let (mut alone, mut conditions) = (Vec::new(), Vec::new());
    for mut cut in cuts {
        let hashes = cut.iter().flatten().flat_map(|window| window.hashes()).count();
        if hashes > left {
            break;
        }
        left -= hashes;
        if cut.len() == 1 {
            cut.swap_remove(0)
                .into_iter()
                .for_each(|window| memory::push(&mut alone, window));
            continue;
        }
        let of_step =
            |windows: Vec<Window>| Condition::all_of(hashes_of(windows.into_iter()), MOST_HASHES);
        memory::push(&mut conditions, Condition::any(cut.into_iter().map(of_step)));
    }
    Condition::all([all_windows(alone)].into_iter().chain(conditions))
}

/// The first character that isn't named.
const UNNAMED: u32 = 0x800;
/// Letters of Thaana.
const FIRST: u32 = 0x780;
const COUNT: usize = 38;

/// An expression in which other characters stand for some.
pub struct StandIns {
    /// The expression, in UTF-8.
    pub pattern: Vec<u8>,
    /// The characters, of which the letter of Thaana at the same place stands for each.
    of: Vec<u32>,
}

impl StandIns {
    /// Replaces characters of an expression. `None` if none has to be, or if that might change more
    /// than names.
    pub fn new(pattern: &[u8], ignore_case: bool) -> Option<StandIns> {
        let text = str::from_utf8(pattern).ok()?;
        let only_compares = !["***", "(?", "[:", "[.", "[="].iter().any(|part| text.contains(part));
        let stands_in = |c: char| (FIRST..FIRST + 0x40).contains(&u32::from(c));
        if text.is_ascii() || !only_compares || text.contains(stands_in) {
            return None;
        }
        let mut stand_ins = StandIns { pattern: memory::list(pattern.len()), of: Vec::new() };
        let (mut before, mut has_classes) = (None, false);
        for c in text.chars() {
            has_classes |= before == Some('\\') && "dDsS".contains(c);
            let is_refused = match before {
                Some('\\') => (c.is_ascii_alphanumeric() && !"dDsS".contains(c)) || !c.is_ascii(),
                Some('-') => !c.is_ascii(),
                Some(before) => c == '-' && !before.is_ascii(),
                None => false,
            };
            if is_refused
                || (u32::from(c) >= UNNAMED && ignore_case && !fold::is_without_case(c.into()))
            {
                return None;
            }
            stand_ins.push(c)?;
            // An escaped backslash escapes nothing.
            before = if (before, c) == (Some('\\'), '\\') { None } else { Some(c) };
        }
        let is_letter =
            |&c: &u32| char::from_u32(c).is_some_and(|c| c.is_alphabetic() && !c.is_numeric());
        let stays_outside = !has_classes || stand_ins.of.iter().all(is_letter);
        (!stand_ins.of.is_empty() && stays_outside).then_some(stand_ins)
    }

    /// Adds a character of the expression; `None` if there are no more letters.
    fn push(&mut self, c: char) -> Option<()> {
        let mut written = u32::from(c);
        if written >= UNNAMED {
            let place = self.of.iter().position(|&of| of == written).unwrap_or(self.of.len());
            if place == COUNT {
                return None;
            }
            if place == self.of.len() {
                self.of.push(written);
            }
            written = FIRST + place as u32;
        }
        // It takes no more bytes than what it stands for, which there is room for.
        self.pattern
            .extend_from_slice(char::from_u32(written)?.encode_utf8(&mut [0; 4]).as_bytes());
        Some(())
    }

    /// The character that another one stands for; itself if it stands for none.
    pub fn original(&self, c: u32) -> u32 {
        c.checked_sub(FIRST)
            .and_then(|place| self.of.get(place as usize))
            .copied()
            .unwrap_or(c)
    }
}
