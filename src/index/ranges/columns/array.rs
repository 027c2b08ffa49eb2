//! A column of arrays. An array has a key for itself as a whole, which `=` asks for, and one for
//! each of its members, which `@>` and `&&` ask for.

use super::class::{MOST_PARTS, Strategy, unknown_strategy};
use crate::element::Column;
use crate::error::unsupported;
use crate::index::page::unhashed;
use crate::pg::call::{Result, SqlValue};
use crate::pg::catalog::{self, Storage, TypeKind};
use crate::pg::storage::relation::Relation;
use crate::pg::value::array;
use crate::pg::value::varlena::Value;
use pg_bloom_core::conditions::{self, Condition};
use pg_bloom_core::memory::List;
use pgrx::pg_sys::{Datum, Oid};

/// How arrays of a column, and their members, are hashed.
pub struct ArrayColumn {
    /// Hashes an array as a whole.
    whole: Column,
    /// Hashes a member.
    pub member: Column,
    /// How members are stored in an array.
    storage: Storage,
}

/// The members of an array that a query asks with.
struct ArrayMembers {
    /// The keys of the members that aren't NULL.
    hashes: List<u64>,
    has_null: bool,
}

impl ArrayColumn {
    /// Describes the column of an index over arrays: how an array as a whole and each of its
    /// members are hashed, and how members are stored. Fails with 0A000 if the column isn't of
    /// arrays, if their members have a type that an index can't have, and for a nondeterministic
    /// collation.
    pub fn of_index(relation: Relation) -> Result<ArrayColumn> {
        let collation = relation.column_class().collation;
        let column_type = catalog::base_type(relation.column_type());
        let column = |oid: Oid| Column::new(relation.handler(), oid, collation);
        let whole = column(column_type)?;
        let TypeKind::Array(member) = catalog::type_kind(column_type) else {
            let message = format!(
                "type {} has no members that an index can have",
                catalog::display_name(column_type)
            );
            return Err(unsupported(message, "Use an array."));
        };
        Ok(ArrayColumn {
            whole,
            member: column(member)?,
            storage: catalog::storage(member),
        })
    }

    /// Calls `visit` with each key of an array: its own, and then one for each member that isn't
    /// NULL. Fails with XX000 if one has no hash.
    ///
    /// # Safety
    /// The value must be an array of the column's type.
    pub unsafe fn each_key(&self, value: SqlValue, mut visit: impl FnMut(u64)) -> Result<()> {
        // SAFETY: promised by the caller.
        unsafe {
            visit(self.whole.hasher().hash(value).ok_or_else(unhashed)?);
            self.each_member(value, |hash| hash.into_iter().for_each(&mut visit))
        }
    }

    /// Calls `visit` with the key of each member of an array, the hash by which the index keeps it;
    /// with `None` for a member that is NULL. Visits the members that can be hashed, and then fails
    /// with XX000 if one could not.
    ///
    /// # Safety
    /// The value must be an array of the column's type.
    unsafe fn each_member(
        &self,
        value: SqlValue,
        mut visit: impl FnMut(Option<u64>),
    ) -> Result<()> {
        let hasher = self.member.hasher();
        let mut are_hashed = true;
        let mut visit_member = |_: &mut (), member: Option<Datum>| {
            let Some(datum) = member else {
                return visit(None);
            };
            // SAFETY: a member of an array of the column's type, as the caller promises.
            match unsafe { hasher.hash(SqlValue { datum }) } {
                Some(hash) => visit(Some(conditions::member(hash))),
                None => are_hashed = false,
            }
        };
        // SAFETY: an array by the caller's promise, whole and aligned by `detoast_aligned`, with
        // members that are stored as the type says.
        unsafe {
            let array = Value::detoast_aligned(value.datum);
            let begin = |_: &mut (), _: &[i32], _: &[i32]| ();
            let start = array.pointer().cast();
            array::each_element(start, self.storage, &mut (), begin, &mut visit_member);
            array.free();
        }
        if are_hashed { Ok(()) } else { Err(unhashed()) }
    }

    /// Returns the condition on an array's keys that is necessary for an operator of the query to
    /// hold: `array = asked`, `array @> asked` or `array && asked`, by `strategy`. The *keys* of an
    /// array are its own hash and those of its members. `@>` needs all members of `asked`, of which
    /// at most 256 are looked up, `&&` at least one. Fails with XX000 if a member of `asked` has no
    /// hash, and for the strategy of an operator that isn't one of arrays.
    ///
    /// # Safety
    /// The value must be of the type of the operator's right side.
    pub unsafe fn condition(&self, strategy: Strategy, asked: SqlValue) -> Result<Condition> {
        match strategy {
            Strategy::Equal => {
                // SAFETY: both sides of `=` are arrays of the column's type.
                let hash = unsafe { self.whole.hasher().hash(asked) };
                Ok(Condition::Has(hash.ok_or_else(unhashed)?))
            }
            Strategy::Contains => {
                // SAFETY: both sides of `@>` are arrays of one type.
                let members = unsafe { self.members_of(asked)? };
                if members.has_null {
                    // No array contains a NULL, not even one that has it.
                    return Ok(Condition::NONE);
                }
                Ok(Condition::all_of(members.hashes, MOST_PARTS))
            }
            Strategy::Overlaps => {
                // SAFETY: both sides of `&&` are arrays of one type.
                let members = unsafe { self.members_of(asked)? };
                Ok(Condition::any(members.hashes.into_iter().map(Condition::Has)))
            }
            _ => Err(unknown_strategy(strategy as i16)),
        }
    }

    /// Returns the keys of the members of an array, and whether one of them is NULL. Fails with
    /// XX000 if a member has no hash.
    ///
    /// # Safety
    /// The value must be an array of the column's type.
    unsafe fn members_of(&self, array: SqlValue) -> Result<ArrayMembers> {
        let mut hashes = List::new();
        let mut has_null = false;
        // SAFETY: promised by the caller.
        unsafe {
            self.each_member(array, |hash| match hash {
                Some(hash) => hashes.push(hash),
                None => has_null = true,
            })?;
        }
        Ok(ArrayMembers { hashes, has_null })
    }
}
