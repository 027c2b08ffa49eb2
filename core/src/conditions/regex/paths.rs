//! What all paths through a graph require: the windows that a text must have, whichever path it
//! takes.
//!
//! The graph is taken apart in turn:
//!
//! 1. Into **stretches**, one after the other: between two nodes next to each other that all paths
//!    go through. All that any stretch requires is required.
//! 2. A stretch into **branches**, beside each other: parts that have only its two ends in common,
//!    and edges from one end to the other. What one of the branches requires is required. A branch
//!    has stretches again.
//! 3. A stretch that has no branches, since its paths cross, by **cuts**: few edges with windows of
//!    which each path has one. Of one of them is required what all paths through this edge require.
//!
//! ```text
//! expression   to (read|write) [xy]ab?c    (of words of a few letters, so that windows are letters here)
//!
//! nodes        . ─t→ . ─o→ . ─ → A ─r→ . ─e→ . ─a→ . ─d→ B ─ → C ─x→ D ─a→ E ─────c→ F
//!                                 └─w→ . ─r→ . ─i→ . ─t→ . ─e→ ┘   └─y→ ┘   └─b→ . ─c→ ┘
//! stretches    t   o      (r e a d  or  w r i t e)              (x or y)  a  (c or b c)
//! required     t, o, and r e a d or w r i t e, and x or y, and a, c
//!
//! expression   (ab|cd)(ef|gh)     every path has one of a, c, and one of f, h:
//!              . ─a→ . ─be→ . ─f→ .        cut a, c:   ab or cd
//!               \      └─bg→ . ─h→ .       cut f, h:   ef or gh
//!                └c→ . ─de→ …             (be, bg, de, dg: a cut of four, with all that is beside them)
//! ```
//!
//! A path that goes in circles contains one that doesn't, whose windows the text has as well. So
//! only paths without circles are looked at.

use super::cut::CutSearch;
use super::graph::Graph;
use super::requirement::Requirement;
use super::section::{Section, Sections, Stretch};
use crate::conditions::Window;
use crate::memory;

/// How deep branches may be within branches. What is deeper requires nothing.
const MOST_DEPTH: usize = 24;
/// The most edges of a cut.
const MOST_EDGES_OF_CUT: usize = 64;
/// The most cuts of crossing paths.
const MOST_CUTS: usize = 8;
/// How many edges may be looked at to take crossing paths apart, and how many of them a window that
/// is required counts for.
const MOST_WORK: usize = 1 << 19;
const WORK_OF_WINDOW: usize = 256;

/// Returns what a text must have that takes any path from a graph's start to its end. Requires
/// nothing of a graph without an end.
pub fn requirement(graph: &Graph) -> Requirement {
    let Some(end) = graph.end else {
        return Requirement::default();
    };
    let sections = Sections::of(graph);
    let whole = sections.to(end);
    let mut paths = Paths {
        sections,
        cut_search: CutSearch::of(graph),
        is_in_crossing: false,
        work_left: 0,
    };
    paths.requirement(whole, 0).unwrap_or_default()
}

struct Paths<'g> {
    sections: Sections<'g>,
    cut_search: CutSearch,
    /// Whether crossing paths are being taken apart.
    is_in_crossing: bool,
    work_left: usize,
}

