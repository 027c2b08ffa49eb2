//! What `bloom_agg` and `counting_bloom_agg` have in common: their arguments are an element and the
//! parameters of the filter.
//!
//! A **call site** is the place in a query where the aggregate is called. It serves all groups and
//! rows, so it remembers what is the same for all of them: the type of the elements, and the header
//! of the filters, which follows from the parameters. A million groups share one copy of the
//! header.

use super::pointer::{AggregateState, StateHead, aggregate_context};
use crate::arguments::FilterArguments;
use crate::element::{ElementType, Hasher, out_of_range};
use crate::error::{WithFunctionName, invalid_parameter};
use crate::pg::call::{Call, Outcome, Result, nodes};
use crate::pg::memory::{self, Context};
use pg_bloom_core::filter::build::{Request, unify_with_element};
use pg_bloom_core::{Header, Kind};

/// The header of a filter that is being built, in PostgreSQL's memory, where it lives as long as
/// the state. Its key kind is that of the elements, even while there is none yet.
pub type BuildHeader = &'static Header<'static>;

/// What differs between `bloom_agg` and `counting_bloom_agg`. Each implements this for the *head*
/// of its state, the struct at the beginning of the memory in which an aggregate keeps the elements
/// of one group.
pub trait ElementState: StateHead {
    /// The name of the aggregate, for messages.
    const SQL_NAME: &'static str;

    /// Returns the header of the filter that a call asks for by its arguments `capacity`, `fpr` and
    /// `layout`. It doesn't say yet of which type the elements are: its kind is [`Kind::NONE`].
    ///
    /// Fails with 22023 for invalid arguments, and with 54000 if the filter would be larger than
    /// the setting `pg_bloom.max_filter_size` allows.
    fn requested_header(arguments: &FilterArguments) -> Result<Header<'static>>;

    /// Returns the head of a state without elements, for a filter with this header.
    fn empty(header: BuildHeader) -> Self;

    /// Returns the header of the filter that is being built.
    fn header(&self) -> &Header<'_>;

    /// Adds the element with this hash to a state.
    ///
    /// Fails with 54000 if a filter of so many elements would be too large, and with 55000 if SQL
    /// calls a function of the aggregate by itself.
    fn add(state: &mut AggregateState<'_, Self>, call: &Call, hash: u64) -> Result<()>;
}

impl<'c, Head: ElementState> AggregateState<'c, Head> {
    /// Allocates a state without elements for filters with this header. Fails with 55000 outside an
    /// aggregate.
    pub fn with_header(
        call: &'c Call,
        cache: &mut HeaderCache,
        header: &Header<'_>,
    ) -> Result<AggregateState<'c, Head>> {
        let build_header = cache.header_in_memory(call, header)?;
        AggregateState::new(call, Head::empty(build_header))
    }
}

/// Implements the transition functions of `bloom_agg` and `counting_bloom_agg`, which PostgreSQL
/// calls for each row: adds the element in argument 1 to the state in argument 0, and returns the
/// state. Argument 0 is NULL in the first row of a group, which gets a new state. A NULL element
/// adds nothing. The arguments from number 2 on are the capacity, the rate and the layout of the
/// filter, its *parameters*.
///
/// `Head` is the struct at the beginning of a state, which tells the two aggregates apart.
///
/// Fails with 22023 for invalid parameters, for parameters that differ from those of earlier rows,
/// and for an element that no filter of this kind can have; with 0A000 for a type that can't be an
/// element; with 54000 if the filter would be too large; and with 55000 outside an aggregate.
pub fn transition<Head: ElementState>(call: &Call) -> Outcome {
    // The first row determines how elements are hashed, and what filter is built. PostgreSQL keeps
    // this for the other rows.
    let site = call.remembered(|| ElementSite::from_first_row::<Head>(call))?;
    if !site.is_same_for_all_rows {
        site.update_for_row::<Head>(call)?;
    }

    // SAFETY: transition functions are declared with the state as argument 0.
    let existing_state = unsafe { AggregateState::<Head>::argument(call, 0)? };
    let mut state = match existing_state {
        Some(state) => state,
        None => {
            let requested_header = site.header_of_new_group::<Head>()?;
            let kind = site.element_type.kind(requested_header.layout);
            let header = Header { kind, ..requested_header };
            AggregateState::with_header(call, &mut site.header_cache, &header)?
        }
    };
    // Earlier rows of the group may have asked for another filter.
    require_same_parameters::<Head>(parameters_of(state.header()), site.request)?;

    // A NULL adds nothing.
    if let Some(element) = call.element(1) {
        // SAFETY: the hasher is for the type of argument 1.
        let hash_if_possible = unsafe { site.hasher.hash(element) };
        let hash = hash_if_possible.ok_or_else(|| out_of_range(state.header().kind))?;
        Head::add(&mut state, call, hash)?;
    }
    Ok(Some(state.into_datum()))
}

/// Data that a call site of an aggregate over elements, the place in a query where it is called,
/// keeps from row to row.
pub struct ElementSite {
    element_type: ElementType,
    /// The parameters of the filter as the last row gave them.
    filter_arguments: FilterArguments,
    /// The same, checked and with the defaults.
    request: Request,
    /// The header of a filter with the parameters of the last group that began. It has no kind of
    /// elements.
    requested_header: Header<'static>,
    header_cache: HeaderCache,
    hasher: Hasher,
    /// Whether the parameters of the filter are the same in all rows, as constants are.
    has_fixed_arguments: bool,
    /// Whether, moreover, no command can alter how elements are hashed while the query runs.
    is_same_for_all_rows: bool,
}

