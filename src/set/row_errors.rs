//! The errors for rows of a set that are damaged, missing or hidden, or that aren't stored as they
//! are given.

use super::table::{Set, retried};
use crate::pg::call::{Error, Result, SqlState};
use crate::pg::sql::{Parameter, Sees, execute};

impl Set {
    /// Returns the error XX001 for a row of the set that can't be parsed. `bucket` is the row's
    /// number, and `damage` says why, as the end of a sentence.
    #[cold]
    pub fn damaged(&self, bucket: i64, damage: &str) -> Error {
        let message =
            format!("row for bucket {bucket} of filter set {} is damaged", self.quoted_name());
        Error::new(SqlState::ERRCODE_DATA_CORRUPTED, message)
            .detail(format!("As a row of this set: {damage}."))
            .hint("Restore the row from a backup, or make a new set.")
    }

    /// Fails because a hash isn't covered by any row that the call sees. `bucket` is the number of
    /// one row that would cover the hash; rows above or below it in the tree of rows were looked
    /// for as well.
    ///
    /// Finds out why, to fail with a helpful error: 40001, which a retry resolves, if the table got
    /// its rows after the snapshot; otherwise 55000, for a deleted or hidden row, or for a table
    /// without rows. Must be called while connected, with the snapshot by which the rows were read.
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

    /// Returns the error 55000 for a hash without a row: the table has other rows, or row-level
    /// security may hide some. `bucket` is the number of a row that would cover the hash.
    fn missing_row(&self, bucket: u64) -> Error {
        let message = format!("filter set {} has no row for bucket {bucket}", self.quoted_name());
        Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .detail("Neither that row nor one above or below it is visible. If it was deleted, the elements in it are lost.")
            .hint("Restore the row from a backup, make a new set, change the policy that hides the row, or \
                empty the set with bloom_set_clear.")
    }

    /// Returns the error 55000 for a table without any row, which even a set without elements has.
    fn without_rows(&self) -> Error {
        let message = format!("filter set {} has no rows", self.quoted_name());
        Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .detail("Its table was truncated or copied without its rows, or is unlogged and was emptied by a crash. \
                A set without elements has rows.")
            .hint("Make it an empty set with bloom_set_clear, or restore its rows from a backup.")
    }

    /// Returns the error 55000 for two rows that cover the same hashes. The arguments are the rows'
    /// buckets, their numbers, in any order; both are the same if one bucket has two rows.
    #[cold]
    pub fn ambiguous(&self, bucket: u64, other: u64) -> Error {
        let message = format!("filter set {} has two rows for the same hashes", self.quoted_name());
        Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .detail(format!("They are those for the buckets {} and {}.", bucket.min(other), bucket.max(other)))
            .hint("Delete the row that was not in the set before, also from tables that inherit from it.")
    }

    /// Returns the error 55000 for a row that is visible, but that can't be locked. `bucket` is its
    /// number.
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

    /// Returns the error 27000 for rows that a statement didn't store or return as they were given
    /// to it.
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
