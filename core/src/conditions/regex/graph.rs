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
use crate::interrupt;
use crate::memory::List;
use std::collections::HashMap;

/// The most nodes of a graph, and the most edges.
const MOST_NODES: usize = 1 << 14;
const MOST_EDGES: usize = 1 << 16;
/// The most nodes of one state. Further ones remember no characters.
const MOST_NODES_OF_STATE: usize = 1024;
/// The most combinations of characters that nodes of a state remember: the product of the numbers
/// of characters that each move to it could read. A move by three characters after one by ten makes
/// thirty.
const MOST_COMBINATIONS: u32 = 32;
/// The bits of each character in [`LastCharacters`].
const CHARACTER_BITS: u32 = 32;

/// A graph whose nodes are numbered from 0.
pub struct Graph {
    pub edges: List<Edge>,
    /// By node, the places in `edges` of the edges that lead out of it.
    pub outgoing: List<List<usize>>,
    /// By node, the places in `edges` of the edges that lead to it.
    pub incoming: List<List<usize>>,
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
    pub windows: List<Window>,
}

impl Graph {
    /// Returns the graph of an automaton: its paths stand for the texts that the automaton matches,
    /// and its edges have the windows (a few neighbouring characters) that such a text has. `None`
    /// if it would have more than [`MOST_NODES`] nodes or [`MOST_EDGES`] edges.
    ///
    /// A move of the automaton by more than `most_characters` different characters counts as one by
    /// any character, and gives no windows.
    pub fn from_automaton(
        automaton: &Automaton,
        encoding: Encoding,
        most_characters: usize,
    ) -> Option<Graph> {
        let moves = automaton.moves(encoding, most_characters);
        let graph = Graph {
            edges: List::new(),
            outgoing: List::new(),
            incoming: List::new(),
            // The builder sets both when it adds the node.
            start: 0,
            end: None,
        };
        let builder = GraphBuilder {
            automaton,
            moves: &moves,
            node_numbers: HashMap::new(),
            nodes_of_state: List::zeroed(automaton.transitions.len()),
            graph,
        };
        builder.build()
    }

    fn add_node(&mut self) -> usize {
        self.outgoing.push(List::new());
        self.incoming.push(List::new());
        self.outgoing.len() - 1
    }

    fn add_edge(&mut self, edge: Edge) {
        let place = self.edges.len();
        self.outgoing[edge.from].push(place);
        self.incoming[edge.to].push(place);
        self.edges.push(edge);
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
    choices: CharacterChoices,
}

/// For each character that a node remembers, how many characters the move of the automaton by which
/// it was read could have read in its place, itself included: 3 for the move by `[abc]`.
#[derive(Clone, Copy, Default)]
struct CharacterChoices {
    /// Eight bits for each move, those of the last one lowest.
    counts: u32,
}

impl CharacterChoices {
    /// Returns the choices after one more move, which could read `count` characters.
    fn followed_by(self, count: usize) -> CharacterChoices {
        CharacterChoices { counts: self.counts << 8 | count as u32 }
    }

    /// Returns how many combinations there are of the last `count` characters, of at most three.
    fn combinations(self, count: u32) -> u32 {
        let counts = (0..count).map(|back| self.counts >> (8 * back) & 0xFF);
        counts.product()
    }
}

/// An edge that is not in the graph yet, as the node to which it leads may not be.
struct PendingEdge {
    from: usize,
    to: Node,
    choices: CharacterChoices,
    windows: List<Window>,
}

/// A graph that is being made.
struct GraphBuilder<'a> {
    automaton: &'a Automaton,
    /// The moves out of each state.
    moves: &'a [List<StateMove>],
    node_numbers: HashMap<Node, usize>,
    /// How many nodes each state has.
    nodes_of_state: List<usize>,
    graph: Graph,
}

