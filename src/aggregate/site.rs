//! Aggregates over elements: their transition and final functions, and what a call site remembers between rows.

use super::parameters::{Params, SharedParams};
use super::tag::{State, only_state};
use crate::arguments::Arguments;
use crate::element::{ElementType, Hasher, out_of_range};
use crate::error::{During, invalid_parameter};
use crate::pg::call::Call;
use crate::pg::call::error::{Error, Outcome, Result};
use crate::pg::call::nodes;
use crate::pg::memory::Context;
use crate::pg::value::varlena::Value;
use pg_bloom_core::Header;
use pg_bloom_core::filter::build::meet_kind;
use pgrx::pg_sys;
use std::marker::PhantomData;

/// What tells one aggregate over elements from another.
pub trait Aggregate: 'static {
    /// Its name, for messages.
    const NAME: &'static str;
    type State<'c>: ElementState<'c>;

    /// The header that its arguments ask for, without a kind.
    ///
    /// # Errors
    /// 22023 and 54000 for invalid arguments.
    fn requested(arguments: &Arguments) -> Result<Header<'static>>;
}

pub trait ElementState<'c>: State<'c> {
    /// # Safety
    /// The parameters must be there as long as the state.
    unsafe fn new(context: Context<'c>, params: Params) -> Self;

    /// # Errors
    /// 55000 outside an aggregate.
    fn with_header(call: &'c Call, shared: &mut SharedParams, header: &Header<'_>) -> Result<Self> {
        let (context, params) = (call.require_aggregate()?, shared.params(call, header)?);
        // SAFETY: they are kept as long as the site, or as the aggregate.
        Ok(unsafe { Self::new(context, params) })
    }

    fn params(&self) -> &Header<'_>;

    /// # Errors
    /// 54000 when there is no room for more; 55000 outside an aggregate.
    fn push(&mut self, call: &Call, hash: u64) -> Result<()>;

    /// A state that another process serialised, in the memory of the call, which is read in place.
    ///
    /// # Errors
    /// 22P03 for bytes that are not a state.
    fn deserialised(call: &'c Call, value: Value<'c>) -> Result<Self>;

    /// The finished filter. The state stays as it is, except that its hashes may be sorted.
    ///
    /// # Errors
    /// 54000 for one that is too large; 22023 for one that is overfull, if the setting says so.
    fn finish(&mut self, call: &Call) -> Result<pg_sys::Datum>;

    /// What the aggregate gives for no rows.
    ///
    /// # Errors
    /// 22023 if the default rate is invalid.
    fn empty() -> Result<pg_sys::Datum>;
}

/// The transition function of an aggregate over elements: its arguments are a state, an element, and what [`Arguments`]
/// reads.
pub fn transition<A: Aggregate>(call: &Call) -> Outcome {
    // SAFETY: remembered by the site of this call.
    let site = call.remembered(|| unsafe { CallSite::<A>::new(call) })?;
    site.begin_row(call)?;
    // SAFETY: argument 0 is the state.
    let mut state = match unsafe { <A::State<'_> as State>::argument(call, 0)? } {
        Some(state) => {
            site.check(state.params())?;
            state
        }
        None => {
            let (shared, header) = site.for_new_state();
            A::State::<'_>::with_header(call, shared, &header)?
        }
    };
    // SAFETY: the row was begun.
    if let Some(hash) = unsafe { site.hash(call, state.params())? } {
        state.push(call, hash)?;
    }
    // SAFETY: it was returned before, or made in the memory of the aggregate.
    Ok(Some(unsafe { state.into_datum() }))
}

/// The function of an aggregate that reads what another process serialised: its first argument.
pub fn deserialise<'c, S: ElementState<'c>>(call: &'c Call) -> Outcome {
    let Some(bytes) = call.value(0) else { return Ok(None) };
    let state = S::deserialised(call, bytes)?;
    call.require_aggregate()?;
    // SAFETY: this is a deserialisation function.
    Ok(Some(unsafe { state.into_datum() }))
}

/// The final function of an aggregate.
pub fn finish<'c, S: ElementState<'c>>(call: &'c Call) -> Outcome {
    // SAFETY: nothing is added to it.
    unsafe { only_state::<S>(call)? }.map_or_else(S::empty, |mut state| state.finish(call)).map(Some)
}

/// What a call site of `bloom_agg`, or of `counting_bloom_agg`, remembers between rows.
pub struct CallSite<A: Aggregate> {
    element: ElementType,
    arguments: Arguments,
    /// The header that the arguments ask for, without a kind.
    header: Header<'static>,
    shared: SharedParams,
    hasher: Hasher,
    /// Whether no row can have other arguments than the first, or elements of a type that was altered.
    is_fixed: bool,
    /// The parameters of the last state, which had those of `header`.
    seen: Params,
    aggregate: PhantomData<A>,
}

impl<A: Aggregate> CallSite<A> {
    /// The site of a transition function whose arguments are a state, an element, and what [`Arguments`] reads.
    ///
    /// # Errors
    /// 0A000 for a type that can't be an element; 55000 outside an aggregate; those of [`Aggregate::requested`].
    ///
    /// # Safety
    /// As for [`SharedParams::new`].
    unsafe fn new(call: &Call) -> Result<CallSite<A>> {
        call.require_aggregate()?;
        let element = ElementType::of_argument(call, 1)?;
        let arguments = Arguments::of(call, 2);
        let header = A::requested(&arguments)?;
        let hasher = element.hasher(header.layout);
        let is_fixed = !element.is_alterable() && (2..call.nargs()).all(|i| nodes::is_fixed(call, i));
        // SAFETY: promised by the caller.
        let (shared, seen) = (unsafe { SharedParams::new() }, std::ptr::null());
        Ok(CallSite { element, arguments, header, shared, hasher, is_fixed, seen, aggregate: PhantomData })
    }

