//! Aggregates over elements: their transition and combine functions, what a call site remembers
//! between rows, and the parameters that its groups share: they are kept once rather than with each
//! of a million states.

use super::tag::{Group, Head};
use crate::arguments::Arguments;
use crate::element::{ElementType, Hasher, out_of_range};
use crate::error::{During, invalid_parameter};
use crate::pg::call::{Call, Outcome, Result, nodes};
use crate::pg::memory::{self, Context};
use pg_bloom_core::filter::build::meet_kind;
use pg_bloom_core::{Header, Kind};

/// What an aggregate over elements keeps for a group.
pub trait ElementHead: Head {
    /// The aggregate's name, for messages.
    const NAME: &'static str;

    /// The header that its arguments ask for, without a kind. Errors: 22023 and 54000 for invalid
    /// arguments.
    fn requested(arguments: &Arguments) -> Result<Header<'static>>;

    fn new(params: Params) -> Self;

    fn params(&self) -> &Header<'_>;

    /// Adds an element. Errors: 54000 when there is no room for more; 55000 outside an aggregate.
    fn push(group: &mut Group<'_, Self>, call: &Call, hash: u64) -> Result<()>;
}

impl<'c, H: ElementHead> Group<'c, H> {
    /// A state without elements. Errors: 55000 outside an aggregate.
    pub fn with_header(
        call: &'c Call,
        shared: &mut SharedParams,
        header: &Header<'_>,
    ) -> Result<Group<'c, H>> {
        Group::new(call, H::new(shared.params(call, header)?))
    }
}

/// The transition function of an aggregate over elements, of a state, an element, and what
/// [`Arguments`] reads.
pub fn transition<H: ElementHead>(call: &Call) -> Outcome {
    let site = call.remembered(|| CallSite::new::<H>(call))?;
    if !site.is_fixed {
        site.read_arguments::<H>(call)?;
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
    Ok(Some(state.into_datum()))
}

/// What a call site of `bloom_agg`, or of `counting_bloom_agg`, remembers between rows.
pub struct CallSite {
    element: ElementType,
    arguments: Arguments,
    /// The header that the arguments ask for, without a kind.
    header: Header<'static>,
    shared: SharedParams,
    hasher: Hasher,
    /// Whether no row can have other arguments than the first, or elements of a type that was
    /// altered.
    is_fixed: bool,
}

impl CallSite {
    /// Errors: 0A000 for a type that can't be an element; 55000 outside an aggregate; invalid
    /// arguments.
    fn new<H: ElementHead>(call: &Call) -> Result<CallSite> {
        call.require_aggregate()?;
        let element = ElementType::of_argument(call, 1)?;
        let arguments = Arguments::of(call, 2);
        let header = H::requested(&arguments)?;
        let hasher = element.hasher(header.layout);
        let is_fixed =
            !element.is_alterable() && (2..call.nargs()).all(|i| nodes::is_fixed(call, i));
        Ok(CallSite {
            element,
            arguments,
            header,
            shared: SharedParams(None),
            hasher,
            is_fixed,
        })
    }

    /// Reads what may differ from the previous row.
    #[inline(never)]
    fn read_arguments<H: ElementHead>(&mut self, call: &Call) -> Result<()> {
        if let Some(before) = self.element.refresh(call)? {
            meet_kind(before.kind(self.header.layout), self.element.kind(self.header.layout))
                .during(H::NAME)?;
            self.hasher = self.element.hasher(self.header.layout);
        }
        let arguments = Arguments::of(call, 2);
        if self.arguments != arguments {
            self.header = H::requested(&arguments)?;
            self.arguments = arguments;
            self.hasher = self.element.hasher(self.header.layout);
        }
        Ok(())
    }

    /// The hash of the row's element, if that needs nothing of PostgreSQL and the row has the
    /// state's parameters.
    #[inline(always)]
    pub fn hash_at_once(&self, call: &Call, params: &Header<'_>) -> Option<u64> {
        if !self.is_fixed || !are_same(params, &self.header) {
            return None;
        }
        // SAFETY: the type is that of the argument.
        unsafe { self.hasher.hash_in_place(call.element(1)?) }
    }
}

/// Whether parameters may be those of one aggregate: a state of an unsized build may be a list, or
/// bits to be folded.
#[inline(always)]
fn are_same(a: &Header<'_>, b: &Header<'_>) -> bool {
    a.layout == b.layout && a.fpr == b.fpr && a.capacity.elements() == b.capacity.elements()
}

/// Refuses parameters that differ within one aggregate, by 22023.
pub fn require_same_parameters<H: ElementHead>(a: &Header<'_>, b: &Header<'_>) -> Result<()> {
    if are_same(a, b) {
        return Ok(());
    }
    let describe = |h: &Header<'_>| {
        let capacity = h
            .capacity
            .elements()
            .map_or("none".into(), |capacity| capacity.to_string());
        format!("capacity {capacity}, rate {}, layout \"{}\"", h.fpr, h.layout.name())
    };
    Err(invalid_parameter(format!(
        "parameters of {} must be the same for all rows of a group",
        H::NAME
    ))
    .detail(format!("{} against {}.", describe(a), describe(b)))
    .hint("Use constants, or group by what decides the parameters."))
}

/// The header of filters being built, there as long as their states. Its kind is that of elements,
/// even of none yet.
pub type Params = &'static Header<'static>;

/// Parameters that live as long as `context`.
fn allocate(context: Context<'_>, header: &Header<'_>) -> Params {
    let name = header.kind.name;
    // SAFETY: the allocation has room for the parameters and the name after them, which is valid
    // UTF-8.
    unsafe {
        let bytes = size_of::<Header<'static>>() + name.len();
        let params: *mut Header<'static> = memory::allocate(context, bytes).cast();
        let copy: *mut u8 = params.add(1).cast();
        std::ptr::copy_nonoverlapping(name.as_ptr(), copy, name.len());
        let name = std::str::from_utf8_unchecked(std::slice::from_raw_parts(copy, name.len()));
        params.write(Header { kind: Kind { name, ..header.kind }, ..*header });
        &*params
    }
}

/// The parameters that a call site used first, kept as long as the site; others are kept with their
/// state.
pub struct SharedParams(Option<Params>);

impl SharedParams {
    pub fn of(call: &Call) -> Result<&mut SharedParams> {
        call.remembered(|| Ok(SharedParams(None)))
    }

    /// Parameters for a header. Errors: 55000 outside an aggregate.
    fn params(&mut self, call: &Call, header: &Header<'_>) -> Result<Params> {
        if call.is_prepared() {
            let context = call.site_context()?;
            let shared = *self.0.get_or_insert_with(|| allocate(context, header));
            if shared == header {
                return Ok(shared);
            }
        }
        Ok(allocate(call.require_aggregate()?, header))
    }

    /// Parameters in place of a state's own: for this header, with the kind of the elements that
    /// are still to come. Errors: 55000 outside an aggregate.
    pub fn in_place_of(&mut self, call: &Call, own: Params, header: &Header<'_>) -> Result<Params> {
        let kind = if header.kind.is_none() { own.kind } else { header.kind };
        let header = Header { kind, ..*header };
        if *own == header { Ok(own) } else { self.params(call, &header) }
    }
}
