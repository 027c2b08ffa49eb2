//! The errors for rows of a set that are damaged, missing or hidden, or that aren't stored as they
//! are given.

use super::table::{Set, retried};
use crate::pg::call::{Error, Result, SqlState};
use crate::pg::sql::{Parameter, Sees, execute};

impl Set {
    /// Returns the error for a row that can't be parsed. `damage` says why.
    #[cold]
    pub fn damaged(&self, bucket: i64, damage: &str) -> Error {
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
