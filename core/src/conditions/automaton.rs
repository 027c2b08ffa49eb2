//! The condition of a regular expression: windows of a text without which the expression's
//! automaton finds no match.
//!
//! The automaton reads characters. A path through it, from the initial to the last state, is a way
//! to match; the text has the windows of the characters on the path. The condition is found in four
//! stages:
//!
//! 1. Each color of the automaton becomes a short list of characters, or "any"
//!    ([`Automaton::characters_to_follow`]).
//! 2. States become **nodes**: a state, and the characters before it that a later window may begin
//!    with. So paths that meet in a state with different windows ahead of them are kept apart.
//! 3. A **step** leads from a node to a node and completes windows. A node's **distance** is the
//!    least number of steps on a path to it. Transitions that complete no window don't count
//!    ([`CutSearch`]).
//! 4. The steps from distance `i` to `i + 1` are a **cut**. A path to a last state at distance `n`
//!    has a step of each of the first `n` cuts, since a step never leads further than one. So a
//!    text that matches has the windows of one step of each cut ([`condition_of_cuts`]).
//!
//! ```text
//! expression   a[bc]def       0 ─a→ 1 ─[bc]→ 2 ─d→ 3 ─e→ 4 ─f→ 5, the last state; 0 ─any→ 0
//!
//! distance 0   (0, –)   (1, a)   (2, ab)   (2, ac)   (3, abd)   (3, acd)
//!   cut 1      (3, abd) ─e→ (4, bde) completes abde    (3, acd) ─e→ (4, cde) completes acde
//! distance 1   (4, bde)   (4, cde)
//!   cut 2      (4, bde) ─f→ (5, def) completes bdef    (4, cde) ─f→ (5, def) completes cdef
//! distance 2   (5, def)
//!
//! condition    (abde OR acde) AND (bdef OR cdef)
//! ```
//!
//! A node may always forget characters: that leaves out windows, and the condition becomes weaker.
//! So a node isn't added if another node of its state is known that has an ending of its
//! characters. In the example, the loop from 0 to 0 may read an `x`. It would lead to the node
//! `(0, x)`; instead it leads back to `(0, –)`, which is known.

use super::text::{
    Encoding, LastCharacters, MOST_HASHES, WEIGHT, all_windows, fold, hashes_of, weight,
};
use crate::conditions::{Condition, Window};
use crate::{interrupt, memory};
use std::collections::HashMap;

/// The most nodes of a search. An automaton with more has an unknown condition.
const MOST_NODES: usize = 2000;
/// The most steps of a search. An automaton with more has an unknown condition.
const MOST_STEPS: usize = 1 << 16;
/// The most steps of a cut. A cut with more is left out of the condition.
const MOST_STEPS_OF_CUT: usize = 64;
/// The most characters of a color that are followed one by one. If a search with 16 finds no
/// condition, one with 3 may, since it has fewer nodes.
const MOST_CHARACTERS: [usize; 2] = [16, 3];
/// The bits of each character in [`LastCharacters`].
const CHARACTER_BITS: u32 = 32;

/// An automaton that finds a match once it is in its last state.
#[derive(Clone, Debug, Default)]
pub struct Automaton {
    /// The transitions out of each state.
    pub transitions: Vec<Vec<Transition>>,
    /// The characters of each color. `None`: any character, or none, as at the start of a text.
    pub colors: Vec<Option<Vec<u32>>>,
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

/// A cut as a list of its steps, each of which is the list of the windows that it completes.
type Cut = Vec<Vec<Window>>;

impl Automaton {
    /// Returns a condition that holds for every text in which the automaton finds a match.
    ///
    /// The condition is [`Condition::Unknown`] if a match need not have any window, or if the
    /// automaton is too large.
    pub fn condition(&self, encoding: Encoding) -> Condition {
        for most in MOST_CHARACTERS {
            let characters = self.characters_to_follow(encoding, most);
            if let Some(cuts) = CutSearch::new(self, &characters).find_cuts() {
                let condition = condition_of_cuts(cuts);
                if !condition.is_unknown() {
                    return condition;
                }
            }
        }
        Condition::Unknown
    }

