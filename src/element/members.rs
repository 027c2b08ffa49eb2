//! Elements that are made of others: arrays, rows, ranges and multiranges.

use super::scalar::{ScalarReader, with_value};
use crate::pg::call::{SqlValue, interrupt};
use crate::pg::catalog::Storage;
use crate::pg::value::array::each_element;
use crate::pg::value::range::{Multirange, RangeEntry};
use crate::pg::value::row_type::RowType;
use crate::pg::value::varlena::Value;
use pg_bloom_core::canonical::members::{self, flags};
use pg_bloom_core::canonical::{ByteCounter, Sink};
use pg_bloom_core::hash::HashSink;
use pg_bloom_core::memory::List;
use pgrx::pg_sys;
use std::rc::Rc;

/// Reads the values of one type.
#[derive(Clone)]
pub enum Reader {
    Scalar(ScalarReader),
    /// Of a type that is made of others.
    Composite(Rc<Parts>),
}

/// What the values of a type are made of.
pub enum Parts {
    Array(Member),
    /// A row of these columns, as many as its type has; there is none for a column that was
    /// dropped.
    Row(RowType, List<Option<Member>>),
    Range(RangeType),
    Multirange(RangeType),
}

/// The type of an array's elements, of a row's column or of a range's bounds, and how such values
/// are stored there.
pub struct Member {
    pub reader: Reader,
    pub storage: Storage,
}

/// A range type.
pub struct RangeType {
    /// PostgreSQL's functions for the type.
    pub entry: RangeEntry,
    pub bound: Member,
}

impl Parts {
    /// Writes the canonical bytes of a value that is made of others, which are what is hashed of
    /// it: equal values have equal bytes. For an array these are the lengths and lower bounds of
    /// its dimensions and then each element; for a row its columns without dropped ones; for a
    /// range a byte of flags and its finite bounds; for a multirange the number of its ranges and
    /// then these.
    ///
    /// Raises 42804 for a row that was made before its type was altered, XX001 for a damaged array,
    /// and 54001 if types are nested deeper than the stack allows.
    ///
    /// # Safety
    /// The element must be a value of the type that has these parts.
    pub unsafe fn write(&self, element: SqlValue, into: &mut HashSink) {
        interrupt::check_stack_depth();
        // SAFETY: the element is of the type that has these parts, as the caller promises. Arrays,
        // rows, ranges and multiranges are of variable length; once whole and aligned, each is
        // stored as the type of its pointer says.
        unsafe {
            if let Parts::Row(row, _) = self {
                row.check(element.datum);
            }
            let value = Value::detoast_aligned(element.datum);
            match self {
                Parts::Array(member) => {
                    let start = |into: &mut HashSink, lengths: &[i32], lower_bounds: &[i32]| {
                        members::write_array_start(
                            lengths.iter().copied().zip(lower_bounds.iter().copied()),
                            into,
                        );
                    };
                    let write = |into: &mut HashSink, datum| member.write(datum, into);
                    each_element(value.pointer().cast(), member.storage, into, start, write);
                }
                Parts::Row(row, columns) => {
                    row.each_column(pg_sys::Datum::from(value.pointer()), |i, datum| {
                        if let Some(member) = &columns[i] {
                            member.write(datum, into);
                        }
                    });
                }
                Parts::Range(range) => match range.entry.bounds(value.pointer().cast()) {
                    Some(bounds) => range.write_bounds(&bounds, into),
                    None => into.write(&[flags::EMPTY]),
                },
                Parts::Multirange(range) => {
                    let ranges: *const Multirange = value.pointer().cast();
                    let count = RangeEntry::count(ranges);
                    members::write_multirange_start(count, into);
                    for i in 0..count {
                        let bounds = range.entry.bounds_in(ranges, i);
                        range.write_bounds(&bounds, into);
                    }
                }
            }
            value.free();
        }
    }
}

impl Member {
    /// Writes the canonical bytes of a member, an element of an array, a column of a row or a bound
    /// of a range, after their number: without it, the arrays `{ab,c}` and `{a,bc}` would have the
    /// same bytes. `None` stands for NULL, which has a mark of its own.
    ///
    /// # Safety
    /// The datum must be a value of the members' type.
    unsafe fn write(&self, datum: Option<pg_sys::Datum>, into: &mut HashSink) {
        let Some(datum) = datum else {
            return members::write_null(into);
        };
        let element = SqlValue { datum };
        // SAFETY: the datum is of the members' type, as the caller promises, and the reader was
        // made for that. Types with long canonical bytes are of variable length.
        unsafe {
            match &self.reader {
                Reader::Scalar(reader) if reader.is_long() => with_value(element, |value| {
                    let length = ByteCounter::count(|counter| reader.write_long(value, counter));
                    members::write_value_start(length, into);
                    reader.write_long(value, into);
                }),
                Reader::Scalar(reader) => {
                    reader.with_bytes(element, |bytes| members::write_value(bytes, into))
                }
                Reader::Composite(parts) => {
                    members::write_composite_start(into);
                    parts.write(element, into);
                }
            }
        }
    }
}

impl RangeType {
    /// Writes the canonical bytes of a range that isn't empty: a byte of flags, and then each bound
    /// that is finite.
    ///
    /// # Safety
    /// `bounds` must be the lower and the upper bound of a range of this type.
    unsafe fn write_bounds(&self, bounds: &[pg_sys::RangeBound; 2], into: &mut HashSink) {
        let [lower, upper] = bounds;
        let mut range_flags = 0;
        if lower.infinite {
            range_flags |= flags::NO_LOWER;
        }
        if upper.infinite {
            range_flags |= flags::NO_UPPER;
        }
        if lower.inclusive {
            range_flags |= flags::LOWER_IN;
        }
        if upper.inclusive {
            range_flags |= flags::UPPER_IN;
        }
        into.write(&[range_flags]);

        for bound in bounds {
            if !bound.infinite {
                // SAFETY: the bounds are of this range type, as the caller promises, and a finite
                // one has a value of its subtype.
                unsafe { self.bound.write(Some(bound.val), into) };
            }
        }
    }
}
