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
//! expression to (read|write) [xy]ab?c (of words of a few letters, so that windows are letters
//! here)
//!
//! nodes        . ─t→ . ─o→ . ─ → A ─r→ . ─e→ . ─a→ . ─d→ B ─ → C ─x→ D ─a→ E ─────c→ F
//!                                 └─w→ . ─r→ . ─i→ . ─t→ . ─e→ ┘   └─y→ ┘   └─b→ . ─c→ ┘
//! stretches    t   o      (r e a d  or  w r i t e)              (x or y)  a  (c or b c)
//! required     t, o, and r e a d or w r i t e, and x or y, and a, c
//!
//! expression   (ab|cd)(ef|gh)     every path has one of a, c, and one of f, h:
//!              . ─a→ . ─be→ . ─f→ .        cut a, c:   ab or cd
//!               \      └─bg→ . ─h→ .       cut f, h:   ef or gh
//! └c→ . ─de→ … (be, bg, de, dg: a cut of four, with all that is beside them)
//! ```
//!
//! A path that goes in circles contains one that doesn't, whose windows the text has as well. So
//! only paths without circles are looked at.

use super::cut::CutSearch;
use super::graph::Graph;
use super::requirement::Requirement;
use super::section::{Section, Sections, Stretch};
use crate::conditions::Window;
use crate::memory::List;

/// How deep branches may be within branches. What is deeper requires nothing.
const MOST_DEPTH: usize = 24;
/// The most edges of a cut.
const MOST_EDGES_OF_CUT: usize = 64;
/// The most cuts of crossing paths.
const MOST_CUTS: usize = 8;
/// The most work to take crossing paths apart, in edges that are looked at.
const MOST_WORK: usize = 1 << 19;
/// The work of one window that is required, in edges: the condition gets it, and it is looked up.
const WORK_OF_WINDOW: usize = 256;

/// Returns what a text must contain to match a regular expression, given the graph of the
/// expression: *windows*, pieces of a few neighbouring characters that an index can look up.
///
/// A text that matches takes a path from the start of the graph to its end, and has the windows of
/// all edges of the path. Required is what a text has whichever path it takes. If there is no path,
/// no text matches; then nothing is required, which is never wrong.
pub fn requirement(graph: &Graph) -> Requirement {
    let Some(end) = graph.end else {
        return Requirement::default();
    };
    let sections = Sections::of_whole(graph);
    // The only section that is not a part of another one: from the start of the graph to its end.
    let outermost_section = sections.whole_graph(end);
    let outermost_depth = 0;
    let mut search = RequirementSearch {
        sections,
        cut_search: CutSearch::for_graph(graph),
        // Only crossing paths take work that is limited.
        has_work_limit: false,
        work_left: 0,
    };
    let requirement = search.requirement(outermost_section, outermost_depth);
    requirement.unwrap_or_default()
}

/// The search for what all paths through a graph require, with the work that it may still take.
struct RequirementSearch<'g> {
    sections: Sections<'g>,
    cut_search: CutSearch,
    /// Whether the search is within [`RequirementSearch::with_work_limit`]: it takes a section with
    /// crossing paths apart.
    has_work_limit: bool,
    /// How many edges may still be looked at if there is a limit.
    work_left: usize,
}

