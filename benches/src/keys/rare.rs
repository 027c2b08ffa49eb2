//! A part that one row has: with the plan that the planner takes, and by a sequential scan.

use super::{Bench, Class, mean};
use crate::{ROUNDS, Row};

/// Lookups of a round with the index, and without.
const LOOKUPS: [usize; 2] = [20, 2];

impl Bench {
    /// Rare parts of a class.
    pub(super) fn rare(&mut self, class: &Class) -> Row {
        self.database.only(class.name, &class.ours());
        let conditions =
            format!("SELECT array(({}) LIMIT {})", class.rare, (ROUNDS + 1) * LOOKUPS[0]);
        let conditions: Vec<String> = self.database.value(&conditions);
        let queries: Vec<String> = conditions
            .iter()
            .map(|condition| format!("SELECT count(*) FROM {} WHERE {condition}", class.name))
            .collect();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for (round, queries) in queries.chunks(LOOKUPS[0]).enumerate() {
            let with = mean(&self.ask(queries));
            self.database.run("SET enable_bitmapscan = off");
            let without = mean(&self.ask(&queries[..LOOKUPS[1].min(queries.len())]));
            self.database.run("RESET enable_bitmapscan");
            if round > 0 {
                ours.push(with);
                theirs.push(without);
            }
        }
        let (column, _) = conditions[0].split_once('\'').expect("a condition has a literal");
        let work = format!("`{column}'…'`, one row of {}, mean", self.lines.len() / class.share);
        Row::timed(work, "a sequential scan", &mut ours, &mut theirs, 1.0 / 50.0)
    }
}