impl ElementSite {
    /// Returns the data that a call site, the place in a query where an aggregate is called, keeps
    /// from row to row. It is made from the arguments of the first row: argument 1 is the element,
    /// whose type says how elements are hashed; the arguments from 2 on are the parameters of the
    /// filter.
    ///
    /// Whether the parameters can differ in other rows is found out here, so that most aggregates
    /// needn't read them again. Fails with 0A000 for a type that can't be an element, with 22023 or
    /// 54000 for invalid parameters, and with 55000 outside an aggregate.
    fn from_first_row<Head: ElementState>(call: &Call) -> Result<ElementSite> {
        aggregate_context(call)?;
        let element_type = ElementType::of_argument(call, 1)?;
        let filter_arguments = FilterArguments::of_call(call, 2);
        let requested_header = Head::requested_header(&filter_arguments)?;
        let request = filter_arguments.request()?;
        let hasher = element_type.hasher(requested_header.layout);
        let has_fixed_arguments = (2..call.nargs()).all(|index| nodes::is_fixed(call, index));
        Ok(ElementSite {
            has_fixed_arguments,
            is_same_for_all_rows: has_fixed_arguments && !element_type.is_alterable(),
            element_type,
            filter_arguments,
            request,
            requested_header,
            header_cache: HeaderCache::default(),
            hasher,
        })
    }

    /// Updates this data for the next row. To be called only if rows may differ: in the parameters
    /// of the filter, which are the arguments from 2 on, or in how elements are hashed, which a
    /// command may alter while the query runs.
    ///
    /// Fails with 42804 if elements are hashed in another way than those of earlier rows, and with
    /// 22023 for invalid parameters.
    #[inline(never)]
    fn update_for_row<Head: ElementState>(&mut self, call: &Call) -> Result<()> {
        self.update_element_type::<Head>(call)?;
        if self.has_fixed_arguments {
            return Ok(());
        }
        self.update_filter_arguments(call)
    }

    /// Resolves the type of the elements again, if a command has altered it since the last row.
    /// Fails with 42804 if its values are hashed in another way now: one filter can't have both.
    fn update_element_type<Head: ElementState>(&mut self, call: &Call) -> Result<()> {
        let Some(type_before) = self.element_type.refresh(call)? else {
            // Nothing was altered.
            return Ok(());
        };
        let layout = self.request.layout;
        let kind_before = type_before.kind(layout);
        let kind_now = self.element_type.kind(layout);
        unify_with_element(kind_before, kind_now).with_function_name(Head::SQL_NAME)?;
        self.hasher = self.element_type.hasher(layout);
        Ok(())
    }

    /// Reads the parameters of the filter from the arguments of this row. Fails with 22023 if they
    /// are invalid.
    fn update_filter_arguments(&mut self, call: &Call) -> Result<()> {
        let arguments_now = FilterArguments::of_call(call, 2);
        if self.filter_arguments != arguments_now {
            self.request = arguments_now.request()?;
            self.filter_arguments = arguments_now;
            self.hasher = self.element_type.hasher(self.request.layout);
        }
        Ok(())
    }

    /// Returns the header of the filter of a group that begins with the last row, by the parameters
    /// of this row. It has no kind of elements.
    ///
    /// The size is computed here, not for each row, since that takes as long as adding hundreds of
    /// elements. In `SELECT day, bloom_agg(url, urls_of_day) … GROUP BY day, urls_of_day`, for
    /// instance, each row may belong to another group than the one before, with other parameters.
    ///
    /// Fails with 22023 if the filter has no capacity and must have one, and with 54000 if it would
    /// be larger than the setting `pg_bloom.max_filter_size` allows.
    fn header_of_new_group<Head: ElementState>(&mut self) -> Result<Header<'static>> {
        if parameters_of(&self.requested_header) != self.request {
            self.requested_header = Head::requested_header(&self.filter_arguments)?;
        }
        Ok(self.requested_header)
    }

    /// Returns the hash of the element in argument 1, for a state whose filter has this header,
    /// without calling PostgreSQL and without a way to fail.
    ///
    /// `None` if that isn't possible: the element is NULL or must be converted first, or the row
    /// may have other parameters than the state. The caller then takes the general way.
    #[inline(always)]
    pub fn hash_in_place(&self, call: &Call, state_header: &Header<'_>) -> Option<u64> {
        if !self.is_same_for_all_rows || parameters_of(state_header) != self.request {
            return None;
        }
        let element = call.element(1)?;
        // SAFETY: the hasher is for the type of argument 1.
        unsafe { self.hasher.hash_in_place(element) }
    }
}

/// Returns the parameters of the aggregate that a filter with this header is from. Filters with the
/// same parameters may differ in size: one without a capacity gets its size in the end.
#[inline(always)]
pub fn parameters_of(header: &Header<'_>) -> Request {
    Request {
        capacity: header.capacity.elements(),
        fpr: header.fpr,
        layout: header.layout,
    }
}

/// Checks that the parameters of an aggregate are the same in two rows of a group, or in two of its
/// states. Fails with 22023 if they are not.
pub fn require_same_parameters<Head: ElementState>(a: Request, b: Request) -> Result<()> {
    if a == b {
        return Ok(());
    }
    let message =
        format!("parameters of {} must be the same for all rows of a group", Head::SQL_NAME);
    Err(invalid_parameter(message)
        .detail(format!("{} against {}.", parameters_in_words(&a), parameters_in_words(&b)))
        .hint("Use constants, or group by what decides the parameters."))
}

/// Returns the parameters of an aggregate as text, for a message.
fn parameters_in_words(request: &Request) -> String {
    let capacity = match request.capacity {
        Some(capacity) => capacity.to_string(),
        None => "none".to_string(),
    };
    format!("capacity {capacity}, rate {}, layout \"{}\"", request.fpr, request.layout.name())
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
