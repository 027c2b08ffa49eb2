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
    /// By node, its place on the path that is followed; stale for nodes that aren't on it.
    place_on_path: List<usize>,
}

impl Scratch {
    fn for_nodes(num_nodes: usize) -> Scratch {
        Scratch {
            reached: NodeSet::for_nodes(num_nodes),
            leading_to_end: NodeSet::for_nodes(num_nodes),
            node_before: List::zeroed(num_nodes),
            place_on_path: List::zeroed(num_nodes),
        }
    }

    /// Returns the place of a node on a path for which places have been noted; `None` if the node
    /// isn't on it.
    fn place_on(&self, path: &[usize], node: usize) -> Option<usize> {
        let place = self.place_on_path[node];
        (path.get(place) == Some(&node)).then_some(place)
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
    /// All paths go through a node if no detour leads from a node before it to one behind it. So
    /// one path, the shortest, is followed from its start to its end. On the way, detours are
    /// followed as well: edges that leave the path, until they lead back to it. A node that no
    /// detour so far has passed is the end of a stretch.
    pub fn stretches(&mut self, section: Section) -> Option<List<Stretch>> {
        let path = self.shortest_path(section)?;
        self.find_nodes_leading_to_end(section);
        self.scratch.reached.clear();
        for (place, &node) in path.iter().enumerate() {
            self.scratch.reached.insert(node);
            self.scratch.place_on_path[node] = place;
        }

        let mut stretches = List::new();
        let mut start = section.start;
        let mut inner = List::new();
        // The furthest place on the path to which an edge or a detour has led. Places are numbers
        // of nodes on the path, from 0.
        let mut furthest = 0;
        for (place, &node) in path.iter().enumerate() {
            if furthest > place {
                // A detour leads around this node.
                inner.push(node);
            } else if place > 0 {
                let stretch = Stretch {
                    start,
                    end: node,
                    inner: std::mem::take(&mut inner),
                    direct_edges: self.edges_between(start, node, section),
                };
                stretches.push(stretch);
                start = node;
            }

            let place_reached = self.follow_detours(node, &path, section, &mut inner);
            furthest = furthest.max(place_reached);
        }
        Some(stretches)
    }

    /// Follows the ways that lead from one node of a path back to a later node of it: the edge to
    /// the next node of the path, and *detours*, which go through nodes beside the path. Returns
    /// how far along the path they lead: the greatest index in `path` of a node at which one of
    /// them ends, or 0 if none comes back.
    ///
    /// The path goes through `section`, a part of the graph between two nodes, and so must the
    /// ways. Nodes beside the path that no earlier call has found are appended to `nodes_beside`.
    ///
    /// The caller must have prepared `self.scratch`: `reached` and `place_on_path` must have the
    /// nodes of the path with their indices, and `leading_to_end` those nodes from which a path
    /// leads to the end of the section.
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
                if let Some(index) = self.scratch.place_on(path, next) {
                    furthest_index = furthest_index.max(index);
                } else if self.scratch.reached.insert(next) {
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
    /// Each node is in one section at a time. So the branches take their nodes from the section in
    /// which the stretch was found, until these are [put back](Sections::put_back).
    pub fn branches(&mut self, stretch: &Stretch) -> List<Section> {
        let all_inner = self.new_section(stretch);
        for &node in &stretch.inner {
            self.section_of[node] = all_inner.number;
        }
        let on_paths = self.nodes_on_paths(all_inner);

        // Nodes that are on no path, only in circles, would connect branches. They stay behind in
        // `all_inner`, and the others get another section.
        let unassigned = self.new_section(stretch);
        for &node in &on_paths {
            self.section_of[node] = unassigned.number;
        }

        let mut branches = List::new();
        for node in on_paths {
            if self.section_of[node] == unassigned.number {
                let branch = self.new_section(stretch);
                self.move_connected(node, unassigned, branch);
                branches.push(branch);
            }
        }
        branches
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
