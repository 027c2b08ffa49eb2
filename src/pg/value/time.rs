//! Points in time and intervals, as PostgreSQL counts them: days by the session's time zone, months by the calendar.

use pgrx::direct_function_call_as_datum as call;
use pgrx::pg_sys::{self, Datum};
use std::ffi::CStr;
use std::fmt;

/// A point in time: microseconds since 2000.
pub type Timestamp = i64;

/// Months, days and microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Interval(pg_sys::Interval);

impl PartialEq for Interval {
    fn eq(&self, other: &Interval) -> bool {
        let parts = |interval: &Interval| (interval.0.month, interval.0.day, interval.0.time);
        parts(self) == parts(other)
    }
}

impl Interval {
    /// The value of a datum.
    ///
    /// # Safety
    /// It must be a value of type interval, which isn't NULL.
    pub unsafe fn of(datum: Datum) -> Interval {
        // SAFETY: promised by the caller.
        Interval(unsafe { *datum.cast_mut_ptr::<pg_sys::Interval>() })
    }

    /// A value that lives as long as this.
    fn datum(&self) -> Datum {
        Datum::from(std::ptr::from_ref(&self.0))
    }

    /// A part of it. Raises 22008 if PostgreSQL can't count that.
    pub fn divided_by(&self, parts: u32) -> Interval {
        let divisor = Datum::from(f64::from(parts).to_bits());
        // SAFETY: an interval and a double precision, whose quotient isn't NULL.
        unsafe { call(pg_sys::interval_div, &[Some(self.datum()), Some(divisor)]).map_or(*self, |d| Interval::of(d)) }
    }

    /// Whether it is one at whatever time it starts: a month less 29 days is nothing in February.
    pub fn has_no_negative_part(&self) -> bool {
        self.0.month >= 0 && self.0.day >= 0 && self.0.time >= 0
    }

    /// As the session's settings show it.
    pub fn shown(&self) -> String {
        // SAFETY: the output function of the type, whose result is a C string.
        unsafe {
            let text = call(pg_sys::interval_out, &[Some(self.datum())]);
            text.map_or(String::new(), |text| CStr::from_ptr(text.cast_mut_ptr()).to_string_lossy().into_owned())
        }
    }

    /// The time before this interval. Raises 22008 if PostgreSQL can't count that.
    pub fn before(&self, time: Timestamp) -> Timestamp {
        // SAFETY: a timestamp and an interval; the result isn't NULL.
        unsafe { call(pg_sys::timestamptz_mi_interval, &[Some(Datum::from(time)), Some(self.datum())]) }
            .map_or(time, |datum| datum.value() as i64)
    }

    /// The time after this interval. Raises 22008 if PostgreSQL can't count that.
    pub fn after(&self, time: Timestamp) -> Timestamp {
        // SAFETY: as above.
        unsafe { call(pg_sys::timestamptz_pl_interval, &[Some(Datum::from(time)), Some(self.datum())]) }
            .map_or(time, |datum| datum.value() as i64)
    }
}

/// As ISO 8601 has it, which every setting of IntervalStyle reads.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (time, sign) = (self.0.time.unsigned_abs(), if self.0.time < 0 { "-" } else { "" });
        let (seconds, micros) = (time / 1_000_000, time % 1_000_000);
        write!(f, "P{}M{}DT{sign}{seconds}.{micros:06}S", self.0.month, self.0.day)
    }
}

/// The clock's time.
pub fn now() -> Timestamp {
    // SAFETY: reads the clock.
    unsafe { pg_sys::GetCurrentTimestamp() }
}
