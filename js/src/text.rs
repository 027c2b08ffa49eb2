//! Elements that are written as text: in ISO 8601's forms, and in those in which PostgreSQL writes
//! them itself, with `datestyle = iso`.

use pg_bloom_core::Element;

/// Why a text was not read.
#[derive(Clone, Copy, PartialEq)]
pub enum Unread {
    /// It is written otherwise.
    Syntax,
    /// The type has no such value.
    Range,
}

type Reading<T> = Result<T, Unread>;

const MICROSECONDS_PER_SECOND: i64 = 1_000_000;
const MICROSECONDS_PER_MINUTE: i64 = 60 * MICROSECONDS_PER_SECOND;
const MICROSECONDS_PER_HOUR: i64 = 60 * MICROSECONDS_PER_MINUTE;
const MICROSECONDS_PER_DAY: i64 = 24 * MICROSECONDS_PER_HOUR;
/// Days from 1970-01-01 to 2000-01-01, from which PostgreSQL counts.
const EPOCH_DAYS: i64 = 10_957;
/// PostgreSQL's first date, 4714-11-24 BC, in days since 2000-01-01.
const FIRST_DAY: i64 = -2_451_545;
/// The day after PostgreSQL's last date, 5874897-12-31, in days since 2000-01-01.
const END_OF_DAYS: i64 = 2_147_483_494 - 2_451_545;
/// PostgreSQL's first timestamp, 4714-11-24 BC, in microseconds since 2000-01-01.
const FIRST_TIMESTAMP: i64 = FIRST_DAY * MICROSECONDS_PER_DAY;
/// The end of PostgreSQL's timestamps, the year 294277, in microseconds since 2000-01-01.
const END_OF_TIMESTAMPS: i64 = 9_223_371_331_200_000_000;
/// PostgreSQL's zones are less than 16 hours from UTC.
const END_OF_OFFSETS: i64 = 16 * 60 * 60;

/// What is left to be read of a text.
struct Scanner<'a> {
    rest: &'a [u8],
}

impl<'a> Scanner<'a> {
    fn of(text: &'a str) -> Scanner<'a> {
        Scanner { rest: text.as_bytes() }
    }

    /// Skips a character; returns whether it is the next one.
    fn skip(&mut self, character: u8) -> bool {
        let is_next = self.rest.first() == Some(&character);
        if is_next {
            self.rest = &self.rest[1..];
        }
        is_next
    }

    /// Skips a character, which must be the next one.
    fn expect(&mut self, character: u8) -> Reading<()> {
        if self.skip(character) { Ok(()) } else { Err(Unread::Syntax) }
    }

    /// Skips a sign, if there is one; returns whether it is a minus.
    fn sign(&mut self) -> bool {
        let is_minus = self.skip(b'-');
        if !is_minus {
            self.skip(b'+');
        }
        is_minus
    }

    /// Returns the bytes that follow for which `belongs` is true.
    fn take_while(&mut self, belongs: fn(&u8) -> bool) -> &'a [u8] {
        let length = self.rest.iter().take_while(|byte| belongs(byte)).count();
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// Returns the digits that follow.
    fn digits(&mut self) -> &'a [u8] {
        self.take_while(u8::is_ascii_digit)
    }

    /// Returns the letters that follow.
    fn word(&mut self) -> &'a [u8] {
        self.take_while(u8::is_ascii_alphabetic)
    }

    /// Parses a decimal number without a sign that has between `least` and `most` digits. Fails
    /// with [`Unread::Syntax`] for more or fewer.
    fn number(&mut self, least: usize, most: usize) -> Reading<i64> {
        let digits = self.digits();
        if digits.len() < least || digits.len() > most {
            return Err(Unread::Syntax);
        }
        Ok(digits
            .iter()
            .fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }

    /// Parses the fraction of a second, a point and up to six digits, and returns it in
    /// microseconds; 0 if no point follows.
    ///
    /// Fails with [`Unread::Syntax`] for a point without digits, and with [`Unread::Range`] for
    /// more than six.
    fn fraction(&mut self) -> Reading<i64> {
        if !self.skip(b'.') {
            return Ok(0);
        }
        let digits = self.digits();
        if digits.is_empty() {
            return Err(Unread::Syntax);
        }
        if digits.len() > 6 {
            return Err(Unread::Range);
        }
        let digits_and_zeros = digits.iter().copied().chain(std::iter::repeat(b'0')).take(6);
        Ok(digits_and_zeros.fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }

    fn expect_end(&self) -> Reading<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(Unread::Syntax) }
    }
}

