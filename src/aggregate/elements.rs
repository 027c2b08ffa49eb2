//! What `bloom_agg` and `counting_bloom_agg` have in common: their arguments are an element and the
//! parameters of the filter.
//!
//! A **call site** is the place in a query where the aggregate is called. It serves all groups and
//! rows, so it remembers what is the same for all of them: the type of the elements, and the header
//! of the filters, which follows from the parameters. A million groups share one copy of the
//! header.

use super::pointer::{AggregateState, StateHead, aggregate_context};
use crate::arguments::Arguments;
use crate::element::{ElementType, Hasher, out_of_range};
use crate::error::{During, invalid_parameter};
use crate::pg::call::{Call, Outcome, Result, nodes};
use crate::pg::memory::{self, Context};
use pg_bloom_core::filter::build::unify_with_element;
use pg_bloom_core::{Header, Kind};

/// The header of a filter that is being built, in PostgreSQL's memory, where it lives as long as
/// the state. Its key kind is that of the elements, even while there is none yet.
pub type BuildHeader = &'static Header<'static>;

/// The head of a state to which elements are added.
pub trait ElementState: StateHead {
    /// The SQL name of the aggregate, for messages.
    const NAME: &'static str;

    /// Returns the header, without a key kind, of the filter that the arguments ask for.
    ///
    /// Fails with 22023 for invalid arguments, and with 54000 if the filter would be too large.
    fn requested_header(arguments: &Arguments) -> Result<Header<'static>>;

    /// Returns the head of a state without elements.
    fn empty(header: BuildHeader) -> Self;

    /// Returns the header of the filter that is being built.
    fn header(&self) -> &Header<'_>;

    /// Adds the element with this hash.
    ///
    /// Fails with 54000 if the state can't become larger, and with 55000 outside an aggregate.
    fn add(state: &mut AggregateState<'_, Self>, call: &Call, hash: u64) -> Result<()>;
}

impl<'c, H: ElementState> AggregateState<'c, H> {
    /// Allocates a state without elements for filters with this header. Fails with 55000 outside an
    /// aggregate.
    pub fn with_header(
        call: &'c Call,
        cache: &mut HeaderCache,
        header: &Header<'_>,
    ) -> Result<AggregateState<'c, H>> {
        let build_header = cache.header_in_memory(call, header)?;
        AggregateState::new(call, H::empty(build_header))
    }
}

/// Implements the transition functions of `bloom_agg` and `counting_bloom_agg`, which PostgreSQL
/// calls for each row: adds the element in argument 1 to the state in argument 0 and returns the
/// state, a new one for the first row of a group. A NULL element adds nothing. Arguments from
/// number 2 on are the parameters of the filter.
///
/// Fails with 22023 for invalid parameters, for parameters that differ from those of earlier rows,
/// and for an element that no filter of this kind can have; with 0A000 for a type that can't be an
/// element; with 54000 if the filter would be too large; and with 55000 outside an aggregate.
pub fn transition<H: ElementState>(call: &Call) -> Outcome {
    let site = call.remembered(|| ElementSite::new::<H>(call))?;
    if !site.is_same_for_all_rows {
        site.read_arguments::<H>(call)?;
    }

    // SAFETY: transition functions are declared with the state as argument 0.
    let existing_state = unsafe { AggregateState::<H>::argument(call, 0)? };
    let mut state = match existing_state {
        Some(state) => state,
        None => {
            let kind = site.element.kind(site.header.layout);
            let header = Header { kind, ..site.header };
            AggregateState::with_header(call, &mut site.header_cache, &header)?
        }
    };
    require_same_parameters::<H>(state.header(), &site.header)?;

    // A NULL adds nothing.
    if let Some(element) = call.element(1) {
        // SAFETY: the hasher is for the type of argument 1.
        let hash = unsafe { site.hasher.hash(element) };
        let hash = hash.ok_or_else(|| out_of_range(state.header().kind))?;
        H::add(&mut state, call, hash)?;
    }
    Ok(Some(state.into_datum()))
}

