//! A filter with its bytes: what a program outside PostgreSQL reads, probes and builds.

use super::build::{self, Request};
use super::estimate;
use super::header::Header;
use super::merge;
use super::overfull::{Overfull, overfull};
use super::resize::resize;
use super::sparse::sort_distinct;
use super::view::{Body, View};
use crate::element::Element;
use crate::error::{InvalidParameter, Result, damaged};
use crate::kind::{Kind, Tag};
use crate::layout::Layout;
use crate::memory::{self, List};
use crate::sizing::{MAX_STORED_BYTES, check_capacity};

/// How many elements are probed at once: while memory is fetched for the first of them, the hashes
/// of the others are computed.
const BATCH: usize = 64;
/// How many hashes a build keeps at least before it adds them to a filter that has a size: 2 MB.
const FEWEST_KEPT: usize = 1 << 18;
/// The bits of a filter are in the CPU's cache while elements are added, if they are no more bytes
/// than this: 4 MB.
const MOST_BYTES_IN_CACHE: u64 = 1 << 22;

/// A filter: the bytes that PostgreSQL stores, and what they mean.
///
/// A filter has elements of one kind, which [`Filter::header`] tells. Probing for an element of
/// another kind is an error, since it would never be found.
///
/// ```
/// # use pg_bloom_core::{Filter, Request};
/// let request = Request { capacity: Some(1_000), ..Request::default() };
/// let seen = Filter::build(["a", "b"], &request)?;
/// assert!(seen.contains(&"a".into())?);
/// assert!(seen.contains(&7.into()).is_err());
/// assert_eq!(Filter::parse(seen.as_bytes().to_vec())?, seen);
/// # Ok::<(), pg_bloom_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(List<u8>);

impl Filter {
    /// Reads a stored filter: the bytes of `SELECT filter::bytea` in PostgreSQL.
    ///
    /// Fails with [`crate::Class::InvalidBinary`] if they are not a filter.
    #[allow(clippy::disallowed_types, reason = "callers have a `Vec`")]
    pub fn parse(bytes: Vec<u8>) -> Result<Filter> {
        View::parse(&bytes)?;
        Ok(Filter(bytes.into()))
    }

    /// Reads a filter in the form that psql and COPY show: `\\x` and hexadecimal digits.
    ///
    /// Fails with [`crate::Class::InvalidBinary`] if the text or its bytes are not a filter.
    pub fn from_hex(text: &str) -> Result<Filter> {
        let bytes = memory::from_hex(text.as_bytes())
            .ok_or_else(|| damaged("it is not \\x and hexadecimal digits"))?;
        Filter::parse(bytes)
    }

    /// Returns the filter of these elements: the same bytes as PostgreSQL's `bloom_agg` makes.
    ///
    /// Fails if the request is impossible ([`Builder::new`]), if an element can't be in the filter
    /// ([`Builder::add`]), or if the filter would be too large ([`Builder::finish`]).
    pub fn build<'e, E: Into<Element<'e>>>(
        elements: impl IntoIterator<Item = E>,
        request: &Request,
    ) -> Result<Filter> {
        Builder::new(request)?.finish_with(elements)
    }

    /// Returns the filter with more elements.
    ///
    /// Fails if an element can't be in the filter ([`Builder::add`]), or if the filter would be too
    /// large ([`Builder::finish`]).
    pub fn add_all<'e, E: Into<Element<'e>>>(
        &self,
        elements: impl IntoIterator<Item = E>,
    ) -> Result<Filter> {
        Builder::from(self).finish_with(elements)
    }