/// Returns a value if it is one of those that the type has.
fn in_range<T>(value: T, is_possible: bool) -> Reading<T> {
    if is_possible { Ok(value) } else { Err(Unread::Range) }
}

/// Parses a decimal integer of 64 bits, with or without a sign. Fails with [`Unread::Syntax`] for
/// any other text, and with [`Unread::Range`] for a larger integer.
pub fn integer(text: &str) -> Reading<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Unread::Syntax);
    }
    text.parse().map_err(|_| Unread::Range)
}

/// Returns whether a text is a decimal number of any length, such as `-12.5e3`.
pub fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let has_mantissa = !whole.is_empty() || !fraction.is_empty();
    let has_exponent = !exponent.is_empty();
    has_mantissa
        && has_exponent
        && are_digits(whole)
        && are_digits(fraction)
        && are_digits(exponent)
}

/// Parses a UUID in the forms that PostgreSQL reads: 32 hexadecimal digits of either case, with or
/// without hyphens after each four, and with or without braces. Returns its 16 bytes. Fails with
/// [`Unread::Syntax`] for any other text.
pub fn uuid(text: &str) -> Reading<[u8; 16]> {
    let inner = match text.strip_prefix('{') {
        Some(inner) => inner.strip_suffix('}').ok_or(Unread::Syntax)?,
        None => text,
    };
    let mut scanner = Scanner::of(inner);
    let mut bytes = [0; 16];
    for (i, byte) in bytes.iter_mut().enumerate() {
        let follows_four_digits = i > 0 && i % 2 == 0;
        if follows_four_digits {
            scanner.skip(b'-');
        }
        let (digits, rest) = scanner.rest.split_first_chunk::<2>().ok_or(Unread::Syntax)?;
        let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
        *byte = (high.ok_or(Unread::Syntax)? << 4 | low.ok_or(Unread::Syntax)?) as u8;
        scanner.rest = rest;
    }
    scanner.expect_end()?;
    Ok(bytes)
}

/// A text without the ` BC` at its end, and whether it had one.
struct Era<'a> {
    text: &'a str,
    is_before_christ: bool,
}

impl Era<'_> {
    fn of(text: &str) -> Era<'_> {
        match text.strip_suffix(" BC") {
            Some(text) => Era { text, is_before_christ: true },
            None => Era { text, is_before_christ: false },
        }
    }
}

/// Parses a date such as `2026-02-28`, and returns it in days since 2000-01-01. Years have four to
/// seven digits. A year with a sign is one of ISO 8601, whose year 0 is 1 BC. `is_before_christ`
/// says that ` BC` stood at the end of the text, as PostgreSQL writes such dates.
///
/// Fails with [`Unread::Syntax`] for another form, and with [`Unread::Range`] for a day that no
/// calendar has. Doesn't check that PostgreSQL's type has the date.
fn day(scanner: &mut Scanner<'_>, is_before_christ: bool) -> Reading<i64> {
    let is_negative = scanner.skip(b'-');
    let has_sign = is_negative || scanner.skip(b'+');
    let written_year = scanner.number(4, 7)?;
    scanner.expect(b'-')?;
    let month = scanner.number(2, 2)?;
    scanner.expect(b'-')?;
    let day = scanner.number(2, 2)?;

    let year = match (has_sign, is_before_christ) {
        (true, true) => return Err(Unread::Syntax),
        (true, false) if is_negative => -written_year,
        (true, false) => written_year,
        // PostgreSQL has no year 0.
        (false, _) if written_year == 0 => return Err(Unread::Range),
        (false, true) => 1 - written_year,
        (false, false) => written_year,
    };
    let is_in_calendar =
        (1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day);
    in_range(days_since_1970(year, month, day) - EPOCH_DAYS, is_in_calendar)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    let is_leap_year = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap_year => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the number of days from 1970-01-01 to a day of the Gregorian calendar; negative for an
/// earlier day.
///
/// Years are counted from March, so that the day that leap years add is the last one of a year.
/// Months are numbered m = 0 for March to 11 for February: day `(153 · m + 2) / 5` of a year,
/// counted from 0, is the first of month m, since five months from March on have 153 days together.
/// 400 years, an era here, have 146,097 days.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    const DAYS_PER_400_YEARS: i64 = 146_097;
    /// Days from 1 March of the year 0 to 1970-01-01.
    const DAYS_BEFORE_1970: i64 = 719_468;
    let year_from_march = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let era = year_from_march.div_euclid(400);
    let year_of_era = year_from_march.rem_euclid(400);
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_PER_400_YEARS + day_of_era - DAYS_BEFORE_1970
}

