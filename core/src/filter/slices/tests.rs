use super::*;
use crate::error::Error;
use crate::filter::Header;
use crate::filter::build::{Request, contains, tests::built};
use crate::filter::view::View;
use crate::hash::word;
use crate::kind::{Kind, Tag};

fn filter(layout: Layout, capacity: u64, elements: u32) -> Vec<u8> {
    let hashes: Vec<u64> = (0..elements).map(|i| word(5, i)).collect();
    built(Request { capacity: Some(capacity), fpr: 0.01, layout }, Tag::Numeric, &hashes)
}

#[test]
fn slices_answer_as_the_whole_does() {
    for layout in Layout::ALL {
        for (capacity, elements) in [(100, 0), (1_000, 10), (20_000, 30_000), (400_000, 5_000)] {
            let value = filter(layout, capacity, elements);
            let start =
                FilterStart::parse(&value[..START_BYTES.min(value.len())], value.len()).unwrap();
            let view = View::parse(&value).unwrap();
            assert_eq!(start.header, view.header);
            let (mut slices, mut probes) = (0, 0);
            for i in 0..2 * elements.max(50) {
                let read = |from: usize, length: usize| {
                    slices += 1;
                    Ok::<_, Error>(&value[from..from + length])
                };
                probes += 1;
                assert_eq!(start.contains(word(5, i), read).unwrap(), contains(&view, word(5, i)));
            }
            assert!(slices <= probes * 7, "{slices} slices for {probes} probes");
        }
    }
}

#[test]
fn the_start_has_the_longest_name() {
    let name = "n".repeat(MAX_NAME_BYTES);
    let request = Request { capacity: Some(10_000), fpr: 0.01, layout: Layout::Blocked };
    let header = Header {
        kind: Kind::other(&name),
        ..request.header(u64::MAX).unwrap()
    };
    let value: Vec<u8> = header.dense();
    assert_eq!(
        FilterStart::parse(&value[..START_BYTES], value.len()).map(|start| start.header),
        Ok(header)
    );
}

#[test]
fn a_list_made_to_mislead_ends() {
    let list: Vec<[u8; 8]> = (0..100_000u64)
        .map(|i| (u64::MAX - 99_999 + i).to_le_bytes())
        .collect();
    for hash in [
        0,
        5,
        u64::MAX - 100_000,
        u64::MAX - 99_999,
        u64::MAX - 50_000,
        u64::MAX,
    ] {
        let mut slices = 0;
        let read = |bytes: Range<usize>| {
            slices += 1;
            Ok::<_, Error>(&list.as_flattened()[bytes])
        };
        let found = contains_in_list(list.len(), hash, read).unwrap();
        assert_eq!(found, hash >= u64::MAX - 99_999);
        assert!(slices < 40, "{slices} slices");
    }
}

#[test]
fn what_is_cut_off_is_an_error() {
    let value = filter(Layout::Blocked, 100_000, 100_000);
    assert!(FilterStart::parse(&value[..START_BYTES], value.len() - 1).is_err());
    let start = FilterStart::parse(&value[..START_BYTES], value.len()).unwrap();
    assert!(start.contains(word(5, 1), |_, _| Ok::<_, Error>([0u8; 3])).is_err());
}