    /// Returns the stored bytes, which PostgreSQL casts to `bloom` from `bytea`.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns what the filter is, apart from its elements.
    pub fn header(&self) -> Header<'_> {
        self.view().header
    }

    /// Returns the filter as the other functions of this crate read it.
    #[doc(hidden)]
    #[inline]
    pub fn view(&self) -> View<'_> {
        // Without `expect`, small programs need no code that prints errors for debugging.
        let Ok(view) = View::parse_trusted(&self.0) else {
            unreachable!("a filter is checked when it is made");
        };
        view
    }

    /// Returns whether the element may be in the filter. `false` is certain.
    ///
    /// Fails with [`crate::Class::KindMismatch`] if the element has another kind.
    #[inline]
    pub fn contains(&self, element: &Element<'_>) -> Result<bool> {
        let view = self.view();
        let hash = element.hash_in(view.header.kind, view.header.layout)?;
        // An element without a hash is a number that no element of the kind can be.
        Ok(hash.is_some_and(|hash| build::contains(&view, hash)))
    }

    /// Returns for each of many elements, in their order, whether it may be in the filter. This is
    /// faster than one after the other, since memory is prefetched.
    ///
    /// Fails with [`crate::Class::KindMismatch`] if an element has another kind.
    #[allow(clippy::disallowed_types, reason = "callers want a `Vec`")]
    pub fn contains_each<'e, E: Into<Element<'e>>>(
        &self,
        elements: impl IntoIterator<Item = E>,
    ) -> Result<Vec<bool>> {
        let mut prober = self.prober();
        for element in elements {
            prober.push(Some(&element.into()))?;
        }
        Ok(prober.finish())
    }

    /// Returns a probe for many elements that come one by one.
    pub fn prober(&self) -> Prober<'_> {
        Prober {
            view: self.view(),
            unanswered: List::with_capacity(BATCH),
            answers: List::new(),
        }
    }

    /// Returns the filter with the elements of both.
    ///
    /// Fails with [`crate::Class::KindMismatch`] if the filters have elements of different kinds,
    /// with [`crate::Class::InvalidParameter`] if they have different layouts or rates, or sizes
    /// neither of which is a multiple of the other, and with [`crate::Class::TooLarge`] if the
    /// result would have more than [`MAX_STORED_BYTES`].
    pub fn union(&self, other: &Filter) -> Result<Filter> {
        merge::union(&self.view(), &other.view(), MAX_STORED_BYTES).map(Filter)
    }

    /// Returns the filter of the elements that may be in both.
    ///
    /// Fails with [`crate::Class::KindMismatch`] if the filters have elements of different kinds,
    /// and with [`crate::Class::InvalidParameter`] if they have different layouts or rates, or
    /// sizes neither of which is a multiple of the other.
    pub fn intersection(&self, other: &Filter) -> Result<Filter> {
        merge::intersection(&self.view(), &other.view()).map(Filter)
    }

    /// Returns the filter as if built for another capacity. Without a capacity, a filter that is a
    /// list of hashes is sized for those it has.
    ///
    /// Fails with [`crate::Class::InvalidParameter`] if the filter has bits and there is no
    /// capacity, or its bits can be neither spread nor folded to that size, and with
    /// [`crate::Class::TooLarge`] if it would have more than [`MAX_STORED_BYTES`].
    pub fn resize(&self, capacity: Option<u64>) -> Result<Filter> {
        resize(&self.view(), capacity, MAX_STORED_BYTES).map(Filter)
    }

    /// Returns whether the filter has the hashes of its elements, and not their bits. It is exact
    /// to 2^-64 then. A filter has hashes as long as these take no more bytes than bits would.
    pub fn is_list(&self) -> bool {
        matches!(self.view().body, Body::Sparse(_))
    }

    /// Returns the estimated number of distinct elements; infinity if all bits are set.
    pub fn cardinality(&self) -> f64 {
        estimate::cardinality(&self.view())
    }

    /// Returns the share of absent elements that the filter now reports as present.
    pub fn current_fpr(&self) -> f64 {
        estimate::current_fpr(&self.view())
    }

    /// Returns how much more the filter has than it was made for, if its false positive rate is
    /// higher than promised, beyond random variation; else `None`.
    pub fn overfull(&self) -> Option<Overfull> {
        overfull(&self.view())
    }
}

/// Probes a filter for many elements.
pub struct Prober<'f> {
    view: View<'f>,
    /// The hashes of the elements that have no answer yet. `None`: the element is not in the
    /// filter.
    unanswered: List<Option<u64>>,
    /// Whether each of the elements before may be in the filter.
    answers: List<bool>,
}

