//! Everything unsafe about datums: calls, variable-length values, arrays, rows, types.
//!
//! Functions of the extension are plain safe Rust, `fn(&Call) -> Result<Option<Datum>, Failure>`; the macro
//! `pg_functions!` gives each the symbol and calling convention that `CREATE FUNCTION … LANGUAGE C` looks for. What
//! makes the safe methods here sound is that PostgreSQL calls a C function with the arguments that `sql/pg_bloom.sql`
//! declares: whoever may create C functions may do anything already.

mod array;
mod batch;
mod bound;
mod call;
mod canonical;
pub mod catalog;
mod cost;
mod counting_state;
mod effort;
pub mod expression;
mod handover;
mod jsonb;
mod members;
mod memory;
mod merge_state;
mod numeric;
pub mod once;
mod params;
mod payload;
mod pg_list;
mod quiet;
mod row;
mod rowtype;
mod set_state;
mod sort;
mod spill;
mod start;
mod state;
mod statistics;
mod stored;
mod temporary;
mod varlena;

pub use array::{array_of, elements};
pub use bound::quiet_parameter;
pub use call::{Call, Element};
pub use canonical::{Form, Reader, Source};
pub use cost::{CostRequest, StoredColumn, cost_request};
pub use counting_state::CountingState;
pub use members::{Member, Parts, RangeType};
pub use params::{Params, Shared};
pub use row::{Column, Rows, row};
pub use rowtype::{RowType, version};
pub use set_state::SetState;
pub use sort::{Bits, Counters, Sort};
pub use start::start;
pub use state::State;
pub use statistics::{Clause, Column as ElementColumn, Side, clause};
pub use stored::{Filter, Stored};
pub use varlena::{PgBuffer, Value, c_string};

/// Lets the user cancel: raises an error if that was asked for.
pub fn check_for_interrupts() {
    pgrx::check_for_interrupts!();
}

/// Defines the C symbols of functions: `pg_functions! { fn name => path; }`.
macro_rules! pg_functions {
    ($($name:ident => $function:path;)*) => {
        /// The C symbols of this file's functions.
        #[allow(
            missing_docs,
            clippy::missing_safety_doc,
            reason = "each is documented where it is implemented and in sql/pg_bloom.sql; PostgreSQL calls it"
        )]
        pub mod symbols {
            use super::*;
            $(
                #[unsafe(no_mangle)]
                #[pgrx::pg_guard]
                pub unsafe extern "C-unwind" fn $name(
                    fcinfo: pgrx::pg_sys::FunctionCallInfo,
                ) -> pgrx::pg_sys::Datum {
                    // SAFETY: PostgreSQL passes the information about this call.
                    let call = unsafe { $crate::datum::Call::new(fcinfo) };
                    let result = $function(&call);
                    call.finish(result)
                }

                // Tells PostgreSQL that the function follows calling convention 1.
                const _: () = {
                    #[unsafe(export_name = concat!("pg_finfo_", stringify!($name)))]
                    extern "C" fn finfo() -> &'static pgrx::pg_sys::Pg_finfo_record {
                        &pgrx::pg_sys::Pg_finfo_record { api_version: 1 }
                    }
                };
            )*
        }
    };
}
