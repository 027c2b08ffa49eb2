//! The WebAssembly module of the package `pg-bloom`: filters of `pg_bloom_core` behind a plain C
//! interface, for the loader in js/loader/ and for runtimes in other languages.
//!
//! | module | what it is for |
//! |---|---|
//! | `value` | values of the caller as bytes, and reading them |
//! | `element` | a value as an element of a filter's kind |
//! | `text` | dates, times, intervals and UUIDs that are written as text |
//! | `builder` | a build that takes its kind from the caller or from its first element |
//! | `failure` | errors, and a lack of memory |
//! | `parsed` | a filter with its header parsed, for many calls |
//! | `report` | what a filter is, as JSON |
//! | `slots` | filters and builders by their handles |
//!
//! # How to call it
//!
//! The module imports nothing. A caller writes bytes to the address that [`input`] returns; a
//! function that takes a `length` reads as many bytes there. Results that are not numbers are left
//! in the output: [`output`] and [`output_length`] tell where, until the next call.
//!
//! Functions that return an `i32` return a negative number if they fail: -1 for a value of the wrong
//! kind, -2 for a parameter out of its range, -3 for bytes that are not a filter. The output then has
//! the message, in UTF-8. Otherwise the number is 0 or a handle, or a count where the function says
//! so. A handle must be one that a function returned and that was not released since.
//!
//! A trap leaves the instance unusable: the caller discards it and makes a new one. It then asks
//! [`missing_bytes`], which says whether memory ran out.

#![deny(missing_docs)]

mod builder;
mod element;
mod failure;
mod parsed;
mod report;
mod slots;
mod text;
mod value;

use builder::KindedBuilder;
use failure::{Failure, Outcome};
use parsed::ParsedFilter;
use pg_bloom_core::filter::{View, build};
use pg_bloom_core::memory::List;
use pg_bloom_core::{Filter, Header, Layout, Request};
use slots::Slots;
use std::cell::RefCell;
use value::{Frequent, Run, Value};

/// For so many bytes of filters, memory grows before they are there: the caller keeps about so many.
const MOST_ROOM: usize = 64 << 20;

/// What an instance has between two calls.
struct Module {
    input: List<u8>,
    output: List<u8>,
    /// Hashes of the elements that a call asks for, kept for the memory that they have.
    hashes: List<Option<u64>>,
    filters: Slots<ParsedFilter>,
    /// How many bytes the filters have.
    filter_bytes: usize,
    /// For how many bytes of filters there is memory, at least.
    room_for_filters: usize,
    builders: Slots<KindedBuilder>,
}

impl Module {
    /// Keeps a filter, and returns its handle.
    fn keep(&mut self, filter: Filter) -> i32 {
        self.filter_bytes += filter.as_bytes().len();
        if self.filter_bytes > self.room_for_filters {
            self.double_room();
        }
        self.filters.insert(filter.into())
    }

    /// Makes memory grow for as many further bytes of filters as there are now, up to [`MOST_ROOM`] in
    /// all.
    ///
    /// When memory grows, V8 counts all of it as newly allocated, and soon collects garbage. If memory
    /// grew for each new filter, it would do so again and again.
    fn double_room(&mut self) {
        let twice = self.filter_bytes.saturating_mul(2);
        self.room_for_filters = twice.min(MOST_ROOM).max(self.filter_bytes);
        let more = self.room_for_filters - self.filter_bytes;
        // Memory that is allocated and freed stays with the module. Without it, later filters get
        // their memory one by one.
        drop(List::<u8>::try_with_capacity(more));
    }

    /// Returns the filter with a handle. Panics if there is none.
    fn filter(&self, handle: i32) -> &Filter {
        self.filters.get(handle).filter()
    }
}

thread_local! {
    static MODULE: RefCell<Module> = {
        failure::install();
        RefCell::new(Module {
            input: List::new(),
            output: List::new(),
            hashes: List::new(),
            filters: Slots::new(),
            filter_bytes: 0,
            room_for_filters: 0,
            builders: Slots::new(),
        })
    };
}

/// Calls `work` with the state of the module, and returns the number that `work` returns. If it
/// fails, leaves the message in the output and returns the negative number of the error's class.
fn call(work: impl FnOnce(&mut Module) -> Outcome<i32>) -> i32 {
    MODULE.with_borrow_mut(|module| match work(module) {
        Ok(number) => number,
        Err(Failure { class, message }) => {
            module.output = message.into_bytes().into();
            class as i32
        }
    })
}

