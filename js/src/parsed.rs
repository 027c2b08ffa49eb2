//! A filter whose header was parsed once: parsing takes longer than probing the filter for a value.

use pg_bloom_core::filter::{Body, View};
use pg_bloom_core::{Filter, Header, Kind};

/// A filter, and what its header says.
pub struct ParsedFilter {
    filter: Filter,
    /// The header, except the name of the kind of elements, which it would borrow from the filter.
    header: Header<'static>,
    kind_name: String,
    /// Whether the filter has the hashes of its elements, and not their bits.
    is_list: bool,
}

impl From<Filter> for ParsedFilter {
    fn from(filter: Filter) -> ParsedFilter {
        let Header { layout, num_hashes, blocks, base_blocks, capacity, fpr, kind } =
            filter.header();
        let kind_name = kind.name.to_owned();
        let kind = Kind::unnamed(kind.tag);
        ParsedFilter {
            header: Header { layout, num_hashes, blocks, base_blocks, capacity, fpr, kind },
            kind_name,
            is_list: filter.is_list(),
            filter,
        }
    }
}

impl ParsedFilter {
    /// Returns the filter itself.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Returns the filter as the core reads it, without parsing it again.
    pub fn view(&self) -> View<'_> {
        let kind = Kind { tag: self.header.kind.tag, name: &self.kind_name };
        let header = Header { kind, ..self.header };
        let payload = &self.filter.as_bytes()[header.prefix_bytes()..];
        let body = if self.is_list {
            let (hashes, _) = payload.as_chunks::<8>();
            Body::Sparse(hashes)
        } else {
            Body::Dense(payload)
        };
        View { header, body }
    }
}