    /// Returns for each color the characters that a search should try one by one.
    ///
    /// A color has `None` if it has more than `most` characters or unknown ones: the search then
    /// takes it for any character.
    fn characters_to_follow(&self, encoding: Encoding, most: usize) -> Vec<Option<Vec<u32>>> {
        memory::collect(self.colors.iter().map(|color| match color {
            Some(characters) => distinct_when_folded(characters, encoding, most),
            None => None,
        }))
    }
}

/// A character, and what it folds to as one number.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct FoldedCharacter {
    folded: u64,
    character: u32,
}

/// Returns one character of each group of `characters` that are equal once letter case is folded.
///
/// Returns `None` if there are more than `most` such groups, or if the folded form of a character
/// is not known.
fn distinct_when_folded(characters: &[u32], encoding: Encoding, most: usize) -> Option<Vec<u32>> {
    // At most a few characters fold to the same one, so a long list need not be looked at.
    if characters.len() > 4 * most {
        return None;
    }

    let mut distinct = memory::with_capacity(characters.len());
    for &character in characters {
        let is_part_of_character = encoding == Encoding::Other && character >= 0x80;
        if character == 0 || is_part_of_character {
            return None;
        }
        let folded = folded_as_number(character);
        distinct.push(FoldedCharacter { folded, character });
    }
    distinct.sort_unstable();
    distinct.dedup_by_key(|character| character.folded);

    if distinct.len() > most {
        return None;
    }
    Some(memory::collect(distinct.iter().map(|folded| folded.character)))
}

/// Returns the one or two characters that a character folds to, as one number; 0 if it folds to
/// none.
fn folded_as_number(character: u32) -> u64 {
    let mut number = 0;
    fold::fold(character, |folded| number = number << CHARACTER_BITS | u64::from(folded));
    number
}

/// A state of an automaton, and the characters read before it that a later window may begin with.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Node {
    state: usize,
    last: LastCharacters,
}

impl Node {
    /// Returns the node of a state that remembers no characters.
    fn without_characters(state: usize) -> Node {
        Node { state, last: LastCharacters::default() }
    }
}

/// A transition from a node to a node that completes windows.
struct Step {
    to: Node,
    windows: Vec<Window>,
}

/// The nodes of one distance, and the steps that begin at them.
struct Layer {
    distance: usize,
    nodes: Vec<Node>,
    steps: Vec<Step>,
}

impl Layer {
    /// Returns a layer without nodes.
    fn at_distance(distance: usize) -> Layer {
        Layer { distance, nodes: Vec::new(), steps: Vec::new() }
    }
}

/// How the search for the nodes and steps of a layer ended.
enum LayerSearch {
    /// All of them are in the layer.
    Complete,
    /// One of the nodes is in the last state: no cut is needed to get there.
    ReachedLastState,
    /// There are too many nodes or steps to go on.
    TooMany,
}

/// A search for the cuts of an automaton: breadth first, one layer of nodes after the other.
struct CutSearch<'a> {
    automaton: &'a Automaton,
    /// The characters of each color that are followed one by one; `None` if it is taken for any
    /// character.
    characters: &'a [Option<Vec<u32>>],
    /// The distance of each node that was found.
    distances: HashMap<Node, usize>,
    /// The number of steps that were found in all layers.
    num_steps: usize,
}

