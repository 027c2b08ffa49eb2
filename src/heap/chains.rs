//! HOT chains: versions of a row on one page of which indexes know only the first line.
//!
//! ```text
//! line  1 ──▶ 4 ──▶ 6          three versions; indexes have line 1, the root of lines 1, 4 and 6
//!       2                      a row that was not updated on its page, its own root
//!       3 (redirect) ──▶ 5     the older version was removed; indexes still have line 3
//! ```
//!
//! A version leads to the next one if that was written by the transaction that replaced it. That
//! check matters: if the transaction failed, another row's version may use the line by now.
//!
//! PostgreSQL has a function for roots, `heap_get_root_tuples`, which trusts the page. On a damaged
//! one it may follow a chain that leads back into itself forever, while the page is locked, and
//! write behind the end of its result.

use super::bytes::{Line, MOST_ROWS, NextVersion, PageBytes, Version};

/// The roots of all row versions of a page.
pub struct Chains {
    /// By line: the root of the version there, 0 if no chain leads to it. Lines and roots count
    /// from 1, and no line is 0.
    roots: [u16; MOST_ROWS + 1],
    /// By root: whether a line of its chain is in another chain too, or twice in this one.
    shares_line: [bool; MOST_ROWS + 1],
    /// What is wrong with a chain that PostgreSQL can't follow safely; no sound page has one.
    fatal_damage: Option<&'static str>,
}

impl Chains {
    /// Finds the HOT chains of a page. If a row is updated on its page and no indexed column
    /// changes, indexes get no entry for the new version: the old one leads to it, by its line
    /// number. Such versions are a *chain*. Indexes have only the line of its first version, the
    /// *root*.
    ///
    /// Example: lines 1, 4 and 6 are versions of one row, so each has the root 1. A line that is in
    /// a chain already isn't followed again, so this ends on any page, also on a damaged one.
    pub fn of(page: &PageBytes) -> Chains {
        let mut chains = Chains {
            roots: [0; MOST_ROWS + 1],
            shares_line: [false; MOST_ROWS + 1],
            fatal_damage: None,
        };
        for line in 1..=page.lines().min(MOST_ROWS) {
            match page.line(line) {
                Line::Redirect(target) => {
                    // PostgreSQL has removed the first version, and with it the number of the
                    // transaction that wrote the next one.
                    let next = NextVersion { line: target, inserted_by: None };
                    chains.follow(page, line as u16, Some(next));
                }
                Line::Row { start, .. } => {
                    let version = page.version(start);
                    if !version.is_heap_only && chains.add(line, line as u16) {
                        chains.follow(page, line as u16, version.next);
                    }
                }
                Line::Unused | Line::Dead | Line::Damaged => {}
            }
        }
        chains
    }

    /// Returns by which line an index finds the version on a line: `None` if no line leads there,
    /// or if lines of the chain are in another one too, so that its root is not certain.
    pub fn root_of(&self, line: u16) -> Option<u16> {
        let root = *self.roots.get(usize::from(line))?;
        let is_certain = root != 0 && !self.shares_line[usize::from(root)];
        is_certain.then_some(root)
    }

    /// Returns what is wrong with the page, if PostgreSQL would follow one of its chains forever or
    /// out of the page.
    pub fn fatal_damage(&self) -> Option<&'static str> {
        self.fatal_damage
    }

    /// Adds the versions that follow the first one of a chain. `root` is the line of the first one,
    /// and `next` is what that says of the version after it: its line, and the transaction that
    /// wrote it. Ends at a version that was removed, or whose line another row uses by now, and at
    /// a line that is in a chain already. Notes fatal damage if a version leads to a line that no
    /// page has: PostgreSQL would read out of bounds.
    fn follow(&mut self, page: &PageBytes, root: u16, mut next: Option<NextVersion>) {
        while let Some(link) = next {
            let is_line = (1..=MOST_ROWS).contains(&usize::from(link.line));
            if !is_line {
                self.fatal_damage = Some("a row version leads to a line that no page has");
                return;
            }
            let Some(version) = version_at(page, &link) else {
                return;
            };
            if !self.add(link.line.into(), root) {
                return;
            }
            next = version.next;
        }
    }

    /// Adds a line to the chain with this root, and returns true. If the line is in a chain
    /// already, returns false and notes that the roots of both chains are uncertain; if it is in
    /// this chain, that is fatal damage, since PostgreSQL would follow the chain forever.
    ///
    /// A line that is twice in one chain is damage, whoever wrote its versions: a version is older
    /// than its next one, and a line that is used again gets a newer version than it had. So along
    /// a chain versions only get newer.
    fn add(&mut self, line: usize, root: u16) -> bool {
        let root_so_far = self.roots[line];
        if root_so_far == 0 {
            self.roots[line] = root;
            return true;
        }
        for root in [root, root_so_far] {
            self.shares_line[usize::from(root)] = true;
        }
        if root_so_far == root {
            self.fatal_damage = Some("a chain of row versions leads back into itself");
        }
        false
    }
}

/// Returns the version that another one leads to, if it is there and was written by the right
/// transaction. Where only the table of multixacts says which one that is, any will do: at worst
/// the line is in two chains then. The line may be behind the last one of the page, where
/// PostgreSQL looks too.
fn version_at(page: &PageBytes, link: &NextVersion) -> Option<Version> {
    let Line::Row { start, .. } = page.line(link.line.into()) else {
        return None;
    };
    let version = page.version(start);
    let is_next = link
        .inserted_by
        .is_none_or(|transaction| transaction == version.inserted_by);
    is_next.then_some(version)
}
