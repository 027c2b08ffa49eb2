//! The condition, prepared to be evaluated for many rows.

use super::parts::{self, Called};
use super::provider::{Condition, provider};
use super::raw;
use crate::pg::call::error::Result;
use crate::pg::call::nodes::nth;
use crate::pg::call::{Call, Element};
use pgrx::pg_sys;

/// The condition of one scan.
pub struct Asked {
    condition: Condition,
    /// The call that is asked: it remembers what it needs for the whole scan.
    call: pg_sys::FunctionCallInfo,
    /// The argument that is the same for all rows.
    fixed: *mut pg_sys::ExprState,
    /// Memory of that.
    memory: pg_sys::MemoryContext,
    is_known: bool,
    /// The column that is asked about.
    pub column: i16,
    /// All of it as an expression, for single rows.
    pub expression: *mut pg_sys::ExprState,
}

impl Asked {
    /// That of a plan; the memory is that of the execution.
    ///
    /// # Safety
    /// The state must be that of the plan, which was made by this library.
    pub unsafe fn new(scan: *mut pg_sys::CustomScan, state: *mut pg_sys::PlanState) -> Asked {
        // SAFETY: promised by the caller; the information of a call has room for two arguments. Preparing the whole
        // expression checks that the user may call the function.
        unsafe {
            let clause = parts::ours(scan);
            let list = pg_sys::lappend(std::ptr::null_mut(), clause.cast());
            let expression = pg_sys::ExecInitQual(list, state);
            let Called { function, arguments, collation } = parts::called(clause).expect("a condition is a call");
            let conditions = provider().expect("a plan has its provider").conditions;
            let condition = conditions[parts::condition(scan)];
            let argument = |i| nth(arguments, i).expect("a condition has two arguments");
            let (fixed, column) = (argument(condition.fixed), parts::column(argument(1 - condition.fixed)));
            let column = column.expect("a condition is on a column");
            let information: *mut pg_sys::FmgrInfo = pg_sys::palloc0(size_of::<pg_sys::FmgrInfo>()).cast();
            pg_sys::fmgr_info_cxt(function, information, pg_sys::CurrentMemoryContext);
            (*information).fn_expr = clause;
            let bytes = size_of::<pg_sys::FunctionCallInfoBaseData>() + 2 * size_of::<pg_sys::NullableDatum>();
            let call: pg_sys::FunctionCallInfo = pg_sys::palloc0(bytes).cast();
            (*call).flinfo = information;
            (*call).fncollation = collation;
            (*call).nargs = 2;
            let memory = pg_sys::AllocSetContextCreateInternal(
                pg_sys::CurrentMemoryContext,
                c"pg_bloom argument of a scan".as_ptr(),
                pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
                pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            );
            let fixed = pg_sys::ExecInitExpr(fixed.cast(), state);
            Asked { condition, call, fixed, memory, is_known: false, column: (*column).varattno, expression }
        }
    }

    /// Forgets the fixed argument, which may be another one in the next scan.
    pub fn forget(&mut self) {
        if self.is_known {
            self.is_known = false;
            // SAFETY: made by `new`; the call's argument is set again before it is used.
            unsafe { pg_sys::MemoryContextReset(self.memory) };
        }
    }

    /// Answers for values of the column, none of which is NULL. A function that was altered since the plan was made, so
    /// that it runs with other rights for instance, is called for each.
    ///
    /// # Errors
    /// Those of the condition.
    ///
    /// # Safety
    /// The context must be that of the state.
    pub unsafe fn ask(
        &mut self,
        context: *mut pg_sys::ExprContext,
        elements: &[Element],
        answers: &mut [bool],
    ) -> Result<()> {
        // SAFETY: promised by the caller; the call has two arguments, and its types are those of the plan.
        unsafe {
            let arguments = (*self.call).args.as_mut_ptr();
            let argument = arguments.add(self.condition.fixed);
            if !self.is_known {
                let before = pg_sys::MemoryContextSwitchTo(self.memory);
                let value = raw::guarded(|| raw::evaluate(self.fixed, context));
                pg_sys::MemoryContextSwitchTo(before);
                (*argument).isnull = value.is_none();
                (*argument).value = value.unwrap_or(pg_sys::Datum::null());
                self.is_known = true;
            }
            if (*argument).isnull {
                answers.fill(false);
                return Ok(());
            }
            if self.condition.is(&*(*self.call).flinfo) {
                return (self.condition.ask)(&Call::new(self.call), elements, answers);
            }
            let element = arguments.add(1 - self.condition.fixed);
            for (answer, &Element { datum }) in answers.iter_mut().zip(elements) {
                *element = pg_sys::NullableDatum { value: datum, isnull: false };
                *answer = raw::guarded(|| raw::call(self.call)).is_some_and(|value| value.value() != 0);
            }
            Ok(())
        }
    }
}
