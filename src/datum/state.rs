//! The state of `bloom_agg` and `bloom_union_agg`, in the aggregate's own memory.
//!
//! ```text
//! small:  | params | -    | len | sorted | room |  h0 h1 h2 …  |      64, 128, 256 … bytes
//! dense:  | params | bits | len | -      | 508  |  batch       |      bits ──▶ | stored header | payload |
//! ```
//!
//! A group starts with room for four hashes and doubles it as it grows, dropping repeated hashes each time; once the
//! distinct ones take more bytes than the dense payload, it goes dense. From then on the hashes are a batch: their bits are set
//! 508 at a time, with the memory they need asked for ahead. The parameters are shared by all groups of a call site.

use super::call::Call;
use super::varlena::PgBuffer;
use crate::error::Failure;
use crate::settings;
use pg_bloom_core::build::from_hashes;
use pg_bloom_core::merge::{merged_header, or_into};
use pg_bloom_core::{Body, Buffer, Code, Error, Header, Kind, View, estimate, sparse};
use pgrx::pg_sys;

/// Bytes of a new state.
const FIRST_BYTES: usize = 64;
/// Bytes of a dense state, without its bits.
const BATCH_BYTES: usize = 4096;

/// What the states of a call site have in common.
pub struct Params {
    /// The header of the filter being built; its kind is that of the elements, even if there are none yet.
    pub header: Header<'static>,
}

impl Params {
    /// Parameters that live as long as `context`.
    fn allocate(context: pg_sys::MemoryContext, header: &Header<'_>) -> *const Params {
        let name = header.kind.name;
        // SAFETY: the allocation has room for the parameters and the name after them, which is valid UTF-8.
        unsafe {
            let params: *mut Params = pg_sys::MemoryContextAlloc(context, size_of::<Params>() + name.len()).cast();
            let copy: *mut u8 = params.add(1).cast();
            std::ptr::copy_nonoverlapping(name.as_ptr(), copy, name.len());
            let name = std::str::from_utf8_unchecked(std::slice::from_raw_parts(copy, name.len()));
            params.write(Params { header: Header { kind: Kind { name, ..header.kind }, ..*header } });
            params
        }
    }
}

/// The parameters that a call site used first, kept as long as the site; others are kept with the state that needs them.
pub struct Shared {
    first: *const Params,
    /// States are made for the caller to read at once, in the memory of the call.
    short_lived: bool,
}

impl Shared {
    /// For the functions of an aggregate that keep states.
    pub fn new() -> Self {
        Shared { first: std::ptr::null(), short_lived: false }
    }

    /// For functions whose states are read at once.
    pub fn short_lived() -> Self {
        Shared { first: std::ptr::null(), short_lived: true }
    }

    /// Parameters with this header.
    fn params(&mut self, call: &Call, header: &Header<'_>) -> Result<*const Params, Failure> {
        if self.first.is_null() {
            self.first = Params::allocate(call.site_context()?, header);
        }
        // SAFETY: allocated here or before, in memory that lives as long as the site.
        if unsafe { &(*self.first).header } == header {
            return Ok(self.first);
        }
        Ok(Params::allocate(self.context(call)?, header))
    }

    /// The memory of new states.
    fn context(&self, call: &Call) -> Result<pg_sys::MemoryContext, Failure> {
        let aggregate = call.require_aggregate()?;
        // SAFETY: reading a global that is always set.
        Ok(if self.short_lived { unsafe { pg_sys::CurrentMemoryContext } } else { aggregate })
    }
}

impl Default for Shared {
    fn default() -> Self {
        Shared::new()
    }
}

#[repr(C)]
struct Head {
    params: *const Params,
    /// The stored value being built, once dense.
    dense: *mut pg_sys::varlena,
    /// Hashes there are.
    len: u32,
    /// How many of them, from the first, ascend strictly.
    sorted: u32,
    /// Hashes there is room for.
    room: u32,
    /// Whether the parameters' kind is that of the filter even without an element.
    has_kind: u32,
}

