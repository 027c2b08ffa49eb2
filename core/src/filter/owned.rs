//! A filter with its bytes: what a program outside PostgreSQL reads, asks and builds.

use super::build::{self, Request};
use super::estimate;
use super::header::Header;
use super::merge;
use super::overfull::{Overfull, overfull};
use super::resize::resize;
use super::sparse::sort_distinct;
use super::view::{Body, View};
use crate::element::Element;
use crate::error::{InvalidBinary, InvalidParameter, Result};
use crate::kind::{Kind, Tag};
use crate::layout::Layout;
use crate::memory;
use crate::sizing::{MAX_STORED_BYTES, check_capacity};

/// Hashes that are probed at once: those of the next are computed before, while memory is fetched.
const BATCH: usize = 64;
/// The least hashes that a build keeps before it adds them to a filter that has a size.
const KEPT: usize = 1 << 18;

/// A filter: the bytes that PostgreSQL stores, and what they mean.
///
/// A filter has elements of one kind, which [`Filter::header`] tells; an element of another kind is
/// an error, as it would never be found.
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
pub struct Filter(Vec<u8>);

impl Filter {
    /// Reads a stored filter: `SELECT filter::bytea` in PostgreSQL. Errors:
    /// [`crate::Class::InvalidBinary`].
    pub fn parse(bytes: Vec<u8>) -> Result<Filter> {
        View::parse(&bytes)?;
        Ok(Filter(bytes))
    }

    /// Reads a filter in the form that psql and COPY show: `\\x` and hexadecimal digits. Errors:
    /// [`crate::Class::InvalidBinary`] for other text, and as [`Filter::parse`].
    pub fn from_hex(text: &str) -> Result<Filter> {
        let bytes = memory::from_hex(text.as_bytes());
        Filter::parse(
            bytes.ok_or_else(|| {
                InvalidBinary::Damaged("it is not \\x and hexadecimal digits".into())
            })?,
        )
    }

    /// The filter of these elements, the same bytes as PostgreSQL's `bloom_agg` makes. Errors:
    /// those of [`Builder::new`], [`Builder::add`] and [`Builder::finish`].
    pub fn build<'e, E: Into<Element<'e>>>(
        elements: impl IntoIterator<Item = E>,
        request: &Request,
    ) -> Result<Filter> {
        Builder::new(request)?.with(elements)
    }

    /// The filter with more elements. Errors: those of [`Builder::add`] and [`Builder::finish`].
    pub fn add_all<'e, E: Into<Element<'e>>>(
        &self,
        elements: impl IntoIterator<Item = E>,
    ) -> Result<Filter> {
        Builder::from(self).with(elements)
    }