impl GraphBuilder<'_> {
    /// Builds the graph: adds all nodes and edges, beginning at the automaton's initial state.
    /// Returns `None` as soon as the graph has too many of them.
    ///
    /// A node is a state of the automaton and the last characters that were read. Nodes are added
    /// in *layers*. The first layer has all nodes that can be reached before a window is complete
    /// (a few known characters in a row). Each further layer begins with the nodes to which edges
    /// with windows lead from the layer before.
    fn build(mut self) -> Option<Graph> {
        let mut layer = List::new();
        let start = Node::without_characters(self.automaton.initial);
        self.graph.start = self.find_or_add(start, CharacterChoices::default(), &mut layer);

        while !layer.is_empty() {
            let edges_with_windows = self.complete_layer(&mut layer)?;
            layer.clear();
            for PendingEdge { from, to, choices, windows } in edges_with_windows {
                let to = self.find_or_add(to, choices, &mut layer);
                self.graph.add_edge(Edge { from, to, windows });
            }
        }
        Some(self.graph)
    }

    /// Completes a *layer* of the graph, which has its first nodes so far: follows the moves of the
    /// automaton from node to node, as long as the characters that are read complete no *window*. A
    /// window is a few known characters in a row, which an index can look up. New nodes are added
    /// to the layer and to the graph.
    ///
    /// Returns the edges that lead out of the layer: those whose characters complete windows. They
    /// and the nodes to which they lead are not in the graph yet. Returns `None` if the graph has
    /// too many nodes or edges.
    fn complete_layer(&mut self, layer: &mut List<NumberedNode>) -> Option<List<PendingEdge>> {
        let mut edges_with_windows = List::new();
        // The layer grows meanwhile: nodes that are added are followed, too.
        let mut next = 0;
        while let Some(&from) = layer.get(next) {
            interrupt::check();
            next += 1;
            // After a match the text may go on in any way, so no edge leads out of the last state.
            let is_after_match = from.node.state == self.automaton.last;
            if is_after_match {
                continue;
            }

            // Moves by any character come first: their nodes remember no characters, and replace
            // all nodes of the same state that would be found later.
            self.follow_any_character(from, layer);
            self.follow_known_characters(from, layer, &mut edges_with_windows);

            let num_edges = self.graph.edges.len() + edges_with_windows.len();
            if self.graph.outgoing.len() > MOST_NODES || num_edges > MOST_EDGES {
                return None;
            }
        }
        Some(edges_with_windows)
    }

    /// Follows the moves from a node by any character, and adds their targets to the layer. An
    /// unknown character can't be in a window, so the targets remember no characters.
    fn follow_any_character(&mut self, from: NumberedNode, layer: &mut List<NumberedNode>) {
        let moves: &[StateMove] = &self.moves[from.node.state];
        for any_move in moves.iter().filter(|state_move| state_move.characters.is_none()) {
            let to = Node::without_characters(any_move.to);
            self.add_edge_without_windows(from, to, CharacterChoices::default(), layer);
        }
    }

    /// Follows the moves of the automaton from a node by characters that are known: makes an edge
    /// for each character. A node is a state of the automaton together with the last characters
    /// that were read; so the edge leads to the next state, with this character remembered as well.
    ///
    /// With the last characters before it, a character may complete *windows*: pieces of a few
    /// characters, which a text has if it takes the edge. An edge without windows is added to the
    /// graph, and the node that it leads to is added to the layer if it is new. An edge with
    /// windows is only added to `edges_with_windows`: it leads out of the layer.
    fn follow_known_characters(
        &mut self,
        from: NumberedNode,
        layer: &mut List<NumberedNode>,
        edges_with_windows: &mut List<PendingEdge>,
    ) {
        let moves: &[StateMove] = &self.moves[from.node.state];
        for StateMove { to: next_state, characters } in moves {
            let Some(characters) = characters else {
                continue;
            };
            let choices = from.choices.followed_by(characters.len());
            for &character in characters {
                let (mut last, windows) = from.node.last.followed_by(character);
                // A node for each combination of many characters would be too many nodes. So the
                // node remembers none of them.
                if choices.combinations(last.count()) > MOST_COMBINATIONS {
                    last = LastCharacters::default();
                }
                let to = Node { state: *next_state, last };
                if windows.is_empty() {
                    self.add_edge_without_windows(from, to, choices, layer);
                } else {
                    let edge = PendingEdge { from: from.number, to, choices, windows };
                    edges_with_windows.push(edge);
                }
            }
        }
    }

    /// Adds an edge to the graph whose character completes no window (characters that a text must
    /// have), and the node to which it leads, if that isn't in the graph. A new node is added to
    /// the layer as well. An edge from a node to itself is left out, since it requires nothing of a
    /// text.
    fn add_edge_without_windows(
        &mut self,
        from: NumberedNode,
        to: Node,
        choices: CharacterChoices,
        layer: &mut List<NumberedNode>,
    ) {
        let to = self.find_or_add(to, choices, layer);
        if to != from.number {
            let windows = List::new();
            self.graph.add_edge(Edge { from: from.number, to, windows });
        }
    }

    /// Returns the number of a node in the graph, or that of another node that can replace it. If
    /// the graph has neither, adds the node, or one that remembers nothing in its place.
    ///
    /// A node is a state of the automaton and the last characters that were read, which it
    /// *remembers* as the beginning of later windows (characters that a text must have in a row). A
    /// node that remembers fewer of them misses some windows. So less is required of a text, which
    /// is never wrong.
    ///
    /// A new node is also added to the end of `layer`, the list of nodes whose moves are followed
    /// next. It is stored there with its `choices`: how many characters could have been read in
    /// place of each one that is remembered.
    fn find_or_add(
        &mut self,
        node: Node,
        choices: CharacterChoices,
        layer: &mut List<NumberedNode>,
    ) -> usize {
        if let Some(number) = self.find_replacement(node) {
            return number;
        }

        // A node that remembers nothing replaces all later nodes of its state. So there is only one
        // node after a match, and a state with many nodes gets only one more.
        let is_after_match = node.state == self.automaton.last;
        let state_has_many_nodes = self.nodes_of_state[node.state] >= MOST_NODES_OF_STATE;
        let new_node = if is_after_match || state_has_many_nodes {
            Node::without_characters(node.state)
        } else {
            node
        };

        let number = self.graph.add_node();
        self.node_numbers.insert(new_node, number);
        self.nodes_of_state[new_node.state] += 1;
        layer.push(NumberedNode { number, node: new_node, choices });
        if is_after_match {
            self.graph.end = Some(number);
        }
        number
    }

    /// Returns the number of the node in the graph that replaces a node: one of the same state that
    /// remembers the same last characters, or else as many of them as possible. `None` if there is
    /// none. Example: a node that remembers `abc` is replaced by one that remembers `abc`, `bc`,
    /// `c` or nothing, the first of these that is in the graph.
    fn find_replacement(&self, node: Node) -> Option<usize> {
        for last in node.last.endings() {
            let replacement = Node { state: node.state, last };
            if let Some(&number) = self.node_numbers.get(&replacement) {
                return Some(number);
            }
        }
        None
    }
}

impl LastCharacters {
    /// Returns the distinct windows that one more character completes, and the characters to
    /// remember after it.
    fn followed_by(mut self, character: u32) -> (LastCharacters, List<Window>) {
        let mut windows = List::new();
        fold::fold(character, |folded| {
            self.add(folded, &mut |window| windows.push(window));
        });
        windows.sort_unstable();
        windows.dedup();
        (self.beginning_of_windows(), windows)
    }

    /// Returns the characters with which a window that ends with a later character may begin. The
    /// characters of a window weigh [`WEIGHT`] together, so these are as many of the last
    /// characters as weigh less.
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

    /// Returns the endings of these characters, from the longest, of at most three characters, to
    /// the empty one.
    fn endings(self) -> impl Iterator<Item = LastCharacters> {
        let longest = self.count().min(WEIGHT - 1);
        (0..=longest).rev().map(move |length| self.ending(length))
    }

    /// Returns the last `length` characters, of at most three.
    fn ending(self, length: u32) -> LastCharacters {
        let mask = (1 << (CHARACTER_BITS * length)) - 1;
        LastCharacters {
            characters: self.characters & mask,
            narrow_at_end: self.narrow_at_end.min(length),
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