/// Returns the address of the input, with room for `length` bytes, which the caller then writes
/// there for the next call. What was written before may be lost.
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    MODULE.with_borrow_mut(|module| {
        if module.input.len() < length {
            // The old bytes are freed first, so that memory has room for the new ones.
            module.input = List::new();
            module.input = List::zeroed(length);
        }
        module.input.as_mut_ptr()
    })
}

/// Returns where the output of the last call is.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    MODULE.with_borrow(|module| module.output.as_ptr())
}

/// Returns how many bytes the output of the last call has.
#[unsafe(no_mangle)]
pub extern "C" fn output_length() -> usize {
    MODULE.with_borrow(|module| module.output.len())
}

/// Returns how many bytes could not be allocated, if that was the reason for a trap; else 0.
#[unsafe(no_mangle)]
pub extern "C" fn missing_bytes() -> usize {
    failure::missing_bytes()
}

/// Parses a stored filter, whose bytes are the first `length` bytes of the input, and returns its
/// handle, by which other functions name it. Returns a negative number, and leaves a message in the
/// output, if the bytes are no filter.
#[unsafe(no_mangle)]
pub extern "C" fn filter_parse(length: usize) -> i32 {
    call(|module| {
        // If the filter fills the input, it takes the input's memory: a large filter isn't copied.
        // Otherwise it is copied, so that a small one doesn't keep a large input.
        let stored = if module.input.len() == length {
            std::mem::take(&mut module.input)
        } else {
            List::copy_of(&module.input[..length])
        };
        let filter = Filter::parse(stored.into())?;
        Ok(module.keep(filter))
    })
}

/// Forgets a filter.
#[unsafe(no_mangle)]
pub extern "C" fn filter_release(filter: i32) {
    MODULE.with_borrow_mut(|module| {
        let released = module.filters.remove(filter);
        module.filter_bytes -= released.filter().as_bytes().len();
    });
}

/// Returns where the stored bytes of a filter are, until the filter is released.
#[unsafe(no_mangle)]
pub extern "C" fn filter_bytes(filter: i32) -> *const u8 {
    MODULE.with_borrow(|module| module.filter(filter).as_bytes().as_ptr())
}

/// Returns how many bytes a filter has as stored.
#[unsafe(no_mangle)]
pub extern "C" fn filter_length(filter: i32) -> usize {
    MODULE.with_borrow(|module| module.filter(filter).as_bytes().len())
}

/// Takes the next value from `values`, which are in the form that `js/src/value.rs` describes, and
/// returns the hash of the element that it stands for in a filter; `None` for a value that is in no
/// filter of this kind. Fails if the value can't be an element of this filter.
#[inline(always)]
fn take_hash(values: &mut &[u8], header: &Header<'_>) -> Outcome<Option<u64>> {
    match value::take_frequent(values) {
        Some(value) => hash_of_frequent(value, header),
        None => hash_of(&value::read(values)?, header),
    }
}

/// Returns the hash of the element that a value stands for in a filter, as [`take_hash`] does.
#[inline(always)]
fn hash_of_frequent(value: Frequent<'_>, header: &Header<'_>) -> Outcome<Option<u64>> {
    match element::frequent_hash(value, header.kind) {
        Some(hash) => Ok(Some(hash)),
        None => hash_of(&value.into(), header),
    }
}

/// Returns the hash of the element that a value stands for in a filter, as [`take_hash`] does.
#[inline(never)]
fn hash_of(value: &Value<'_>, header: &Header<'_>) -> Outcome<Option<u64>> {
    let Header { kind, layout, .. } = *header;
    // A filter without a kind never had an element, whatever the value stands for.
    let is_certainly_absent = kind.is_none() && !value.is_impossible();
    let element = if is_certainly_absent { None } else { element::element(value, kind)? };
    match element {
        // An element without a hash is a number that no element of the kind can be.
        Some(element) => Ok(element.hash_in(kind, layout)?),
        None => Ok(None),
    }
}

/// Appends the hashes of the next values in `values` to a list, as [`take_hash`] returns them: of a
/// run, or of one value.
fn take_hashes(
    values: &mut &[u8],
    header: &Header<'_>,
    hashes: &mut List<Option<u64>>,
) -> Outcome<()> {
    let Some(run) = value::take_run(values)? else {
        hashes.push(take_hash(values, header)?);
        return Ok(());
    };
    match run {
        Run::Texts(texts) => {
            for text in texts {
                hashes.push(hash_of_frequent(Frequent::Text(text?), header)?);
            }
        }
        Run::Integers(integers) => {
            for integer in integers {
                let integer = i64::from_le_bytes(*integer);
                hashes.push(hash_of_frequent(Frequent::Integer(integer), header)?);
            }
        }
        Run::Numbers(numbers) => {
            for number in numbers {
                let number = f64::from_le_bytes(*number);
                hashes.push(hash_of_frequent(Frequent::Number(number), header)?);
            }
        }
    }
    Ok(())
}

