//! The list of a set's generations.

use crate::pg::value::time::Timestamp;
use std::rc::Rc;

/// A generation, as described by its first row.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// Its number.
    pub number: i32,
    /// How many rows it has.
    pub shards: u32,
    /// When it was made.
    pub since: Timestamp,
    /// When it ended; nothing was added to it later.
    pub until: Option<Timestamp>,
}

/// The generations that count, oldest first; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// The generations.
    pub generations: Vec<Generation>,
    /// How many older ones there are that no longer count.
    pub leftover: usize,
}

impl List {
    /// The list of a set without generations: one with number 0.
    pub fn of_one(shards: u32) -> List {
        List { generations: vec![Generation { number: 0, shards, since: 0, until: None }], leftover: 0 }
    }

    /// The list from the first rows of all generations, oldest first, each with the oldest generation that counted when
    /// it was made. `Err` has the number of a missing one.
    pub fn of_rows(rows: Vec<(Generation, i32)>) -> Result<Rc<List>, i32> {
        let Some(&(Generation { number: newest, until, .. }, oldest)) = rows.last() else { return Err(0) };
        if until.is_some() {
            return Err(newest.saturating_add(1));
        }
        let rows = rows.into_iter().map(|(generation, _)| generation);
        let (generations, leftover): (Vec<Generation>, Vec<_>) = rows.partition(|g| g.number >= oldest);
        let missing = (i64::from(oldest)..).zip(&generations).find(|(number, g)| *number != i64::from(g.number));
        match (missing, generations.split_last()) {
            (Some((number, _)), _) => Err(number as i32),
            (None, Some((_, ended))) if ended.iter().all(|g| g.until.is_some()) => {
                Ok(Rc::new(List { generations, leftover: leftover.len() }))
            }
            _ => Err(newest),
        }
    }

    /// The newest, to which elements are added.
    pub fn newest(&self) -> &Generation {
        self.generations.last().expect("a list has at least one generation")
    }
}