    /// The stored bytes: in PostgreSQL `bytea::bloom`.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// What it is, apart from its elements.
    pub fn header(&self) -> Header<'_> {
        self.view().header
    }

    /// What the functions of this crate read.
    #[doc(hidden)]
    #[inline]
    pub fn view(&self) -> View<'_> {
        View::parse_trusted(&self.0).expect("a filter is checked when it is made")
    }

    /// Whether the element may be in the filter. `false` is certain. Errors:
    /// [`crate::Class::KindMismatch`] for an element of another kind.
    #[inline]
    pub fn contains(&self, element: &Element<'_>) -> Result<bool> {
        let view = self.view();
        let hash = element.hash_in(view.header.kind, view.header.layout)?;
        Ok(hash.is_some_and(|hash| build::contains(&view, hash)))
    }

    /// The same for many elements, in order, and faster, as memory is fetched ahead. Errors: as
    /// [`Filter::contains`].
    pub fn contains_each<'e, E: Into<Element<'e>>>(
        &self,
        elements: impl IntoIterator<Item = E>,
    ) -> Result<Vec<bool>> {
        let mut prober = self.prober();
        elements
            .into_iter()
            .try_for_each(|element| prober.push(Some(&element.into())))?;
        Ok(prober.finish())
    }

    /// For elements that come one by one.
    pub fn prober(&self) -> Prober<'_> {
        Prober {
            view: self.view(),
            hashes: memory::with_capacity(BATCH),
            answers: Vec::new(),
        }
    }

    /// The filter of all elements of both. Errors: [`crate::Class::KindMismatch`] for elements of
    /// different kinds; [`crate::Class::InvalidParameter`] for filters of different layouts or
    /// rates, or of sizes neither of which is a multiple of the other.
    pub fn union(&self, other: &Filter) -> Result<Filter> {
        merge::union(&self.view(), &other.view(), MAX_STORED_BYTES).map(Filter)
    }

    /// The filter of what may be in both. Errors: as [`Filter::union`].
    pub fn intersection(&self, other: &Filter) -> Result<Filter> {
        merge::intersection(&self.view(), &other.view()).map(Filter)
    }

    /// The filter as if built for another capacity; without one, a list of hashes is sized for
    /// those it has. Errors: [`crate::Class::InvalidParameter`] for bits that can be neither spread
    /// nor folded to that size, or without a capacity.
    pub fn resize(&self, capacity: Option<u64>) -> Result<Filter> {
        resize(&self.view(), capacity, MAX_STORED_BYTES).map(Filter)
    }

    /// Whether it keeps the hashes of its elements, as long as these take no more room than bits:
    /// it is exact then.
    pub fn is_list(&self) -> bool {
        matches!(self.view().body, Body::Sparse(_))
    }

    /// Estimated distinct elements; infinite if all bits are set.
    pub fn cardinality(&self) -> f64 {
        estimate::cardinality(&self.view())
    }

    /// The share of absent elements that it now reports as present.
    pub fn current_fpr(&self) -> f64 {
        estimate::current_fpr(&self.view())
    }

    /// How much more it has than it was made for, if its rate is higher than promised, beyond
    /// random variation.
    pub fn overfull(&self) -> Option<Overfull> {
        overfull(&self.view())
    }
}

/// Probes a filter for many elements.
pub struct Prober<'f> {
    view: View<'f>,
    /// Hashes of elements that have no answer yet.
    hashes: Vec<Option<u64>>,
    answers: Vec<bool>,
}

impl Prober<'_> {
    /// Probes for one more; `None`, NULL in SQL, is in no filter. Errors: as [`Filter::contains`].
    #[inline]
    pub fn push(&mut self, element: Option<&Element<'_>>) -> Result<()> {
        let Header { kind, layout, .. } = self.view.header;
        let hash = element.map_or(Ok(None), |element| element.hash_in(kind, layout))?;
        hash.into_iter().for_each(|hash| build::prefetch(&self.view, hash));
        self.hashes.push(hash);
        if self.hashes.len() == BATCH {
            self.probe();
        }
        Ok(())
    }

    /// The answers so far, in order.
    pub fn finish(mut self) -> Vec<bool> {
        self.probe();
        self.answers
    }

    fn probe(&mut self) {
        for hash in self.hashes.drain(..) {
            memory::push(
                &mut self.answers,
                hash.is_some_and(|hash| build::contains(&self.view, hash)),
            );
        }
    }
}

/// A filter that elements are added to one by one.
pub struct Builder {
    filter: Filter,
    layout: Layout,
    /// The kind of the elements, once there is one.
    tag: Tag,
    name: String,
    /// Hashes that are not in the filter yet.
    hashes: Vec<u64>,
    /// How many of them there may be.
    room: usize,
}

impl Builder {
    /// For a new filter. Errors: [`crate::Class::InvalidParameter`] for a capacity of 0 or a rate
    /// that the layout can't keep; [`crate::Class::TooLarge`] for a filter of more than
    /// [`MAX_STORED_BYTES`].
    pub fn new(request: &Request) -> Result<Builder> {
        if let Some(capacity) = request.capacity {
            check_capacity(i64::try_from(capacity).unwrap_or(i64::MAX))?;
        }
        let header = request.header(MAX_STORED_BYTES)?;
        Ok(Builder::of(Filter(header.sparse(0))))
    }