impl Prober<'_> {
    /// Adds an element to those for which [`Prober::finish`] says whether the filter has them.
    /// `None`, which is NULL in SQL, is in no filter.
    ///
    /// The memory that the probe needs is prefetched; the filter is probed when a batch is full.
    ///
    /// Fails with [`crate::Class::KindMismatch`] if the element has another kind than those of the
    /// filter.
    #[inline]
    pub fn push(&mut self, element: Option<&Element<'_>>) -> Result<()> {
        let Header { kind, layout, .. } = self.view.header;
        let hash = match element {
            Some(element) => element.hash_in(kind, layout)?,
            None => None,
        };
        if let Some(hash) = hash {
            build::prefetch(&self.view, hash);
        }

        self.unanswered.push(hash);
        if self.unanswered.len() == BATCH {
            self.answer();
        }
        Ok(())
    }

    /// Returns for each element, in their order, whether it may be in the filter.
    #[allow(clippy::disallowed_types, reason = "callers want a `Vec`")]
    pub fn finish(mut self) -> Vec<bool> {
        self.answer();
        self.answers.into()
    }

    /// Answers the elements that have no answer yet.
    fn answer(&mut self) {
        for hash in self.unanswered.drain(..) {
            let is_found = hash.is_some_and(|hash| build::contains(&self.view, hash));
            self.answers.push(is_found);
        }
    }
}

/// Builds a filter from elements that are added one by one.
pub struct Builder {
    /// The filter without the elements whose hashes are kept.
    filter: Filter,
    layout: Layout,
    /// The key kind of the elements, also of those whose hashes are kept: its tag and its name.
    tag: Tag,
    name: String,
    /// Hashes that are not in the filter yet.
    kept: List<u64>,
    /// There are always fewer kept hashes than this.
    most_kept: usize,
}

impl Builder {
    /// Starts a new filter.
    ///
    /// Fails with [`crate::Class::InvalidParameter`] if the capacity is 0 or the layout can't keep
    /// the rate, and with [`crate::Class::TooLarge`] if the filter would have more than
    /// [`MAX_STORED_BYTES`].
    pub fn new(request: &Request) -> Result<Builder> {
        if let Some(capacity) = request.capacity {
            check_capacity(i64::try_from(capacity).unwrap_or(i64::MAX))?;
        }
        let header = request.header(MAX_STORED_BYTES)?;
        Ok(Builder::adding_to(Filter(header.sparse(0))))
    }

    /// Returns a builder that adds elements to this filter. It keeps the hashes of new elements in
    /// a list, and adds them to the filter when there are as many as [`most_kept`] says.
    fn adding_to(filter: Filter) -> Builder {
        let header = filter.header();
        Builder {
            layout: header.layout,
            tag: header.kind.tag,
            name: header.kind.name.to_owned(),
            kept: List::new(),
            most_kept: most_kept(&filter),
            filter,
        }
    }

    /// Adds an element to the filter that is being built. If the filter has no key kind yet, it
    /// gets the kind of the element. An array whose members are all NULL doesn't tell their kind,
    /// so a later array may still do that.
    ///
    /// Only the element's hash is kept for now; hashes are added to the filter many at a time.
    ///
    /// Fails with [`crate::Class::KindMismatch`] if the element has another kind; with
    /// [`crate::Class::InvalidParameter`] if it is a number that is out of the range of this kind;
    /// and with [`crate::Class::TooLarge`] if the kept hashes are added now, and the filter becomes
    /// too large.
    #[inline]
    pub fn add(&mut self, element: &Element<'_>) -> Result<()> {
        if self.tag == Tag::None || self.is_of_unknown_arrays() {
            self.adopt_kind(element);
        }

        let kind = Kind { tag: self.tag, name: &self.name };
        let hash = element
            .hash_in(kind, self.layout)?
            .ok_or_else(|| InvalidParameter::OutOfRange(kind.to_string()))?;
        self.add_hash(hash)
    }

    /// Adds an element to the filter that is being built, given by its hash. The filter must have a
    /// key kind already, that of the element.
    ///
    /// Fails with [`crate::Class::TooLarge`] if the kept hashes are added now, and the filter
    /// becomes too large.
    #[doc(hidden)]
    #[inline]
    pub fn add_hash(&mut self, hash: u64) -> Result<()> {
        self.kept.push(hash);
        if self.kept.len() == self.most_kept {
            self.make_room()?;
        }
        Ok(())
    }

    /// Takes the kind of an element for that of the filter, unless the filter has elements of
    /// another kind.
    fn adopt_kind(&mut self, element: &Element<'_>) {
        let kind = element.kind(self.layout);
        if self.tag == Tag::None || self.tag == kind.tag {
            self.tag = kind.tag;
            self.name = kind.name.to_owned();
        }
    }