impl RequirementSearch<'_> {
    /// Returns what a text must contain to match a *section*: a part of the expression's graph,
    /// between two nodes, through which a text takes one of several paths. `None` if the section
    /// has no path.
    ///
    /// The section is divided at the nodes that all of its paths go through, into *stretches*.
    /// Paths go through all stretches, one after the other. So the text must have what each stretch
    /// requires. `depth` is how many sections this one is nested in.
    fn requirement(&mut self, section: Section, depth: usize) -> Option<Requirement> {
        let stretches = self.sections.stretches(section)?;
        let mut requirements = List::new();
        for stretch in &stretches {
            requirements.push(self.requirement_of_stretch(stretch, depth));
        }
        Some(Requirement::all_of(requirements))
    }

    /// Returns what a text must contain to match a *stretch*: a part of the expression's graph,
    /// between two nodes that a text passes, with no node between them that it must pass.
    ///
    /// From one end to the other a text may take one of the edges that connect the ends directly,
    /// or a path in one of the *branches*: sections beside each other, which have only the two ends
    /// in common. Each of these is an alternative. As soon as one requires nothing, the stretch
    /// requires nothing.
    ///
    /// `depth` is how many sections the stretch is nested in. Beyond [`MOST_DEPTH`] nothing is
    /// required, which is never wrong.
    fn requirement_of_stretch(&mut self, stretch: &Stretch, depth: usize) -> Requirement {
        let mut alternatives = List::new();
        for &edge in &stretch.direct_edges {
            alternatives.push(Requirement::of_windows(self.windows([edge])));
        }
        if alternatives.iter().any(Requirement::is_nothing) || depth >= MOST_DEPTH {
            return Requirement::default();
        }

        let branches = self.sections.branches(stretch);
        // A stretch that is all one branch can't be divided further this way: its paths cross.
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
                alternatives.push(requirement);
            }
        }
        Requirement::one_of(alternatives)
    }

    /// Returns the windows of some edges.
    fn windows(&self, edges: impl IntoIterator<Item = usize>) -> List<Window> {
        let mut windows = List::new();
        for edge in edges {
            for &window in &self.sections.graph.edges[edge].windows {
                windows.push(window);
            }
        }
        windows
    }

    /// Returns what a text must contain to match a *section*: a part of the expression's graph,
    /// between two nodes, through which a text takes one of several paths. The paths must *cross*:
    /// they can be divided neither into parts that follow each other nor into parts beside each
    /// other.
    ///
    /// So the section is divided by *cuts* instead: lists of edges of which each path has at least
    /// one. There are two ways:
    ///
    /// 1. By one cut. It finds more, but may take exponential work: the parts before and behind the
    ///    cut may have crossing paths again, and then this function is called within itself. The
    ///    outermost call sets a limit of work for all of them.
    /// 2. By several cuts, if the first way finds no cut or reaches the limit. It may find less
    ///    than all paths require. That is never wrong: more texts have what is required. Only the
    ///    outermost call does this. A call within it requires nothing then, which is never wrong
    ///    either.
    ///
    /// `depth` is how many sections this one is nested in.
    fn requirement_of_crossing_paths(&mut self, section: Section, depth: usize) -> Requirement {
        let edges = self.sections.edges_of(section);
        let is_outermost_call = !self.has_work_limit;
        if !is_outermost_call {
            // This call is part of the first way of an outer one, which has set the limit.
            let by_one_cut = self.requirement_by_one_cut(section, &edges, depth);
            return by_one_cut.unwrap_or_default();
        }

        let by_one_cut =
            self.with_work_limit(|search| search.requirement_by_one_cut(section, &edges, depth));
        if let Some(requirement) = by_one_cut {
            return requirement;
        }

        // The first way may have moved nodes of the section to smaller sections.
        self.sections.put_back(section, &edges);
        self.with_work_limit(|search| search.requirement_by_several_cuts(section, &edges))
    }

    /// Calls `find`, in which the search may look at up to [`MOST_WORK`] edges, and returns its
    /// result.
    fn with_work_limit<T>(&mut self, find: impl FnOnce(&mut Self) -> T) -> T {
        self.has_work_limit = true;
        self.work_left = MOST_WORK;
        let found = find(self);
        self.has_work_limit = false;
        found
    }

    /// Returns what a text must contain to match a section, a part of the expression's graph
    /// between two nodes: what it contains whichever path it takes from one to the other.
    ///
    /// The section is divided by its smallest *cut*: the fewest edges of which each path has at
    /// least one. They are edges with *windows*, the pieces of text that an index can look up.
    /// Example, with one letter as the window of each edge:
    ///
    /// ```text
    ///       ┌─a→ 1 ─c→ 3 ─g→┐        edges between: c from 1 to 3, d from 1 to 4,
    /// start ┤       ╳       ├ end                   e from 2 to 3, f from 2 to 4
    ///       └─b→ 2 ─f→ 4 ─h→┘
    ///
    /// cut           a, b
    /// through a     a, and from 1 to the end: c and g, or d and h
    /// through b     b, and from 2 to the end: e and g, or f and h
    /// required      what is required through a, or what is required through b
    /// ```
    ///
    /// `edges` must be all edges of the section, and `depth` is how many sections it is nested in.
    ///
    /// Returns `None` if there is no cut of at most [`MOST_EDGES_OF_CUT`] edges, or if the limit of
    /// work is reached. Nodes of the section may be in smaller sections then.
    fn requirement_by_one_cut(
        &mut self,
        section: Section,
        edges: &[usize],
        depth: usize,
    ) -> Option<Requirement> {
        let graph = self.sections.graph;
        let has_windows = |edge: usize| !graph.edges[edge].windows.is_empty();
        let cut = self.narrowest_cut(section, edges, has_windows)?;

        let mut alternatives = List::new();
        for cut_edge in cut {
            let alternative = self.requirement_through_edge(cut_edge, section, edges, depth)?;
            // Each window will be looked up, which counts as looking at many edges.
            self.use_work(alternative.size() * WORK_OF_WINDOW)?;
            alternatives.push(alternative);
        }
        Some(Requirement::one_of(alternatives))
    }

    /// Returns what a text must contain if its path through a section (a part of the expression's
    /// graph between two nodes) has the edge `edge`: the windows of this edge, and what the parts
    /// of the section before and behind it require.
    ///
    /// `edges` must be all edges of the section, and `depth` is how many sections it is nested in.
    /// Returns `None` if the limit of work is reached.
    fn requirement_through_edge(
        &mut self,
        edge: usize,
        section: Section,
        edges: &[usize],
        depth: usize,
    ) -> Option<Requirement> {
        let mut required = List::from([Requirement::of_windows(self.windows([edge]))]);
        let before = self.sections.before(edge, section);
        let behind = self.sections.behind(edge, section);
        for part in [before, behind].into_iter().flatten() {
            // put_back looks at all edges.
            self.use_work(edges.len())?;
            if let Some(requirement) = self.requirement(part, depth + 1) {
                required.push(requirement);
            }
            // Taking the part apart has moved nodes to smaller sections. The next part may have the
            // same nodes, and needs them in this section.
            self.sections.put_back(section, edges);
        }
        Some(Requirement::all_of(required))
    }

    /// Returns part of what a text must contain to match a section, a part of the expression's
    /// graph between two nodes. Takes less work than
    /// [`requirement_by_one_cut`](Self::requirement_by_one_cut), and may find less.
    ///
    /// Finds up to [`MOST_CUTS`] *cuts*: lists of edges of which each path through the section has
    /// at least one. A text must have what each of the cuts requires. Example, with one letter as
    /// the *window* (the piece of text) of each edge:
    ///
    /// ```text
    ///       ┌─a→ 1 ─c→ 3 ─g→┐        edges between: c from 1 to 3, d from 1 to 4,
    /// start ┤       ╳       ├ end                   e from 2 to 3, f from 2 to 4
    ///       └─b→ 2 ─f→ 4 ─h→┘
    ///
    /// cut a, b          a or b
    /// cut g, h          g or h
    /// cut c, d, e, f    a c g or a d h or b e g or b f h      all paths with c have a, c and g
    /// ```
    ///
    /// Stops early when the limit of work is reached, and returns what the cuts so far require.
    /// `edges` must be all edges of the section.
    fn requirement_by_several_cuts(&mut self, section: Section, edges: &[usize]) -> Requirement {
        let mut is_used: List<bool> = List::zeroed(self.sections.graph.edges.len());
        let mut requirements = List::new();
        for _ in 0..MOST_CUTS {
            let Some(requirement) = self.requirement_by_next_cut(section, edges, &mut is_used)
            else {
                break;
            };
            requirements.push(requirement);
        }
        Requirement::all_of(requirements)
    }

    /// Finds one more *cut* of a section: the fewest edges of which each path through the section
    /// has at least one. Returns what a text must contain according to this cut. Its path has one
    /// of these edges, so each of them gives an alternative: the windows (pieces of text) of all
    /// edges that are on every path through this one.
    ///
    /// `is_used` says, for each edge of the graph, whether an alternative has its windows. Such
    /// edges can't be in the cut: they would mostly lead to what earlier cuts require. The function
    /// adds the edges of the new alternatives. `edges` must be all edges of the section.
    ///
    /// Returns `None` if there is no cut of at most [`MOST_EDGES_OF_CUT`] edges that have windows
    /// and aren't used, or if the limit of work is reached.
    fn requirement_by_next_cut(
        &mut self,
        section: Section,
        edges: &[usize],
        is_used: &mut [bool],
    ) -> Option<Requirement> {
        let graph = self.sections.graph;
        let can_be_cut = |edge: usize| !graph.edges[edge].windows.is_empty() && !is_used[edge];
        let cut = self.narrowest_cut(section, edges, can_be_cut)?;

        let mut alternatives = List::new();
        for cut_edge in cut {
            // The parts before and behind the edge are looked at.
            self.use_work(2 * edges.len())?;
            let unavoidable_edges = self.edges_of_all_paths_through(cut_edge, section);
            for &edge in &unavoidable_edges {
                is_used[edge] = true;
            }
            let windows = self.windows(unavoidable_edges);
            alternatives.push(Requirement::of_windows(windows));
        }
        Some(Requirement::one_of(alternatives))
    }

    /// Counts work, in edges that are looked at. Returns `None`, and counts nothing, if less than
    /// that is left.
    fn use_work(&mut self, num_edges: usize) -> Option<()> {
        self.work_left = self.work_left.checked_sub(num_edges)?;
        Some(())
    }

    /// Returns the edges that are on every path of a section through the edge `edge`, that one
    /// included. They are found in the two parts of the section, before and behind the edge: a
    /// *stretch*, between two nodes that all paths go through, is such an edge if it consists of
    /// one.
    fn edges_of_all_paths_through(&mut self, edge: usize, section: Section) -> List<usize> {
        let before = self.sections.before(edge, section);
        let behind = self.sections.behind(edge, section);
        let mut edges = List::from([edge]);
        for part in [before, behind].into_iter().flatten() {
            for stretch in self.sections.stretches(part).unwrap_or_default() {
                if let Some(unavoidable) = stretch.only_edge() {
                    edges.push(unavoidable);
                }
            }
        }
        edges
    }

    /// Returns the smallest *cut* of a section: the fewest edges of which each path through the
    /// section has at least one. Only edges for which `can_be_cut` is true may be in the cut.
    /// `edges` must be all edges of the section.
    ///
    /// The work of the search is taken from `work_left`, in edges that were looked at. Returns
    /// `None` if it took more than was left, though a cut was found; or if there is no cut of at
    /// most [`MOST_EDGES_OF_CUT`] edges.
    fn narrowest_cut(
        &mut self,
        section: Section,
        edges: &[usize],
        can_be_cut: impl Fn(usize) -> bool,
    ) -> Option<List<usize>> {
        let most = MOST_EDGES_OF_CUT;
        let cut = self
            .cut_search
            .narrowest_cut(&self.sections, section, edges, most, can_be_cut);

        // One path has been found for each edge of the cut, and one more was searched for.
        // Without a cut, `most + 1` paths were found. Each search may look at all edges.
        let num_searches = cut.as_ref().map_or(most, List::len) + 1;
        self.use_work(num_searches * edges.len())?;
        cut
    }
}