/// Returns whether a filter may have the element with a hash; no filter has one without a hash.
#[inline(always)]
fn may_have(filter: &View<'_>, hash: Option<u64>) -> bool {
    hash.is_some_and(|hash| build::contains(filter, hash))
}

/// Probes a filter, given by its handle, for one value. The value is in the first `length` bytes of
/// the input, in the form that `js/src/value.rs` describes. Returns 1 if the value may be in the
/// filter, else 0. Returns a negative number, and leaves a message in the output, for a value that
/// can't be an element of this filter.
#[unsafe(no_mangle)]
pub extern "C" fn filter_has(filter: i32, length: usize) -> i32 {
    call(|module| {
        let filter = module.filters.get(filter).view();
        let hash = take_hash(&mut &module.input[..length], &filter.header)?;
        Ok(i32::from(may_have(&filter, hash)))
    })
}

/// Probes a filter, given by its handle, for many values. They are in the first `length` bytes of
/// the input, one after the other, in the form that `js/src/value.rs` describes. Returns how many
/// values there are, and leaves in the output a byte for each, in their order: 1 if the value may
/// be in the filter, else 0.
///
/// Returns a negative number, and leaves a message in the output, if one of the values can't be an
/// element of this filter.
#[unsafe(no_mangle)]
pub extern "C" fn filter_contains(filter: i32, length: usize) -> i32 {
    call(|module| {
        let filter = module.filters.get(filter).view();
        let mut values = &module.input[..length];
        module.hashes.clear();
        while !values.is_empty() {
            take_hashes(&mut values, &filter.header, &mut module.hashes)?;
        }
        // The memory of a filter is slow to come. In a loop that does nothing else, the CPU waits for
        // that of several elements at once.
        let answers = module.hashes.iter().map(|&hash| u8::from(may_have(&filter, hash)));
        module.output = answers.collect();
        Ok(module.output.len() as i32)
    })
}

/// Returns the handle of the union of two filters.
#[unsafe(no_mangle)]
pub extern "C" fn filter_union(a: i32, b: i32) -> i32 {
    call(|module| {
        let union = module.filter(a).union(module.filter(b))?;
        Ok(module.keep(union))
    })
}

/// Returns the handle of the intersection of two filters.
#[unsafe(no_mangle)]
pub extern "C" fn filter_intersection(a: i32, b: i32) -> i32 {
    call(|module| {
        let intersection = module.filter(a).intersection(module.filter(b))?;
        Ok(module.keep(intersection))
    })
}

/// Returns the handle of a filter of the same elements, as if built for another capacity; the
/// capacity 0 stands for none. Returns a negative number, and leaves a message in the output, if
/// the filter can't be resized to it.
#[unsafe(no_mangle)]
pub extern "C" fn filter_resize(filter: i32, capacity: u64) -> i32 {
    call(|module| {
        let capacity = (capacity > 0).then_some(capacity);
        let resized = module.filter(filter).resize(capacity)?;
        Ok(module.keep(resized))
    })
}

/// Leaves in the output what a filter is, apart from its elements, as a JSON object.
#[unsafe(no_mangle)]
pub extern "C" fn filter_header(filter: i32) -> i32 {
    call(|module| {
        module.output = report::header(module.filter(filter)).into_bytes().into();
        Ok(0)
    })
}

/// Leaves in the output what a filter is and how full it is, as a JSON object.
#[unsafe(no_mangle)]
pub extern "C" fn filter_info(filter: i32) -> i32 {
    call(|module| {
        module.output = report::info(module.filter(filter)).into_bytes().into();
        Ok(0)
    })
}

/// Returns the estimated number of distinct elements; infinity if all bits are set.
#[unsafe(no_mangle)]
pub extern "C" fn filter_cardinality(filter: i32) -> f64 {
    MODULE.with_borrow(|module| module.filter(filter).cardinality())
}

/// Returns the false positive rate that a filter has now.
#[unsafe(no_mangle)]
pub extern "C" fn filter_fpr(filter: i32) -> f64 {
    MODULE.with_borrow(|module| module.filter(filter).current_fpr())
}

/// Returns 1 if the false positive rate of a filter is higher than promised, beyond random
/// variation; else 0.
#[unsafe(no_mangle)]
pub extern "C" fn filter_is_overfull(filter: i32) -> i32 {
    MODULE.with_borrow(|module| i32::from(module.filter(filter).overfull().is_some()))
}

