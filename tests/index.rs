//! The index `USING bloom_filter` never hides a row. Whatever happened to a table, what index scans
//! find is what sequential scans find, and `bloom_index_check` agrees.
//!
//! | file | what it does |
//! |---|---|
//! | `history` | random histories of one table, with crashes |
//! | `actions` | what happens in them |
//! | `sessions` | writers, readers and somebody who rebuilds, all at once, with crashes |
//! | `concurrently` | indexes that are made while their table changes, from rows that are remembered until then |
//! | `crash` | unlogged and temporary tables, `wal_level = minimal`, pages that were never written |
//! | `standby` | a standby reads the same, has the same bytes, and takes over |
//! | `levels` | an index of all levels, crashes and a standby |
//! | `failures` | builds and checks that fail give back their memory |
//! | `cold` | tables and indexes that don't fit into the server's memory |
//! | `heap_filter` | rows that a scan of the index takes from pages by itself |
//! | `alphabets` | words of forty scripts by LIKE, ILIKE, `~` and `~*` |
//! | `alternations` | regular expressions of several words, which cost and read what LIKE ANY does |
//! | `answerable` | which random questions read a part of the table |
//! | `parts` | what is in values: random documents, random questions of each operator |
//! | `json_paths` | random expressions of jsonpath |
//! | `many` | many values in one condition, after random histories |
//! | `late_splits` | pages that are split while others write |
//! | `splits` | pages that are split among ranges, after random histories |
//! | `locales` | ILIKE in the locales that this machine has, with all characters that it folds to ASCII or from it |
//! | `explain` | what EXPLAIN (ANALYZE) says that a scan did |
//! | `plans` | pages that plans read, by workers as well, and plans that outlive their index |
//! | `types` | every operator class: edge values, asked with every type of the family |
//! | `encodings` | text in databases that are not in UTF-8 |
//! | `refused` | what can't be indexed, and with which SQLSTATE it is refused |
//! | `duplicates` | sessions that add what isn't there yet, at once |
//! | `wide_values` | wide values far apart, and values with very many keys |
//! | `damage` | damaged files: an error or an answer, never a crash |
//! | `damaged_heap` | damaged pages of the table itself |
//!
//! `common::asking` asks each question twice, by the index and by a sequential scan: the oracle of
//! all these tests. Random tests print their seed, and take another from `INDEX_SEED`. `SOAK=10`
//! makes them thirty times as long.

#[path = "index/actions.rs"]
mod actions;
#[path = "index/alphabets.rs"]
mod alphabets;
#[path = "index/alternations.rs"]
mod alternations;
#[path = "index/answerable.rs"]
mod answerable;
#[path = "index/cold.rs"]
mod cold;
mod common;
#[path = "index/concurrently.rs"]
mod concurrently;
#[path = "index/crash.rs"]
mod crash;
#[path = "index/damage.rs"]
mod damage;
#[path = "index/damaged_heap.rs"]
mod damaged_heap;
#[path = "index/duplicates.rs"]
mod duplicates;
#[path = "index/encodings.rs"]
mod encodings;
#[path = "index/explain.rs"]
mod explain;
#[path = "index/failures.rs"]
mod failures;
#[path = "index/heap_filter.rs"]
mod heap_filter;
#[path = "index/history.rs"]
mod history;
#[path = "index/json_paths.rs"]
mod json_paths;
#[path = "index/late_splits.rs"]
mod late_splits;
#[path = "index/levels.rs"]
mod levels;
#[path = "index/locales.rs"]
mod locales;
#[path = "index/many.rs"]
mod many;
#[path = "index/parts.rs"]
mod parts;
#[path = "index/plans.rs"]
mod plans;
#[path = "index/refused.rs"]
mod refused;
#[path = "index/sessions.rs"]
mod sessions;
#[path = "index/splits.rs"]
mod splits;
#[path = "index/standby.rs"]
mod standby;
#[path = "index/types.rs"]
mod types;
#[path = "index/wide_values.rs"]
mod wide_values;

use common::{Server, random, times};
use std::sync::OnceLock;

/// The server of those tests that need no configuration and let it run.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(""))
}
