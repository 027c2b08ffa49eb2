//! Reading and writing the rows of a set by its statements, and the errors for wrong rows.

use super::statements::Changes;
use super::table::{Set, retried};
use crate::pg::call::{Error, Result, SqlState, interrupt};
use crate::pg::sql::{Parameter, Prepared, ResultRow, Sees, execute};
use crate::pg::value::time;
use crate::pg::value::varlena::PgBuffer;
use pg_bloom_core::memory;
use pg_bloom_core::set::{Row, tree};
use pgrx::pg_sys;

/// The most rows that a statement asks for: a few hundred kilobytes.
pub const MOST_ROWS_AT_ONCE: usize = 1024;

/// Rows to write and rows to delete, all of which the transaction has locked.
#[derive(Default)]
pub struct Replacement {
    /// The buckets whose rows are deleted.
    pub deleted: Vec<u64>,
    /// Rows that replace the row of their own bucket.
    pub updated: Vec<Row>,
    /// Rows of buckets that have no row yet.
    pub inserted: Vec<Row>,
}

impl Replacement {
    /// Adds the rows into which [`Row::split`] has divided the row of a bucket.
    ///
    /// Several rows are inserted, each for its own bucket, and the divided row is deleted. A single
    /// row wasn't divided, and updates the row of its bucket.
    pub fn add_split(&mut self, bucket: u64, rows: Vec<Row>) {
        if rows.len() > 1 {
            memory::push(&mut self.deleted, bucket);
            for row in rows {
                memory::push(&mut self.inserted, row);
            }
        } else {
            for row in rows {
                memory::push(&mut self.updated, row);
            }
        }
    }

    /// Takes out the deletions and insertions that a move can do instead, and returns these moves.
    ///
    /// An inserted row takes the place of a deleted one if both begin with the same hash. Example:
    /// row 5 was divided, so 5 is deleted, and 10 and 11 are inserted. Row 10 covers the first half
    /// of 5: it takes the place of 5, and only 11 is still inserted.
    fn take_moves(&mut self) -> Vec<Move> {
        self.deleted.sort_unstable_by_key(|&bucket| tree::first_hash(bucket));

        let mut moves = Vec::new();
        let mut still_inserted = Vec::new();
        for row in std::mem::take(&mut self.inserted) {
            let first_hash = tree::first_hash(row.bucket);
            let found = self
                .deleted
                .binary_search_by_key(&first_hash, |&bucket| tree::first_hash(bucket));
            match found {
                Ok(index) => {
                    let old_bucket = self.deleted.remove(index);
                    memory::push(&mut moves, Move { old_bucket, row });
                }
                Err(_) => memory::push(&mut still_inserted, row),
            }
        }
        self.inserted = still_inserted;
        moves
    }
}

/// An UPDATE of a row of the table that gives it another bucket.
struct Move {
    old_bucket: u64,
    /// The row as it is afterwards, with its new bucket.
    row: Row,
}

