//! Rows that are inserted: a statement of many, into a table with one of the indexes, or with none.

use super::{Bench, Class};
use crate::Row;
use pg_bloom_benches::median;

/// Statements for each index. The first one, after a checkpoint, is not counted.
const STATEMENTS: usize = 4;
/// One statement inserts one row for so many of the table of text.
const SHARE: usize = 50;

impl Bench {
    /// Rows that are inserted into a table, if one statement of each index inserts the same.
    pub(super) fn inserted(&self) -> usize {
        STATEMENTS * self.statement()
    }

    /// Rows of a statement.
    fn statement(&self) -> usize {
        (self.lines.len() / SHARE).max(1)
    }

    /// Seconds and bytes of WAL of a row.
    fn insert(&mut self, class: &Class, nth: usize) -> [f64; 2] {
        let (name, rows) = (class.name, self.statement());
        let wal = "SELECT (pg_current_wal_insert_lsn() - '0/0')::float8";
        let before: f64 = self.database.value(wal);
        let seconds = self.database.time(&format!(
            "INSERT INTO {name} SELECT id, value FROM more_{name} WHERE id >= {} AND id < {}",
            nth * rows,
            (nth + 1) * rows
        ));
        [seconds, self.database.value::<f64>(wal) - before].map(|all| all / rows as f64)
    }

    /// The same rows with our index, with GIN, and with none, in turn.
    pub(super) fn inserts(&mut self, class: &Class) -> Vec<Row> {
        let mut measured = [(); 3].map(|()| [Vec::new(), Vec::new()]);
        self.database.run("CHECKPOINT");
        for nth in 0..STATEMENTS {
            for (index, [seconds, wal]) in
                [class.ours(), class.gin(), String::new()].iter().zip(&mut measured)
            {
                self.database.only(class.name, index);
                let [took, wrote] = self.insert(class, nth);
                if nth > 0 {
                    seconds.push(took);
                    wal.push(wrote);
                }
            }
        }
        let [ours, gin, none] =
            measured.map(|of_index| of_index.map(|mut values| median(&mut values)));
        let is_text = !class.classes[0].is_empty();
        let against = format!("{}, fastupdate off", class.gin_title());
        let work = format!(
            "a row's insertion ({} a statement), beyond none, {}",
            self.statement(),
            class.title
        );
        let bar = if is_text { 1.0 / 5.0 } else { 1.0 / 3.0 };
        let mut rows = vec![Row::timed(
            work,
            against.clone(),
            &mut [ours[0] - none[0]],
            &mut [gin[0] - none[0]],
            bar,
        )];
        if is_text {
            let (our_wal, their_wal) = (ours[1] - none[1], gin[1] - none[1]);
            let show = |bytes: f64| format!("{bytes:.0} bytes");
            rows.push(Row {
                work: format!("its WAL, beyond none, {}", class.title),
                against,
                ours: show(our_wal),
                theirs: show(their_wal),
                ratio: our_wal / their_wal,
                bar: 1.0 / 2.0,
            });
        }
        rows
    }
}
