//! SQL: statements, transactions, and names.
//!
//! | module | what it is for |
//! |---|---|
//! | `statement` | preparing and executing statements, with the rights of the caller |
//! | `transaction` | subtransactions, snapshots, and what a transaction may do |
//! | `setting` | settings that hold while something runs |
//! | `name` | names of relations as SQL writes them |

mod name;
mod setting;
mod statement;
mod transaction;

pub use self::name::{NewName, qualified, relation};
pub use self::setting::with_settings;
pub use self::statement::{Parameter, Planning, Prepared, ResultRow, Sees, connected, execute};
pub(in crate::pg) use self::transaction::snapshot;
pub use self::transaction::{
    Ending, has_one_snapshot, in_subtransaction, precedes, require_writable, snapshot_is_after,
    with_new_snapshot,
};