/// Data that a call site of an aggregate over elements keeps from row to row.
pub struct ElementSite {
    element: ElementType,
    /// The parameters of the filter as they were given in the last row.
    arguments: Arguments,
    /// The header that the arguments ask for, without a key kind.
    header: Header<'static>,
    header_cache: HeaderCache,
    hasher: Hasher,
    /// Whether all rows must have the arguments of the first one.
    has_fixed_arguments: bool,
    /// Whether, moreover, the type of the elements can't be altered in the meantime.
    is_same_for_all_rows: bool,
}

impl ElementSite {
    /// Makes the data that PostgreSQL keeps between the rows of one call of an aggregate in a
    /// query, from the arguments of the first row: argument 1 is the element, whose type says how
    /// elements are hashed; the arguments from 2 on are the parameters of the filter.
    ///
    /// Whether the parameters can differ in other rows is found out here, so that most aggregates
    /// needn't read them again. Fails with 0A000 for a type that can't be an element, with 22023 or
    /// 54000 for invalid parameters, and with 55000 outside an aggregate.
    fn new<H: ElementState>(call: &Call) -> Result<ElementSite> {
        aggregate_context(call)?;
        let element = ElementType::of_argument(call, 1)?;
        let arguments = Arguments::of(call, 2);
        let header = H::requested_header(&arguments)?;
        let hasher = element.hasher(header.layout);
        let has_fixed_arguments = (2..call.nargs()).all(|index| nodes::is_fixed(call, index));
        Ok(ElementSite {
            has_fixed_arguments,
            is_same_for_all_rows: has_fixed_arguments && !element.is_alterable(),
            element,
            arguments,
            header,
            header_cache: HeaderCache::default(),
            hasher,
        })
    }

    /// Reads again, for the next row, what may differ from the row before: the parameters of the
    /// filter, the arguments from 2 on, and the definition of the elements' type, which another
    /// command may have altered.
    ///
    /// Fails with 42804 if the type was altered so that its values are hashed in another way, and
    /// with 22023 or 54000 for invalid parameters.
    #[inline(never)]
    fn read_arguments<H: ElementState>(&mut self, call: &Call) -> Result<()> {
        if let Some(type_before) = self.element.refresh(call)? {
            let kind_before = type_before.kind(self.header.layout);
            let kind = self.element.kind(self.header.layout);
            unify_with_element(kind_before, kind).during(H::NAME)?;
            self.hasher = self.element.hasher(self.header.layout);
        }

        if self.has_fixed_arguments {
            return Ok(());
        }
        let arguments = Arguments::of(call, 2);
        if self.arguments != arguments {
            self.header = H::requested_header(&arguments)?;
            self.arguments = arguments;
            self.hasher = self.element.hasher(self.header.layout);
        }
        Ok(())
    }

    /// Returns the hash of the element in argument 1, for a state whose filter has this header,
    /// without calling PostgreSQL and without a way to fail.
    ///
    /// `None` if that isn't possible: the element is NULL or must be converted first, or the row
    /// may have other parameters than the state. The caller then takes the general way.
    #[inline(always)]
    pub fn hash_in_place(&self, call: &Call, state_header: &Header<'_>) -> Option<u64> {
        if !self.is_same_for_all_rows || !have_same_parameters(state_header, &self.header) {
            return None;
        }
        let element = call.element(1)?;
        // SAFETY: the hasher is for the type of argument 1.
        unsafe { self.hasher.hash_in_place(element) }
    }
}

/// Returns whether two headers can come from the same parameters of an aggregate. Their sizes may
/// differ: a filter without a capacity gets its size in the end.
#[inline(always)]
fn have_same_parameters(a: &Header<'_>, b: &Header<'_>) -> bool {
    a.layout == b.layout && a.fpr == b.fpr && a.capacity.elements() == b.capacity.elements()
}

