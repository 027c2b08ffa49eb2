//! Asking a filter: `bloom_contains` and its operators `@>` and `<@`, `bloom_contains_any`, `bloom_contains_all`,
//! `bloom_filter_array`, `bloom_query`.

use crate::datum::{Call, Column, Element, Stored, array_of, elements, expression, row};
use crate::element::{ElementType, Reading};
use crate::error::Failure;
use pg_bloom_core::View;
use pg_bloom_core::estimate;
use pgrx::pg_sys::{Datum, Oid};

type Outcome = Result<Option<Datum>, Failure>;

/// What a call site that asks for one element remembers.
struct Site {
    element: ElementType,
    filters: Stored,
    /// Whether the element is a constant.
    is_constant: bool,
    /// The hash of a constant, and how it was read.
    constant: Option<(Reading, Option<u64>)>,
}

impl Site {
    fn new(call: &Call, element: usize) -> Result<Site, Failure> {
        Ok(Site {
            element: ElementType::of_argument(call, element)?,
            filters: Stored::default(),
            is_constant: expression::is_constant(call, element),
            constant: None,
        })
    }
}

/// Whether argument `element` may be in the filter that argument `filter` is.
#[inline(always)]
fn probe(call: &Call, filter: usize, element: usize) -> Result<Option<bool>, Failure> {
    let Site { element: type_of_element, filters, is_constant, constant } =
        call.remembered(|| Site::new(call, element))?;
    let Some(element) = call.element(element) else { return Ok(None) };
    let Some(mut filter) = filters.filter(call, filter, 1)? else { return Ok(None) };
    let key = type_of_element.key(filter.header(), "bloom_contains")?;
    let hash = match constant {
        Some((reading, hash)) if *reading == key.reading() => *hash,
        _ => {
            let hash = key.hash(element);
            if *is_constant {
                *constant = Some((key.reading(), hash));
            }
            hash
        }
    };
    match hash {
        Some(hash) => filter.contains(hash).map(Some),
        None => Ok(Some(false)),
    }
}

/// `bloom_contains(filter, element)`, `filter @> element`.
fn contains(call: &Call) -> Outcome {
    Ok(probe(call, 0, 1)?.map(Datum::from))
}

/// `element <@ filter`.
fn contained(call: &Call) -> Outcome {
    Ok(probe(call, 1, 0)?.map(Datum::from))
}

/// What a call site that asks for the elements of an array remembers.
struct ArraySite {
    element: ElementType,
    oid: Oid,
    filters: Stored,
}

/// The elements of the array that is argument 1, and for each in turn whether it may be in the filter that is argument 0;
/// `until` is an answer after which no more are needed. `None` if the filter is NULL.
fn probe_array(call: &Call, until: Option<bool>) -> Result<Option<(Oid, Vec<Element>, Vec<bool>)>, Failure> {
    let site = call.remembered(|| {
        let (element, oid) = ElementType::of_array(call, 1)?;
        Ok(ArraySite { element, oid, filters: Stored::default() })
    })?;
    let elements = elements(call, 1, site.oid);
    let Some(mut filter) = site.filters.filter(call, 0, elements.len())? else { return Ok(None) };
    let key = site.element.key(filter.header(), "bloom_contains")?;
    let hashes: Vec<Option<u64>> = elements.iter().map(|&element| key.hash(element)).collect();
    let answers = filter.contains_each(&hashes, until)?;
    Ok(Some((site.oid, elements, answers)))
}

/// `bloom_contains_any(filter, elements)`.
fn contains_any(call: &Call) -> Outcome {
    Ok(probe_array(call, Some(true))?.map(|(_, _, answers)| Datum::from(answers.contains(&true))))
}

/// `bloom_contains_all(filter, elements)`.
fn contains_all(call: &Call) -> Outcome {
    Ok(probe_array(call, Some(false))?.map(|(_, _, answers)| Datum::from(!answers.contains(&false))))
}

/// `bloom_filter_array(filter, elements)`: those that may be in the filter, in their order.
fn filter_array(call: &Call) -> Outcome {
    Ok(probe_array(call, None)?.map(|(oid, elements, answers)| {
        let mut answers = answers.into_iter();
        array_of(oid, elements.into_iter().filter(|_| answers.next() == Some(true)).collect())
    }))
}

/// `bloom_query(filter, element)`.
fn query(call: &Call) -> Outcome {
    let Some(yes) = probe(call, 0, 1)? else { return Ok(None) };
    let Some(filter) = call.value(0) else { return Ok(None) };
    let confidence = if yes { 1.0 - estimate::current_fpr(&View::parse_trusted(filter.bytes())?) } else { 1.0 };
    Ok(Some(row(call, &[Column::Bool(yes), Column::F64(confidence)])))
}

pg_functions! {
    bloom_contains => contains;
    bloom_contained => contained;
    bloom_contains_any => contains_any;
    bloom_contains_all => contains_all;
    bloom_filter_array => filter_array;
    bloom_query => query;
}