impl Set {
    /// Executes a statement that returns buckets and hashes, while connected, and calls `each` with
    /// every row. Returns how many rows there were.
    ///
    /// Errors: those of the statement and of `each`; 23502 for a null value; XX001 for a damaged
    /// row; 40001 if the table was renamed or altered meanwhile.
    pub fn each_row(
        &self,
        statement: &Prepared,
        values: &[Parameter<'_>],
        sees: Sees,
        mut each: impl FnMut(Row) -> Result<()>,
    ) -> Result<u64> {
        let count = statement.execute(values, sees, |result| each(self.parse_row(result)?))?;
        self.check_name()?;
        Ok(count)
    }

    /// Parses the bucket and the hashes in a row of a statement's result.
    /// Errors: 23502 for a null value; XX001 for a damaged row.
    fn parse_row(&self, result: &ResultRow) -> Result<Row> {
        let bucket = result.number(1, pg_sys::INT8OID)?;
        let hashes = result.value(2, pg_sys::BYTEAOID)?;
        let (Some(bucket), Some(hashes)) = (bucket, hashes) else {
            let message = "row of a filter set has a null value";
            return Err(Error::new(SqlState::ERRCODE_NOT_NULL_VIOLATION, message));
        };

        let row = Row::parse(self.form, bucket, &hashes)
            .map_err(|damage| self.damaged(bucket, &damage))?;
        hashes.free();
        Ok(row)
    }

    /// Executes a statement with one parameter, while connected, and returns its rows in their
    /// order. Errors: those of the statement; 23502 for a null value; XX001 for a damaged row;
    /// 40001 if the table was renamed or altered meanwhile.
    pub fn fetch_rows(
        &self,
        statement: &Prepared,
        value: Parameter<'_>,
        sees: Sees,
    ) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        self.each_row(statement, &[value], sees, |row| {
            memory::push(&mut rows, row);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Calls `each` with all rows of the set, while connected: some at a time, in the order of
    /// their buckets, and the two halves of a bucket together. Returns the sum of what `each`
    /// returns. Fails if reading or `each` does.
    pub fn each_page(
        &self,
        sees: Sees,
        mut each: impl FnMut(Vec<Row>) -> Result<usize>,
    ) -> Result<usize> {
        let mut sum = 0;
        // No bucket of a set is negative. If the table has one, it must be read to be reported.
        let mut first_bucket = i64::MIN;
        loop {
            let mut rows = self.fetch_rows(&self.page, Parameter::I64(first_bucket), sees)?;
            let is_last_page = rows.len() < MOST_ROWS_AT_ONCE;
            if !is_last_page {
                // An even bucket is a left half. Its right half comes next, so both are left to
                // the next page.
                rows.pop_if(|row| row.bucket % 2 == 0);
            }
            let Some(last_row) = rows.last() else {
                return Ok(sum);
            };

            first_bucket = last_row.bucket as i64 + 1;
            sum += each(rows)?;
            if is_last_page {
                return Ok(sum);
            }
            interrupt::check_for_interrupts();
        }
    }

    /// Deletes, updates and inserts rows of the set, while connected. The transaction must have
    /// locked the rows that are deleted and updated.
    ///
    /// In a plain table, the row of a bucket that is split isn't deleted, but becomes the row of
    /// its first half, by an UPDATE that PostgreSQL stores in the same page. Space that a DELETE
    /// frees is used only after VACUUM, so a set that doubles would leave all its old pages empty.
    /// In a partitioned table the first half may belong to another partition. Sessions that wait
    /// for a row fail if it moves to another partition, so there the row is deleted.
    ///
    /// Errors: 27000 if a trigger, a rule or a policy skipped a row or stored something else; those
    /// of the statements.
    pub fn replace(&self, mut replacement: Replacement) -> Result<()> {
        let changes = self.changes()?;
        // Partitions, rules and triggers may store rows other than the statements return.
        let may_store_others = self.is_changed_after;

        if !may_store_others {
            let moves = replacement.take_moves();
            self.move_rows(&changes.replace, &moves)?;
        }
        // Deletions come before insertions: if another session has split the same row, this one
        // fails with a conflict that can be retried, not for a duplicate key.
        self.delete_rows(&changes.delete, &replacement.deleted)?;
        self.write_rows(&changes.insert, &replacement.inserted)?;
        self.write_rows(&changes.update, &replacement.updated)?;

        if may_store_others {
            self.check_stored(&replacement)?;
        }
        Ok(())
    }

    /// Updates each row that moves, found by its old bucket, to its new bucket and hashes.
    /// Errors: 27000 if the table stores other rows; those of the statement.
    fn move_rows(&self, statement: &Prepared, moves: &[Move]) -> Result<()> {
        if moves.is_empty() {
            return Ok(());
        }
        let rows: Vec<&Row> = memory::collect(moves.iter().map(|moved| &moved.row));
        let new_buckets = buckets_of(&rows);
        let new_hashes = self.stored_hashes_of(&rows);
        let old_buckets: Vec<u64> = memory::collect(moves.iter().map(|moved| moved.old_bucket));
        let values = [
            Parameter::I64s(&new_buckets),
            Parameter::Byteas(&new_hashes),
            Parameter::I64s(&old_buckets),
        ];
        self.execute_for_rows(statement, &values, rows)
    }

    /// Deletes the rows of these buckets. Errors: 27000 if not all are deleted; those of the
    /// statement.
    fn delete_rows(&self, statement: &Prepared, buckets: &[u64]) -> Result<()> {
        if buckets.is_empty() {
            return Ok(());
        }
        let deleted_rows = self.fetch_rows(statement, Parameter::I64s(buckets), Sees::Now)?;
        if deleted_rows.len() != buckets.len() {
            return Err(self.changed_otherwise());
        }
        Ok(())
    }

    /// Executes a statement that inserts or updates rows, given their buckets and hashes.
    /// Errors: 27000 if the table stores other rows; those of the statement.
    fn write_rows(&self, statement: &Prepared, rows: &[Row]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let rows: Vec<&Row> = memory::collect(rows.iter());
        let buckets = buckets_of(&rows);
        let hashes = self.stored_hashes_of(&rows);
        let values = [Parameter::I64s(&buckets), Parameter::Byteas(&hashes)];
        self.execute_for_rows(statement, &values, rows)
    }

    /// Returns the bytes that the table stores for the hashes of each row.
    fn stored_hashes_of(&self, rows: &[&Row]) -> Vec<PgBuffer> {
        memory::collect(rows.iter().map(|row| row.write(self.form)))
    }

    /// Checks that the table has the updated and inserted rows, and none of the deleted ones, by
    /// reading them back. Triggers, rules and partitions may store rows other than the statements
    /// returned. Errors: 27000 if they did; those of reading.
    fn check_stored(&self, written: &Replacement) -> Result<()> {
        let written_rows = written.updated.iter().chain(&written.inserted);
        let rows: Vec<&Row> = memory::collect(written_rows);
        let mut buckets = buckets_of(&rows);
        for &bucket in &written.deleted {
            memory::push(&mut buckets, bucket);
        }
        self.execute_for_rows(&self.read, &[Parameter::I64s(&buckets)], rows)
    }

    /// Executes a statement, while connected, that must return exactly `expected_rows`, in any
    /// order. Errors: 27000 if it returns others; those of the statement.
    fn execute_for_rows(
        &self,
        statement: &Prepared,
        values: &[Parameter<'_>],
        mut expected_rows: Vec<&Row>,
    ) -> Result<()> {
        expected_rows.sort_unstable_by_key(|row| row.bucket);
        let count = self.each_row(statement, values, Sees::Now, |returned| {
            let found = expected_rows.binary_search_by_key(&returned.bucket, |row| row.bucket);
            match found {
                Ok(index) if *expected_rows[index] == returned => Ok(()),
                _ => Err(self.changed_otherwise()),
            }
        })?;
        if count != expected_rows.len() as u64 {
            return Err(self.changed_otherwise());
        }
        Ok(())
    }

    /// Returns the statements that lock and change rows. They are prepared when a session first
    /// changes the set. Errors: those of preparing them.
    pub fn changes(&self) -> Result<&Changes> {
        if let Some(changes) = self.changes.get() {
            return Ok(changes);
        }
        let changes = Changes::new(&self.table)?;
        Ok(self.changes.get_or_init(|| changes))
    }

    /// Returns the present time as a number of time slices; 0 for a set that doesn't forget.
    pub fn now(&self) -> i64 {
        self.slice.map_or(0, |slice| time::now().div_euclid(slice))
    }

    /// Returns the error for a row that can't be parsed. `damage` says why.
    #[cold]
    fn damaged(&self, bucket: i64, damage: &str) -> Error {
        let message =
            format!("row for bucket {bucket} of filter set {} is damaged", self.quoted_name());
        Error::new(SqlState::ERRCODE_DATA_CORRUPTED, message)
            .detail(format!("As a row of this set: {damage}."))
            .hint("Restore the row from a backup, or make a new set.")
    }

    /// Fails because neither a bucket nor one above or below it has a row that the call sees.
    ///
    /// Must be called while connected, with the snapshot by which the rows were read. The error is
    /// 40001 if the table got its rows after that snapshot, and otherwise 55000.
    #[cold]
    pub fn fail_for_missing_row<T>(&self, bucket: u64) -> Result<T> {
        if self.has_visible_rows(Sees::CallingQuery)? {
            return Err(self.missing_row(bucket));
        }
        if self.has_visible_rows(Sees::Catalogs)? {
            let set = self.quoted_name();
            return Err(retried(
                "truncation",
                format!("Filter set {set} was cleared, truncated or rewritten after the snapshot."),
            ));
        }
        let error = if self.has_active_policies()? {
            self.missing_row(bucket)
        } else {
            self.without_rows()
        };
        Err(error)
    }

    /// Returns whether a snapshot sees any row of the table. Must be called while connected.
    fn has_visible_rows(&self, sees: Sees) -> Result<bool> {
        let statement: [&[u8]; 3] = [b"SELECT FROM ", &self.table, b" LIMIT 1"];
        let count = execute(&statement, &[], sees, |_| Ok(()))?;
        Ok(count > 0)
    }

    /// Returns whether row-level security applies to the caller, so that rows may be hidden. Must
    /// be called while connected.
    fn has_active_policies(&self) -> Result<bool> {
        const ASK: &[u8] = b"SELECT WHERE pg_catalog.row_security_active($1)";
        let count = execute(&[ASK], &[Parameter::Oid(self.oid)], Sees::Catalogs, |_| Ok(()))?;
        Ok(count > 0)
    }

    /// Returns the error for a bucket without a row, in a table that has other rows, or whose rows
    /// policies may hide.
    fn missing_row(&self, bucket: u64) -> Error {
        let message = format!("filter set {} has no row for bucket {bucket}", self.quoted_name());
        Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .detail("Neither that row nor one above or below it is visible. If it was deleted, the elements in it are lost.")
            .hint("Restore the row from a backup, make a new set, change the policy that hides the row, or \
                empty the set with bloom_set_clear.")
    }

    /// Returns the error for a table without any row.
    fn without_rows(&self) -> Error {
        let message = format!("filter set {} has no rows", self.quoted_name());
        Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .detail("Its table was truncated or copied without its rows, or is unlogged and was emptied by a crash. \
                A set without elements has rows.")
            .hint("Make it an empty set with bloom_set_clear, or restore its rows from a backup.")
    }

    /// Returns the error for two rows that cover the same hashes: rows of two buckets, or of one.
    #[cold]
    pub fn ambiguous(&self, bucket: u64, other: u64) -> Error {
        let message = format!("filter set {} has two rows for the same hashes", self.quoted_name());
        Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .detail(format!("They are those for the buckets {} and {}.", bucket.min(other), bucket.max(other)))
            .hint("Delete the row that was not in the set before, also from tables that inherit from it.")
    }

    /// Returns the error for a row that is visible, but that can't be locked.
    #[cold]
    pub fn cannot_lock(&self, bucket: u64) -> Error {
        let message = format!(
            "row for bucket {bucket} of filter set {} cannot be locked",
            self.quoted_name()
        );
        Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .detail(
                "It is visible, but a row-level security policy or another extension left it out.",
            )
            .hint("Let the policies for SELECT and UPDATE be the same.")
    }

    /// Returns the error for rows that a statement didn't store or return as they were given to it.
    #[cold]
    pub fn changed_otherwise(&self) -> Error {
        let message = format!(
            "rows of filter set {} were not stored as they were written",
            self.quoted_name()
        );
        Error::new(SqlState::ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION, message)
            .detail("A trigger, a rule or a row-level security policy of the table skipped a row or changed it.")
            .hint("Let it leave the columns of the filter set as they are.")
    }
}

fn buckets_of(rows: &[&Row]) -> Vec<u64> {
    memory::collect(rows.iter().map(|row| row.bucket))
}