/// Parses a date as PostgreSQL or ISO 8601 writes it, such as `2026-02-28` or `0044-03-15 BC`, and
/// returns it in days since 2000-01-01. `infinity` and `-infinity` are the greatest and the least
/// number.
///
/// Fails with [`Unread::Syntax`] for another form, and with [`Unread::Range`] for a date that
/// PostgreSQL's type doesn't have.
pub fn date(text: &str) -> Reading<i32> {
    match text {
        "infinity" => return Ok(i32::MAX),
        "-infinity" => return Ok(i32::MIN),
        _ => {}
    }
    let Era { text, is_before_christ } = Era::of(text);
    let mut scanner = Scanner::of(text);
    let days = day(&mut scanner, is_before_christ)?;
    scanner.expect_end()?;
    in_range(days as i32, (FIRST_DAY..END_OF_DAYS).contains(&days))
}

/// Parses a time of day such as `12:34`, `12:34:56` or `12:34:56.789`, and returns it in
/// microseconds since midnight. `24:00` is the end of the day. Fails with [`Unread::Syntax`] for
/// another form, and with [`Unread::Range`] for a time that no day has, or more than six digits
/// after the point.
fn time_of_day(scanner: &mut Scanner<'_>) -> Reading<i64> {
    let hours = scanner.number(2, 2)?;
    scanner.expect(b':')?;
    let minutes = scanner.number(2, 2)?;
    let seconds = if scanner.skip(b':') { scanner.number(2, 2)? } else { 0 };
    let microseconds = scanner.fraction()?;

    let total = hours * MICROSECONDS_PER_HOUR
        + minutes * MICROSECONDS_PER_MINUTE
        + seconds * MICROSECONDS_PER_SECOND
        + microseconds;
    in_range(total, minutes < 60 && seconds < 60 && total <= MICROSECONDS_PER_DAY)
}

/// Parses the offset of a time zone from UTC: `Z`, `+02`, `+02:00`, `+0200` or `+02:00:00`. Returns
/// it in seconds, positive to the east. Fails with [`Unread::Syntax`] for another form, and with
/// [`Unread::Range`] for 16 hours or more.
fn offset(scanner: &mut Scanner<'_>) -> Reading<i64> {
    if scanner.skip(b'Z') {
        return Ok(0);
    }
    let is_west = scanner.skip(b'-');
    if !is_west {
        scanner.expect(b'+')?;
    }
    let length_before = scanner.rest.len();
    let number = scanner.number(2, 4)?;
    let (hours, minutes, seconds) = if length_before - scanner.rest.len() > 2 {
        // Hours and minutes without a colon: `+0200`. PostgreSQL reads `+002` as two minutes, too.
        (number / 100, number % 100, 0)
    } else {
        let minutes = if scanner.skip(b':') { scanner.number(2, 2)? } else { 0 };
        let seconds = if scanner.skip(b':') { scanner.number(2, 2)? } else { 0 };
        (number, minutes, seconds)
    };

    let total = (hours * 60 + minutes) * 60 + seconds;
    let is_possible = minutes < 60 && seconds < 60 && total < END_OF_OFFSETS;
    in_range(if is_west { -total } else { total }, is_possible)
}

/// Reads a time without a zone, and returns it in microseconds since midnight.
pub fn time(text: &str) -> Reading<i64> {
    let mut scanner = Scanner::of(text);
    let microseconds = time_of_day(&mut scanner)?;
    scanner.expect_end()?;
    Ok(microseconds)
}

/// Parses a time of day with the offset of its zone, such as `12:34:56+02:00`. Fails with
/// [`Unread::Syntax`] for another form, and with [`Unread::Range`] for a time or an offset that
/// PostgreSQL's type doesn't have.
pub fn timetz<'a>(text: &str) -> Reading<Element<'a>> {
    let mut scanner = Scanner::of(text);
    let microseconds = time_of_day(&mut scanner)?;
    let seconds_eastward = offset(&mut scanner)?;
    scanner.expect_end()?;
    // PostgreSQL counts the zone westward.
    Ok(Element::Timetz { microseconds, zone: -seconds_eastward as i32 })
}

/// Returns whether PostgreSQL has this timestamp, in microseconds since 2000-01-01.
pub fn is_timestamp(microseconds: i64) -> bool {
    (FIRST_TIMESTAMP..END_OF_TIMESTAMPS).contains(&microseconds)
}

