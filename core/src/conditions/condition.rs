//! A condition on the hashes of a row's parts.

use crate::memory;

/// How deep conditions may be nested: what is deeper counts as unknown, which is right for any condition.
pub const MAX_DEPTH: usize = 64;

/// What the hashes of a row's parts must be, if the row can match. Where an index can't tell, it is unknown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// Any row may match. Only a whole condition is ever unknown, none within another.
    Unknown,
    /// The row must have this hash.
    Has(u64),
    /// All of these; never empty.
    All(Vec<Condition>),
    /// One of these. If there is none, no row matches.
    Any(Vec<Condition>),
}

impl Condition {
    /// No row matches.
    pub const NONE: Condition = Condition::Any(Vec::new());

    /// All of these conditions: what is unknown among them is left out.
    pub fn all(conditions: impl IntoIterator<Item = Condition>) -> Condition {
        let mut all = Vec::new();
        for condition in conditions {
            match condition {
                Condition::Unknown => {}
                Condition::Any(any) if any.is_empty() => return Condition::NONE,
                Condition::All(more) => more.into_iter().for_each(|condition| memory::push(&mut all, condition)),
                other => memory::push(&mut all, other),
            }
        }
        match all.len() {
            0 => Condition::Unknown,
            1 => all.remove(0),
            _ => Condition::All(all),
        }
    }

    /// One of these conditions: unknown if one of them is.
    pub fn any(conditions: impl IntoIterator<Item = Condition>) -> Condition {
        let mut any = Vec::new();
        for condition in conditions {
            match condition {
                Condition::Unknown => return Condition::Unknown,
                Condition::Any(mut more) => {
                    // Of many ORs in each other, the few are added to the many.
                    if more.len() > any.len() {
                        std::mem::swap(&mut any, &mut more);
                    }
                    more.into_iter().for_each(|condition| memory::push(&mut any, condition));
                }
                other => memory::push(&mut any, other),
            }
        }
        if any.len() == 1 { any.remove(0) } else { Condition::Any(any) }
    }

    /// All of these hashes. They are looked for in an order of their own, so that neighbouring windows, which often
    /// come together, don't follow each other; and beyond `most` of them the rest is left out.
    pub fn all_of(mut hashes: Vec<u64>, most: usize) -> Condition {
        hashes.sort_unstable();
        hashes.dedup();
        hashes.truncate(most);
        Condition::all(hashes.into_iter().map(Condition::Has))
    }

    /// Whether any row may match.
    pub fn is_unknown(&self) -> bool {
        *self == Condition::Unknown
    }

    /// Whether the condition holds for a row that has the hashes for which `has` is true.
    pub fn holds(&self, has: &impl Fn(u64) -> bool) -> bool {
        match self {
            Condition::Unknown => true,
            Condition::Has(hash) => has(*hash),
            Condition::All(conditions) => conditions.iter().all(|condition| condition.holds(has)),
            Condition::Any(conditions) => conditions.iter().any(|condition| condition.holds(has)),
        }
    }

    /// The same condition on what `of` makes of the hashes.
    #[must_use]
    pub fn map(&self, of: &mut impl FnMut(u64) -> u64) -> Condition {
        let mut each = |conditions: &[Condition]| memory::collect(conditions.iter().map(|condition| condition.map(of)));
        match self {
            Condition::Unknown => Condition::Unknown,
            Condition::Has(hash) => Condition::Has(of(*hash)),
            Condition::All(conditions) => Condition::All(each(conditions)),
            Condition::Any(conditions) => Condition::Any(each(conditions)),
        }
    }

    /// Calls `visit` with some hashes, of which a row must have one if the condition holds.
    pub(super) fn watched(&self, visit: &mut impl FnMut(u64)) {
        match self {
            // Only a whole condition is unknown, and has no hashes.
            Condition::Unknown => {}
            Condition::Has(hash) => visit(*hash),
            Condition::All(conditions) => conditions.iter().take(1).for_each(|condition| condition.watched(visit)),
            Condition::Any(conditions) => conditions.iter().for_each(|condition| condition.watched(visit)),
        }
    }

    /// The slots of `all`, up to 128, for which the condition may hold; `having` returns those that may have a hash. It
    /// is not called for a hash that can't change the answer.
    ///
    /// # Errors
    /// Those of `having`.
    pub fn slots<E>(&self, all: u128, having: &mut impl FnMut(u64) -> Result<u128, E>) -> Result<u128, E> {
        match self {
            Condition::Unknown => Ok(all),
            Condition::Has(hash) => Ok(all & having(*hash)?),
            Condition::All(conditions) => {
                let mut left = all;
                for condition in conditions {
                    if left == 0 {
                        break;
                    }
                    left = condition.slots(left, having)?;
                }
                Ok(left)
            }
            Condition::Any(conditions) => {
                let mut found = 0;
                for condition in conditions {
                    if found == all {
                        break;
                    }
                    found |= condition.slots(all & !found, having)?;
                }
                Ok(found)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Condition::{All, Any, Has, Unknown};
    use super::*;

    #[test]
    fn unknown_is_left_out_of_all_and_makes_any_unknown() {
        assert_eq!(Condition::all([Unknown, Has(1)]), Has(1));
        assert_eq!(Condition::all([Unknown, Unknown]), Unknown);
        assert_eq!(Condition::all([]), Unknown);
        assert_eq!(Condition::any([Unknown, Has(1)]), Unknown);
        assert_eq!(Condition::any([]), Condition::NONE);
        assert_eq!(Condition::all([Has(1), Condition::NONE]), Condition::NONE);
        assert_eq!(Condition::any([Has(1), Condition::NONE]), Has(1));
        assert_eq!(Condition::all([Has(1), All(vec![Has(2), Has(3)])]), All(vec![Has(1), Has(2), Has(3)]));
        assert_eq!(Condition::all_of(vec![3, 1, 3, 2], 2), All(vec![Has(1), Has(2)]));
    }

    #[test]
    fn slots_are_those_for_which_the_condition_holds() {
        // Slot s has the hashes that are bits of s.
        let having = |bit: u64| (0..128).filter(|s| s >> bit & 1 == 1).fold(0, |slots, s| slots | 1u128 << s);
        let condition = All(vec![Any(vec![Has(0), Has(1)]), Has(2), Any(vec![All(vec![Has(0), Has(3)]), Has(4)])]);
        let holds = |s: u32| {
            let has = |bit: u32| s >> bit & 1 == 1;
            (has(0) || has(1)) && has(2) && (has(0) && has(3) || has(4))
        };
        let expected = (0..128).filter(|&s| holds(s)).fold(0, |slots, s| slots | 1u128 << s);
        let found = condition.slots(u128::MAX, &mut |hash| Ok::<_, ()>(having(hash)));
        assert_eq!(found, Ok(expected));
    }

    #[test]
    fn what_cannot_change_the_answer_is_not_asked_for() {
        let mut asked = Vec::new();
        let condition = All(vec![Has(1), Has(2)]);
        let found = condition.slots(u128::MAX, &mut |hash| {
            asked.push(hash);
            Ok::<_, ()>(0)
        });
        assert_eq!((found, asked), (Ok(0), vec![1]));
        assert_eq!(Unknown.slots(5, &mut |_| Err(())), Ok(5));
    }
}
