//! Points in time and intervals.

use pgrx::direct_function_call_as_datum as call;
use pgrx::pg_sys::{self, Datum};
use std::ffi::CStr;
use std::fmt;

/// The days of a month in arithmetic with intervals, as PostgreSQL's `EXTRACT(epoch …)` has it.
const DAYS_PER_MONTH: i128 = 30;
const MICROSECONDS_PER_DAY: i128 = 86_400_000_000;

/// A point in time, in microseconds since 2000-01-01 00:00 UTC.
pub type Timestamp = i64;

/// A value of SQL's type `interval`, with the fields of `pg_sys::Interval`. That one can't be
/// compared.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    microseconds: i64,
    days: i32,
    months: i32,
}

impl Interval {
    /// Reads an interval.
    ///
    /// # Safety
    /// The datum must be of type `interval`, and not NULL.
    pub unsafe fn of(datum: Datum) -> Interval {
        // SAFETY: the caller promises an interval, which is stored as this struct.
        unsafe { *datum.cast_mut_ptr() }
    }

    /// Returns the interval as a datum, which is valid as long as `self`.
    pub(in crate::pg) fn datum(&self) -> Datum {
        Datum::from(std::ptr::from_ref(self))
    }

    /// Returns the length in microseconds, with 30 days for a month and 24 hours for a day; `None`
    /// if it doesn't fit 64 bits, as for an infinite interval.
    pub fn microseconds(&self) -> Option<i64> {
        let days = i128::from(self.months) * DAYS_PER_MONTH + i128::from(self.days);
        let microseconds = days * MICROSECONDS_PER_DAY + i128::from(self.microseconds);
        i64::try_from(microseconds).ok()
    }

    /// Returns the text that the session's settings give for it.
    pub fn shown(&self) -> String {
        // SAFETY: this is the output function of the type, whose result is a C string.
        unsafe {
            let text = call(pg_sys::interval_out, &[Some(self.datum())]);
            text.map_or(String::new(), |text| {
                CStr::from_ptr(text.cast_mut_ptr()).to_string_lossy().into_owned()
            })
        }
    }
}

/// Writes the interval as ISO 8601 does, which PostgreSQL reads whatever IntervalStyle is.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.microseconds < 0 { "-" } else { "" };
        let time = self.microseconds.unsigned_abs();
        let seconds = time / 1_000_000;
        let fraction = time % 1_000_000;
        write!(f, "P{}M{}DT{sign}{seconds}.{fraction:06}S", self.months, self.days)
    }
}

/// Returns the present time.
pub fn now() -> Timestamp {
    // SAFETY: this reads the clock.
    unsafe { pg_sys::GetCurrentTimestamp() }
}
