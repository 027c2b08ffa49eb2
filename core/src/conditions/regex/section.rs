//! Parts of a graph: its paths from one node to another, one after the other and beside each other.
//!
//! ```text
//! section    all paths from S to E           S ─→ a ─→ X ─→ b ─→ E
//!                                                       └─→ c ─→ ┘
//! stretches  one after the other: all paths go through X, so S … X and X … E
//! branches   beside each other: X … E by b, and X … E by c; these are sections again
//! ```

use super::graph::{Edge, Graph};
use crate::interrupt;
use crate::memory::List;

/// The number of the section that all nodes are in at first: the paths of the whole graph.
const WHOLE_GRAPH: u32 = 0;

/// Two nodes, and the paths from one to the other through nodes that have the section's number.
///
/// No path of a section comes back to `start` or goes on behind `end`.
#[derive(Clone, Copy)]
pub struct Section {
    /// Each node between `start` and `end` has this number in [`Sections::section_of`].
    number: u32,
    pub start: usize,
    pub end: usize,
    /// Whether edges from `start` to `end` are also paths of it.
    has_direct_edges: bool,
}

/// A piece of a section. All paths of the section go through its ends, and through no other node
/// between them.
pub struct Stretch {
    start: usize,
    end: usize,
    /// The nodes between the ends, and some that are only in circles.
    inner: List<usize>,
    /// The edges from one end to the other.
    pub direct_edges: List<usize>,
}

impl Stretch {
    /// Returns the only edge that the stretch consists of; `None` if there is more to it.
    pub fn only_edge(&self) -> Option<usize> {
        match self.direct_edges[..] {
            [edge] if self.inner.is_empty() => Some(edge),
            _ => None,
        }
    }
}

/// The sections of a graph.
pub struct Sections<'g> {
    pub graph: &'g Graph,
    /// By node, the number of the smallest section in which it is.
    section_of: List<u32>,
    num_sections: u32,
    scratch: Scratch,
}

/// What searches through a graph note for its nodes: allocated once, used by each search.
struct Scratch {
    /// The nodes that the search has found.
    reached: NodeSet,
    /// The nodes from which a path leads to the section's last node.
    leading_to_end: NodeSet,
    /// By node, the node before it on a shortest path.
    node_before: List<usize>,
    /// By node of the path that is examined, its index in this path. Other nodes may have an index
    /// that is left from an earlier path.
    index_on_path: List<usize>,
}

impl Scratch {
    fn for_nodes(num_nodes: usize) -> Scratch {
        Scratch {
            reached: NodeSet::for_nodes(num_nodes),
            leading_to_end: NodeSet::for_nodes(num_nodes),
            node_before: List::zeroed(num_nodes),
            index_on_path: List::zeroed(num_nodes),
        }
    }

    /// Notes the index of each node of a path.
    fn note_indexes(&mut self, path: &[usize]) {
        for (index, &node) in path.iter().enumerate() {
            self.index_on_path[node] = index;
        }
    }