/// The state of one group.
pub struct State {
    head: *mut Head,
}

impl State {
    /// Argument `i` of a support function.
    #[inline(always)]
    pub fn argument(call: &Call, i: usize) -> Option<State> {
        call.internal(i).map(|head| State { head })
    }

    /// A state without elements, with this header.
    ///
    /// # Errors
    /// 55000 for a call by hand.
    pub fn new(call: &Call, shared: &mut Shared, header: &Header<'_>) -> Result<State, Failure> {
        let context = shared.context(call)?;
        let params = shared.params(call, header)?;
        // SAFETY: the allocation has room for the head, which is written whole.
        unsafe {
            let head: *mut Head = pg_sys::MemoryContextAlloc(context, FIRST_BYTES).cast();
            let room = room_of(FIRST_BYTES);
            head.write(Head { params, dense: std::ptr::null_mut(), len: 0, sorted: 0, room, has_kind: 0 });
            Ok(State { head })
        }
    }

    #[inline(always)]
    fn head(&self) -> &Head {
        // SAFETY: the state is alive, and borrowed.
        unsafe { &*self.head }
    }

    #[inline(always)]
    fn head_mut(&mut self) -> &mut Head {
        // SAFETY: the state is alive, and borrowed for writing.
        unsafe { &mut *self.head }
    }

    /// The parameters.
    #[inline(always)]
    pub fn params(&self) -> &Params {
        // SAFETY: parameters live at least as long as the states that have them.
        unsafe { &*self.head().params }
    }

    fn hashes(&mut self) -> &mut [u64] {
        let len = self.head().len as usize;
        // SAFETY: `len` hashes were written after the head.
        unsafe { std::slice::from_raw_parts_mut(self.head.add(1).cast(), len) }
    }

    fn is_dense(&self) -> bool {
        !self.head().dense.is_null()
    }

