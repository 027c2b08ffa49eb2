//! Filters: their elements, their bytes, their functions and aggregates.
//!
//! | file | what it is about |
//! |---|---|
//! | `arguments` | every function with every sort of odd argument |
//! | `by_hand` | the functions of the aggregates, called as Citus calls them |
//! | `canonical` | canonical bytes of jsonb, and of all that is made of parts |
//! | `cold` | filters that don't fit into memory |
//! | `counting` | counting filters against a multiset |
//! | `encodings` | filters that are moved to a database with another encoding |
//! | `estimators` | the planner's functions where they are not expected |
//! | `format` | a reader in Python |
//! | `hashes` | golden vectors |
//! | `hostile` | damaged and forged values |
//! | `joins` | aggregates above joins, which PostgreSQL 19 may compute below them |
//! | `kinds` | filters of every kind of key |
//! | `large` | builds that outgrow the cache, `work_mem` or a process |
//! | `limits` | what statements that fail or are cancelled leave behind |
//! | `oracle` | filters against sets |
//! | `own_types` | types whose hash function comes and goes |
//! | `parallel` | aggregates in every plan |
//! | `real_urls` | two lists of URLs |
//! | `reference` | docs/reference.md against the catalogs |
//! | `sharding` | sets that are spread over the filters of many rows |
//! | `spilling` | temporary files of unsized builds |
//! | `statements` | what the parser makes of statements without a filter |
//! | `stored` | filters in tables |
//! | `structured` | the rate for elements that are alike |
//! | `writer` | a writer in Python |

mod arguments;
mod by_hand;
mod canonical;
mod cold;
#[path = "../common/mod.rs"]
mod common;
mod counting;
mod encodings;
mod estimators;
mod format;
mod hashes;
mod hostile;
mod joins;
mod kinds;
mod large;
mod limits;
mod oracle;
mod own_types;
mod parallel;
mod real_urls;
mod reference;
mod sharding;
mod spilling;
mod statements;
mod stored;
mod structured;
mod writer;

use common::Server;
use std::sync::OnceLock;

/// The server of those tests that need no other configuration and let it run.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start("timezone = 'UTC'\nautovacuum = off"))
}
