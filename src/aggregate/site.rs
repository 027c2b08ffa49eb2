//! Aggregates over elements: their transition and combine functions, what a call site remembers between rows, and the
//! parameters that its groups share: they are kept once rather than with each of a million states.

use super::tag::{Group, Head, combine};
use crate::arguments::Arguments;
use crate::element::{ElementType, Hasher, out_of_range};
use crate::error::{During, invalid_parameter};
use crate::pg::call::{Call, Error, Outcome, Result, nodes};
use crate::pg::memory::{self, Context};
use pg_bloom_core::filter::build::meet_kind;
use pg_bloom_core::{Header, Kind};
use std::marker::PhantomData;

/// What an aggregate over elements keeps for a group.
pub trait ElementHead: Head {
    /// The aggregate's name, for messages.
    const NAME: &'static str;

    /// The header that its arguments ask for, without a kind. Errors: 22023 and 54000 for invalid arguments.
    fn requested(arguments: &Arguments) -> Result<Header<'static>>;

    /// # Safety
    /// The parameters must be there as long as the state.
    unsafe fn new(params: Params) -> Self;

    /// The parameters, which live at least as long as the state.
    fn params(&self) -> &Header<'_>;

    /// Adds an element. Errors: 54000 when there is no room for more; 55000 outside an aggregate.
    fn push(group: &mut Group<'_, Self>, call: &Call, hash: u64) -> Result<()>;
}

impl<'c, H: ElementHead> Group<'c, H> {
    /// A state without elements. Errors: 55000 outside an aggregate.
    pub fn with_header(call: &'c Call, shared: &mut SharedParams, header: &Header<'_>) -> Result<Group<'c, H>> {
        let (context, params) = (call.require_aggregate()?, shared.params(call, header)?);
        // SAFETY: they are kept as long as the site, or as the aggregate.
        Ok(Group::new(context, unsafe { H::new(params) }))
    }
}

/// The transition function of an aggregate over elements, of a state, an element, and what [`Arguments`] reads.
pub fn transition<H: ElementHead>(call: &Call) -> Outcome {
    // SAFETY: remembered by the site of this call.
    let site = call.remembered(|| unsafe { CallSite::<H>::new(call) })?;
    if !site.is_fixed {
        site.read_arguments(call)?;
    }
    // SAFETY: argument 0 is the state.
    let mut state: Group<H> = match unsafe { Group::argument(call, 0)? } {
        Some(state) => state,
        None => {
            let header = Header { kind: site.element.kind(site.header.layout), ..site.header };
            Group::with_header(call, &mut site.shared, &header)?
        }
    };
    require_same_parameters::<H>(state.params(), &site.header)?;
    if let Some(element) = call.element(1) {
        // SAFETY: the type is that of the argument, which was just read.
        let hash = unsafe { site.hasher.hash(element) };
        let hash = hash.ok_or_else(|| out_of_range(state.params().kind))?;
        H::push(&mut state, call, hash)?;
    }
    // SAFETY: it was returned before, or made in the memory of the aggregate.
    Ok(Some(unsafe { state.into_datum() }))
}

/// The combine function of an aggregate over elements: `absorb` adds another state to one, which may be new.
pub fn combine_by<H: ElementHead>(
    call: &Call,
    absorb: impl FnOnce(&mut Group<'_, H>, &mut SharedParams, Group<'_, H>) -> Result<()>,
) -> Outcome {
    // SAFETY: remembered by the site of this call.
    let shared = call.remembered(|| Ok(unsafe { SharedParams::new() }))?;
    // SAFETY: the first state is returned, or one in the memory of the aggregate.
    unsafe {
        combine(call, |first, second: Group<H>| {
            let mut state = match first {
                Some(first) => first,
                None => Group::with_header(call, shared, second.params())?,
            };
            absorb(&mut state, shared, second)?;
            Ok(state)
        })
    }
}

/// What a call site of `bloom_agg`, or of `counting_bloom_agg`, remembers between rows.
pub struct CallSite<H: ElementHead> {
    element: ElementType,
    arguments: Arguments,
    /// The header that the arguments ask for, without a kind.
    header: Header<'static>,
    shared: SharedParams,
    hasher: Hasher,
    /// Whether no row can have other arguments than the first, or elements of a type that was altered.
    is_fixed: bool,
    aggregate: PhantomData<H>,
}

