//! Reading and writing the rows of a set by its statements.

use super::statements::{Changes, prepared_for_disk};
use super::table::Set;
use crate::pg::call::{Error, Result, SqlState, interrupt};
use crate::pg::sql::{Parameter, Prepared, ResultRow, Sees, with_settings};
use crate::pg::storage::announce;
use crate::pg::value::varlena::PgBuffer;
use pg_bloom_core::memory::List;
use pg_bloom_core::set::{Row, tree};
use pgrx::pg_sys;

/// The most rows that a statement asks for: a few hundred kilobytes.
pub const MOST_ROWS_AT_ONCE: usize = 1024;

/// Rows to write and rows to delete, all of which the transaction has locked.
#[derive(Default)]
pub struct Replacement {
    /// The buckets whose rows are deleted.
    pub deleted: List<u64>,
    /// Rows that replace the row of their own bucket.
    pub updated: List<Row>,
    /// Rows of buckets that have no row yet.
    pub inserted: List<Row>,
}

impl Replacement {
    /// Adds the result of [`Row::split`], which divides a row of a set if it is too large to be
    /// stored. `bucket` is the number of the row that was split, and `rows` are the rows that take
    /// its place.
    ///
    /// If there are several, the old row is deleted, and its parts are inserted under their own
    /// bucket numbers. A single row wasn't divided: it updates the row with its bucket.
    pub fn add_split(&mut self, bucket: u64, rows: List<Row>) {
        if rows.len() > 1 {
            self.deleted.push(bucket);
            for row in rows {
                self.inserted.push(row);
            }
        } else {
            for row in rows {
                self.updated.push(row);
            }
        }
    }

    /// Returns the buckets of the rows that must be locked before they are written.
    pub fn buckets_to_lock(&self) -> List<u64> {
        let updated = self.updated.iter().map(|row| row.bucket);
        self.deleted.iter().copied().chain(updated).collect()
    }

    /// Takes out pairs of a deletion and an insertion, in place of which one UPDATE can give the
    /// stored row another bucket, and returns these pairs. The lists `deleted` and `inserted` keep
    /// the others.
    ///
    /// A *bucket* is the number of a row. Each row has the hashes of a range, and an inserted row
    /// takes the place of a deleted one if the ranges of both begin with the same hash. Example:
    /// row 5 was divided, so 5 is deleted, and 10 and 11 are inserted. Row 10 covers the first half
    /// of 5, so it takes the place of 5, and only 11 is still inserted.
    fn take_bucket_changes(&mut self) -> List<BucketChange> {
        self.deleted.sort_unstable_by_key(|&bucket| tree::first_hash(bucket));

        let mut bucket_changes = List::new();
        let mut still_inserted = List::new();
        for row in std::mem::take(&mut self.inserted) {
            let first_hash = tree::first_hash(row.bucket);
            let found = self
                .deleted
                .binary_search_by_key(&first_hash, |&bucket| tree::first_hash(bucket));
            match found {
                Ok(index) => {
                    let old_bucket = self.deleted.remove(index);
                    bucket_changes.push(BucketChange { old_bucket, row });
                }
                Err(_) => still_inserted.push(row),
            }
        }
        self.inserted = still_inserted;
        bucket_changes
    }
}

/// An UPDATE of a row of the table that gives it another bucket and other hashes.
struct BucketChange {
    old_bucket: u64,
    /// The row as it is afterwards, with its new bucket.
    row: Row,
}