impl Paths<'_> {
    /// Returns what all paths of a section require; `None` if it has no path.
    fn requirement(&mut self, section: Section, depth: usize) -> Option<Requirement> {
        let stretches = self.sections.stretches(section)?;
        let of_stretches = stretches
            .iter()
            .map(|stretch| self.requirement_of_stretch(stretch, depth));
        Some(Requirement::all_of(memory::collect(of_stretches)))
    }

    fn requirement_of_stretch(&mut self, stretch: &Stretch, depth: usize) -> Requirement {
        let mut alternatives = Vec::new();
        for &edge in &stretch.direct_edges {
            memory::push(&mut alternatives, Requirement::of_windows(self.windows([edge])));
        }
        if alternatives.iter().any(Requirement::is_nothing) || depth >= MOST_DEPTH {
            return Requirement::default();
        }

        let branches = self.sections.branches(stretch);
        if let [only_branch] = branches[..]
            && alternatives.is_empty()
        {
            return self.requirement_of_crossing_paths(only_branch, depth);
        }
        for branch in branches {
            if let Some(requirement) = self.requirement(branch, depth + 1) {
                if requirement.is_nothing() {
                    return requirement;
                }
                memory::push(&mut alternatives, requirement);
            }
        }
        Requirement::one_of(alternatives)
    }

    /// Returns the windows of some edges.
    fn windows(&self, edges: impl IntoIterator<Item = usize>) -> Vec<Window> {
        let mut windows = Vec::new();
        for edge in edges {
            for &window in &self.sections.graph.edges[edge].windows {
                memory::push(&mut windows, window);
            }
        }
        windows
    }

    /// Returns what all paths of a section require that has neither stretches nor branches.
    fn requirement_of_crossing_paths(&mut self, section: Section, depth: usize) -> Requirement {
        let is_outermost = !self.is_in_crossing;
        if is_outermost {
            self.is_in_crossing = true;
            self.work_left = MOST_WORK;
        }
        let edges = self.sections.edges_of(section);
        let by_ways = self.requirement_by_ways(section, &edges, depth);
        if is_outermost {
            self.is_in_crossing = false;
            self.work_left = MOST_WORK;
        }

        match by_ways {
            Some(requirement) => requirement,
            // What is returned here counts for nothing: the outermost section has failed, too.
            None if !is_outermost => Requirement::default(),
            None => {
                self.sections.put_back(section, &edges);
                self.requirement_by_cuts(section, &edges)
            }
        }
    }

    /// Returns what the paths of a section require by the edge of its narrowest cut that they go
    /// through: one alternative for each edge, with all that is required before it and behind it.
    ///
    /// If paths cross again and again, there are as many alternatives as ways through all of the
    /// crossings. Returns `None` if these are too many.
    fn requirement_by_ways(
        &mut self,
        section: Section,
        edges: &[usize],
        depth: usize,
    ) -> Option<Requirement> {
        let graph = self.sections.graph;
        let has_windows = |edge: usize| !graph.edges[edge].windows.is_empty();
        let cut = self.narrowest_cut(section, edges, has_windows)?;
        let mut alternatives = Vec::new();
        for edge in cut {
            let mut parts = vec![Requirement::of_windows(self.windows([edge]))];
            let before = self.sections.before(edge, section);
            let behind = self.sections.behind(edge, section);
            for part in [before, behind].into_iter().flatten() {
                self.work_left = self.work_left.checked_sub(edges.len())?;
                parts.extend(self.requirement(part, depth + 1));
                self.sections.put_back(section, edges);
            }
            let alternative = Requirement::all_of(parts);
            self.work_left = self.work_left.checked_sub(alternative.size() * WORK_OF_WINDOW)?;
            memory::push(&mut alternatives, alternative);
        }
        Some(Requirement::one_of(alternatives))
    }

    /// Returns what the paths of a section require by a few cuts, each of which requires what all
    /// paths through one of its edges have.
    ///
    /// The edges of a cut are none that an earlier one has required, so that it says something new.
    fn requirement_by_cuts(&mut self, section: Section, edges: &[usize]) -> Requirement {
        let graph = self.sections.graph;
        let mut is_required: Vec<bool> = memory::zeroed(graph.edges.len());
        let mut of_cuts = Vec::new();
        'cuts: for _ in 0..MOST_CUTS {
            let is_new = |edge: usize| !graph.edges[edge].windows.is_empty() && !is_required[edge];
            let Some(cut) = self.narrowest_cut(section, edges, is_new) else {
                break;
            };
            let mut alternatives = Vec::new();
            for edge in cut {
                let Some(work_left) = self.work_left.checked_sub(2 * edges.len()) else {
                    break 'cuts;
                };
                self.work_left = work_left;
                let edges = self.edges_of_all_paths_through(edge, section);
                for &edge in &edges {
                    is_required[edge] = true;
                }
                let windows = self.windows(edges);
                memory::push(&mut alternatives, Requirement::of_windows(windows));
            }
            memory::push(&mut of_cuts, Requirement::one_of(alternatives));
        }
        Requirement::all_of(of_cuts)
    }

    /// Returns the edges that each path of a section has that has this one.
    fn edges_of_all_paths_through(&mut self, edge: usize, section: Section) -> Vec<usize> {
        let before = self.sections.before(edge, section);
        let behind = self.sections.behind(edge, section);
        let mut edges = vec![edge];
        for part in [before, behind].into_iter().flatten() {
            for stretch in self.sections.stretches(part).unwrap_or_default() {
                if let Some(edge) = stretch.only_edge() {
                    memory::push(&mut edges, edge);
                }
            }
        }
        edges
    }

    /// Returns the narrowest cut of a section; `None` if there is none, or no work left to find it.
    fn narrowest_cut(
        &mut self,
        section: Section,
        edges: &[usize],
        can_be_cut: impl Fn(usize) -> bool,
    ) -> Option<Vec<usize>> {
        let sections = &self.sections;
        let cut =
            self.cut_search
                .narrowest_cut(sections, section, edges, MOST_EDGES_OF_CUT, can_be_cut);
        let num_searches = cut.as_ref().map_or(MOST_EDGES_OF_CUT, Vec::len) + 1;
        self.work_left = self.work_left.checked_sub(num_searches * edges.len())?;
        cut
    }
}