    /// Returns the index of a node in a path; `None` if the node isn't on the path. The path must
    /// be the last one that was given to [`Scratch::note_indexes`].
    ///
    /// For example, node 7 has index 2 in the path 4, 9, 7, 1. Node 3 isn't on this path, but may
    /// still have the noted index 2 from an earlier one. So the result is only trusted if the path
    /// has the node there.
    fn index_of(&self, node: usize, path: &[usize]) -> Option<usize> {
        let noted_index = self.index_on_path[node];
        if path.get(noted_index) == Some(&node) { Some(noted_index) } else { None }
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Forward,
    Backward,
}

impl<'g> Sections<'g> {
    /// Returns the sections of a graph before it is taken apart: one section has all nodes.
    pub fn of_whole(graph: &'g Graph) -> Sections<'g> {
        let num_nodes = graph.outgoing.len();
        Sections {
            graph,
            // Zeros: all nodes are in WHOLE_GRAPH.
            section_of: List::zeroed(num_nodes),
            num_sections: WHOLE_GRAPH + 1,
            scratch: Scratch::for_nodes(num_nodes),
        }
    }

    /// Returns the section of all paths from the graph's start to a node. No nodes may have been
    /// moved to [branches](Sections::branches) before.
    pub fn whole_graph(&self, end: usize) -> Section {
        Section {
            number: WHOLE_GRAPH,
            start: self.graph.start,
            end,
            has_direct_edges: true,
        }
    }

    /// Returns the part of a section's paths before one of its edges; `None` if the edge leads out
    /// of the section's first node, so that there is nothing before it.
    pub fn before(&self, edge: usize, section: Section) -> Option<Section> {
        let end = self.graph.edges[edge].from;
        (end != section.start).then_some(Section { end, has_direct_edges: true, ..section })
    }

    /// Returns the part of a section's paths after one of its edges; `None` if the edge leads to
    /// the section's last node, so that there is nothing after it.
    pub fn behind(&self, edge: usize, section: Section) -> Option<Section> {
        let start = self.graph.edges[edge].to;
        (start != section.end).then_some(Section { start, has_direct_edges: true, ..section })
    }

    /// Splits a *section*, the paths of the graph from one node to another, into *stretches*, which
    /// follow one another: each stretch lies between two nodes that all paths of the section go
    /// through, next to each other. Returns `None` if the section has no path.
    ///
    /// One path, the shortest, goes through all stretches. So it is divided, from its start to its
    /// end, at the nodes that no other path can avoid.
    pub fn stretches(&mut self, section: Section) -> Option<List<Stretch>> {
        let path = self.shortest_path(section)?;
        self.prepare_for_detours(&path, section);

        let mut stretches = List::new();
        let mut start = 0;
        while start + 1 < path.len() {
            let mut inner = List::new();
            let end = self.next_on_all_paths(start, &path, section, &mut inner);
            stretches.push(Stretch {
                start: path[start],
                end: path[end],
                inner,
                direct_edges: self.edges_between(path[start], path[end], section),
            });
            start = end;
        }
        Some(stretches)
    }

    /// Returns the index in `path` of the next node behind the one with the index `start` that all
    /// paths of a section go through. `path` is one of these paths, and `start` is not its end.
    /// Nodes between the two, on the path and beside it, are appended to `inner`.
    ///
    /// All paths go through a node if no *detour* leads around it: edges that leave the path before
    /// the node and come back behind it. So detours are followed from each node in turn, up to the
    /// node at which the furthest of them has come back.
    ///
    /// ```text
    /// path      S ─→ a ─→ b ─→ X ─→ E      detours   S ─→ c ─→ b      a ─→ d ─→ X
    ///
    /// from S    to b at the furthest, by c: a can be avoided
    /// from a    to X at the furthest, by d: b can be avoided
    /// from b    to X: nothing leads around X, which is the result. Inner nodes are c, a, d and b
    /// ```
    ///
    /// The caller must have called [`Sections::prepare_for_detours`] for this path.
    fn next_on_all_paths(
        &mut self,
        start: usize,
        path: &[usize],
        section: Section,
        inner: &mut List<usize>,
    ) -> usize {
        let reached_from_start = self.follow_detours(path[start], path, section, inner);
        // The path itself leads to the next node.
        let mut furthest = reached_from_start.max(start + 1);

        let mut next = start + 1;
        while next < furthest {
            inner.push(path[next]);
            let reached_from_next = self.follow_detours(path[next], path, section, inner);
            furthest = furthest.max(reached_from_next);
            next += 1;
        }
        furthest
    }

    /// Prepares [`Sections::follow_detours`] for a path from the start of a section to its end.
    fn prepare_for_detours(&mut self, path: &[usize], section: Section) {
        self.find_nodes_leading_to_end(section);
        self.scratch.note_indexes(path);
        // No node beside the path has been found yet.
        self.scratch.reached.clear();
    }

    /// Searches for *detours* from one node of a path: edges that leave the path at this node, go
    /// through nodes beside the path, and come back to it. The edge to the next node of the path
    /// counts, too. Returns how far the detours lead: the greatest index in `path` of a node at
    /// which one comes back, or 0 if none does.
    ///
    /// ```text
    /// path           S ─→ a ─→ b ─→ E        their indexes are 0, 1, 2 and 3
    /// other edges    S ─→ c ─→ d ─→ b        c ─→ x, from which no edge leads on
    ///
    /// from S         back at a, by the edge of the path, and at b, by c and d: the result is 2
    /// ```
    ///
    /// Appends the nodes beside the path that it finds to `nodes_beside`: here c and d. Nodes that
    /// an earlier call for this path found aren't followed again.
    ///
    /// Only edges of `section` count, a part of the graph between two nodes, which are the ends of
    /// the path. The caller must have called [`Sections::prepare_for_detours`] for the path.
    fn follow_detours(
        &mut self,
        node_on_path: usize,
        path: &[usize],
        section: Section,
        nodes_beside: &mut List<usize>,
    ) -> usize {
        let mut furthest_index = 0;
        let mut to_follow = List::from([node_on_path]);
        while let Some(node) = to_follow.pop() {
            interrupt::check();
            for &edge in &self.graph.outgoing[node] {
                let next = self.graph.edges[edge].to;
                let is_dead_end = !self.scratch.leading_to_end.contains(next);
                if is_dead_end || !self.has_edge(section, edge) {
                    continue;
                }

                if let Some(index) = self.scratch.index_of(next, path) {
                    // The detour is back on the path.
                    furthest_index = furthest_index.max(index);
                } else if self.scratch.reached.insert(next) {
                    // It goes on through a node beside the path that is found for the first time.
                    nodes_beside.push(next);
                    to_follow.push(next);
                }
            }
        }
        furthest_index
    }

    /// Returns a path with the fewest edges from the first node of a section (a part of the graph
    /// between two nodes) to its last: all nodes of the path in their order, both ends included.
    /// `None` if there is no path. Searches breadth first.
    fn shortest_path(&mut self, section: Section) -> Option<List<usize>> {
        self.scratch.reached.clear();
        self.scratch.reached.insert(section.start);
        let mut to_follow = List::from([section.start]);
        let mut next_to_follow = 0;
        while let Some(&node) = to_follow.get(next_to_follow) {
            interrupt::check();
            next_to_follow += 1;
            if node == section.end {
                break;
            }
            for &edge in &self.graph.outgoing[node] {
                let next = self.graph.edges[edge].to;
                if self.has_edge(section, edge) && self.scratch.reached.insert(next) {
                    self.scratch.node_before[next] = node;
                    to_follow.push(next);
                }
            }
        }

        if !self.scratch.reached.contains(section.end) {
            return None;
        }

        // The path is found backwards, from its end.
        let mut path = List::from([section.end]);
        let mut node = section.end;
        while node != section.start {
            node = self.scratch.node_before[node];
            path.push(node);
        }
        path.reverse();
        Some(path)
    }

    /// Finds the nodes of a section (a part of the graph between two nodes) from which a path leads
    /// to its last node, that one included: searches backwards from there. The result is in
    /// `self.scratch.leading_to_end` afterwards.
    fn find_nodes_leading_to_end(&mut self, section: Section) {
        self.scratch.leading_to_end.clear();
        self.scratch.leading_to_end.insert(section.end);
        let mut to_follow = List::from([section.end]);
        while let Some(node) = to_follow.pop() {
            interrupt::check();
            for &edge in &self.graph.incoming[node] {
                let previous = self.graph.edges[edge].from;
                if self.has_edge(section, edge) && self.scratch.leading_to_end.insert(previous) {
                    to_follow.push(previous);
                }
            }
        }
    }

    /// Returns the nodes of a section (a part of the graph between two nodes) to which a path leads
    /// from its first node, that one included. They are in the order in which a breadth-first
    /// search finds them.
    fn reached_nodes(&mut self, section: Section) -> List<usize> {
        self.scratch.reached.clear();
        self.scratch.reached.insert(section.start);
        let mut nodes = List::from([section.start]);
        let mut next_to_follow = 0;
        while let Some(&node) = nodes.get(next_to_follow) {
            interrupt::check();
            next_to_follow += 1;
            for &edge in &self.graph.outgoing[node] {
                let next = self.graph.edges[edge].to;
                if self.has_edge(section, edge) && self.scratch.reached.insert(next) {
                    nodes.push(next);
                }
            }
        }
        nodes
    }

    /// Returns all edges of a section.
    pub fn edges_of(&mut self, section: Section) -> List<usize> {
        let mut edges = List::new();
        for node in self.reached_nodes(section) {
            for &edge in &self.graph.outgoing[node] {
                if self.has_edge(section, edge) {
                    edges.push(edge);
                }
            }
        }
        edges
    }

    /// Returns whether an edge belongs to a section: it connects two of its nodes, and doesn't lead
    /// back to the first node or on from the last one. An edge from the first node to the last one
    /// only belongs to sections with direct edges.
    pub fn has_edge(&self, section: Section, edge: usize) -> bool {
        let Edge { from, to, .. } = self.graph.edges[edge];
        let is_inner = |node| self.section_of[node] == section.number;
        let begins_in_it = from == section.start || is_inner(from);
        let ends_in_it = to == section.end || is_inner(to);
        let goes_back = from == section.end || to == section.start;
        let is_direct = from == section.start && to == section.end;
        begins_in_it && ends_in_it && !goes_back && (section.has_direct_edges || !is_direct)
    }

    /// Returns the edges of a section from a node to another.
    fn edges_between(&self, from: usize, to: usize, section: Section) -> List<usize> {
        let edges = self.graph.outgoing[from].iter().copied();
        let leads_there =
            |edge: &usize| self.graph.edges[*edge].to == to && self.has_edge(section, *edge);
        edges.filter(leads_there).collect()
    }

    /// Splits a *stretch*, a part of the graph between two nodes, into *branches*: sections that
    /// all lead from the start of the stretch to its end, and have no other node in common. Edges
    /// that connect the two ends directly are in none.
    ///
    /// A branch has inner nodes of the stretch that are *connected*: by edges in either direction,
    /// directly or through other inner nodes. *Stray* nodes are in no branch. They are on no path
    /// from the start to the end, only in circles, and would connect branches:
    ///
    /// ```text
    /// S ─→ a ─→ b ─→ E      a ─→ x      branches   S … E by a and b; S … E by c
    /// └──→ c ──────→ ┘      c ─→ x      stray      x, from which E is only reached through S
    ///                       x ─→ S
    /// ```
    ///
    /// Each node is in one section at a time. So the branches take their nodes from the section in
    /// which the stretch was found, until these are [put back](Sections::put_back).
    pub fn branches(&mut self, stretch: &Stretch) -> List<Section> {
        // A section with all inner nodes. Only the stray ones stay in it.
        let stray = self.new_section(stretch);
        self.move_nodes(&stretch.inner, stray);
        let nodes_of_branches = self.nodes_on_paths(stray);

        // A section with the nodes of all branches, from which each branch takes its own.
        let undivided = self.new_section(stretch);
        self.move_nodes(&nodes_of_branches, undivided);

        let mut branches = List::new();
        for node in nodes_of_branches {
            // Nodes that are connected with an earlier one are in its branch already.
            if self.section_of[node] == undivided.number {
                let branch = self.new_section(stretch);
                self.move_connected(node, undivided, branch);
                branches.push(branch);
            }
        }
        branches
    }

    /// Moves nodes to a section from the ones in which they are.
    fn move_nodes(&mut self, nodes: &[usize], section: Section) {
        for &node in nodes {
            self.section_of[node] = section.number;
        }
    }

    /// Returns the nodes between a section's ends that are on a path from its first node to its
    /// last one.
    fn nodes_on_paths(&mut self, section: Section) -> List<usize> {
        self.find_nodes_leading_to_end(section);
        let mut nodes = self.reached_nodes(section);
        nodes.retain(|&node| {
            let is_end = node == section.start || node == section.end;
            !is_end && self.scratch.leading_to_end.contains(node)
        });
        nodes
    }

    /// Returns a section that has the ends of a stretch and a new number, and no other nodes yet.
    fn new_section(&mut self, stretch: &Stretch) -> Section {
        let number = self.num_sections;
        self.num_sections += 1;
        Section {
            number,
            start: stretch.start,
            end: stretch.end,
            has_direct_edges: false,
        }
    }

    /// Moves a node of `old_section` to `new_section`, together with all nodes of `old_section`
    /// that are connected with it by edges: in either direction, directly or through other such
    /// nodes. (Sections are parts of the graph, and each node is in one of them.)
    fn move_connected(&mut self, node: usize, old_section: Section, new_section: Section) {
        self.section_of[node] = new_section.number;
        let mut to_follow = List::from([node]);
        while let Some(node) = to_follow.pop() {
            interrupt::check();
            for direction in [Direction::Forward, Direction::Backward] {
                let edges = match direction {
                    Direction::Forward => &self.graph.outgoing[node],
                    Direction::Backward => &self.graph.incoming[node],
                };
                for &edge in edges {
                    let neighbour = match direction {
                        Direction::Forward => self.graph.edges[edge].to,
                        Direction::Backward => self.graph.edges[edge].from,
                    };
                    if self.section_of[neighbour] == old_section.number {
                        self.section_of[neighbour] = new_section.number;
                        to_follow.push(neighbour);
                    }
                }
            }
        }
    }

    /// Puts the nodes of a section back into it that [`Sections::branches`] has moved to branches
    /// within it. `edges` must be all edges of the section: they lead to each of its nodes.
    pub fn put_back(&mut self, section: Section, edges: &[usize]) {
        for &edge in edges {
            let node = self.graph.edges[edge].to;
            if node != section.end {
                self.section_of[node] = section.number;
            }
        }
    }
}

/// A set of nodes that is emptied at no cost.
pub struct NodeSet {
    /// By node, the round in which it was added last; 0 if it never was.
    rounds: List<u32>,
    /// Nodes added in this round are in the set. Clearing the set begins the next round.
    round: u32,
}

impl NodeSet {
    /// Returns an empty set for nodes that are numbered below `num_nodes`.
    pub fn for_nodes(num_nodes: usize) -> NodeSet {
        NodeSet { rounds: List::zeroed(num_nodes), round: 1 }
    }

    pub fn clear(&mut self) {
        self.round += 1;
    }

    /// Adds a node. Returns whether it wasn't there.
    pub fn insert(&mut self, node: usize) -> bool {
        let is_new = self.rounds[node] != self.round;
        self.rounds[node] = self.round;
        is_new
    }

    pub fn contains(&self, node: usize) -> bool {
        self.rounds[node] == self.round
    }
}