impl<'a> CutSearch<'a> {
    fn new(automaton: &'a Automaton, characters: &'a [Option<Vec<u32>>]) -> CutSearch<'a> {
        CutSearch {
            automaton,
            characters,
            distances: HashMap::new(),
            num_steps: 0,
        }
    }

    /// Finds the cuts between the initial and the last state, each a list of steps. A text that
    /// matches has the windows of at least one step of each cut.
    ///
    /// The list is empty if a text can match without windows. Returns `None` if there are too many
    /// nodes or steps, or if no text can match.
    fn find_cuts(mut self) -> Option<Vec<Cut>> {
        let mut cuts = Vec::new();
        let mut layer = Layer::at_distance(0);
        let initial = Node::without_characters(self.automaton.initial);
        self.reach(initial, &mut layer);

        while !layer.nodes.is_empty() {
            match self.complete(&mut layer) {
                LayerSearch::Complete => {}
                LayerSearch::ReachedLastState => return Some(cuts),
                LayerSearch::TooMany => return None,
            }

            let mut next_layer = Layer::at_distance(layer.distance + 1);
            let cut = self.take_steps(layer.steps, &mut next_layer);
            memory::push(&mut cuts, cut);
            layer = next_layer;
        }
        None
    }

    /// Adds to a layer all nodes that its nodes lead to without completing a window, and all steps
    /// from any of them. Stops early at the last state, or if there are too many nodes or steps.
    fn complete(&mut self, layer: &mut Layer) -> LayerSearch {
        // Nodes that this loop adds are followed, too.
        let mut next = 0;
        while let Some(&node) = layer.nodes.get(next) {
            interrupt::check();
            if node.state == self.automaton.last {
                return LayerSearch::ReachedLastState;
            }
            next += 1;

            // Any character comes first: its nodes remember no characters, and replace all nodes of
            // the same state that would be found later.
            self.follow_any_character(node, layer);
            self.follow_known_characters(node, layer);

            if self.distances.len() > MOST_NODES || self.num_steps > MOST_STEPS {
                return LayerSearch::TooMany;
            }
        }
        LayerSearch::Complete
    }

    /// Follows the transitions from a node that may read any character, and adds their targets to
    /// the layer. An unknown character can't be in a window, so the targets remember no characters.
    fn follow_any_character(&mut self, node: Node, layer: &mut Layer) {
        for transition in &self.automaton.transitions[node.state] {
            if self.characters[transition.color].is_none() {
                self.reach(Node::without_characters(transition.to), layer);
            }
        }
    }

    /// Follows the transitions from a node that read one of a few known characters.
    ///
    /// If a character completes windows, which a matching text must have, the layer gets a step to
    /// the target. Otherwise the target needs no further windows and becomes a node of the same
    /// layer.
    fn follow_known_characters(&mut self, node: Node, layer: &mut Layer) {
        for transition in &self.automaton.transitions[node.state] {
            let Some(characters) = &self.characters[transition.color] else {
                continue;
            };
            for &character in characters {
                let (last, windows) = node.last.followed_by(character);
                let to = Node { state: transition.to, last };
                if windows.is_empty() {
                    self.reach(to, layer);
                } else {
                    memory::push(&mut layer.steps, Step { to, windows });
                    self.num_steps += 1;
                }
            }
        }
    }

    /// Adds the targets of a layer's steps to the next layer, and returns the cut between the two
    /// layers: the windows of each step that leads from one to the other.
    ///
    /// Steps back to a known node are left out of the cut: every path to the last state also has a
    /// step that leads on to the next layer.
    fn take_steps(&mut self, steps: Vec<Step>, next_layer: &mut Layer) -> Cut {
        let mut cut = Cut::new();
        for step in steps {
            let distance = self.reach(step.to, next_layer);
            if distance == next_layer.distance {
                memory::push(&mut cut, step.windows);
            }
        }
        cut
    }

    /// Adds a node to the layer, unless it is known or a known one can replace it. Returns the
    /// distance of the node, or the least distance of the known ones.
    ///
    /// A node can be replaced by one of the same state that remembers fewer of its last characters.
    /// Windows that begin with the others are then missed, which makes the condition weaker, but
    /// not wrong.
    fn reach(&mut self, node: Node, layer: &mut Layer) -> usize {
        let replacements = node.last.endings().map(|last| Node { state: node.state, last });
        let known_distances = replacements.filter_map(|known| self.distances.get(&known));
        if let Some(&distance) = known_distances.min() {
            return distance;
        }

        self.distances.insert(node, layer.distance);
        memory::push(&mut layer.nodes, node);
        layer.distance
    }
}

