//! `bloom_set_info`, `bloom_set_generations`: how full a set is.

use super::list::Generation;
use super::rates::{Rates, at_least};
use super::rows::{MOST_ROWS_AT_ONCE, Wanted};
use super::table::{Purpose, Set};
use crate::pg::call::Call;
use crate::pg::call::error::{Outcome, Result};
use crate::pg::sql::{Prepared, Sees, connected};
use crate::pg::value::row::{Column, Rows, row};
use pg_bloom_core::memory;
use pgrx::pg_sys::{self, Datum};

/// How full a generation is.
struct Filled {
    generation: Generation,
    rates: Rates,
    /// Bytes of its filters.
    bytes: u64,
}

/// Reads all filters of the generations that count; forgotten ones count as empty.
fn read_all(set: &Set) -> Result<Vec<Filled>> {
    let list = connected(|| set.current_list(Sees::CallingQuery))?;
    let mut cutoff = None;
    let fill = |generation: &Generation| {
        let mut filled = Filled { generation: generation.clone(), rates: Rates::default(), bytes: 0 };
        for first in (0..generation.shards).step_by(MOST_ROWS_AT_ONCE) {
            let end = first.saturating_add(MOST_ROWS_AT_ONCE as u32).min(generation.shards);
            let row_of = |shard| Wanted::one(generation, shard, 0..0);
            connected(|| {
                set.read(
                    Sees::CallingQuery,
                    |_| memory::collect((first..end).map(row_of)),
                    |wanted, row| {
                        filled.bytes += row.filter.bytes().len() as u64;
                        filled.rates.add_row(set, &list, wanted, row, &mut cutoff)
                    },
                )
            })?;
        }
        Ok(filled)
    };
    list.generations.iter().map(fill).collect()
}

/// `bloom_set_info(set)`.
fn info(call: &Call) -> Outcome {
    let Some(oid) = call.oid(0) else { return Ok(None) };
    let set = Set::open(call, oid, Purpose::Ask)?;
    let made_for = set.parameters();
    let all = read_all(&set)?;
    let found_nowhere: f64 = all.iter().map(|filled| 1.0 - filled.rates.mean()).product();
    let is_overfull = made_for.capacity.map(|capacity| match (&all[..], made_for.keep) {
        ([one], None) => one.rates.is_overfull(one.generation.shards, capacity, made_for.fpr),
        _ => at_least(all.iter().map(|filled| (filled.rates, u32::MAX))) > made_for.fpr,
    });
    let columns = [
        Column::Oid(made_for.element),
        Column::F64(all.iter().map(|filled| filled.rates.elements).sum()),
        made_for.capacity.map_or(Column::Null, |capacity| Column::I64(capacity as i64)),
        Column::F64(made_for.fpr),
        Column::F64(if let [one] = &all[..] { one.rates.mean() } else { 1.0 - found_nowhere }),
        Column::I32(all.iter().map(|filled| filled.generation.shards as i32).sum()),
        Column::I64(bytes(&set)?),
        is_overfull.map_or(Column::Null, Column::Bool),
    ];
    Ok(Some(row(call, &columns)))
}

/// Bytes on disk of a set with its indexes and partitions.
fn bytes(set: &Set) -> Result<i64> {
    const SIZE: &[u8] = b"SELECT COALESCE((SELECT pg_catalog.sum(pg_catalog.pg_total_relation_size(relid)) \
        FROM pg_catalog.pg_partition_tree($1)), pg_catalog.pg_total_relation_size($1))::pg_catalog.int8";
    let mut bytes = 0;
    let size = Prepared::new(&[SIZE], &[pg_sys::REGCLASSOID])?;
    connected(|| {
        size.execute(&[Datum::from(set.oid)], Sees::CallingQuery, |row| {
            bytes = row.column(1).map_or(0, |datum| datum.value() as i64);
            Ok(())
        })
    })?;
    Ok(bytes)
}

/// `bloom_set_generations(set)`, a row at each call.
fn generations(call: &Call) -> Outcome {
    Rows::next(call, || {
        let Some(oid) = call.oid(0) else { return Ok(Vec::new()) };
        let set = Set::open(call, oid, Purpose::Ask)?;
        let has_generations = set.known.growth.is_some();
        let time = |time| if has_generations { Column::Time(time) } else { Column::Null };
        let fpr = set.known.growth.as_ref().map_or(set.parameters().fpr, |growth| growth.plan.fpr());
        let capacity = |generation: &Generation| match &set.known.growth {
            Some(growth) => Some(growth.plan.capacities()[set.level(growth, generation)]),
            None => set.parameters().capacity,
        };
        let row = |filled: &Filled| {
            vec![
                Column::I32(filled.generation.number),
                time(filled.generation.since),
                filled.generation.until.map_or(Column::Null, time),
                Column::F64(filled.rates.elements),
                capacity(&filled.generation).map_or(Column::Null, |capacity| Column::I64(capacity as i64)),
                Column::F64(fpr),
                Column::F64(filled.rates.mean()),
                Column::I32(filled.generation.shards as i32),
                Column::I64(filled.bytes as i64),
            ]
        };
        Ok(read_all(&set)?.iter().map(row).collect())
    })
}

pg_functions! {
    bloom_set_info => info;
    bloom_set_generations => generations;
}