    /// The header of the filter as it is: without a kind as long as there are no elements.
    fn header(&self) -> Header<'static> {
        let header = self.params().header;
        let without_kind = self.head().len == 0 && !self.is_dense() && self.head().has_kind == 0;
        if without_kind { Header { kind: Kind::NONE, ..header } } else { header }
    }

    /// Adds an element.
    ///
    /// # Errors
    /// 54000 when there is no room for more.
    #[inline(always)]
    pub fn push(&mut self, call: &Call, hash: u64) -> Result<(), Failure> {
        if self.head().len == self.head().room {
            self.make_room(call)?;
        }
        if self.is_dense() {
            self.prefetch(hash);
        }
        let len = self.head().len;
        // SAFETY: there is room for another hash after `len` ones.
        unsafe { self.head.add(1).cast::<u64>().add(len as usize).write(hash) };
        self.head_mut().len = len + 1;
        Ok(())
    }

    /// Asks for the memory that setting the bits of a hash needs, long before they are set with the rest of the batch.
    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        let header = &self.params().header;
        // SAFETY: the buffer is this state's own.
        let dense = unsafe { PgBuffer::from_pointer(self.head().dense) };
        header.layout.prefetch(&dense.bytes()[header.prefix_bytes()..], header.blocks, hash);
    }

    #[inline(never)]
    fn make_room(&mut self, call: &Call) -> Result<(), Failure> {
        if self.is_dense() {
            self.flush();
            return Ok(());
        }
        self.sort();
        let (len, room) = (self.head().len, self.head().room);
        if !self.params().header.fits_sparse(len as usize) {
            return self.go_dense(call.require_aggregate()?, self.params().header.blocks);
        }
        if len > room / 2 { self.resize(bytes_of(room) * 2) } else { Ok(()) }
    }

    /// Sorts the hashes and drops repeated ones.
    fn sort(&mut self) {
        let sorted = self.head().sorted as usize;
        let distinct = sparse::sort_distinct(self.hashes(), sorted) as u32;
        let head = self.head_mut();
        (head.len, head.sorted) = (distinct, distinct);
    }

    fn resize(&mut self, bytes: usize) -> Result<(), Failure> {
        if bytes / 8 > u32::MAX as usize {
            return Err(too_many());
        }
        // SAFETY: the state came from palloc, which keeps its memory context; its hashes fit the new size.
        self.head = unsafe { pg_sys::repalloc_huge(self.head.cast(), bytes).cast() };
        self.head_mut().room = room_of(bytes);
        Ok(())
    }

    /// Sets the bits of the batch.
    fn flush(&mut self) {
        let header = self.params().header;
        // SAFETY: the buffer is this state's own; the hashes are no part of it.
        let mut dense = unsafe { PgBuffer::from_pointer(self.head().dense) };
        let payload = &mut dense.bytes_mut()[header.prefix_bytes()..];
        header.layout.insert_all(payload, header.hashes, header.blocks, self.hashes());
        self.head_mut().len = 0;
    }

    /// Makes the state dense with `blocks` blocks, a multiple of those it has.
    fn go_dense(&mut self, context: pg_sys::MemoryContext, blocks: u64) -> Result<(), Failure> {
        let own = self.params().header;
        if self.is_dense() && own.blocks == blocks {
            return Ok(());
        }
        let header = Header { blocks, ..own };
        header.check_size(settings::max_filter_bytes())?;
        let mut dense = PgBuffer::zeroed_in(context, header.dense_bytes() as usize);
        self.with_view(|view| or_into(&mut dense.bytes_mut()[header.prefix_bytes()..], blocks, view));
        let old = std::mem::replace(&mut self.head_mut().dense, dense.into_pointer());
        let head = self.head_mut();
        (head.len, head.sorted) = (0, 0);
        if old.is_null() {
            self.resize(BATCH_BYTES)
        } else {
            // SAFETY: the old value came from palloc and is used no more.
            unsafe { pg_sys::pfree(old.cast()) };
            Ok(())
        }
    }

    /// Shows the state as a filter, which may have no size and hashes nevertheless.
    pub fn with_view<T>(&mut self, use_view: impl FnOnce(&View<'_>) -> T) -> T {
        if self.is_dense() {
            self.flush();
            let header = self.params().header;
            // SAFETY: the buffer is this state's own and not written to while it is borrowed.
            let dense = unsafe { PgBuffer::from_pointer(self.head().dense) };
            return use_view(&View { header, body: Body::Dense(&dense.bytes()[header.prefix_bytes()..]) });
        }
        self.sort();
        let header = self.header();
        let entries: Vec<[u8; 8]>;
        let hashes = self.hashes();
        let entries = if cfg!(target_endian = "little") {
            // SAFETY: on this CPU a u64 lies in memory as its eight little-endian bytes.
            unsafe { std::slice::from_raw_parts(hashes.as_ptr().cast::<[u8; 8]>(), hashes.len()) }
        } else {
            entries = hashes.iter().map(|h| h.to_le_bytes()).collect();
            &entries
        };
        use_view(&View { header, body: Body::Sparse(entries) })
    }

    /// Merges a filter, or the view of another state, into this one.
    ///
    /// # Errors
    /// Those of a union.
    pub fn absorb(
        &mut self,
        call: &Call,
        shared: &mut Shared,
        view: &View<'_>,
        operation: &str,
    ) -> Result<(), Failure> {
        let own = self.header();
        let merged = merged_header(&own, &view.header, operation)?;
        let nothing_yet = own.is_unsized() && self.head().len == 0;
        match view.body {
            Body::Sparse([]) if view.header.is_unsized() => self.set_header(call, shared, &merged),
            Body::Sparse(entries) if !self.is_dense() && (nothing_yet || own.blocks == view.header.blocks) => {
                self.set_header(call, shared, &merged)?;
                sparse::values(entries).try_for_each(|hash| self.push(call, hash))
            }
            _ if own.is_unsized() && !nothing_yet || view.header.is_unsized() => Err(too_many()),
            _ => {
                // A state without elements has no kind of its own, and one without a size no bits to be kept.
                self.set_header(
                    call,
                    shared,
                    &Header { blocks: if nothing_yet { merged.blocks } else { own.blocks }, ..merged },
                )?;
                self.go_dense(shared.context(call)?, merged.blocks)?;
                self.set_header(call, shared, &merged)?;
                self.flush();
                // SAFETY: the buffer is this state's own.
                let mut dense = unsafe { PgBuffer::from_pointer(self.head().dense) };
                or_into(&mut dense.bytes_mut()[merged.prefix_bytes()..], merged.blocks, view);
                Ok(())
            }
        }
    }

    /// Changes the header; a name for the kind moves the payload of a dense state.
    fn set_header(&mut self, call: &Call, shared: &mut Shared, header: &Header<'_>) -> Result<(), Failure> {
        let own = self.params().header;
        if own == *header || (header.kind.is_none() && own == (Header { kind: own.kind, ..*header })) {
            self.head_mut().has_kind |= u32::from(!header.kind.is_none());
            return Ok(());
        }
        if self.is_dense() && own.prefix_bytes() != header.prefix_bytes() {
            self.flush();
            // SAFETY: the old buffer is this state's own, and given back after its payload was copied.
            unsafe {
                let old = PgBuffer::from_pointer(self.head().dense);
                let payload = &old.bytes()[own.prefix_bytes()..];
                let mut new = PgBuffer::zeroed_in(shared.context(call)?, header.prefix_bytes() + payload.len());
                new.bytes_mut()[header.prefix_bytes()..].copy_from_slice(payload);
                self.head_mut().dense = new.into_pointer();
                pg_sys::pfree(old.into_pointer().cast());
            }
        }
        self.head_mut().params = shared.params(call, header)?;
        self.head_mut().has_kind = u32::from(!header.kind.is_none());
        Ok(())
    }

    /// The state as a value: a filter, or with `partial` what another process goes on with.
    fn datum(&mut self, partial: bool) -> Result<pg_sys::Datum, Failure> {
        if self.is_dense() {
            self.flush();
            let header = self.params().header;
            // SAFETY: the buffer is this state's own.
            let mut dense = unsafe { PgBuffer::from_pointer(self.head().dense) };
            header.rewrite_dense(dense.bytes_mut());
            return Ok(dense.into_datum());
        }
        self.sort();
        let header = self.header();
        if partial && header.fits_sparse(self.head().len as usize) {
            return Ok(self.with_view(|view| view.to_buffer::<PgBuffer>()).into_datum());
        }
        Ok(from_hashes::<PgBuffer>(&header, self.hashes(), settings::max_filter_bytes())?.into_datum())
    }

    /// What another process goes on with, as bytes.
    ///
    /// # Errors
    /// 54000 for too many elements.
    pub fn serialise(&mut self) -> Result<pg_sys::Datum, Failure> {
        self.datum(true)
    }

    /// The finished filter. The state stays as it is, but for the order of its hashes.
    ///
    /// # Errors
    /// 54000 for one that is too large; 22023 for one that is overfull, if the setting says so.
    pub fn finish(&mut self) -> Result<pg_sys::Datum, Failure> {
        let datum = self.datum(false)?;
        // SAFETY: a value of variable length that was just made.
        let value = unsafe { super::Value::detoast(datum) };
        if let Some(over) = estimate::overfull(&View::parse_trusted(&value)?) {
            crate::error::report_overfull(over)?;
        }
        Ok(datum)
    }

    /// The state as the result of a support function.
    #[inline(always)]
    pub fn into_datum(self) -> pg_sys::Datum {
        pg_sys::Datum::from(self.head)
    }
}

fn room_of(bytes: usize) -> u32 {
    ((bytes - size_of::<Head>()) / 8) as u32
}

fn bytes_of(room: u32) -> usize {
    room as usize * 8 + size_of::<Head>()
}

fn too_many() -> Failure {
    Error::new(Code::TooLarge, "too many elements for a bloom filter without a capacity")
        .hint("Give the aggregate a capacity: bloom_agg(element, capacity).")
        .into()
}