    /// Checks whether this row has the arguments of the previous one, unless that is certain.
    ///
    /// # Errors
    /// Those of [`Aggregate::requested`].
    #[inline(always)]
    pub fn begin_row(&mut self, call: &Call) -> Result<()> {
        if self.is_fixed { Ok(()) } else { self.read_arguments(call) }
    }

    #[inline(never)]
    fn read_arguments(&mut self, call: &Call) -> Result<()> {
        if let Some(before) = self.element.refresh(call)? {
            meet_kind(before.kind(self.header.layout), self.element.kind(self.header.layout)).during(A::NAME)?;
            self.hasher = self.element.hasher(self.header.layout);
        }
        if !self.arguments.are_those_of(call, 2) {
            self.arguments = Arguments::of(call, 2);
            self.header = A::requested(&self.arguments)?;
            self.hasher = self.element.hasher(self.header.layout);
            self.seen = std::ptr::null();
        }
        Ok(())
    }

    /// The parameters of new states, and where those that they share are kept.
    pub fn for_new_state(&mut self) -> (&mut SharedParams, Header<'_>) {
        let kind = self.element.kind(self.header.layout);
        (&mut self.shared, Header { kind, ..self.header })
    }

    /// Refuses a state that doesn't have this row's parameters, by 22023.
    #[inline(always)]
    pub fn check(&mut self, params: &Header<'_>) -> Result<()> {
        if std::ptr::eq(params, self.seen) { Ok(()) } else { self.check_unseen(params) }
    }

    #[inline(never)]
    fn check_unseen(&mut self, params: &Header<'_>) -> Result<()> {
        same_parameters::<A>(params, &self.header)?;
        self.seen = std::ptr::from_ref(params).cast();
        Ok(())
    }

    /// The hash of the row's element, for a state with these parameters; `None` for NULL.
    ///
    /// # Errors
    /// 22023 for a number that the filter's kind does not have.
    ///
    /// # Safety
    /// [`CallSite::begin_row`] must have been called for this row: its type may have been altered.
    #[inline(always)]
    pub unsafe fn hash(&self, call: &Call, params: &Header<'_>) -> Result<Option<u64>> {
        let Some(element) = call.element(1) else { return Ok(None) };
        // SAFETY: the type is that of the argument.
        let hash = unsafe { self.hasher.hash(element) };
        Ok(Some(hash.ok_or_else(|| out_of_range(params.kind))?))
    }

    /// The hash of the row's element, if that needs nothing of PostgreSQL and it is certain that the row has the
    /// parameters of the state: so of most rows.
    #[inline(always)]
    pub fn hash_at_once(&self, call: &Call, params: &Header<'_>) -> Option<u64> {
        if !self.is_fixed || !std::ptr::eq(params, self.seen) {
            return None;
        }
        // SAFETY: the type is that of the argument.
        unsafe { self.hasher.hash_in_place(call.element(1)?) }
    }
}

/// Refuses parameters that differ within one aggregate, by 22023.
pub fn same_parameters<A: Aggregate>(a: &Header<'_>, b: &Header<'_>) -> Result<()> {
    // One state of an unsized build may be a list, and another bits to be folded.
    let same = a.layout == b.layout && a.fpr == b.fpr && a.capacity.elements() == b.capacity.elements();
    if same { Ok(()) } else { Err(parameters_differ(a, b, A::NAME)) }
}

#[cold]
fn parameters_differ(a: &Header<'_>, b: &Header<'_>, aggregate: &str) -> Error {
    let describe = |h: &Header<'_>| {
        let capacity = h.capacity.elements().map_or("none".into(), |capacity| capacity.to_string());
        format!("capacity {capacity}, rate {}, layout \"{}\"", h.fpr, h.layout.name())
    };
    invalid_parameter(format!("parameters of {aggregate} must be the same for all rows of a group"))
        .detail(format!("{} against {}.", describe(a), describe(b)))
        .hint("Use constants, or group by what decides the parameters.")
}
