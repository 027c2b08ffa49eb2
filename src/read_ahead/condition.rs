//! The conditions that are evaluated for many rows at once: `filter @> element` in all its forms.
//!
//! Paths and plans have them like this:
//!
//! ```text
//! path.custom_private  our restriction, and which condition it is
//! plan.qual            the other conditions, in their order; the first `before` of them are evaluated before ours
//! plan.custom_exprs    ours
//! plan.custom_private  before, and which condition ours is
//! ```

use crate::filter_type::FilterType::{self, Bloom, CountingBloom};
use crate::membership::symbols;
use crate::pg::call::nodes::argument;
use crate::pg::call::{Call, Element, raise};
use crate::probe::probe_each;
use pgrx::pg_sys::{self, NodeTag};
use std::ffi::CStr;

/// A function that a scan can evaluate for many rows.
pub struct ProbeCondition {
    /// The C function: strict, immutable, with two arguments and a boolean result.
    function: unsafe extern "C-unwind" fn(pg_sys::FunctionCallInfo) -> pg_sys::Datum,
    filter_type: FilterType,
    /// Which argument is the filter; the other one is the element.
    filter: usize,
}

/// All of them. A plan has the number of its own.
static CONDITIONS: [ProbeCondition; 4] = [
    ProbeCondition {
        function: symbols::bloom_contains,
        filter_type: Bloom,
        filter: 0,
    },
    ProbeCondition {
        function: symbols::bloom_contained,
        filter_type: Bloom,
        filter: 1,
    },
    ProbeCondition {
        function: symbols::counting_bloom_contains,
        filter_type: CountingBloom,
        filter: 0,
    },
    ProbeCondition {
        function: symbols::counting_bloom_contained,
        filter_type: CountingBloom,
        filter: 1,
    },
];

/// The function that a node calls by an operator or by its name.
unsafe fn function(node: *mut pg_sys::Node) -> Option<pg_sys::Oid> {
    // SAFETY: the node is an expression, and read as what its tag says.
    unsafe {
        match (*node).type_ {
            NodeTag::T_OpExpr => {
                pg_sys::set_opfuncid(node.cast());
                Some((*node.cast::<pg_sys::OpExpr>()).opfuncid)
            }
            NodeTag::T_FuncExpr => Some((*node.cast::<pg_sys::FuncExpr>()).funcid),
            _ => None,
        }
    }
}

/// Which condition a clause is. Only of functions with likely names the C function is looked up.
///
/// # Safety
/// `clause` must be a valid expression.
pub unsafe fn number(clause: *mut pg_sys::Node) -> Option<usize> {
    // SAFETY: promised by the caller; the name is null or a C string; a function with a name
    // exists.
    unsafe {
        let function = function(clause)?;
        let name = pg_sys::get_func_name(function);
        if name.is_null()
            || !CStr::from_ptr(name)
                .to_bytes()
                .windows(13)
                .any(|part| part == b"bloom_contain")
        {
            return None;
        }
        let mut info = pg_sys::FmgrInfo::default();
        pg_sys::fmgr_info(function, &mut info);
        let address = info.fn_addr? as usize;
        CONDITIONS
            .iter()
            .position(|condition| condition.function as usize == address)
    }
}

/// The filter and the element of a clause, which is condition `number`.
///
/// # Safety
/// As [`number`].
pub unsafe fn sides(
    clause: *mut pg_sys::Node,
    number: usize,
) -> (*mut pg_sys::Node, *mut pg_sys::Node) {
    let filter = CONDITIONS[number].filter;
    // SAFETY: promised by the caller.
    let side = |i| unsafe { argument(clause, i).expect("a condition has two arguments") };
    (side(filter), side(1 - filter))
}

/// The call of a condition in one execution. All may be zero until it is prepared.
pub struct ProbeState {
    number: usize,
    /// The call remembers what it needs for the whole scan.
    call: pg_sys::FunctionCallInfo,
    filter: *mut pg_sys::ExprState,
    /// Has the memory of the filter.
    context: *mut pg_sys::ExprContext,
    is_known: bool,
    /// The element of a row.
    pub element: *mut pg_sys::ExprState,
}

impl ProbeState {
    /// Prepares condition `number`, which is this clause, in the memory of the execution.
    ///
    /// # Safety
    /// The state must be that of the plan that has the clause, and nothing be done with this when
    /// that has ended.
    pub unsafe fn new(
        clause: *mut pg_sys::Node,
        number: usize,
        state: *mut pg_sys::PlanState,
    ) -> ProbeState {
        // SAFETY: promised by the caller; the information of a call has room for two arguments.
        unsafe {
            let function = function(clause).expect("a condition is a call");
            let (filter, element) = sides(clause, number);
            let element = pg_sys::ExecInitExpr(element.cast(), state);
            let filter = pg_sys::ExecInitExpr(filter.cast(), state);
            let information: *mut pg_sys::FmgrInfo =
                pg_sys::palloc0(size_of::<pg_sys::FmgrInfo>()).cast();
            pg_sys::fmgr_info(function, information);
            (*information).fn_expr = clause;
            let bytes = size_of::<pg_sys::FunctionCallInfoBaseData>()
                + 2 * size_of::<pg_sys::NullableDatum>();
            let call: pg_sys::FunctionCallInfo = pg_sys::palloc0(bytes).cast();
            (*call).flinfo = information;
            (*call).fncollation = pg_sys::exprInputCollation(clause);
            (*call).nargs = 2;
            let context = pg_sys::CreateExprContext((*state).state);
            ProbeState { number, call, filter, context, is_known: false, element }
        }
    }

    /// Forgets the filter, which may be another one in the next scan.
    pub fn forget(&mut self) {
        self.is_known = false;
        // SAFETY: made by `new`; the filter is evaluated again before it is used.
        unsafe { pg_sys::ReScanExprContext(self.context) };
    }

    /// Probes the filter for each of these elements, none of which is NULL.
    ///
    /// # Safety
    /// They must be of the type that the plan says.
    pub unsafe fn probe(&mut self, elements: &[Element], answers: &mut [bool]) {
        let condition = &CONDITIONS[self.number];
        // SAFETY: made by `new`: the call has two arguments, and its types are those of the plan.
        let call = unsafe {
            let filter = &mut *(*self.call).args.as_mut_ptr().add(condition.filter);
            if !self.is_known {
                filter.value = evaluate(self.filter, self.context, &mut filter.isnull);
                self.is_known = true;
            }
            if filter.isnull {
                return answers.fill(false);
            }
            Call::new(self.call)
        };
        // SAFETY: promised by the caller.
        unsafe { probe_each(&call, condition.filter_type, condition.filter, elements, answers) }
            .unwrap_or_else(|error| raise(error));
    }
}

/// The value of a prepared expression, in the memory of its context.
///
/// # Safety
/// The context must have what the expression refers to.
pub unsafe fn evaluate(
    expression: *mut pg_sys::ExprState,
    context: *mut pg_sys::ExprContext,
    is_null: &mut bool,
) -> pg_sys::Datum {
    // SAFETY: promised by the caller; a prepared expression has its function.
    unsafe {
        let before = pg_sys::MemoryContextSwitchTo((*context).ecxt_per_tuple_memory);
        let evaluate = (*expression).evalfunc.expect("the expression was prepared");
        let value = guarded!(evaluate(expression, context, is_null));
        pg_sys::MemoryContextSwitchTo(before);
        value
    }
}