/// Parses a day, `T` or a blank, and a time of day, such as `2026-02-28T12:34:56`. Returns the
/// microseconds from 2000-01-01, in the zone in which the text is written. `is_before_christ` says
/// that ` BC` stood at the end of the text. Fails with [`Unread::Syntax`] for another form, and
/// with [`Unread::Range`] for a time that no day has, or one too far away for 64 bits.
fn day_and_time(scanner: &mut Scanner<'_>, is_before_christ: bool) -> Reading<i64> {
    let day = day(scanner, is_before_christ)?;
    if !scanner.skip(b'T') {
        scanner.expect(b' ')?;
    }
    let time = time_of_day(scanner)?;
    let midnight = day.checked_mul(MICROSECONDS_PER_DAY).ok_or(Unread::Range)?;
    midnight.checked_add(time).ok_or(Unread::Range)
}

/// Returns the timestamp that a text names without a date; `None` for other texts.
fn infinite_timestamp(text: &str) -> Option<i64> {
    match text {
        "infinity" => Some(i64::MAX),
        "-infinity" => Some(i64::MIN),
        _ => None,
    }
}

/// Parses a timestamp without a time zone, such as `2026-02-28T12:34:56.789` or `2026-02-28
/// 12:34:56`, and returns it in microseconds since 2000-01-01. `infinity` and `-infinity` are the
/// greatest and the least number.
///
/// Fails with [`Unread::Syntax`] for another form, and with [`Unread::Range`] for a time that
/// PostgreSQL's type doesn't have.
pub fn timestamp(text: &str) -> Reading<i64> {
    if let Some(infinite) = infinite_timestamp(text) {
        return Ok(infinite);
    }
    let Era { text, is_before_christ } = Era::of(text);
    let mut scanner = Scanner::of(text);
    let microseconds = day_and_time(&mut scanner, is_before_christ)?;
    scanner.expect_end()?;
    in_range(microseconds, is_timestamp(microseconds))
}

/// Parses a timestamp with the offset of its time zone, such as `2026-02-28T12:34:56Z` or
/// `2026-02-28 12:34:56+02`, and returns it in microseconds since 2000-01-01 in UTC. `infinity` and
/// `-infinity` are the greatest and the least number.
///
/// Fails with [`Unread::Syntax`] for another form, and with [`Unread::Range`] for a time that
/// PostgreSQL's type doesn't have.
pub fn timestamptz(text: &str) -> Reading<i64> {
    if let Some(infinite) = infinite_timestamp(text) {
        return Ok(infinite);
    }
    let Era { text, is_before_christ } = Era::of(text);
    let mut scanner = Scanner::of(text);
    let local = day_and_time(&mut scanner, is_before_christ)?;
    let seconds_eastward = offset(&mut scanner)?;
    scanner.expect_end()?;
    let utc = local
        .checked_sub(seconds_eastward * MICROSECONDS_PER_SECOND)
        .ok_or(Unread::Range)?;
    in_range(utc, is_timestamp(utc))
}

/// The three parts of an interval, as far as they were read.
#[derive(Default)]
struct Parts {
    months: i64,
    days: i64,
    microseconds: i64,
}

impl Parts {
    /// Returns the interval.
    ///
    /// Fails with [`Unread::Range`] if a part has more bits than PostgreSQL's type.
    fn into_element<'a>(self) -> Reading<Element<'a>> {
        Ok(Element::Interval {
            months: i32::try_from(self.months).map_err(|_| Unread::Range)?,
            days: i32::try_from(self.days).map_err(|_| Unread::Range)?,
            microseconds: self.microseconds,
        })
    }
}

/// The most digits of a number in an interval: 64 bits have all that long, and their products with
/// the microseconds of an hour are checked.
const MOST_DIGITS: usize = 18;

/// Adds `count` times `unit` to a part of an interval.
fn add(part: &mut i64, count: i64, unit: i64) -> Reading<()> {
    let product = count.checked_mul(unit).ok_or(Unread::Range)?;
    *part = part.checked_add(product).ok_or(Unread::Range)?;
    Ok(())
}

