//! A column of arrays: an array has its own hash as a key, and one for each of its members.

use super::class::{MOST_PARTS, Strategy};
use crate::element::Column;
use crate::error::unsupported;
use crate::index::page::unhashed;
use crate::pg::call::{Element, Result};
use crate::pg::catalog::{self, Shape, Storage};
use crate::pg::storage::relation::Relation;
use crate::pg::value::array;
use crate::pg::value::varlena::Value;
use pg_bloom_core::conditions::{self, Condition};
use pg_bloom_core::memory;
use pgrx::pg_sys::{Datum, Oid};

/// How an array is hashed as a whole, and a member of it.
pub struct ArrayColumn {
    whole: Column,
    pub member: Column,
    storage: Storage,
}

impl ArrayColumn {
    /// Describes the column of an index over arrays. Fails with 0A000 if such arrays can't be in one.
    pub fn of(relation: Relation) -> Result<ArrayColumn> {
        let (_, _, collation) = relation.column_class();
        let column_type = catalog::base_type(relation.column_type());
        let column = |oid: Oid| Column::new(relation.handler(), oid, collation);
        let whole = column(column_type)?;
        let Shape::Array(member) = catalog::shape(column_type) else {
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

    /// # Safety
    /// The value must be such an array.
    pub unsafe fn each_key(&self, value: Element, mut visit: impl FnMut(u64)) -> Result<()> {
        // SAFETY: promised by the caller.
        unsafe {
            visit(self.whole.hasher().hash(value).ok_or_else(unhashed)?);
            self.each_member(value, |hash| hash.into_iter().for_each(&mut visit))
        }
    }

    /// Calls `visit` with the hash of each member of an array; `None` is NULL.
    ///
    /// # Safety
    /// The value must be an array of such members.
    unsafe fn each_member(&self, value: Element, mut visit: impl FnMut(Option<u64>)) -> Result<()> {
        let mut failed = false;
        let hasher = self.member.hasher();
        // SAFETY: promised by the caller.
        unsafe {
            let member = |_: &mut (), member: Option<Datum>| match member
                .map(|datum| hasher.hash(Element { datum }))
            {
                None => visit(None),
                Some(Some(hash)) => visit(Some(conditions::member(hash))),
                Some(None) => failed = true,
            };
            let array = Value::detoast_aligned(value.datum);
            array::each_element(
                array.pointer().cast(),
                self.storage,
                &mut (),
                |(), _, _| (),
                member,
            );
            array.free();
        }
        if failed { Err(unhashed()) } else { Ok(()) }
    }

    /// What the parts of an array must be for which an operator holds with this one.
    ///
    /// # Safety
    /// The value must be of the type of the operator's other side.
    pub unsafe fn condition(&self, strategy: Strategy, asked: Element) -> Result<Condition> {
        if strategy == Strategy::Equal {
            // SAFETY: the other side of the operator is such an array.
            return Ok(Condition::Has(
                unsafe { self.whole.hasher().hash(asked) }.ok_or_else(unhashed)?,
            ));
        }
        let (mut hashes, mut has_null) = (Vec::new(), false);
        // SAFETY: both sides of the operators are arrays of one type.
        unsafe {
            self.each_member(asked, |hash| match hash {
                Some(hash) => memory::push(&mut hashes, hash),
                None => has_null = true,
            })?;
        }
        Ok(match strategy {
            Strategy::Contains if has_null => Condition::NONE,
            Strategy::Contains => Condition::all_of(hashes, MOST_PARTS),
            _ => Condition::any(hashes.into_iter().map(Condition::Has)),
        })
    }
}
