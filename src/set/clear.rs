//! `bloom_set_clear`, and the rows that a set without elements has.

use super::table::{Purpose, Set};
use crate::pg::call::{Call, Outcome, Result};
use crate::pg::sql::{Parameter, Sees, connected, execute};
use crate::pg::value::varlena::PgBuffer;
use pg_bloom_core::memory::List;
use pg_bloom_core::set::{Row, SetForm, tree};
use pgrx::pg_sys::Datum;

/// Implements `bloom_set_clear(set)`: makes a set empty, whatever rows its table has. NULL for
/// NULL.
///
/// The table is emptied by TRUNCATE, which locks out all other sessions until the transaction ends,
/// and also removes rows that can't be rows of a set: damaged ones, and rows of tables that inherit
/// from this one. Then the rows of a set without elements are inserted.
///
/// Fails for a table that isn't a set that the user may truncate and insert into, and with 27000 if
/// it has other rows afterwards, because of a trigger, a rule or a policy.
fn clear(call: &Call) -> Outcome {
    let Some(oid) = call.oid(0) else {
        return Ok(None);
    };
    let set = Set::open(call, oid, Purpose::Clear)?;
    connected(|| {
        execute(&[b"TRUNCATE TABLE ", &set.table], &[], Sees::Now, |_| Ok(()))?;
        let inserted = insert_first_rows(&set.table, set.form)?;
        set.check_name()?;
        if inserted != first_buckets().count() as u64 {
            return Err(set.changed_otherwise());
        }
        if set.may_insert_others {
            set.check_has_only_first_rows()?;
        }
        Ok(())
    })?;

    // What the session has noted about the set's earlier rows no longer holds.
    set.depth.set(Some(tree::FIRST_DEPTH));
    set.has_warned.set(false);
    let void = Datum::from(0);
    Ok(Some(void))
}

/// Returns the buckets of the rows that a set without elements has.
fn first_buckets() -> impl Iterator<Item = u64> {
    1 << tree::FIRST_DEPTH..2 << tree::FIRST_DEPTH
}

/// Inserts the rows that a set without elements has into a table without rows, and returns how many
/// rows PostgreSQL inserted. `table` is the table's name as SQL writes it, and `form` says how the
/// rows' hashes are stored.
///
/// The statement returns no rows, so that the caller needs no right to read the table. Fails if the
/// statement does.
pub fn insert_first_rows(table: &[u8], form: SetForm) -> Result<u64> {
    let buckets: List<u64> = first_buckets().collect();
    let rows: List<PgBuffer> =
        first_buckets().map(|bucket| Row::empty(bucket).write(form)).collect();
    let statement: [&[u8]; 3] = [
        b"INSERT INTO ",
        table,
        b" (bucket, hashes) SELECT * FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS n",
    ];
    let values = [Parameter::I64s(&buckets), Parameter::Byteas(&rows)];
    execute(&statement, &values, Sees::Now, |_| Ok(()))
}

impl Set {
    /// Checks that the table has the rows of a set without elements, and no others: one row for
    /// each of [`first_buckets`], without hashes. Triggers, rules and partitions may store other
    /// rows than a statement inserts, so all rows are read back.
    ///
    /// Must be called while connected. Fails with 27000 if the table has other rows, and if the
    /// caller may not read it.
    fn check_has_only_first_rows(&self) -> Result<()> {
        // Rows are read in the order of their buckets, which is also that of the expected ones.
        let mut expected_buckets = first_buckets();
        self.each_page(Sees::Now, |rows| {
            for row in &rows {
                let is_expected = expected_buckets.next() == Some(row.bucket);
                if !is_expected || !row.entries.is_empty() {
                    return Err(self.changed_otherwise());
                }
            }
            Ok(())
        })?;

        let has_all = expected_buckets.next().is_none();
        if has_all { Ok(()) } else { Err(self.changed_otherwise()) }
    }
}

pg_functions! {
    bloom_set_clear => clear;
}
