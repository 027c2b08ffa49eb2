//! Searches for the place where a condition changes.

/// The least number from 1 on for which a condition holds, given that it then holds for all greater ones. The search
/// starts at `guess`, with steps that double.
pub(crate) fn first(guess: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let guess = guess.max(1);
    let (mut no, mut yes, mut step) = (0, guess, 1);
    if holds(guess) {
        while yes > step {
            if !holds(yes - step) {
                no = yes - step;
                break;
            }
            yes -= step;
            step *= 2;
        }
    } else {
        no = guess;
        yes = guess.saturating_add(step);
        while yes < u64::MAX && !holds(yes) {
            step *= 2;
            (no, yes) = (yes, yes.saturating_add(step));
        }
    }
    while yes - no > 1 {
        let middle = no + (yes - no) / 2;
        if holds(middle) {
            yes = middle;
        } else {
            no = middle;
        }
    }
    yes
}

/// The greatest load for which a condition holds, up to a relative error of `precision`. The search starts between half
/// of `guess` and `guess`, and tries small loads first, since the rates of large ones take long to compute.
pub(crate) fn greatest_load(guess: f64, precision: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut enough, mut too_many) = (guess / 2.0, guess);
    while !holds(enough) {
        (enough, too_many) = (enough / 2.0, enough);
    }
    while holds(too_many) {
        (enough, too_many) = (too_many, too_many * 1.5);
    }
    while too_many / enough > 1.0 + precision {
        let middle = (enough * too_many).sqrt();
        if holds(middle) {
            enough = middle;
        } else {
            too_many = middle;
        }
    }
    enough
}
