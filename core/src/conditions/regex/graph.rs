//! The graph of an automaton: a text that the automaton matches has the windows along a path
//! through the graph.
//!
//! A **node** is a state of the automaton, and the characters before it that a later window may
//! begin with. So paths that meet in a state with different windows ahead of them are kept apart.
//! An **edge** leads from a node to a node when one character is read. The windows that this
//! character completes are the windows of the edge; most edges at the start of an expression have
//! none.
//!
//! ```text
//! expression   a[bc]def       0 ─a→ 1 ─[bc]→ 2 ─d→ 3 ─e→ 4 ─f→ 5, the last state; 0 ─any→ 0
//!
//! (0, –) → (1, a) → (2, ab) → (3, abd) ─abde→ (4, bde) ─bdef→ (5, –)
//!                 → (2, ac) → (3, acd) ─acde→ (4, cde) ─cdef→
//! ```
//!
//! A node may always forget characters: that leaves out windows, and less is required of a text. So
//! a node isn't added if another node of its state is known that has an ending of its characters.
//! In the example, the loop from 0 to 0 may read an `x`. It would lead to the node `(0, x)`;
//! instead it leads back to `(0, –)`, which is known.

use super::automaton::{Automaton, StateMove};
use crate::conditions::Window;
use crate::conditions::text::{Encoding, LastCharacters, WEIGHT, fold, weight};
use crate::{interrupt, memory};
use std::collections::HashMap;

/// The most nodes of a graph, and the most edges.
const MOST_NODES: usize = 1 << 14;
const MOST_EDGES: usize = 1 << 16;
/// The most nodes of one state. Further ones remember no characters.
const MOST_NODES_OF_STATE: usize = 1024;
/// The most combinations of characters that nodes of a state remember, by the numbers of characters
/// of their colors: a color of three after one of ten makes thirty.
const MOST_COMBINATIONS: u32 = 32;
/// The bits of each character in [`LastCharacters`].
const CHARACTER_BITS: u32 = 32;

/// A graph whose nodes are numbered from 0.
pub struct Graph {
    pub edges: Vec<Edge>,
    /// By node, the places in `edges` of the edges that lead out of it.
    pub outgoing: Vec<Vec<usize>>,
    /// By node, the places in `edges` of the edges that lead to it.
    pub incoming: Vec<Vec<usize>>,
    /// The node before the first character.
    pub start: usize,
    /// The node after a match; `None` if no text matches.
    pub end: Option<usize>,
}

/// A way from a node to a node, for which one character is read.
pub struct Edge {
    pub from: usize,
    pub to: usize,
    /// What a text has that takes this way; empty if it need not have any window.
    pub windows: Vec<Window>,
}

impl Graph {
    /// Returns the graph of an automaton; `None` if it is too large.
    ///
    /// Moves by more than `most_characters` are taken for moves by any character.
    pub fn of(automaton: &Automaton, encoding: Encoding, most_characters: usize) -> Option<Graph> {
        GraphBuilder {
            automaton,
            moves: &automaton.moves(encoding, most_characters),
            node_numbers: HashMap::new(),
            nodes_of_state: memory::zeroed(automaton.transitions.len()),
            graph: Graph {
                edges: Vec::new(),
                outgoing: Vec::new(),
                incoming: Vec::new(),
                start: 0,
                end: None,
            },
        }
        .build()
    }

    fn add_node(&mut self) -> usize {
        memory::push(&mut self.outgoing, Vec::new());
        memory::push(&mut self.incoming, Vec::new());
        self.outgoing.len() - 1
    }

    fn add_edge(&mut self, edge: Edge) {
        let place = self.edges.len();
        memory::push(&mut self.outgoing[edge.from], place);
        memory::push(&mut self.incoming[edge.to], place);
        memory::push(&mut self.edges, edge);
    }
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

/// A node with its number in the graph.
#[derive(Clone, Copy)]
struct NumberedNode {
    number: usize,
    node: Node,
    counts: CharacterCounts,
}

/// By how many characters the move was that each remembered character was read in.
#[derive(Clone, Copy, Default)]
struct CharacterCounts {
    /// The count of the last move in the lowest 8 bits.
    counts: u32,
}

impl CharacterCounts {
    fn followed_by(self, count: usize) -> CharacterCounts {
        CharacterCounts { counts: self.counts << 8 | count as u32 }
    }

    /// Returns how many combinations there are of the last `count` characters, of at most three.
    fn combinations(self, count: u32) -> u32 {
        let counts = (0..count).map(|back| self.counts >> (8 * back) & 0xFF);
        counts.product()
    }
}

/// An edge whose end isn't in the graph yet.
struct OpenEdge {
    from: usize,
    to: Node,
    counts: CharacterCounts,
    windows: Vec<Window>,
}

/// A graph that is being made.
struct GraphBuilder<'a> {
    automaton: &'a Automaton,
    /// The moves out of each state.
    moves: &'a [Vec<StateMove>],
    node_numbers: HashMap<Node, usize>,
    /// How many nodes each state has.
    nodes_of_state: Vec<usize>,
    graph: Graph,
}

