//! The narrowest cut of a section: the fewest edges of which each path has one.
//!
//! By the theorem of Ford and Fulkerson there are as many paths that share no edge. They are found
//! one after the other. Each new path may also go *back* along an edge of an earlier one, which
//! then is on neither. When no further path can be found, the edges that lead out of what could
//! still be reached are the cut.

use super::graph::Graph;
use super::section::{NodeSet, Section, Sections};
use crate::{interrupt, memory};

/// Searches for cuts of one graph.
pub struct CutSearch {
    /// By edge, on how many of the found paths it is.
    paths_on: Vec<u32>,
    /// Nodes that a further path can reach, and the step that leads to each.
    reached: NodeSet,
    step_to: Vec<SearchStep>,
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
    pub fn of(graph: &Graph) -> CutSearch {
        CutSearch {
            paths_on: memory::zeroed(graph.edges.len()),
            reached: NodeSet::of(graph.outgoing.len()),
            step_to: memory::zeroed(graph.outgoing.len()),
        }
    }

    /// Returns the fewest edges for which `can_be_cut` is true, of which each path of a section has
    /// at least one. If there are several such lists, returns the one closest to the section's
    /// first node. Returns `None` if there is none with at most `most` edges.
    ///
    /// `edges` must be those of the section.
    pub fn narrowest_cut(
        &mut self,
        sections: &Sections,
        section: Section,
        edges: &[usize],
        most: usize,
        can_be_cut: impl Fn(usize) -> bool,
    ) -> Option<Vec<usize>> {
        for &edge in edges {
            self.paths_on[edge] = 0;
        }
        for _ in 0..=most {
            self.search(sections, section, &can_be_cut);
            if !self.reached.contains(section.to) {
                let leads_out = |&edge: &usize| {
                    let edge = &sections.graph.edges[edge];
                    self.reached.contains(edge.from) && !self.reached.contains(edge.to)
                };
                return Some(memory::collect(edges.iter().copied().filter(leads_out)));
            }
            self.add_path(sections.graph, section);
        }
        None
    }

    /// Finds the nodes that a further path can reach, until it reaches the last one.
    ///
    /// A path goes along an edge that can be cut only if no other path is on it. Any number of
    /// paths may be on an edge that can't be cut.
    fn search(
        &mut self,
        sections: &Sections,
        section: Section,
        can_be_cut: &impl Fn(usize) -> bool,
    ) {
        let graph = sections.graph;
        self.reached.clear();
        self.reached.insert(section.from);
        let mut to_follow = vec![section.from];
        let mut next_to_follow = 0;
        while let Some(&node) = to_follow.get(next_to_follow) {
            interrupt::check();
            next_to_follow += 1;
            if node == section.to {
                return;
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
    }

    fn take(&mut self, step: SearchStep, graph: &Graph, to_follow: &mut Vec<usize>) {
        let next = step.end(graph);
        if self.reached.insert(next) {
            self.step_to[next] = step;
            memory::push(to_follow, next);
        }
    }

    /// Adds the path to the last node of a section that has just been found.
    fn add_path(&mut self, graph: &Graph, section: Section) {
        let mut node = section.to;
        while node != section.from {
            let step = self.step_to[node];
            if step.is_back {
                self.paths_on[step.edge] -= 1;
            } else {
                self.paths_on[step.edge] += 1;
            }
            node = step.start(graph);
        }
    }
}