/// Parses an interval: `P1Y2M3DT4H5M6.789S`, as ISO 8601 writes it, or `1 year 2 mons 3 days
/// 04:05:06.789`, as PostgreSQL does by default. Fails with [`Unread::Syntax`] for another form,
/// and with [`Unread::Range`] if a part is too large for PostgreSQL's type.
pub fn interval<'a>(text: &str) -> Reading<Element<'a>> {
    // PostgreSQL 17 and later have infinite intervals: all parts are the greatest or the least.
    match text {
        "infinity" => {
            return Ok(Element::Interval {
                months: i32::MAX,
                days: i32::MAX,
                microseconds: i64::MAX,
            });
        }
        "-infinity" => {
            return Ok(Element::Interval {
                months: i32::MIN,
                days: i32::MIN,
                microseconds: i64::MIN,
            });
        }
        _ => {}
    }
    let mut scanner = Scanner::of(text);
    let is_negative = scanner.sign();
    let parts = if scanner.skip(b'P') {
        iso_interval(&mut scanner, is_negative)?
    } else {
        written_interval(&mut Scanner::of(text))?
    };
    parts.into_element()
}

/// Parses an interval as ISO 8601 writes it, behind its `P`: `1Y2M3DT4H5M6.789S`. Each number may
/// have a sign; a minus before the `P`, which `is_negative` tells, counts for all. Only seconds may
/// have a fraction. Fails with [`Unread::Syntax`] for another form, and with [`Unread::Range`] if a
/// part has more than 64 bits.
fn iso_interval(scanner: &mut Scanner<'_>, is_negative: bool) -> Reading<Parts> {
    let mut parts = Parts::default();
    let mut is_behind_t = false;
    let mut has_number = false;
    while !scanner.rest.is_empty() {
        // Behind the `T` come hours, minutes and seconds: an `M` means months before it.
        if !is_behind_t && scanner.skip(b'T') {
            is_behind_t = true;
            has_number = false;
            continue;
        }
        let sign = if scanner.sign() == is_negative { 1 } else { -1 };
        let count = sign * scanner.number(1, MOST_DIGITS)?;
        let has_fraction = scanner.rest.first() == Some(&b'.');
        let fraction = sign * scanner.fraction()?;
        has_number = true;

        let (&unit, rest) = scanner.rest.split_first().ok_or(Unread::Syntax)?;
        scanner.rest = rest;
        match (is_behind_t, unit) {
            (true, b'S') => {
                add(&mut parts.microseconds, count, MICROSECONDS_PER_SECOND)?;
                add(&mut parts.microseconds, fraction, 1)?;
            }
            _ if has_fraction => return Err(Unread::Syntax),
            (false, b'Y') => add(&mut parts.months, count, 12)?,
            (false, b'M') => add(&mut parts.months, count, 1)?,
            (false, b'W') => add(&mut parts.days, count, 7)?,
            (false, b'D') => add(&mut parts.days, count, 1)?,
            (true, b'H') => add(&mut parts.microseconds, count, MICROSECONDS_PER_HOUR)?,
            (true, b'M') => add(&mut parts.microseconds, count, MICROSECONDS_PER_MINUTE)?,
            _ => return Err(Unread::Syntax),
        }
    }
    if has_number { Ok(parts) } else { Err(Unread::Syntax) }
}

/// Parses an interval as PostgreSQL writes it by default: numbers with their units, separated by
/// blanks, and a time of any length: `1 year -2 mons 3 days 04:05:06.789`. Each may have a sign.
/// Fails with [`Unread::Syntax`] for another form, and with [`Unread::Range`] if a part is too
/// large.
fn written_interval(scanner: &mut Scanner<'_>) -> Reading<Parts> {
    let mut parts = Parts::default();
    loop {
        let sign = if scanner.sign() { -1 } else { 1 };
        let count = sign * scanner.number(1, MOST_DIGITS)?;
        if scanner.skip(b':') {
            let minutes = scanner.number(2, 2)?;
            let seconds = if scanner.skip(b':') { scanner.number(2, 2)? } else { 0 };
            let fraction = scanner.fraction()?;
            in_range((), minutes < 60 && seconds < 60)?;
            add(&mut parts.microseconds, count, MICROSECONDS_PER_HOUR)?;
            add(&mut parts.microseconds, sign * minutes, MICROSECONDS_PER_MINUTE)?;
            add(&mut parts.microseconds, sign * seconds, MICROSECONDS_PER_SECOND)?;
            add(&mut parts.microseconds, sign * fraction, 1)?;
        } else {
            scanner.expect(b' ')?;
            match scanner.word() {
                b"year" | b"years" => add(&mut parts.months, count, 12)?,
                b"mon" | b"mons" => add(&mut parts.months, count, 1)?,
                b"day" | b"days" => add(&mut parts.days, count, 1)?,
                _ => return Err(Unread::Syntax),
            }
        }
        if scanner.rest.is_empty() {
            return Ok(parts);
        }
        scanner.expect(b' ')?;
    }
}
