//! `bloom_agg`, whose state is [`crate::datum::State`]. The aggregates over filters are in `aggregate/merge.rs`.
//!
//! ```text
//! rows ──transition──▶ state ──serialise──▶ bytes ──deserialise──▶ state ──combine──▶ state ──final──▶ bloom
//! ```

use crate::build::{Arguments, request};
use crate::datum::{Call, Params, Shared, State, expression};
use crate::element::{ElementType, Reading, out_of_range};
use crate::error::{Failure, invalid_parameter};
use crate::settings;
use pg_bloom_core::Header;
use pg_bloom_core::filter::build::meet_kind;
use pgrx::pg_sys::Datum;
use std::marker::PhantomData;

mod merge;

type Outcome = Result<Option<Datum>, Failure>;

/// What tells one aggregate over elements from another.
pub trait Aggregate {
    /// Its name, for messages.
    const NAME: &'static str;

    /// The header that its arguments ask for, without a kind.
    ///
    /// # Errors
    /// 22023 and 54000 for arguments that can't be.
    fn requested(arguments: &Arguments) -> Result<Header<'static>, Failure>;
}

/// What a call site of `bloom_agg`, or of `counting_bloom_agg`, remembers between rows.
pub struct Site<A: Aggregate> {
    element: ElementType,
    arguments: Arguments,
    /// The header that the arguments ask for, without a kind.
    header: Header<'static>,
    shared: Shared,
    /// How elements are hashed for that layout.
    reading: Reading,
    /// Whether no row can have other arguments than the first, nor elements that are made of something else.
    is_fixed: bool,
    /// The parameters of the last state, which had those of `header`.
    seen: *const Params,
    aggregate: PhantomData<A>,
}

impl<A: Aggregate> Site<A> {
    /// The site of a transition function whose arguments are a state, an element, and what [`Arguments`] reads.
    ///
    /// # Errors
    /// 0A000 for a type that can't be an element; 55000 for a call by hand; those of [`Aggregate::requested`].
    pub fn new(call: &Call) -> Result<Site<A>, Failure> {
        call.require_aggregate()?;
        let element = ElementType::of_argument(call, 1)?;
        let arguments = Arguments::of(call, 2);
        let header = A::requested(&arguments)?;
        let reading = element.reading(header.layout);
        let is_fixed = !element.is_alterable() && (2..call.nargs()).all(|i| expression::is_fixed(call, i));
        let (shared, seen) = (Shared::new(), std::ptr::null());
        Ok(Site { element, arguments, header, shared, reading, is_fixed, seen, aggregate: PhantomData })
    }

    /// Looks whether this row has the arguments of the one before, unless it must.
    ///
    /// # Errors
    /// Those of [`Aggregate::requested`].
    #[inline(always)]
    pub fn begin_row(&mut self, call: &Call) -> Result<(), Failure> {
        if self.is_fixed { Ok(()) } else { self.read_arguments(call) }
    }

    #[inline(never)]
    fn read_arguments(&mut self, call: &Call) -> Result<(), Failure> {
        if let Some(before) = self.element.refresh(call)? {
            meet_kind(before.kind(self.header.layout), self.element.kind(self.header.layout), A::NAME)?;
            self.reading = self.element.reading(self.header.layout);
        }
        if !self.arguments.are_those_of(call, 2) {
            self.arguments = Arguments::of(call, 2);
            self.header = A::requested(&self.arguments)?;
            self.reading = self.element.reading(self.header.layout);
            self.seen = std::ptr::null();
        }
        Ok(())
    }

    /// The parameters of new states, and where those that they have in common are kept.
    pub fn for_new_state(&mut self) -> (&mut Shared, Header<'_>) {
        let kind = self.element.kind(self.header.layout);
        (&mut self.shared, Header { kind, ..self.header })
    }

    /// Checks that a state has this row's parameters.
    ///
    /// # Errors
    /// 22023 if it doesn't.
    #[inline(always)]
    pub fn check(&mut self, params: &Params) -> Result<(), Failure> {
        if std::ptr::eq(params, self.seen) { Ok(()) } else { self.check_unseen(params) }
    }

