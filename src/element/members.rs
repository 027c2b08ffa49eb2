//! Elements that are made of others: arrays, rows, ranges and multiranges.

use super::scalar::{ScalarReader, with_value};
use crate::pg::call::{Element, interrupt};
use crate::pg::catalog::Storage;
use crate::pg::value::array::each_element;
use crate::pg::value::range::{Multirange, RangeEntry};
use crate::pg::value::row_type::RowType;
use crate::pg::value::varlena::Value;
use pg_bloom_core::canonical::members::{self, flags};
use pg_bloom_core::canonical::{ByteCounter, Sink};
use pg_bloom_core::hash::HashSink;
use pgrx::pg_sys;
use std::rc::Rc;

#[derive(Clone)]
pub enum Reader {
    Scalar(ScalarReader),
    Composite(Rc<Parts>),
}

pub enum Parts {
    Array(Member),
    /// A row of these columns, as many as its type has; there is none for a column that was
    /// dropped.
    Row(RowType, Vec<Option<Member>>),
    Range(RangeType),
    Multirange(RangeType),
}

pub struct Member {
    pub reader: Reader,
    pub storage: Storage,
}

pub struct RangeType {
    pub entry: RangeEntry,
    pub bound: Member,
}

impl Parts {
    /// Writes the canonical bytes of an element that is made of these parts.
    ///
    /// # Safety
    /// It must be a value of the type that has these.
    pub unsafe fn write(&self, element: Element, into: &mut HashSink) {
        interrupt::check_stack_depth();
        // SAFETY: promised by the caller. All are of variable length, and each is read as what its
        // type says.
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
                    (0..count)
                        .for_each(|i| range.write_bounds(&range.entry.bounds_in(ranges, i), into));
                }
            }
            value.free();
        }
    }
}

impl Member {
    /// Writes a member; `None` is NULL.
    ///
    /// # Safety
    /// It must be of the members' type.
    unsafe fn write(&self, datum: Option<pg_sys::Datum>, into: &mut HashSink) {
        let Some(datum) = datum else {
            return members::write_null(into);
        };
        let element = Element { datum };
        // SAFETY: promised by the caller.
        unsafe {
            match &self.reader {
                Reader::Scalar(reader) if reader.is_long() => with_value(element, |value| {
                    members::write_value_start(
                        ByteCounter::count(|counter| reader.write_long(value, counter)),
                        into,
                    );
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
    /// # Safety
    /// They must be the bounds of a range of this type.
    unsafe fn write_bounds(&self, bounds: &[pg_sys::RangeBound; 2], into: &mut HashSink) {
        let [lower, upper] = bounds;
        let set = [
            (lower.infinite, flags::NO_LOWER),
            (upper.infinite, flags::NO_UPPER),
            (lower.inclusive, flags::LOWER_IN),
            (upper.inclusive, flags::UPPER_IN),
        ];
        into.write(&[set
            .iter()
            .filter(|(is_set, _)| *is_set)
            .map(|(_, flag)| flag)
            .sum::<u8>()]);
        for bound in [lower, upper].into_iter().filter(|bound| !bound.infinite) {
            // SAFETY: promised by the caller.
            unsafe { self.bound.write(Some(bound.val), into) };
        }
    }
}
