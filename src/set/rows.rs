//! Executing the statements about a set, and what is wrong with rows.

use super::statements::Changes;
use super::table::Set;
use crate::pg::call::{Error, Result, SqlState, interrupt};
use crate::pg::sql::{Parameter, Prepared, ResultRow, Sees};
use crate::pg::value::time;
use crate::pg::value::varlena::PgBuffer;
use pg_bloom_core::memory;
use pg_bloom_core::set::{Row, tree};
use pgrx::pg_sys;

/// The most rows that a statement asks for: a few hundred kilobytes.
pub const MOST_ROWS_AT_ONCE: usize = 1024;

impl Set {
    /// Executes a statement that returns buckets and hashes, and calls `each` with these rows,
    /// while connected. Errors: those of the statement and of `each`; XX001 for a damaged row;
    /// 40001 if the table was renamed or altered.
    pub fn rows(
        &self,
        statement: &Prepared,
        values: &[Parameter<'_>],
        sees: Sees,
        mut each: impl FnMut(Row) -> Result<()>,
    ) -> Result<u64> {
        let each_row = |result: &ResultRow| {
            let columns = (result.number(1, pg_sys::INT8OID)?, result.value(2, pg_sys::BYTEAOID)?);
            let (Some(bucket), Some(hashes)) = columns else {
                return Err(Error::new(
                    SqlState::ERRCODE_NOT_NULL_VIOLATION,
                    "row of a filter set has a null value",
                ));
            };
            let row = Row::parse(self.form, bucket, &hashes)
                .map_err(|damage| self.damaged(bucket, &damage))?;
            hashes.free();
            each(row)
        };
        let count = statement.execute(values, sees, each_row)?;
        self.check_name()?;
        Ok(count)
    }

    /// The rows that a statement returns for a value, as they come.
    pub fn list(&self, statement: &Prepared, value: Parameter<'_>, sees: Sees) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        self.rows(statement, &[value], sees, |row| {
            memory::push(&mut rows, row);
            Ok(())
        })?;
        Ok(rows)
    }

    /// The sum of what `each` returns for all rows by their buckets, some at a time, halves of a
    /// bucket together.
    pub fn pages(
        &self,
        sees: Sees,
        mut each: impl FnMut(Vec<Row>) -> Result<usize>,
    ) -> Result<usize> {
        // Buckets that no set has are damage.
        let (mut from, mut sum) = (i64::MIN, 0);
        loop {
            let mut rows = self.list(&self.page, Parameter::I64(from), sees)?;
            let is_last = rows.len() < MOST_ROWS_AT_ONCE;
            // The other half may be in the next page.
            rows.pop_if(|row| !is_last && row.bucket & 1 == 0);
            let Some(last) = rows.last() else {
                return Ok(sum);
            };
            from = last.bucket as i64 + 1;
            sum += each(rows)?;
            if is_last {
                return Ok(sum);
            }
            interrupt::check_for_interrupts();
        }
    }

    /// Replaces rows that the transaction has locked by others, while connected.
    ///
    /// In a plain table, a row that begins with the same hash as one that goes is an UPDATE of it:
    /// PostgreSQL stores it in the same page. What a DELETE frees it uses only after VACUUM, so a
    /// set that doubles would leave all its pages empty. But a session that waits for a row that
    /// moves to another partition fails. Errors: 27000 if a trigger, a rule or a policy skipped a
    /// row or stored something else; those of the statements.
    pub fn replace(
        &self,
        mut gone: Vec<u64>,
        updated: &[Row],
        mut inserted: Vec<Row>,
    ) -> Result<()> {
        let (changes, is_plain) = (self.changes()?, !self.is_changed_after);
        gone.sort_unstable_by_key(|&bucket| tree::first_hash(bucket));
        let place_of = |row: &Row| {
            gone.binary_search_by_key(&tree::first_hash(row.bucket), |&b| tree::first_hash(b))
        };
        let moved: Vec<Row> =
            memory::collect(inserted.extract_if(.., |row| is_plain && place_of(row).is_ok()));
        let places: Vec<u64> =
            memory::collect(moved.iter().filter_map(|row| place_of(row).ok()).map(|i| gone[i]));
        gone.retain(|bucket| !places.contains(bucket));
        self.write(&changes.replace, &moved, &places)?;
        if !gone.is_empty() {
            let deleted =
                self.rows(&changes.delete, &[Parameter::I64s(&gone)], Sees::Now, |_| Ok(()))?;
            if deleted != gone.len() as u64 {
                return Err(self.changed_otherwise());
            }
        }
        // The deletion comes first: if another session did the same, it fails as a conflict, not as
        // a duplicate key.
        self.write(&changes.insert, &inserted, &[])?;
        self.write(&changes.update, updated, &[])?;
        if is_plain {
            return Ok(());
        }
        let written: Vec<&Row> = memory::collect(updated.iter().chain(&inserted));
        let all: Vec<u64> =
            memory::collect(written.iter().map(|row| row.bucket).chain(gone.iter().copied()));
        self.expect(&self.read, &[Parameter::I64s(&all)], written)
    }

    /// Writes rows by a statement, in the places of others if it takes these.
    fn write(&self, statement: &Prepared, rows: &[Row], places: &[u64]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let hashes: Vec<PgBuffer> = memory::collect(rows.iter().map(|row| row.write(self.form)));
        let buckets: Vec<u64> = memory::collect(rows.iter().map(|row| row.bucket));
        let values = [
            Parameter::I64s(&buckets),
            Parameter::Byteas(&hashes),
            Parameter::I64s(places),
        ];
        self.expect(
            statement,
            if places.is_empty() { &values[..2] } else { &values },
            memory::collect(rows.iter()),
        )
    }

    /// Executes a statement that must return exactly these rows.
    fn expect(
        &self,
        statement: &Prepared,
        values: &[Parameter<'_>],
        mut rows: Vec<&Row>,
    ) -> Result<()> {
        rows.sort_unstable_by_key(|row| row.bucket);
        let count = self.rows(statement, values, Sees::Now, |row| {
            let found = rows.binary_search_by_key(&row.bucket, |row| row.bucket);
            if found.is_ok_and(|found| *rows[found] == row) {
                Ok(())
            } else {
                Err(self.changed_otherwise())
            }
        })?;
        if count == rows.len() as u64 { Ok(()) } else { Err(self.changed_otherwise()) }
    }

    pub fn changes(&self) -> Result<&Changes> {
        if let Some(changes) = self.changes.get() {
            return Ok(changes);
        }
        let changes = Changes::new(&self.table)?;
        Ok(self.changes.get_or_init(|| changes))
    }

    /// The present slice of time; 0 in a set that doesn't forget.
    pub fn now(&self) -> i64 {
        self.slice.map_or(0, |slice| time::now().div_euclid(slice))
    }

    #[cold]
    fn damaged(&self, bucket: i64, damage: &str) -> Error {
        let message =
            format!("row for bucket {bucket} of filter set {} is damaged", self.quoted_name());
        Error::new(SqlState::ERRCODE_DATA_CORRUPTED, message)
            .detail(format!("As a row of this set: {damage}."))
            .hint("Restore the row from a backup, or make a new set.")
    }

    /// The error for a hash that no row covers.
    #[cold]
    pub fn missing(&self, bucket: u64) -> Error {
        let message = format!("filter set {} has no row for bucket {bucket}", self.quoted_name());
        Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .detail("Neither that row nor one above or below it is visible. If it was deleted, the elements in it are lost.")
            .hint("If the table was truncated or rewritten meanwhile, run that again. Else restore the row from a \
                backup, make a new set, or change the policy that hides the row. An unlogged set loses its rows in a crash.")
    }

    /// The error for two rows that cover the same hashes.
    #[cold]
    pub fn ambiguous(&self, a: u64, b: u64) -> Error {
        let message = format!("filter set {} has two rows for the same hashes", self.quoted_name());
        Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .detail(format!("They are those for the buckets {} and {}.", a.min(b), a.max(b)))
            .hint("Delete the row that was not in the set before, also from tables that inherit from it.")
    }

    /// The error for a row that is visible, but that a statement doesn't lock.
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

    #[cold]
    fn changed_otherwise(&self) -> Error {
        let message = format!(
            "rows of filter set {} were not stored as they were written",
            self.quoted_name()
        );
        Error::new(SqlState::ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION, message)
            .detail("A trigger, a rule or a row-level security policy of the table skipped a row or changed it.")
            .hint("Let it leave the columns of the filter set as they are.")
    }
}