impl Set {
    /// Executes a prepared statement that returns rows of the set, as pairs (bucket, hashes), and
    /// calls `visit` with each of them. `values` are the statement's parameters, and `sees` says
    /// which snapshot it uses. Returns how many rows there were.
    ///
    /// Must be called within [`connected`](crate::pg::sql::connected). Afterwards the table's name
    /// is checked: if the table was renamed, the rows may be another table's.
    ///
    /// Fails if the statement or `visit` does, with 23502 for a null value, with XX001 for a
    /// damaged row, and with 40001 if the table was renamed or altered in the meantime.
    pub fn each_row(
        &self,
        statement: &Prepared,
        values: &[Parameter<'_>],
        sees: Sees,
        mut visit: impl FnMut(Row) -> Result<()>,
    ) -> Result<u64> {
        let count = statement.execute(values, sees, |result| visit(self.parse_row(result)?))?;
        self.check_name()?;
        Ok(count)
    }

    /// Reads the rows of the set that have these bucket numbers, with the snapshot of the calling
    /// query, and calls `visit` with each of them, in any order. `may_be_several` says whether
    /// there may be more than one.
    ///
    /// There are two statements for this. One reads row by row, which takes the least time if the
    /// table is in memory. The other one announces the pages of all rows, so that a disk reads them
    /// side by side, in hardly more time than one of them. Which one to use is guessed: it is the
    /// second one if the rows that were read last had to be read from disk.
    ///
    /// Must be called within [`connected`](crate::pg::sql::connected). Fails as [`Set::each_row`]
    /// does.
    pub fn each_row_of(
        &self,
        buckets: &[u64],
        may_be_several: bool,
        visit: impl FnMut(Row) -> Result<()>,
    ) -> Result<()> {
        let pages_before = announce::pages_read_from_disk();
        if may_be_several && self.has_bitmap_scans && self.was_on_disk.get() {
            self.each_row_from_disk(buckets, visit)?;
        } else {
            let values = [Parameter::I64s(buckets)];
            self.each_row(&self.read_statement, &values, Sees::CallingQuery, visit)?;
        }

        let is_on_disk = announce::pages_read_from_disk() > pages_before;
        // A single row that is in memory says nothing about others: it may be there by chance.
        if is_on_disk || may_be_several {
            self.was_on_disk.set(is_on_disk);
        }
        Ok(())
    }

    /// Reads rows by their buckets as [`Set::each_row_of`] does, by the statement that announces
    /// the pages of all rows to the operating system before it reads the first of them.
    fn each_row_from_disk(
        &self,
        buckets: &[u64],
        visit: impl FnMut(Row) -> Result<()>,
    ) -> Result<()> {
        // By this setting PostgreSQL decides how many pages it announces. `None` if it needn't be
        // raised.
        let concurrency = announce::raised_io_concurrency();
        let setting = concurrency
            .as_deref()
            .map(|value| (c"effective_io_concurrency", value));
        let statement = self.disk_read_statement()?;
        with_settings(setting.as_slice(), || {
            self.each_row(statement, &[Parameter::I64s(buckets)], Sees::CallingQuery, visit)
        })?;
        Ok(())
    }

    /// Returns the statement that reads rows by their buckets from disk. It is prepared when it is
    /// first needed. Fails if preparing it does.
    fn disk_read_statement(&self) -> Result<&Prepared> {
        if let Some(statement) = self.disk_read_statement.get() {
            return Ok(statement);
        }
        let statement = prepared_for_disk(&self.table)?;
        Ok(self.disk_read_statement.get_or_init(|| statement))
    }

    /// Parses one row of a set from a statement's result, whose first column is the bucket, the
    /// row's number, and whose second one has the row's hashes in their stored form. Fails with
    /// 23502 for a null value, and with XX001 for a damaged row.
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

    /// Executes a prepared statement that returns rows of the set, and returns these in the
    /// statement's order. `value` is its only parameter, and `sees` says which snapshot it uses.
    ///
    /// Must be called within [`connected`](crate::pg::sql::connected). Fails if the statement does,
    /// with 23502 for a null value, with XX001 for a damaged row, and with 40001 if the table was
    /// renamed in the meantime.
    pub fn fetch_rows(
        &self,
        statement: &Prepared,
        value: Parameter<'_>,
        sees: Sees,
    ) -> Result<List<Row>> {
        let mut rows = List::new();
        self.each_row(statement, &[value], sees, |row| {
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Reads all rows of the set, and calls `visit` with lists of up to 1,024 of them, in the order
    /// of their buckets, the numbers of rows. `sees` says which snapshot the statements use.
    ///
    /// The two halves of a divided row have the buckets 2b and 2b + 1, and are always in one list,
    /// so that `visit` may join them. Between two lists the call can be cancelled.
    ///
    /// Must be called within [`connected`](crate::pg::sql::connected). Fails if reading or `visit`
    /// does.
    pub fn each_page(
        &self,
        sees: Sees,
        mut visit: impl FnMut(List<Row>) -> Result<()>,
    ) -> Result<()> {
        // No bucket of a set is negative. If the table has one, it must be read to be reported.
        let mut first_bucket = i64::MIN;
        loop {
            let mut rows =
                self.fetch_rows(&self.page_statement, Parameter::I64(first_bucket), sees)?;
            let is_last_page = rows.len() < MOST_ROWS_AT_ONCE;
            if !is_last_page {
                // A full list may end between two halves: a row with an even bucket is a left half,
                // whose right half comes next. The next statement reads both.
                rows.pop_if(|row| row.bucket % 2 == 0);
            }
            let Some(last_row) = rows.last() else {
                return Ok(());
            };

            first_bucket = last_row.bucket as i64 + 1;
            visit(rows)?;
            if is_last_page {
                return Ok(());
            }
            interrupt::check_for_interrupts();
        }
    }

    /// Deletes, updates and inserts rows of the set. The transaction must have locked the rows that
    /// are deleted and updated. Must be called within [`connected`](crate::pg::sql::connected).
    ///
    /// Fails if a statement does, and with 27000 if a trigger, a rule or a policy skipped a row or
    /// stored something else.
    pub fn replace(&self, mut replacement: Replacement) -> Result<()> {
        let changes = self.change_statements()?;

        // Of a row that was divided, an UPDATE makes the row of its first half, which can stay in
        // the same page. The space of a deleted row would be used only after VACUUM.
        //
        // Not if the table has partitions, triggers or rules: the first half may belong to another
        // partition, and sessions that wait for a row fail if it moves to another partition.
        if !self.may_store_other_rows {
            let bucket_changes = replacement.take_bucket_changes();
            self.change_buckets(&changes.change_bucket, &bucket_changes)?;
        }

        // Deletions come before insertions: if another session has split the same row, this one
        // fails with a conflict that can be retried, not for a duplicate key.
        self.delete_rows(&changes.delete, &replacement.deleted)?;
        self.write_rows(&changes.insert, &replacement.inserted)?;
        self.write_rows(&changes.update, &replacement.updated)?;

        // Triggers, rules and partitions may have stored other rows than the statements returned.
        if self.may_store_other_rows {
            self.check_stored(&replacement)?;
        }
        Ok(())
    }

    /// Executes one UPDATE, the `statement`, that gives each of these rows, found by its old bucket
    /// number, a new bucket number and new hashes. Does nothing without rows. Fails if the
    /// statement does, and with 27000 if the table stores other rows.
    fn change_buckets(&self, statement: &Prepared, bucket_changes: &[BucketChange]) -> Result<()> {
        if bucket_changes.is_empty() {
            return Ok(());
        }
        let rows: List<&Row> = bucket_changes.iter().map(|change| &change.row).collect();
        let new_buckets = buckets_of(&rows);
        let new_hashes = self.stored_hashes_of(&rows);
        let old_buckets: List<u64> =
            bucket_changes.iter().map(|change| change.old_bucket).collect();
        let values = [
            Parameter::I64s(&new_buckets),
            Parameter::Byteas(&new_hashes),
            Parameter::I64s(&old_buckets),
        ];
        self.execute_for_rows(statement, &values, rows)
    }

    /// Deletes the rows with these bucket numbers by one DELETE, the `statement`. Does nothing
    /// without buckets. Fails if the statement does, and with 27000 if it doesn't delete all of the
    /// rows.
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

    /// Executes `statement`, an INSERT or UPDATE, for some rows at once: its parameters are an
    /// array of the rows' bucket numbers, and one of their hashes in stored form. Does nothing
    /// without rows. Fails if the statement does, and with 27000 if the table stores other rows.
    fn write_rows(&self, statement: &Prepared, rows: &[Row]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let rows: List<&Row> = rows.iter().collect();
        let buckets = buckets_of(&rows);
        let hashes = self.stored_hashes_of(&rows);
        let values = [Parameter::I64s(&buckets), Parameter::Byteas(&hashes)];
        self.execute_for_rows(statement, &values, rows)
    }

    /// Returns the bytes that the table stores for the hashes of each row.
    fn stored_hashes_of(&self, rows: &[&Row]) -> List<PgBuffer> {
        rows.iter().map(|row| row.write(self.form)).collect()
    }

    /// Reads rows back that were just written, and checks that the table has the updated and
    /// inserted ones as they were given, and none of the deleted ones. Triggers, rules and
    /// partitions may store rows other than the statements returned. Fails with 27000 if they did,
    /// and if reading fails.
    fn check_stored(&self, written: &Replacement) -> Result<()> {
        let written_rows = written.updated.iter().chain(&written.inserted);
        let rows: List<&Row> = written_rows.collect();
        let mut buckets = buckets_of(&rows);
        for &bucket in &written.deleted {
            buckets.push(bucket);
        }
        self.execute_for_rows(&self.read_statement, &[Parameter::I64s(&buckets)], rows)
    }

    /// Executes a prepared statement with these parameters, and checks that it returns exactly
    /// `expected_rows`, in any order. Must be called within
    /// [`connected`](crate::pg::sql::connected). Fails if the statement does, and with 27000 if it
    /// returns other rows.
    fn execute_for_rows(
        &self,
        statement: &Prepared,
        values: &[Parameter<'_>],
        mut expected_rows: List<&Row>,
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
    /// changes the set. Fails if preparing them does.
    pub fn change_statements(&self) -> Result<&Changes> {
        if let Some(changes) = self.changes.get() {
            return Ok(changes);
        }
        let changes = Changes::new(&self.table)?;
        Ok(self.changes.get_or_init(|| changes))
    }
}

/// Returns the buckets of rows, in the same order.
fn buckets_of(rows: &[&Row]) -> List<u64> {
    rows.iter().map(|row| row.bucket).collect()
}