    fn of(filter: Filter) -> Builder {
        let header = filter.header();
        let (layout, tag, name) = (header.layout, header.kind.tag, header.kind.name.to_owned());
        // A batch copies the filter's bits: this makes that a small part of the time.
        let room = KEPT.max(header.payload_bytes() as usize / 8);
        Builder { filter, layout, tag, name, hashes: Vec::new(), room }
    }

    /// Adds one element. The first that tells its kind decides that of a filter that has none.
    /// Errors: [`crate::Class::KindMismatch`] for an element of another kind;
    /// [`crate::Class::InvalidParameter`] for a number that the filter's kind doesn't have.
    #[inline]
    pub fn add(&mut self, element: &Element<'_>) -> Result<()> {
        let layout = self.layout;
        if self.tag == Tag::None || self.is_unknown() {
            let kind = element.kind(layout);
            if self.tag == Tag::None || kind.tag == self.tag {
                (self.tag, self.name) = (kind.tag, kind.name.to_owned());
            }
        }
        let kind = Kind { tag: self.tag, name: &self.name };
        let hash = element.hash_in(kind, layout)?;
        let hash = hash.ok_or_else(|| InvalidParameter::OutOfRange(kind.to_string()))?;
        memory::push(&mut self.hashes, hash);
        if self.hashes.len() == self.room { self.make_room() } else { Ok(()) }
    }

    /// The filter of all that was added. Errors: [`crate::Class::TooLarge`] for more than
    /// [`MAX_STORED_BYTES`]; [`crate::Class::InvalidParameter`] for arrays of which no member tells
    /// the kind.
    pub fn finish(mut self) -> Result<Filter> {
        if self.is_unknown() {
            return Err(InvalidParameter::UnknownMembers.into());
        }
        if !self.hashes.is_empty() {
            self.add_hashes()?;
        }
        Ok(self.filter)
    }

    fn with<'e, E: Into<Element<'e>>>(
        mut self,
        elements: impl IntoIterator<Item = E>,
    ) -> Result<Filter> {
        elements
            .into_iter()
            .try_for_each(|element| self.add(&element.into()))?;
        self.finish()
    }

    /// Whether there are only arrays so far that have no members, or only NULLs.
    #[inline]
    fn is_unknown(&self) -> bool {
        self.tag == Tag::Array && self.name.is_empty()
    }

    /// Adds the hashes to the filter; if that has no size or kind before it has all, drops those
    /// that are there twice.
    fn make_room(&mut self) -> Result<()> {
        if !self.filter.header().is_unsized() && !self.is_unknown() {
            return self.add_hashes();
        }
        let distinct = sort_distinct(&mut self.hashes, 0);
        self.hashes.truncate(distinct);
        if distinct > self.room / 2 {
            self.room *= 2;
        }
        Ok(())
    }

    fn add_hashes(&mut self) -> Result<()> {
        let distinct = sort_distinct(&mut self.hashes, 0);
        let view = self.filter.view();
        let kind = Kind { tag: self.tag, name: &self.name };
        // A filter that has all of them stays as it is.
        if !matches!(view.body, Body::Dense(_))
            || self.hashes.iter().any(|&hash| !build::contains(&view, hash))
        {
            self.filter =
                build::add_hashes(&view, kind, &self.hashes[..distinct], MAX_STORED_BYTES)
                    .map(Filter)?;
        }
        self.hashes.clear();
        Ok(())
    }
}

impl From<&Filter> for Builder {
    fn from(filter: &Filter) -> Builder {
        Builder::of(Filter(memory::copy(&filter.0)))
    }
}

#[cfg(test)]
mod tests;
