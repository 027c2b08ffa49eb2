//! The form in which the tables of sizing keep their rates.

/// A false positive rate at three significant digits, in two bytes: the tables take a quarter of
/// the room that they take as floats.
///
/// The number is the digits as a number from 100 to 999, plus 1,000 for each decimal place that
/// they have. For example, 0.0452 is 452 / 10^4, and is stored as 4,452.
#[derive(Clone, Copy, Debug)]
pub struct StoredRate(u16);

impl StoredRate {
    /// What is added for each decimal place: more than three digits.
    const PER_PLACE: u16 = 1_000;

    /// Returns a rate as it is stored. Panics if it has more than three significant digits, or is
    /// not below 1.
    const fn new(rate: f64) -> StoredRate {
        let mut places = 0;
        let mut power = 1.0;
        while rate * power < 99.95 {
            places += 1;
            power *= 10.0;
        }
        let digits = (rate * power + 0.5) as u16;
        assert!(digits < StoredRate::PER_PLACE);
        let stored = StoredRate(digits + places * StoredRate::PER_PLACE);
        assert!(stored.rate() == rate);
        stored
    }

    /// Returns the rate. It is the float that is closest to its digits, as both numbers of the
    /// quotient are exact.
    pub const fn rate(self) -> f64 {
        let mut power = 1.0;
        let mut places = self.0 / StoredRate::PER_PLACE;
        while places > 0 {
            power *= 10.0;
            places -= 1;
        }
        (self.0 % StoredRate::PER_PLACE) as f64 / power
    }
}

/// Returns the rates of a row as they are stored.
pub const fn stored<const CELLS: usize>(rates: [f64; CELLS]) -> [StoredRate; CELLS] {
    let mut row = [StoredRate(0); CELLS];
    let mut i = 0;
    while i < CELLS {
        row[i] = StoredRate::new(rates[i]);
        i += 1;
    }
    row
}
