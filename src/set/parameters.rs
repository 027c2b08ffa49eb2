//! What a set was made for, and the constraint that stores it.

use crate::element::ElementType;
use crate::pg::catalog::definition::CheckArgument;
use crate::pg::value::time::{Interval, Timestamp};
use pg_bloom_core::set::SetForm;
use pg_bloom_core::set::form::{DEFAULT_CAPACITY, TIME_SLICES};
use pg_bloom_core::{Layout, hash};
use pgrx::pg_sys::{self, Oid};

/// The shortest time slice, in microseconds.
const SHORTEST_TIME_SLICE: Timestamp = 1000;
/// The longest time for which a set remembers, 10,000 years in microseconds.
const LONGEST_KEEP: i64 = 10_000 * 12 * 30 * 86_400 * 1_000_000;

/// What a set was made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The type of its elements, as it was given.
    pub element: Oid,
    /// What [`kind_code`] returned for that type when the set was made.
    pub kind: i64,
    /// How many elements the set has when it reaches its rate; `None` if no number was given.
    pub capacity: Option<u64>,
    /// The false positive rate at that capacity.
    pub fpr: f64,
    /// For how long the set remembers its elements; `None` if it doesn't forget.
    pub keep: Option<Interval>,
    /// Whether an element that is added again is remembered from then on.
    pub renews: bool,
}

/// The numbers of the columns of a set's table.
#[derive(Clone, Copy, PartialEq)]
pub struct SetColumns {
    pub bucket: i16,
    pub hashes: i16,
}

impl Parameters {
    /// Returns the capacity, which is ten billion if none was given.
    pub fn capacity_or_default(&self) -> u64 {
        self.capacity.unwrap_or(DEFAULT_CAPACITY)
    }

    /// Returns the form of the set's rows; `None` if they would need too many bits of each hash.
    pub fn form(&self) -> Option<SetForm> {
        let bits = SetForm::fewest_bits(self.capacity_or_default(), self.fpr)?;
        Some(SetForm { bits, forgets: self.keep.is_some() })
    }

    /// Parses the parameters of a filter set from the CHECK constraint of its table, a call of
    /// `bloom_set_check(bucket, hashes, element, kind, capacity, fpr, keep, renew)`. `arguments`
    /// are the arguments of this call, as `bloom_set_create` has written them: two columns, and
    /// constants. `columns` are the two columns that they must be.
    ///
    /// A capacity of NULL or 0 means that the set was made without one, and a `keep` of NULL that
    /// the set doesn't forget. Returns `None` if the arguments are of other types or columns, or
    /// the capacity is negative: `bloom_set_create` writes no such constraint. Other values aren't
    /// checked.
    ///
    /// # Safety
    /// Each constant in `arguments` must have the type that it says.
    pub unsafe fn in_constraint(
        arguments: &[CheckArgument],
        columns: SetColumns,
    ) -> Option<Parameters> {
        let [
            CheckArgument::Column(bucket),
            CheckArgument::Column(hashes),
            element,
            kind,
            capacity,
            fpr,
            keep,
            renews,
        ] = arguments
        else {
            return None;
        };
        let given_columns = SetColumns { bucket: *bucket, hashes: *hashes };
        if given_columns != columns {
            return None;
        }

        let capacity = match capacity {
            CheckArgument::Null => None,
            not_null => {
                let number = u64::try_from(i64_in(not_null)?).ok()?;
                if number > 0 { Some(number) } else { None }
            }
        };
        let keep = match keep {
            CheckArgument::Null => None,
            // SAFETY: a constant of this type points to an interval.
            not_null => Some(unsafe { Interval::of(not_null.constant(pg_sys::INTERVALOID)?) }),
        };
        Some(Parameters {
            element: Oid::from(element.constant(pg_sys::REGTYPEOID)?.value() as u32),
            kind: i64_in(kind)?,
            capacity,
            fpr: f64::from_bits(fpr.constant(pg_sys::FLOAT8OID)?.value() as u64),
            keep,
            renews: renews.constant(pg_sys::BOOLOID)?.value() != 0,
        })
    }
}

/// Returns the constant of type bigint that an argument is; `None` if it is anything else.
fn i64_in(argument: &CheckArgument) -> Option<i64> {
    let datum = argument.constant(pg_sys::INT8OID)?;
    Some(datum.value() as i64)
}

/// Returns the length of a time slice, in microseconds, of a set that remembers its elements for
/// the time `keep`. The set remembers when an element was added by the number of the time slice, an
/// eighth of this time. `None` if `keep` is too short or too long.
pub fn time_slice_length(keep: Interval) -> Option<Timestamp> {
    let microseconds = keep.microseconds()?;
    let length = microseconds / TIME_SLICES;
    (microseconds <= LONGEST_KEEP && length >= SHORTEST_TIME_SLICE).then_some(length)
}

/// Returns a number that stands for how elements of a type are hashed, to be stored in the
/// constraint of a set.
///
/// The *kind* of elements has a long name, which is hashed. If a type is altered, for example by a
/// new column, the kind of its values changes, and so does this number.
pub fn kind_code(element: &ElementType) -> i64 {
    let kind = element.kind(Layout::Blocked);
    let tag = kind.tag as u8;
    hash::hash(format!("{tag} {kind}").as_bytes()) as i64
}