impl<H: ElementHead> CallSite<H> {
    /// Errors: 0A000 for a type that can't be an element; 55000 outside an aggregate; invalid arguments.
    ///
    /// # Safety
    /// As for [`SharedParams::new`].
    unsafe fn new(call: &Call) -> Result<CallSite<H>> {
        call.require_aggregate()?;
        let element = ElementType::of_argument(call, 1)?;
        let arguments = Arguments::of(call, 2);
        let header = H::requested(&arguments)?;
        let hasher = element.hasher(header.layout);
        let is_fixed = !element.is_alterable() && (2..call.nargs()).all(|i| nodes::is_fixed(call, i));
        // SAFETY: promised by the caller.
        let shared = unsafe { SharedParams::new() };
        Ok(CallSite { element, arguments, header, shared, hasher, is_fixed, aggregate: PhantomData })
    }

    /// Reads what may differ from the previous row.
    #[inline(never)]
    fn read_arguments(&mut self, call: &Call) -> Result<()> {
        if let Some(before) = self.element.refresh(call)? {
            meet_kind(before.kind(self.header.layout), self.element.kind(self.header.layout)).during(H::NAME)?;
            self.hasher = self.element.hasher(self.header.layout);
        }
        if !self.arguments.are_those_of(call, 2) {
            self.arguments = Arguments::of(call, 2);
            self.header = H::requested(&self.arguments)?;
            self.hasher = self.element.hasher(self.header.layout);
        }
        Ok(())
    }

    /// The hash of the row's element, if that needs nothing of PostgreSQL and it is certain that the row has the
    /// parameters of the state: so of most rows.
    #[inline(always)]
    pub fn hash_at_once(&self, call: &Call, params: &Header<'_>) -> Option<u64> {
        if !self.is_fixed || !are_same(params, &self.header) {
            return None;
        }
        // SAFETY: the type is that of the argument.
        unsafe { self.hasher.hash_in_place(call.element(1)?) }
    }
}

/// Whether parameters may be those of one aggregate. One state of an unsized build may be a list, and another bits to
/// be folded.
#[inline(always)]
fn are_same(a: &Header<'_>, b: &Header<'_>) -> bool {
    a.layout == b.layout && a.fpr == b.fpr && a.capacity.elements() == b.capacity.elements()
}

/// Refuses parameters that differ within one aggregate, by 22023.
#[inline(always)]
pub fn require_same_parameters<H: ElementHead>(a: &Header<'_>, b: &Header<'_>) -> Result<()> {
    if are_same(a, b) { Ok(()) } else { Err(parameters_differ(a, b, H::NAME)) }
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

/// The header of filters being built, in PostgreSQL's memory; its kind is that of the elements, even if none came yet.
pub type Params = *const Header<'static>;

/// Parameters that live as long as `context`.
pub fn allocate(context: Context<'_>, header: &Header<'_>) -> Params {
    let name = header.kind.name;
    // SAFETY: the allocation has room for the parameters and the name after them, which is valid UTF-8.
    unsafe {
        let bytes = size_of::<Header<'static>>() + name.len();
        let params: *mut Header<'static> = memory::allocate(context, bytes).cast();
        let copy: *mut u8 = params.add(1).cast();
        std::ptr::copy_nonoverlapping(name.as_ptr(), copy, name.len());
        let name = std::str::from_utf8_unchecked(std::slice::from_raw_parts(copy, name.len()));
        params.write(Header { kind: Kind { name, ..header.kind }, ..*header });
        params
    }
}

/// The parameters that a call site used first, kept as long as the site; others are kept with their state.
pub struct SharedParams(Params);

impl SharedParams {
    /// # Safety
    /// A call site must remember it, by [`Call::remembered`], and only calls of that site use it.
    pub unsafe fn new() -> Self {
        SharedParams(std::ptr::null())
    }

    /// Parameters for a header. Errors: 55000 outside an aggregate.
    pub fn params(&mut self, call: &Call, header: &Header<'_>) -> Result<Params> {
        if call.is_prepared() {
            if self.0.is_null() {
                self.0 = allocate(call.site_context()?, header);
            }
            // SAFETY: allocated here or before, in memory that lives as long as the site.
            if unsafe { &*self.0 } == header {
                return Ok(self.0);
            }
        }
        Ok(allocate(call.require_aggregate()?, header))
    }

    /// Parameters in place of a state's own: for this header, with the kind of the elements that are still to come.
    /// Errors: 55000 outside an aggregate.
    pub fn in_place_of(&mut self, call: &Call, own: &Header<'static>, header: &Header<'_>) -> Result<Params> {
        let kind = if header.kind.is_none() { own.kind } else { header.kind };
        let header = Header { kind, ..*header };
        if *own == header { Ok(own) } else { self.params(call, &header) }
    }
}
