//! What depends on how PostgreSQL executes a statement: plans, processes, memory, rows.
//!
//! | file | what it is about |
//! |---|---|
//! | `backtraces` | errors show no backtrace |
//! | `exhaustion` | where there is no more memory |
//! | `plan_memory` | the memory of parallel plans |
//! | `plans` | what the planner expects |
//! | `read_ahead` | scans that fetch memory ahead for the rows that they probe |
//! | `rows` | rows whose types were altered or made again |
//! | `unsized_plans` | unsized builds in parallel plans |

mod backtraces;
#[path = "../common/mod.rs"]
mod common;
mod exhaustion;
mod plan_memory;
mod plans;
mod read_ahead;
mod rows;
mod unsized_plans;

use common::Server;
use std::sync::OnceLock;

/// The server of those tests that need no other configuration and let it run.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start("autovacuum = off"))
}
