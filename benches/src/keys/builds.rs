//! Sizes, and time of builds.

use super::{Bench, Class, TEXT};
use crate::Row;

/// Builds of ours and of another in turn.
const BUILDS: usize = 3;

/// A row that compares sizes.
fn sizes(work: String, against: &str, [ours, theirs]: [i64; 2], bar: f64) -> Row {
    let show = |bytes: i64| format!("{:.2} MB", bytes as f64 / 1e6);
    let ratio = ours as f64 / theirs as f64;
    Row {
        work,
        against: against.into(),
        ours: show(ours),
        theirs: show(theirs),
        ratio,
        bar,
    }
}

impl Bench {
    /// Builds both indexes of text in turn.
    pub(super) fn builds_of_text(&mut self) -> Vec<Row> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..BUILDS {
            self.database
                .run("DROP INDEX IF EXISTS message_ours, message_gin; CHECKPOINT");
            let [our_time, their_time] = self.build_both(&TEXT);
            ours.push(our_time);
            theirs.push(their_time);
        }
        let built = [&TEXT.ours(), &TEXT.gin(), TEXT.name].map(|name| self.bytes(name));
        let [our_bytes, gin_bytes, heap_bytes] = built;
        let work = format!("size, {} {}", self.lines.len(), TEXT.title);
        let gin = TEXT.gin_title();
        vec![
            sizes(work.clone(), &gin, [our_bytes, gin_bytes], TEXT.size),
            sizes(work, "the table", [our_bytes, heap_bytes], 0.035),
            Row::timed("CREATE INDEX, log lines", gin, &mut ours, &mut theirs, 0.1),
        ]
    }

    /// Builds both indexes of a class once, and compares their sizes.
    pub(super) fn build(&mut self, class: &Class) -> Row {
        self.build_both(class);
        let both = [class.ours(), class.gin()].map(|name| self.bytes(&name));
        let work = format!("size, {} {}", self.lines.len() / class.share, class.title);
        sizes(work, &class.gin_title(), both, class.size)
    }

    /// Seconds of the builds of ours and of GIN.
    pub(super) fn build_both(&mut self, class: &Class) -> [f64; 2] {
        let [ours, gin] = class.using();
        [(class.ours(), ours), (class.gin(), gin)].map(|(name, using)| {
            self.database
                .time(&format!("CREATE INDEX {name} ON {} {using}", class.name))
        })
    }

    /// A build while the table may be written to: its validation inserts each row again.
    pub(super) fn concurrently(&mut self, class: &Class) -> Row {
        let [using, _] = class.using();
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for _ in 0..BUILDS {
            for (how, times) in [("CONCURRENTLY", &mut with), ("", &mut without)] {
                times.push(
                    self.database
                        .time(&format!("CREATE INDEX {how} second ON {} {using}", class.name)),
                );
                self.database.run("DROP INDEX second");
            }
        }
        let work = format!("CREATE INDEX CONCURRENTLY, {}", class.title);
        Row::timed(work, "CREATE INDEX", &mut with, &mut without, 10.0)
    }
}
