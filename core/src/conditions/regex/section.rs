//! Parts of a graph: its paths from one node to another, one after the other and beside each other.

use super::graph::{Edge, Graph};
use crate::{interrupt, memory};

/// Two nodes, and the paths from one to the other through nodes of a number.
///
/// No path of a section comes back to `from` or goes on behind `to`.
#[derive(Clone, Copy)]
pub struct Section {
    /// The number of the section in which the nodes between `from` and `to` are.
    number: u32,
    pub from: usize,
    pub to: usize,
    /// Whether edges from `from` to `to` are also paths of it.
    has_direct_edges: bool,
}

/// A piece of a section. All paths of the section go through its ends, and through no other node
/// between them.
pub struct Stretch {
    from: usize,
    to: usize,
    /// The nodes between the ends, and some that are only in circles.
    inner: Vec<usize>,
    /// The edges from one end to the other.
    pub direct_edges: Vec<usize>,
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
    section_of: Vec<u32>,
    num_sections: u32,
    scratch: Scratch,
}

/// What searches need for each node.
struct Scratch {
    reached: NodeSet,
    leading_to_end: NodeSet,
    /// The node before each on a shortest path, and the place of each on the path that was found.
    node_before: Vec<usize>,
    place_on_path: Vec<usize>,
}

#[derive(Clone, Copy)]
enum Direction {
    Forward,
    Backward,
}

