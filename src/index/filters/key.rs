//! What a scan looks for.

use super::column::Index;
use crate::element::{ElementType, ProbeKey};
use crate::error::unsupported;
use crate::pg::call::Element;
use crate::pg::call::error::Result;
use crate::pg::catalog;
use crate::pg::method::scan::Key;
use crate::pg::value::varlena::Value;
use pg_bloom_core::index::filters::{FilterCondition, Group, Sought};
use pg_bloom_core::memory;
use pgrx::pg_sys;

/// What each condition of a scan has: at least one of these.
///
/// # Errors
/// 0A000 for an operator that the index can't answer, and for a collation that does not compare bytes.
///
/// # Safety
/// The keys must be those of a scan of the index.
pub unsafe fn keys(index: &Index, keys: &[Key]) -> Result<Vec<Vec<ProbeKey>>> {
    // SAFETY: promised by the caller.
    memory::try_collect(keys.iter().map(|key| unsafe { alternatives(index, key) }))
}

/// # Safety
/// As [`keys`].
unsafe fn alternatives(index: &Index, key: &Key) -> Result<Vec<ProbeKey>> {
    let asked = key.asked_type;
    let elements = key.sought();
    if asked == index.kind().key {
        // SAFETY: the elements are of that type, which is of variable length.
        let parse = |element: Element| ProbeKey::parse(unsafe { Value::detoast(element.datum) }.bytes());
        return memory::try_collect(elements.into_iter().map(parse));
    }
    if asked != pg_sys::TEXTOID && asked != pg_sys::CHAROID {
        return Err(unsupported(
            format!("an index over filters can't be asked for type {}", catalog::display_name(asked)),
            "Use the operator class bloom_ops.",
        ));
    }
    let element_type = ElementType::of_key(index.relation().handler(), asked, key.collation)?;
    // SAFETY: what is looked for is of the type that the key says.
    Ok(memory::collect(elements.into_iter().map(|element| unsafe { element_type.probe_key(Some(element)) })))
}

pub fn conditions(keys: &[Vec<ProbeKey>], group: &Group) -> Vec<FilterCondition> {
    let asked = |key: &ProbeKey| match key.hash_of_kind(group.kind()) {
        _ if group.kind().is_none() => Some(Sought::OtherKind),
        None => Some(Sought::OtherKind),
        Some(hash) => hash.map(Sought::Hash),
    };
    memory::collect(keys.iter().map(|alternatives| memory::collect(alternatives.iter().filter_map(asked))))
}
