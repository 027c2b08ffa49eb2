//! A build that knows the kind of its elements before the first one is added.

use crate::element::{element, frequent_hash, kind_by_name, kind_of_members};
use crate::failure::{Failure, Outcome};
use crate::value::{self, Frequent, Run, Value};
use pg_bloom_core::{Builder, Element, Filter, Header, Kind, Layout, Request, Tag};

/// A builder, and the kind by which values become elements.
pub struct KindedBuilder {
    builder: Builder,
    /// The kind of the elements: its tag and its name. [`Tag::None`] until an element tells it.
    tag: Tag,
    name: String,
    /// Whether the builder has an element that tells the kind, and so refuses others by itself.
    has_kind: bool,
    layout: Layout,
}

impl KindedBuilder {
    /// Starts a new filter whose elements have a given kind. `kind` is the name of the kind, in
    /// UTF-8, which says how values are hashed: "text", for instance, or "array of text" (also
    /// "text[]"). If it is empty, the first element decides.
    ///
    /// Fails if no filter can have the size that is requested, or if there is no such kind.
    pub fn new(request: &Request, kind: &[u8]) -> Outcome<KindedBuilder> {
        let builder = Builder::new(request)?;
        let kind =
            std::str::from_utf8(kind).map_err(|_| Failure::range("unknown kind of elements"))?;
        let (tag, name) = if kind.is_empty() {
            (Tag::None, String::new())
        } else if let Some(member_kind) = kind_of_members(kind) {
            // The kinds of all arrays have one tag; their name has that of the members.
            let member_tag = kind_by_name(member_kind)?;
            (Tag::Array, format!("array of {}", member_tag.name()))
        } else {
            (kind_by_name(kind)?, String::new())
        };
        // The core's builder takes its kind from the first element, even if one was named here.
        let layout = request.layout;
        Ok(KindedBuilder { builder, tag, name, has_kind: false, layout })
    }

    /// Takes the next value from `values`, which are in the form that `js/src/value.rs` describes,
    /// or the next run of values, and adds them to the filter, as [`KindedBuilder::add`] does.
    #[inline]
    pub fn add_next(&mut self, values: &mut &[u8]) -> Outcome<()> {
        match value::take_run(values)? {
            Some(Run::Texts(mut texts)) => {
                texts.try_for_each(|text| self.add_frequent(Frequent::Text(text?)))
            }
            Some(Run::Integers(integers)) => integers.iter().try_for_each(|integer| {
                self.add_frequent(Frequent::Integer(i64::from_le_bytes(*integer)))
            }),
            Some(Run::Numbers(numbers)) => numbers.iter().try_for_each(|number| {
                self.add_frequent(Frequent::Number(f64::from_le_bytes(*number)))
            }),
            None => self.add(&value::read(values)?),
        }
    }

    /// Adds a value to the filter, as [`KindedBuilder::add`] does.
    #[inline(always)]
    fn add_frequent(&mut self, value: Frequent<'_>) -> Outcome<()> {
        let kind = Kind { tag: self.tag, name: &self.name };
        match frequent_hash(value, kind) {
            Some(hash) if self.has_kind => Ok(self.builder.add_hash(hash)?),
            _ => self.add(&value.into()),
        }
    }

    /// Adds a value to the filter, unless it is null. A value becomes an element of the filter's
    /// kind: `2026-02-28` is a day in a filter of dates. Fails if the value is of another kind, or
    /// out of the range of the kind's type.
    fn add(&mut self, value: &Value<'_>) -> Outcome<()> {
        let kind = Kind { tag: self.tag, name: &self.name };
        let Some(element) = element(value, kind)? else {
            return Ok(());
        };
        if !self.has_kind {
            self.adopt_kind(&element)?;
        }
        Ok(self.builder.add(&element)?)
    }

    /// Checks that an element is of the kind that was named when the build began. If none was
    /// named, the filter gets the kind of this element.
    ///
    /// An array whose members are all NULL may be of any kind of array. So it doesn't tell the
    /// kind, and the next element is passed to this function as well.
    ///
    /// Fails if the element is of another kind than the named one.
    fn adopt_kind(&mut self, element: &Element<'_>) -> Result<(), Failure> {
        // Elements are compared by their general kinds, whatever the layout: those of Parquet have
        // other names.
        let own_kind = element.kind(Layout::Blocked);
        let is_array_of_nulls = own_kind.tag == Tag::Array && own_kind.name.is_empty();
        let tells_kind = !is_array_of_nulls;

        let was_named = self.tag != Tag::None;
        // In layout parquet, texts and bytes are elements of one kind, BYTE_ARRAY. So a filter whose
        // kind was named by one of them takes the other, too.
        let is_byte_array = |tag| matches!(tag, Tag::Text | Tag::Bytea);
        let is_of_one_kind_in_parquet = self.layout == Layout::Parquet
            && is_byte_array(self.tag)
            && is_byte_array(own_kind.tag);
        if was_named && !is_of_one_kind_in_parquet {
            // Hashing fails if the element is of another kind.
            element.hash_in(Kind { tag: self.tag, name: &self.name }, Layout::Blocked)?;
        } else if !was_named && tells_kind {
            self.tag = own_kind.tag;
            self.name = own_kind.name.to_owned();
        }
        self.has_kind = tells_kind;
        Ok(())
    }

    /// Returns the filter.
    ///
    /// Fails if it would be too large, or if there are only arrays of NULLs.
    pub fn finish(self) -> Outcome<Filter> {
        Ok(self.builder.finish()?)
    }
}

impl From<&Filter> for KindedBuilder {
    /// Returns a builder that adds elements to a copy of the filter.
    fn from(filter: &Filter) -> KindedBuilder {
        let Header { kind, layout, .. } = filter.header();
        KindedBuilder {
            builder: Builder::from(filter),
            tag: kind.tag,
            name: kind.name.to_owned(),
            has_kind: !kind.is_none(),
            layout,
        }
    }
}