impl<'g> Sections<'g> {
    pub fn of(graph: &'g Graph) -> Sections<'g> {
        let num_nodes = graph.outgoing.len();
        Sections {
            graph,
            section_of: memory::zeroed(num_nodes),
            num_sections: 1,
            scratch: Scratch {
                reached: NodeSet::of(num_nodes),
                leading_to_end: NodeSet::of(num_nodes),
                node_before: memory::zeroed(num_nodes),
                place_on_path: memory::zeroed(num_nodes),
            },
        }
    }

    /// Returns the section of all paths from the graph's start to a node. It must be the first one
    /// that is asked for.
    pub fn to(&self, end: usize) -> Section {
        Section {
            number: 0,
            from: self.graph.start,
            to: end,
            has_direct_edges: true,
        }
    }

    /// Returns the paths of a section up to the start of one of its edges; `None` if the section
    /// begins there.
    pub fn before(&self, edge: usize, section: Section) -> Option<Section> {
        let to = self.graph.edges[edge].from;
        (to != section.from).then_some(Section { to, has_direct_edges: true, ..section })
    }

    /// Returns the paths of a section from the end of one of its edges on; `None` if the section
    /// ends there.
    pub fn behind(&self, edge: usize, section: Section) -> Option<Section> {
        let from = self.graph.edges[edge].to;
        (from != section.to).then_some(Section { from, has_direct_edges: true, ..section })
    }

    /// Returns the stretches of a section, in the order of its paths; `None` if it has no path.
    ///
    /// Follows one path. A node of it ends a stretch if no way from the nodes before it leads past
    /// it.
    pub fn stretches(&mut self, section: Section) -> Option<Vec<Stretch>> {
        let path = self.shortest_path(section)?;
        self.mark_nodes_leading_to_end(section);
        self.scratch.reached.clear();
        for (place, &node) in path.iter().enumerate() {
            self.scratch.reached.insert(node);
            self.scratch.place_on_path[node] = place;
        }
        let is_on_path =
            |scratch: &Scratch, node: usize| path.get(scratch.place_on_path[node]) == Some(&node);

        let mut stretches = Vec::new();
        let mut from = section.from;
        let mut inner = Vec::new();
        // The furthest place on the path that a way from the nodes before it leads to.
        let mut furthest = 0;
        for (place, &node_on_path) in path.iter().enumerate() {
            if place > 0 && furthest > place {
                memory::push(&mut inner, node_on_path);
            } else if place > 0 {
                let direct_edges = self.edges_between(from, node_on_path, section);
                let inner = std::mem::take(&mut inner);
                let stretch = Stretch { from, to: node_on_path, inner, direct_edges };
                memory::push(&mut stretches, stretch);
                from = node_on_path;
            }

            let mut to_follow = vec![node_on_path];
            while let Some(node) = to_follow.pop() {
                interrupt::check();
                for &edge in &self.graph.outgoing[node] {
                    let next = self.graph.edges[edge].to;
                    if !self.has_edge(section, edge) || !self.scratch.leading_to_end.contains(next)
                    {
                        continue;
                    }
                    if is_on_path(&self.scratch, next) {
                        furthest = furthest.max(self.scratch.place_on_path[next]);
                    } else if self.scratch.reached.insert(next) {
                        memory::push(&mut inner, next);
                        memory::push(&mut to_follow, next);
                    }
                }
            }
        }
        Some(stretches)
    }

    /// Returns the nodes of a shortest path of a section; `None` if it has no path.
    fn shortest_path(&mut self, section: Section) -> Option<Vec<usize>> {
        self.scratch.reached.clear();
        self.scratch.reached.insert(section.from);
        let mut to_follow = vec![section.from];
        let mut next_to_follow = 0;
        while let Some(&node) = to_follow.get(next_to_follow) {
            interrupt::check();
            next_to_follow += 1;
            if node == section.to {
                break;
            }
            for &edge in &self.graph.outgoing[node] {
                let next = self.graph.edges[edge].to;
                if self.has_edge(section, edge) && self.scratch.reached.insert(next) {
                    self.scratch.node_before[next] = node;
                    memory::push(&mut to_follow, next);
                }
            }
        }

        if !self.scratch.reached.contains(section.to) {
            return None;
        }
        let mut path = vec![section.to];
        let mut node = section.to;
        while node != section.from {
            node = self.scratch.node_before[node];
            memory::push(&mut path, node);
        }
        path.reverse();
        Some(path)
    }

    fn mark_nodes_leading_to_end(&mut self, section: Section) {
        self.scratch.leading_to_end.clear();
        self.scratch.leading_to_end.insert(section.to);
        let mut to_follow = vec![section.to];
        while let Some(node) = to_follow.pop() {
            interrupt::check();
            for &edge in &self.graph.incoming[node] {
                let before = self.graph.edges[edge].from;
                if self.has_edge(section, edge) && self.scratch.leading_to_end.insert(before) {
                    memory::push(&mut to_follow, before);
                }
            }
        }
    }

    /// Returns the nodes of a section that a path from its first node leads to, with the first one.
    fn reached_nodes(&mut self, section: Section) -> Vec<usize> {
        self.scratch.reached.clear();
        self.scratch.reached.insert(section.from);
        let mut nodes = vec![section.from];
        let mut next_to_follow = 0;
        while let Some(&node) = nodes.get(next_to_follow) {
            interrupt::check();
            next_to_follow += 1;
            for &edge in &self.graph.outgoing[node] {
                let next = self.graph.edges[edge].to;
                if self.has_edge(section, edge) && self.scratch.reached.insert(next) {
                    memory::push(&mut nodes, next);
                }
            }
        }
        nodes
    }

    /// Returns all edges of a section.
    pub fn edges_of(&mut self, section: Section) -> Vec<usize> {
        let mut edges = Vec::new();
        for node in self.reached_nodes(section) {
            for &edge in &self.graph.outgoing[node] {
                if self.has_edge(section, edge) {
                    memory::push(&mut edges, edge);
                }
            }
        }
        edges
    }

    /// Returns whether a path of a section may have an edge.
    pub fn has_edge(&self, section: Section, edge: usize) -> bool {
        let Edge { from, to, .. } = self.graph.edges[edge];
        let is_inner = |node| self.section_of[node] == section.number;
        let begins_in_it = from == section.from || is_inner(from);
        let ends_in_it = to == section.to || is_inner(to);
        let goes_back = from == section.to || to == section.from;
        let is_direct = from == section.from && to == section.to;
        begins_in_it && ends_in_it && !goes_back && (section.has_direct_edges || !is_direct)
    }

    /// Returns the edges of a section from a node to another.
    fn edges_between(&self, from: usize, to: usize, section: Section) -> Vec<usize> {
        let edges = self.graph.outgoing[from].iter().copied();
        let leads_there =
            |edge: &usize| self.graph.edges[*edge].to == to && self.has_edge(section, *edge);
        memory::collect(edges.filter(leads_there))
    }

    /// Returns the branches of a stretch beside its direct edges: sections that have only the ends
    /// of the stretch in common.
    ///
    /// The section in which the stretch was found loses its nodes to them, until they are
    /// [put back](Sections::put_back).
    pub fn branches(&mut self, stretch: &Stretch) -> Vec<Section> {
        let whole = self.new_section(stretch);
        for &node in &stretch.inner {
            self.section_of[node] = whole.number;
        }

        // Nodes that are only in circles would connect branches.
        self.mark_nodes_leading_to_end(whole);
        let mut on_paths = self.reached_nodes(whole);
        on_paths.retain(|&node| {
            let is_end = node == stretch.from || node == stretch.to;
            !is_end && self.scratch.leading_to_end.contains(node)
        });
        let whole = self.new_section(stretch);
        for &node in &on_paths {
            self.section_of[node] = whole.number;
        }

        let mut branches = Vec::new();
        for node in on_paths {
            if self.section_of[node] == whole.number {
                let branch = self.new_section(stretch);
                self.move_connected(node, whole, branch);
                memory::push(&mut branches, branch);
            }
        }
        branches
    }

    /// Returns a section with the ends of a stretch, and no other nodes yet.
    fn new_section(&mut self, stretch: &Stretch) -> Section {
        let number = self.num_sections;
        self.num_sections += 1;
        Section {
            number,
            from: stretch.from,
            to: stretch.to,
            has_direct_edges: false,
        }
    }

    /// Moves a node from a section to another, with all nodes that are connected with it by edges
    /// between inner nodes.
    fn move_connected(&mut self, node: usize, from: Section, to: Section) {
        self.section_of[node] = to.number;
        let mut to_follow = vec![node];
        while let Some(node) = to_follow.pop() {
            interrupt::check();
            for direction in [Direction::Forward, Direction::Backward] {
                let edges = match direction {
                    Direction::Forward => &self.graph.outgoing[node],
                    Direction::Backward => &self.graph.incoming[node],
                };
                for &edge in edges {
                    let next = match direction {
                        Direction::Forward => self.graph.edges[edge].to,
                        Direction::Backward => self.graph.edges[edge].from,
                    };
                    if self.section_of[next] == from.number {
                        self.section_of[next] = to.number;
                        memory::push(&mut to_follow, next);
                    }
                }
            }
        }
    }

    /// Puts the inner nodes of a section's edges back to it that were moved to sections within it.
    pub fn put_back(&mut self, section: Section, edges: &[usize]) {
        for &edge in edges {
            let node = self.graph.edges[edge].to;
            if node != section.to {
                self.section_of[node] = section.number;
            }
        }
    }
}

/// A set of nodes that is emptied at no cost.
pub struct NodeSet {
    /// By node, the round in which it was added last.
    rounds: Vec<u32>,
    round: u32,
}

impl NodeSet {
    /// Returns an empty set for nodes below a number.
    pub fn of(num_nodes: usize) -> NodeSet {
        NodeSet { rounds: memory::zeroed(num_nodes), round: 1 }
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
