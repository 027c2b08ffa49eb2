use super::*;
use crate::Class;
use crate::canonical::scalar;
use crate::filter::build::tests::built;
use crate::hash::hash;
use proptest::prelude::*;

fn request(capacity: Option<u64>) -> Request {
    Request { capacity, ..Request::default() }
}

/// Batches don't show: more elements than are kept at a time, repeated, into filters with and
/// without a size.
#[test]
fn long_builds_are_those_of_all_hashes() {
    let elements = (0..3 * FEWEST_KEPT as i64).map(|i| i % (FEWEST_KEPT as i64 * 3 / 2));
    let hashes: Vec<u64> = elements.clone().map(|i| hash(&scalar::integer(i))).collect();
    for capacity in [None, Some(1000), Some(FEWEST_KEPT as u64)] {
        let filter =
            Filter::build(elements.clone(), &request(capacity)).expect("a possible filter");
        assert_eq!(
            filter.as_bytes(),
            built(request(capacity), Tag::Integer, &hashes),
            "{capacity:?}"
        );
    }
}

/// The bits of later batches are set in the filter that the first one made, in each layout, and in
/// filters for which the hashes are sorted and for which they aren't.
#[test]
fn later_batches_are_added_to_the_bits() {
    let elements = 0..4 * FEWEST_KEPT as i64;
    let hashes: Vec<u64> = elements.clone().map(|i| hash(&scalar::integer(i))).collect();
    for layout in Layout::ALL {
        for capacity in [300_000, 4_000_000] {
            let request = Request { layout, ..request(Some(capacity)) };
            let filter = Filter::build(elements.clone(), &request).expect("a possible filter");
            assert!(!filter.is_list());
            let tag = filter.header().kind.tag;
            assert_eq!(filter.as_bytes(), built(request, tag, &hashes), "{layout:?} {capacity}");

            let first = Filter::build(elements.clone().take(FEWEST_KEPT), &request).unwrap();
            let again = first.add_all(elements.clone()).expect("a possible filter");
            assert_eq!(again, filter, "{layout:?} {capacity}");
            assert_eq!(again.add_all(elements.clone()).unwrap(), filter);
        }
    }
}

/// The kind of arrays is that of the first that tells it.
#[test]
fn arrays_without_members_wait_for_the_kind() {
    let array = |members: Vec<Option<Element<'static>>>| -> Element<'static> {
        crate::Array::new(vec![members.len() as i32], members)
            .expect("an array")
            .into()
    };
    let known = array(vec![Some(1i64.into())]);
    let unknown = || vec![array(vec![]); FEWEST_KEPT + 1];
    for capacity in [None, Some(1000)] {
        let last = Filter::build(unknown().into_iter().chain([known.clone()]), &request(capacity))
            .expect("a kind");
        let first =
            Filter::build([known.clone(), array(vec![])], &request(capacity)).expect("a kind");
        assert_eq!((&last, last.header().kind.name), (&first, "array of integer"));
        let class = |error: crate::Error| error.class();
        let refused = Filter::build(unknown(), &request(capacity)).map_err(class);
        assert_eq!(refused, Err(Class::InvalidParameter));
        let refused =
            Filter::build([array(vec![]), 1i64.into()], &request(capacity)).map_err(class);
        assert_eq!(refused, Err(Class::KindMismatch));
    }
}

proptest! {
    #[test]
    fn adding_is_building(first in proptest::collection::vec(".{0,5}", 0..99), more in proptest::collection::vec(".{0,5}", 0..99)) {
        let all = first.iter().chain(&more).map(String::as_str);
        let filter = Filter::build(all.clone(), &request(Some(50))).unwrap();
        let parts = Filter::build(first.iter().map(String::as_str), &request(Some(50))).unwrap();
        prop_assert_eq!(&parts.add_all(more.iter().map(String::as_str)).unwrap(), &filter);
        let other = Filter::build(more.iter().map(String::as_str), &request(Some(50))).unwrap();
        prop_assert_eq!(&parts.union(&other).unwrap(), &filter);
        prop_assert!(filter.contains_each(all).unwrap().into_iter().all(|answer| answer));
    }

    #[test]
    fn hexadecimal_text_is_read(text in "\\PC{0,9}", elements in proptest::collection::vec(any::<i64>(), 0..9)) {
        let filter = Filter::build(elements, &request(None)).unwrap();
        let hex: String = filter.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        prop_assert_eq!(Filter::from_hex(&format!("\\x{hex}")), Ok(filter));
        for damaged in [hex.clone(), format!("\\x{hex}0"), format!("\\x{hex}{text}x"), format!("\\x{text}")] {
            prop_assert_eq!(Filter::from_hex(&damaged).map_err(|error| error.class()), Err(Class::InvalidBinary));
        }
    }
}