impl GraphBuilder<'_> {
    /// Makes the graph breadth first: all nodes that can be reached without a window, then those
    /// behind one edge with windows, and so on.
    fn build(mut self) -> Option<Graph> {
        let mut layer = Vec::new();
        let start = Node::without_characters(self.automaton.initial);
        self.graph.start = self.reach(start, CharacterCounts::default(), &mut layer);

        while !layer.is_empty() {
            let edges_with_windows = self.complete(&mut layer)?;
            layer.clear();
            for OpenEdge { from, to, counts, windows } in edges_with_windows {
                let to = self.reach(to, counts, &mut layer);
                self.graph.add_edge(Edge { from, to, windows });
            }
        }
        Some(self.graph)
    }

    /// Adds to a layer all nodes that its nodes lead to without completing a window. Returns the
    /// edges with windows that lead out of the layer; `None` if the graph is too large.
    fn complete(&mut self, layer: &mut Vec<NumberedNode>) -> Option<Vec<OpenEdge>> {
        let mut edges_with_windows = Vec::new();
        // Nodes that this loop adds are followed, too.
        let mut next = 0;
        while let Some(&node) = layer.get(next) {
            interrupt::check();
            next += 1;
            // Nothing behind a match is required.
            if node.node.state == self.automaton.last {
                continue;
            }

            // Any character comes first: its nodes remember no characters, and replace all nodes of
            // the same state that would be found later.
            self.follow_any_character(node, layer);
            self.follow_known_characters(node, layer, &mut edges_with_windows);

            let num_edges = self.graph.edges.len() + edges_with_windows.len();
            if self.graph.outgoing.len() > MOST_NODES || num_edges > MOST_EDGES {
                return None;
            }
        }
        Some(edges_with_windows)
    }

    /// Follows the moves from a node by any character, and adds their targets to the layer. An
    /// unknown character can't be in a window, so the targets remember no characters.
    fn follow_any_character(&mut self, from: NumberedNode, layer: &mut Vec<NumberedNode>) {
        let moves: &[StateMove] = &self.moves[from.node.state];
        for one in moves.iter().filter(|one| one.characters.is_none()) {
            let to = Node::without_characters(one.to);
            self.add_edge_without_windows(from, to, CharacterCounts::default(), layer);
        }
    }

    /// Follows the moves from a node by a few known characters.
    ///
    /// If the character completes no window, the target becomes a node of the same layer. Otherwise
    /// an edge is added to `edges_with_windows`.
    fn follow_known_characters(
        &mut self,
        from: NumberedNode,
        layer: &mut Vec<NumberedNode>,
        edges_with_windows: &mut Vec<OpenEdge>,
    ) {
        let moves: &[StateMove] = &self.moves[from.node.state];
        for &StateMove { to, ref characters } in moves {
            for &character in characters.iter().flatten() {
                let (mut last, windows) = from.node.last.followed_by(character);
                let counts = from.counts.followed_by(characters.iter().flatten().count());
                if counts.combinations(last.count()) > MOST_COMBINATIONS {
                    last = LastCharacters::default();
                }
                let to = Node { state: to, last };
                if windows.is_empty() {
                    self.add_edge_without_windows(from, to, counts, layer);
                } else {
                    let from = from.number;
                    let edge = OpenEdge { from, to, counts, windows };
                    memory::push(edges_with_windows, edge);
                }
            }
        }
    }

    fn add_edge_without_windows(
        &mut self,
        from: NumberedNode,
        to: Node,
        counts: CharacterCounts,
        layer: &mut Vec<NumberedNode>,
    ) {
        let to = self.reach(to, counts, layer);
        if to != from.number {
            let windows = Vec::new();
            self.graph.add_edge(Edge { from: from.number, to, windows });
        }
    }

    /// Returns the number of a node, or of a known one that can replace it. If there is none, adds
    /// the node to the graph and to the layer.
    ///
    /// A node can be replaced by one of the same state that remembers fewer of its last characters.
    /// Windows that begin with the others are then missed, so less is required, which is never
    /// wrong. One that remembers more replaces it better.
    fn reach(
        &mut self,
        node: Node,
        counts: CharacterCounts,
        layer: &mut Vec<NumberedNode>,
    ) -> usize {
        let is_last = node.state == self.automaton.last;
        let is_one_of_many = self.nodes_of_state[node.state] >= MOST_NODES_OF_STATE;
        let mut longest_to_add = node;
        if is_last || is_one_of_many {
            longest_to_add = Node::without_characters(node.state);
        }

        let replacements = node.last.endings().map(|last| Node { state: node.state, last });
        let known = replacements.filter_map(|replacement| self.node_numbers.get(&replacement));
        if let Some(&number) = known.last() {
            return number;
        }

        let node = longest_to_add;
        let number = self.graph.add_node();
        self.node_numbers.insert(node, number);
        self.nodes_of_state[node.state] += 1;
        memory::push(layer, NumberedNode { number, node, counts });
        if is_last {
            self.graph.end = Some(number);
        }
        number
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