    /// Returns the filter with all elements that were added.
    ///
    /// Fails with [`crate::Class::TooLarge`] if it would have more than [`MAX_STORED_BYTES`], and
    /// with [`crate::Class::InvalidParameter`] if there are only arrays whose members are all NULL,
    /// so that their kind is not known.
    pub fn finish(mut self) -> Result<Filter> {
        if self.is_of_unknown_arrays() {
            return Err(InvalidParameter::UnknownMembers.into());
        }
        if !self.kept.is_empty() {
            self.add_kept()?;
        }
        Ok(self.filter)
    }

    /// Adds elements, and returns the filter.
    ///
    /// Fails as [`Builder::add`] and [`Builder::finish`] do.
    fn finish_with<'e, E: Into<Element<'e>>>(
        mut self,
        elements: impl IntoIterator<Item = E>,
    ) -> Result<Filter> {
        for element in elements {
            self.add(&element.into())?;
        }
        self.finish()
    }

    /// Returns whether there are only arrays so far, and none of them tells the kind of its
    /// members.
    #[inline]
    fn is_of_unknown_arrays(&self) -> bool {
        self.tag == Tag::Array && self.name.is_empty()
    }

    /// Makes room in the list of hashes that are kept until they are added to the filter: adds them
    /// now, if the filter can take them.
    ///
    /// It can't if it has no size, as the number of all elements decides the size; nor if it has
    /// only arrays of NULLs so far, which don't tell the kind of its elements. Then repeated hashes
    /// are dropped. If more than half of the list is left, twice as many hashes are kept from now
    /// on.
    ///
    /// Fails with [`crate::Class::TooLarge`] if the filter would have more than
    /// [`MAX_STORED_BYTES`].
    fn make_room(&mut self) -> Result<()> {
        let can_take_hashes = !self.filter.header().is_unsized() && !self.is_of_unknown_arrays();
        if can_take_hashes {
            return self.add_kept();
        }
        // 0: nothing is known of the order of the hashes.
        let distinct = sort_distinct(&mut self.kept, 0);
        self.kept.truncate(distinct);
        if distinct > self.most_kept / 2 {
            self.most_kept *= 2;
        }
        Ok(())
    }

    /// Adds the hashes in `self.kept`, those of elements that were added to the builder but not yet
    /// to the filter, to the filter, and empties the list.
    ///
    /// Fails with [`crate::Class::TooLarge`] if the filter would have more than
    /// [`MAX_STORED_BYTES`].
    fn add_kept(&mut self) -> Result<()> {
        let kind = Kind { tag: self.tag, name: &self.name };
        let view = self.filter.view();
        let has_bits_of_kind = matches!(view.body, Body::Dense(_)) && view.header.kind == kind;
        if has_bits_of_kind {
            let shape = view.header.shape();
            let prefix_bytes = view.header.prefix_bytes();
            // Bits can be set in any order, and again. The order of hashes is that of their blocks in
            // memory, unless a block is one bit. To sort them takes longer than it saves where memory
            // is in the cache.
            let sorting_helps = shape.layout != Layout::Classic;
            if sorting_helps && shape.payload_bytes() > MOST_BYTES_IN_CACHE {
                self.kept.sort_unstable();
            }
            shape.insert_all(&mut self.filter.0[prefix_bytes..], &self.kept);
        } else {
            // 0: nothing is known of the order of the hashes.
            let num_distinct = sort_distinct(&mut self.kept, 0);
            let hashes = &self.kept[..num_distinct];
            self.filter = Filter(build::add_hashes(&view, kind, hashes, MAX_STORED_BYTES)?);
            self.most_kept = most_kept(&self.filter);
        }
        self.kept.clear();
        Ok(())
    }
}

/// Returns how many hashes a build keeps, at most, before it adds them to this filter.
///
/// Adding them to a filter that has hashes itself copies these. With one new hash, of 8 bytes, for 8
/// bytes of the filter, the copy takes a small part of the time. Bits are set where they are, so a
/// filter that has bits needs no more than [`FEWEST_KEPT`].
fn most_kept(filter: &Filter) -> usize {
    match filter.view() {
        View { body: Body::Dense(_), .. } => FEWEST_KEPT,
        View { header, .. } => FEWEST_KEPT.max(header.payload_bytes() as usize / size_of::<u64>()),
    }
}

impl From<&Filter> for Builder {
    /// Returns a builder that adds elements to a copy of the filter.
    fn from(filter: &Filter) -> Builder {
        Builder::adding_to(Filter(List::copy_of(&filter.0)))
    }
}

#[cfg(test)]
mod tests;