    #[inline(never)]
    fn check_unseen(&mut self, params: &Params) -> Result<(), Failure> {
        same_parameters::<A>(&params.header, &self.header)?;
        self.seen = params;
        Ok(())
    }

    /// The hash of the row's element, for a state with these parameters; `None` for NULL.
    ///
    /// # Errors
    /// 22023 for a number that the filter's kind does not have.
    #[inline(always)]
    pub fn hash(&self, call: &Call, params: &Params) -> Result<Option<u64>, Failure> {
        let Some(element) = call.element(1) else { return Ok(None) };
        Ok(Some(self.reading.hash(element).ok_or_else(|| out_of_range(params.header.kind))?))
    }
}

/// The aggregate `bloom_agg`.
enum BloomAgg {}

impl Aggregate for BloomAgg {
    const NAME: &'static str = "bloom_agg";

    fn requested(arguments: &Arguments) -> Result<Header<'static>, Failure> {
        Ok(request(arguments)?.header(settings::max_filter_bytes())?)
    }
}

/// `bloom_agg_transition(state, element, …)`.
fn transition(call: &Call) -> Outcome {
    let site = call.remembered(|| Site::<BloomAgg>::new(call))?;
    site.begin_row(call)?;
    let mut state = match State::argument(call, 0) {
        Some(state) => {
            site.check(state.params())?;
            state
        }
        None => {
            let (shared, header) = site.for_new_state();
            State::new(call, shared, &header)?
        }
    };
    if let Some(hash) = site.hash(call, state.params())? {
        state.push(call, hash)?;
    }
    Ok(Some(state.into_datum()))
}

/// Refuses parameters that differ within one aggregate.
///
/// # Errors
/// 22023 if they do.
pub fn same_parameters<A: Aggregate>(a: &Header<'_>, b: &Header<'_>) -> Result<(), Failure> {
    let same = a.layout == b.layout && a.fpr == b.fpr && a.capacity == b.capacity;
    if same { Ok(()) } else { Err(parameters_differ(a, b, A::NAME)) }
}

#[cold]
fn parameters_differ(a: &Header<'_>, b: &Header<'_>, aggregate: &str) -> Failure {
    let describe = |h: &Header<'_>| {
        let capacity = if h.is_to_be_sized() { "none".into() } else { h.capacity.to_string() };
        format!("capacity {capacity}, rate {}, layout \"{}\"", h.fpr, h.layout.name())
    };
    invalid_parameter(format!("parameters of {aggregate} must be the same for all rows of a group"))
        .detail(format!("{} against {}.", describe(a), describe(b)))
        .hint("Use constants, or group by what decides the parameters.")
        .into()
}

/// `bloom_agg_combine(state, state)`.
fn combine(call: &Call) -> Outcome {
    call.require_aggregate()?;
    let (first, second) = (State::argument(call, 0), State::argument(call, 1));
    let Some(second) = second else {
        return Ok(first.map(State::into_datum));
    };
    if let Some(first) = &first {
        same_parameters::<BloomAgg>(&first.params().header, &second.params().header)?;
    }
    let shared = call.remembered(|| Ok(Shared::new()))?;
    Ok(Some(State::combine(call, shared, first, second)?.into_datum()))
}

/// `bloom_agg_serialise(state)`.
fn serialise(call: &Call) -> Outcome {
    call.require_aggregate()?;
    State::argument(call, 0).map(|mut state| state.serialise(call)).transpose()
}

/// `bloom_agg_deserialise(bytes, internal)`.
fn deserialise(call: &Call) -> Outcome {
    let Some(bytes) = call.value(0) else { return Ok(None) };
    let shared = call.remembered(|| Ok(Shared::short_lived()))?;
    Ok(Some(State::deserialised(call, shared, bytes)?.into_datum()))
}

/// `bloom_agg_final(state)`.
fn finish(call: &Call) -> Outcome {
    call.require_aggregate()?;
    match State::argument(call, 0) {
        Some(mut state) => state.finish(call).map(Some),
        None => crate::build::nothing().map(Some),
    }
}

pg_functions! {
    bloom_agg_transition => transition;
    bloom_agg_combine => combine;
    bloom_agg_serialise => serialise;
    bloom_agg_deserialise => deserialise;
    bloom_agg_final => finish;
}