/// Checks that two headers of filters come from the same parameters of an aggregate, whose rows of
/// one group must not differ in them. Fails with 22023 if they do.
pub fn require_same_parameters<H: ElementState>(a: &Header<'_>, b: &Header<'_>) -> Result<()> {
    if have_same_parameters(a, b) {
        return Ok(());
    }
    let message = format!("parameters of {} must be the same for all rows of a group", H::NAME);
    Err(invalid_parameter(message)
        .detail(format!("{} against {}.", parameters_in_words(a), parameters_in_words(b)))
        .hint("Use constants, or group by what decides the parameters."))
}

/// Returns the parameters of an aggregate as text, for a message.
fn parameters_in_words(header: &Header<'_>) -> String {
    let capacity = match header.capacity.elements() {
        Some(capacity) => capacity.to_string(),
        None => "none".to_string(),
    };
    format!("capacity {capacity}, rate {}, layout \"{}\"", header.fpr, header.layout.name())
}

/// Copies a filter's header, and the name of its kind of elements, into one allocation of a memory
/// context, where the copy lives as long as the context.
fn copy_header(context: Context<'_>, header: &Header<'_>) -> BuildHeader {
    let name = header.kind.name;
    // The name follows the header in the same allocation.
    let bytes = size_of::<Header<'static>>() + name.len();
    // SAFETY: the allocation has room for the header and the name, and is aligned for a header. The
    // name is copied from a str, so it is valid UTF-8.
    unsafe {
        let header_copy: *mut Header<'static> = memory::allocate(context, bytes).cast();
        let name_copy: *mut u8 = header_copy.add(1).cast();
        std::ptr::copy_nonoverlapping(name.as_ptr(), name_copy, name.len());
        let name_bytes = std::slice::from_raw_parts(name_copy, name.len());
        let name = std::str::from_utf8_unchecked(name_bytes);

        header_copy.write(Header { kind: Kind { name, ..header.kind }, ..*header });
        &*header_copy
    }
}

/// The first header that a call site uses, in memory that lives as long as the call site. All of
/// its states with the same header share it; another header is copied to the memory of its state.
#[derive(Default)]
pub struct HeaderCache(Option<BuildHeader>);

impl HeaderCache {
    /// Returns the cache that this call site remembers. Fails if the function is called without
    /// information about its call site.
    pub fn of_site(call: &Call) -> Result<&mut HeaderCache> {
        call.remembered(|| Ok(HeaderCache::default()))
    }

    /// Returns a copy of this header that lives as long as a state of the call. All states whose
    /// header is equal to the first one that this cache was given share a copy, which saves memory
    /// for each of a million groups. Fails with 55000 outside an aggregate.
    fn header_in_memory(&mut self, call: &Call, header: &Header<'_>) -> Result<BuildHeader> {
        // Another extension may call the function with a call site of its own, which may end before
        // the state does.
        if call.is_prepared() {
            let site_context = call.site_context()?;
            let first = *self.0.get_or_insert_with(|| copy_header(site_context, header));
            if first == header {
                return Ok(first);
            }
        }
        Ok(copy_header(aggregate_context(call)?, header))
    }

    /// Returns the header for a state that had the header `own`, and was merged with another state
    /// into a filter with `header`. The result lives as long as the state.
    ///
    /// If neither state has elements, `header` has no kind of elements. The result then has the
    /// kind of `own`, which the elements that are still to come have. Fails with 55000 outside an
    /// aggregate.
    pub fn merged_header_in_memory(
        &mut self,
        call: &Call,
        own: BuildHeader,
        header: &Header<'_>,
    ) -> Result<BuildHeader> {
        let kind = if header.kind.is_none() { own.kind } else { header.kind };
        let header = Header { kind, ..*header };
        if *own == header {
            return Ok(own);
        }
        self.header_in_memory(call, &header)
    }
}
