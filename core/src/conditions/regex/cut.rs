//! The narrowest cut of a section: the fewest edges of which each path has one.
//!
//! By the theorem of Ford and Fulkerson (*max-flow min-cut*) there are as many edges in it as there
//! are paths, at most, that share no edge that can be cut. Such paths are found one after the
//! other, each by a breadth-first search (the algorithm of Edmonds and Karp). Each new path may
//! also go *back* along an edge of an earlier one, which then is on neither. When no further path
//! can be found, the edges that lead out of the nodes that the last search could still reach are
//! the cut.

use super::graph::Graph;
use super::section::{NodeSet, Section, Sections};
use crate::interrupt;
use crate::memory::List;

/// Searches for cuts of one graph.
pub struct CutSearch {
    /// By edge, on how many of the paths so far it is. (That is the *flow* along the edge.)
    paths_on: List<u32>,
    /// The nodes that the last search for a path has reached.
    reached: NodeSet,
    /// By node that was reached, the step that led to it.
    step_to: List<SearchStep>,
}

/// A step of a path: along an edge, or back along one of an earlier path.
#[derive(Clone, Copy, Default)]
struct SearchStep {
    edge: usize,
    is_back: bool,
}

impl SearchStep {
    fn start(self, graph: &Graph) -> usize {
        let edge = &graph.edges[self.edge];
        if self.is_back { edge.to } else { edge.from }
    }

    fn end(self, graph: &Graph) -> usize {
        let edge = &graph.edges[self.edge];
        if self.is_back { edge.from } else { edge.to }
    }
}

impl CutSearch {
    /// Returns a search that has found no paths yet, with room for what it notes of a graph.
    pub fn for_graph(graph: &Graph) -> CutSearch {
        CutSearch {
            paths_on: List::zeroed(graph.edges.len()),
            reached: NodeSet::for_nodes(graph.outgoing.len()),
            step_to: List::zeroed(graph.outgoing.len()),
        }
    }

    /// Returns the smallest *cut* of a section: the fewest edges of which each path from the
    /// section's first node to its last has at least one. A section is a part of a graph, between
    /// two nodes. Only edges for which `can_be_cut` is true may be in the cut. Of several smallest
    /// cuts, returns the one closest to the first node.
    ///
    /// Returns `None` if each cut has more than `most` edges, or if there is no cut, as some path
    /// has no edge that may be in one. `edges` must be all edges of the section.
    ///
    /// The cut is found as a maximum flow: the smallest cut has as many edges as there are paths,
    /// at most, that share no edge that can be cut. So such paths are added, one by one, until
    /// there is no further one. Example:
    ///
    /// ```text
    /// first ─a→ 1 ─c→ last     One path is added: a, c. A second one gets from `first` to 1 by b,
    ///   └───b───↑              but c is taken. It has reached `first` and 1, so the cut is c: the
    ///                          only edge that leads out of these nodes.
    /// ```
    pub fn narrowest_cut(
        &mut self,
        sections: &Sections,
        section: Section,
        edges: &[usize],
        most: usize,
        can_be_cut: impl Fn(usize) -> bool,
    ) -> Option<List<usize>> {
        // No path is on any edge yet.
        for &edge in edges {
            self.paths_on[edge] = 0;
        }

        for _ in 0..=most {
            let has_found_path = self.search_path(sections, section, &can_be_cut);
            if !has_found_path {
                // The search has ended at the edges of the cut.
                return Some(self.edges_out_of_reached(edges, sections.graph));
            }
            self.add_path(sections.graph, section);
        }
        // `most` + 1 paths share no edge that can be cut, and a cut has an edge of each.
        None
    }

    /// Searches breadth first for one more path through a section, the part of the graph between
    /// two nodes. Returns whether there is one. Then `self.step_to` has its steps, for
    /// [`CutSearch::add_path`]. Otherwise `self.reached` has the nodes to which a path can get.
    ///
    /// Paths must not share edges that can be cut: so a path goes along such an edge only if no
    /// earlier path is on it. It may also go *back* along an edge of an earlier path, which is
    /// taken off that edge then. Any number of paths may be on an edge that can't be cut.
    fn search_path(
        &mut self,
        sections: &Sections,
        section: Section,
        can_be_cut: &impl Fn(usize) -> bool,
    ) -> bool {
        let graph = sections.graph;
        self.reached.clear();
        self.reached.insert(section.start);
        let mut to_follow = List::from([section.start]);
        let mut next_to_follow = 0;
        while let Some(&node) = to_follow.get(next_to_follow) {
            interrupt::check();
            next_to_follow += 1;
            if node == section.end {
                return true;
            }
            for &edge in &graph.outgoing[node] {
                let is_free = self.paths_on[edge] == 0 || !can_be_cut(edge);
                if is_free && sections.has_edge(section, edge) {
                    self.take(SearchStep { edge, is_back: false }, graph, &mut to_follow);
                }
            }
            for &edge in &graph.incoming[node] {
                if self.paths_on[edge] > 0 && sections.has_edge(section, edge) {
                    self.take(SearchStep { edge, is_back: true }, graph, &mut to_follow);
                }
            }
        }
        false
    }

    /// Takes a step of the search: notes the node that it leads to as reached by this step, to be
    /// followed further. Does nothing if the node has been reached before.
    fn take(&mut self, step: SearchStep, graph: &Graph, to_follow: &mut List<usize>) {
        let next = step.end(graph);
        if self.reached.insert(next) {
            self.step_to[next] = step;
            to_follow.push(next);
        }
    }

    /// Adds the path that [`CutSearch::search_path`] has just found to the paths so far: follows
    /// its steps from the last node of the section back to the first, and counts it on each edge. A
    /// step *back* along an edge of an earlier path takes that path off the edge.
    fn add_path(&mut self, graph: &Graph, section: Section) {
        let mut node = section.end;
        while node != section.start {
            let step = self.step_to[node];
            if step.is_back {
                self.paths_on[step.edge] -= 1;
            } else {
                self.paths_on[step.edge] += 1;
            }
            node = step.start(graph);
        }
    }

    /// Returns those of some edges that lead from a reached node to one that isn't.
    fn edges_out_of_reached(&self, edges: &[usize], graph: &Graph) -> List<usize> {
        let leads_out = |&edge: &usize| {
            let edge = &graph.edges[edge];
            self.reached.contains(edge.from) && !self.reached.contains(edge.to)
        };
        edges.iter().copied().filter(leads_out).collect()
    }
}
