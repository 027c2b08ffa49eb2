//! A build that knows the kind of its elements before the first one is added.

use crate::element::{element, kind_by_name, kind_of_members};
use crate::failure::{Failure, Outcome};
use crate::value::Value;
use pg_bloom_core::{Builder, Element, Filter, Kind, Layout, Request, Tag};

/// A builder, and the kind by which values become elements.
pub struct KindedBuilder {
    builder: Builder,
    /// The kind of the elements: its tag and its name. [`Tag::None`] until an element tells it.
    tag: Tag,
    name: String,
    /// Whether the builder has an element that tells the kind, and so refuses others by itself.
    has_kind: bool,
}

impl KindedBuilder {
    /// Starts a new filter. `kind` is the name of the key kind, which says how elements are hashed:
    /// for instance "text", or "array of text". If it is empty, the first element decides.
    ///
    /// Fails if no filter can have the size that is requested, or if there is no such kind.
    pub fn new(request: &Request, kind: &[u8]) -> Outcome<KindedBuilder> {
        let builder = Builder::new(request)?;
        let kind =
            std::str::from_utf8(kind).map_err(|_| Failure::range("unknown kind of elements"))?;
        let (tag, name) = if kind.is_empty() {
            (Tag::None, String::new())
        } else if let Some(members) = kind_of_members(kind) {
            let members = kind_by_name(members)?;
            (Tag::Array, format!("array of {}", members.name()))
        } else {
            (kind_by_name(kind)?, String::new())
        };
        Ok(KindedBuilder { builder, tag, name, has_kind: false })
    }

    /// Adds a value, unless it is null.
    ///
    /// Fails if the value is of another kind, or out of the range of the kind's type.
    pub fn add(&mut self, value: &Value<'_>) -> Outcome<()> {
        let kind = Kind { tag: self.tag, name: &self.name };
        let Some(element) = element(value, kind)? else {
            return Ok(());
        };
        if !self.has_kind {
            self.adopt_kind(&element)?;
        }
        Ok(self.builder.add(&element)?)
    }

    /// Takes the kind of the first element, if none was named.
    ///
    /// Fails if another one was named.
    fn adopt_kind(&mut self, element: &Element<'_>) -> Result<(), Failure> {
        // Elements are compared by their general kinds, whatever the layout: those of Parquet have
        // other names.
        let own_kind = element.kind(Layout::Blocked);
        if self.tag != Tag::None {
            element.hash_in(Kind { tag: self.tag, name: &self.name }, Layout::Blocked)?;
        } else if own_kind.tag != Tag::Array || !own_kind.name.is_empty() {
            self.tag = own_kind.tag;
            self.name = own_kind.name.to_owned();
        }
        // An array whose members are all NULL doesn't tell its kind.
        self.has_kind = own_kind.tag != Tag::Array || !own_kind.name.is_empty();
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
        let kind = filter.header().kind;
        KindedBuilder {
            builder: Builder::from(filter),
            tag: kind.tag,
            name: kind.name.to_owned(),
            has_kind: !kind.is_none(),
        }
    }
}