/// Returns the layout with a stored code.
fn layout(code: u32) -> Outcome<Layout> {
    let layout = u8::try_from(code).ok().and_then(Layout::from_code);
    layout.ok_or_else(|| Failure::range(format!("layout {code} is unknown")))
}

/// Starts a build of a new filter, and returns the handle of its builder, by which the functions
/// that follow name it. The capacity 0 stands for none; `fpr` is the false positive rate, and
/// `layout_code` the number of a layout as stored filters have it. The first `kind_length` bytes of
/// the input name the kind of the elements, in UTF-8; without any, the filter gets the kind of its
/// first element.
///
/// Returns a negative number, and leaves a message in the output, if there is no such layout, kind
/// or filter.
#[unsafe(no_mangle)]
pub extern "C" fn builder_new(
    capacity: u64,
    fpr: f64,
    layout_code: u32,
    kind_length: usize,
) -> i32 {
    call(|module| {
        let request = Request {
            capacity: (capacity > 0).then_some(capacity),
            fpr,
            layout: layout(layout_code)?,
        };
        let builder = KindedBuilder::new(&request, &module.input[..kind_length])?;
        Ok(module.builders.insert(builder))
    })
}

/// Returns the handle of a builder that adds elements to a copy of a filter.
#[unsafe(no_mangle)]
pub extern "C" fn builder_from(filter: i32) -> i32 {
    call(|module| {
        let builder = KindedBuilder::from(module.filter(filter));
        Ok(module.builders.insert(builder))
    })
}

/// Adds values to the filter that a builder makes. They are in the first `length` bytes of the
/// input, one after the other, in the form that `js/src/value.rs` describes. Nulls are skipped.
/// Returns 0. Returns a negative number, and leaves a message in the output, for a value that can't
/// be an element of this filter; the values before it were added.
#[unsafe(no_mangle)]
pub extern "C" fn builder_add(builder: i32, length: usize) -> i32 {
    call(|module| {
        let builder = module.builders.get_mut(builder);
        let mut values = &module.input[..length];
        while !values.is_empty() {
            builder.add_next(&mut values)?;
        }
        Ok(0)
    })
}

/// Ends a build, forgets its builder, and returns the handle of the filter. Returns a negative
/// number, and leaves a message in the output, if the filter would be too large, or if its elements
/// are only arrays of nulls, whose kind isn't known; the builder is forgotten then, too.
#[unsafe(no_mangle)]
pub extern "C" fn builder_finish(builder: i32) -> i32 {
    call(|module| {
        let filter = module.builders.remove(builder).finish()?;
        Ok(module.keep(filter))
    })
}

/// Forgets a builder whose filter is not wanted.
#[unsafe(no_mangle)]
pub extern "C" fn builder_release(builder: i32) {
    MODULE.with_borrow_mut(|module| drop(module.builders.remove(builder)));
}

/// Leaves in the output the size of a filter for a capacity and a rate, as a JSON object.
#[unsafe(no_mangle)]
pub extern "C" fn parameters(capacity: u64, fpr: f64, layout_code: u32) -> i32 {
    call(|module| {
        module.output = report::parameters(layout(layout_code)?, capacity, fpr)?
            .into_bytes()
            .into();
        Ok(0)
    })
}

/// Leaves in the output what the lookup table recommends for a rate, as a JSON object.
#[unsafe(no_mangle)]
pub extern "C" fn best_practices(max_fpr: f64, layout_code: u32) -> i32 {
    call(|module| {
        module.output = report::best_practices(layout(layout_code)?, max_fpr)?
            .into_bytes()
            .into();
        Ok(0)
    })
}

/// Leaves in the output the false positive rate of a filter with these numbers of distinct
/// elements, bits and hashes, as a JSON number, and returns 0. Returns a negative number, and
/// leaves a message there, for numbers that no filter of the layout can have.
#[unsafe(no_mangle)]
pub extern "C" fn expected_fpr(
    elements: u64,
    num_bits: u64,
    num_hashes: u32,
    layout_code: u32,
) -> i32 {
    call(|module| {
        let layout = layout(layout_code)?;
        let rate = report::expected_fpr(layout, num_hashes, num_bits, elements)?;
        module.output = rate.into_bytes().into();
        Ok(0)
    })
}

/// Leaves in the output the largest capacity whose filter has at most `bytes` bytes, as a JSON
/// number.
#[unsafe(no_mangle)]
pub extern "C" fn capacity(bytes: u64, fpr: f64, layout_code: u32) -> i32 {
    call(|module| {
        let capacity = pg_bloom_core::capacity_for_bytes(layout(layout_code)?, bytes, fpr)?;
        module.output = capacity.to_string().into_bytes().into();
        Ok(0)
    })
}
