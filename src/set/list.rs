//! The generations of a set: which there are, and since when.

use crate::pg::value::time::Timestamp;
use std::rc::Rc;

/// A generation, as its first row says.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// Its number.
    pub number: i32,
    /// How many rows it has.
    pub shards: u32,
    /// When it was made.
    pub since: Timestamp,
    /// When it ended: nothing was added to it later.
    pub until: Option<Timestamp>,
}

/// The generations that count, oldest first; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// They themselves.
    pub generations: Vec<Generation>,
    /// How many others there are that don't count any more.
    pub leftover: usize,
}

impl List {
    /// That of a set which neither grows nor forgets.
    pub fn of_one(shards: u32) -> List {
        List { generations: vec![Generation { number: 0, shards, since: 0, until: None }], leftover: 0 }
    }

    /// The list that first rows say, which ascend: each with the oldest generation that counted when it was made. `Err`
    /// has the number of one that is missing.
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
