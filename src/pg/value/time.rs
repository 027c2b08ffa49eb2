//! Points in time and intervals.

use pgrx::direct_function_call_as_datum as call;
use pgrx::pg_sys::{self, Datum};
use std::ffi::CStr;
use std::fmt;

/// A point in time: microseconds since 2000.
pub type Timestamp = i64;

/// `pg_sys::Interval`, which can't be compared.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    microseconds: i64,
    days: i32,
    months: i32,
}

impl Interval {
    /// # Safety
    /// It must be a value of type interval, which isn't NULL.
    pub unsafe fn of(datum: Datum) -> Interval {
        // SAFETY: promised by the caller.
        unsafe { *datum.cast_mut_ptr() }
    }

    /// A value that lives as long as this.
    pub(in crate::pg) fn datum(&self) -> Datum {
        Datum::from(std::ptr::from_ref(self))
    }

    /// With 30 days for a month and 24 hours for a day; `None` if there are too many to count, as
    /// in an infinite one.
    pub fn microseconds(&self) -> Option<i64> {
        let days = i128::from(self.months) * 30 + i128::from(self.days);
        i64::try_from(days * 86_400_000_000 + i128::from(self.microseconds)).ok()
    }

    /// As the session's settings show it.
    pub fn shown(&self) -> String {
        // SAFETY: the output function of the type, whose result is a C string.
        unsafe {
            let text = call(pg_sys::interval_out, &[Some(self.datum())]);
            text.map_or(String::new(), |text| {
                CStr::from_ptr(text.cast_mut_ptr()).to_string_lossy().into_owned()
            })
        }
    }
}

/// As ISO 8601 has it, which every setting of IntervalStyle reads.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (time, sign) =
            (self.microseconds.unsigned_abs(), if self.microseconds < 0 { "-" } else { "" });
        let (seconds, micros) = (time / 1_000_000, time % 1_000_000);
        write!(f, "P{}M{}DT{sign}{seconds}.{micros:06}S", self.months, self.days)
    }
}

pub fn now() -> Timestamp {
    // SAFETY: reads the clock.
    unsafe { pg_sys::GetCurrentTimestamp() }
}