impl LastCharacters {
    /// Returns the distinct windows that one more character completes, and the characters to
    /// remember after it.
    fn followed_by(mut self, character: u32) -> (LastCharacters, Vec<Window>) {
        let mut windows = Vec::new();
        fold::fold(character, |folded| {
            self.add(folded, &mut |window| memory::push(&mut windows, window));
        });
        windows.sort_unstable();
        windows.dedup();
        (self.beginning_of_windows(), windows)
    }

    /// Returns the longest ending that weighs less than a window: no later window can begin with
    /// more of the characters.
    fn beginning_of_windows(self) -> LastCharacters {
        let mut length = 0;
        let mut total_weight = 0;
        while length < self.count() {
            total_weight += weight(self.nth_last(length));
            if total_weight >= WEIGHT {
                break;
            }
            length += 1;
        }
        self.ending(length)
    }

    /// Returns the endings of these characters, from the empty one to that of three characters.
    fn endings(self) -> impl Iterator<Item = LastCharacters> {
        let longest = self.count().min(WEIGHT - 1);
        (0..=longest).map(move |length| self.ending(length))
    }

    /// Returns the last `length` characters, of at most three.
    fn ending(self, length: u32) -> LastCharacters {
        let mask = (1 << (CHARACTER_BITS * length)) - 1;
        LastCharacters {
            characters: self.characters & mask,
            narrow: self.narrow.min(length),
        }
    }

    /// Returns the last character for 0, the one before it for 1, and so on; 0 if there is none.
    fn nth_last(self, n: u32) -> u32 {
        (self.characters >> (CHARACTER_BITS * n)) as u32
    }

    /// Returns how many characters there are, up to four.
    fn count(self) -> u32 {
        let bits = u128::BITS - self.characters.leading_zeros();
        bits.div_ceil(CHARACTER_BITS)
    }
}

/// Returns the condition that a text has the windows of at least one step of each cut.
///
/// The condition is [`Condition::Unknown`] if there are no cuts, or only very large ones.
fn condition_of_cuts(cuts: Vec<Cut>) -> Condition {
    let mut required_windows = Vec::new();
    let mut alternatives = Vec::new();
    for cut in select_cuts(cuts) {
        if let [only_step] = &cut[..] {
            for &window in only_step {
                memory::push(&mut required_windows, window);
            }
        } else {
            memory::push(&mut alternatives, condition_of_cut(cut));
        }
    }

    let required = all_windows(required_windows);
    Condition::all([required].into_iter().chain(alternatives))
}

/// Returns the condition that a text has all windows of at least one of the cut's steps.
fn condition_of_cut(cut: Cut) -> Condition {
    Condition::any(cut.into_iter().map(|windows| {
        let hashes = hashes_of(windows.into_iter());
        Condition::all_of(hashes, MOST_HASHES)
    }))
}

/// Returns the cuts that a condition should consist of, without repeated steps.
///
/// Cuts with few steps exclude more texts, so they are taken first, until the next one would make
/// it more than [`MOST_HASHES`] hashes. Cuts with more than [`MOST_STEPS_OF_CUT`] steps are left
/// out.
fn select_cuts(mut cuts: Vec<Cut>) -> Vec<Cut> {
    for cut in &mut cuts {
        cut.sort_unstable();
        cut.dedup();
    }
    cuts.retain(|cut| (1..=MOST_STEPS_OF_CUT).contains(&cut.len()));
    cuts.sort_by_key(Vec::len);

    let mut num_selected = 0;
    let mut hashes_left = MOST_HASHES;
    for cut in &cuts {
        let num_hashes = count_hashes(cut);
        if num_hashes > hashes_left {
            break;
        }
        hashes_left -= num_hashes;
        num_selected += 1;
    }
    cuts.truncate(num_selected);
    cuts
}

/// Returns how many hashes the windows of all steps have.
fn count_hashes(cut: &Cut) -> usize {
    let windows = cut.iter().flatten();
    windows.flat_map(|window| window.hashes()).count()
}
