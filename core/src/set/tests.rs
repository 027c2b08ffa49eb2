use super::memory::MemorySet;
use super::row::{MOST_BYTES, bytes_at_split};
use super::tree::{self, TreeFlaw};
use super::{Row, RowEntry, SetForm};
use crate::hash;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn form(bits: u32, forgets: bool) -> SetForm {
    SetForm { bits, forgets }
}

fn row(form: SetForm, bucket: u64, hashes: impl IntoIterator<Item = (u64, i64)>) -> Row {
    let width = form.bits - tree::depth(bucket);
    let start = (bucket ^ 1 << tree::depth(bucket)) << width;
    let entries: BTreeMap<u64, i64> = hashes
        .into_iter()
        .map(|(hash, slice)| (start | (hash & ((1 << width) - 1)), slice))
        .collect();
    let entries = entries
        .into_iter()
        .map(|(hash, time_slice)| RowEntry { hash, time_slice })
        .collect();
    let mut row = Row { bucket, first_time_slice: 0, entries };
    row.rebase();
    row
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A step of a history.
#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u16>),
    Remove(u16),
    Pass(i8),
    Expire,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop::collection::vec(any::<u16>(), 0..200).prop_map(Step::Put),
        2 => any::<u16>().prop_map(Step::Remove),
        2 => any::<i8>().prop_map(|slices| Step::Pass(slices % 24)),
        1 => Just(Step::Expire),
    ]
}

/// Few elements in a narrow part of all hashes, so that leaves are deep and elements return.
fn hash_of(element: u16, narrow: u32) -> u64 {
    let hash = hash::hash(&(element % 800).to_le_bytes());
    if narrow == 0 { hash } else { hash >> narrow }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_set_is_a_map(
        bits in 16u32..=60, forgets: bool, depth in 0u32..12, narrow in prop::sample::select(vec![0u32, 4, 30]),
        most_bytes in prop::sample::select(vec![40usize, 64, 200, MOST_BYTES]), start in -100i64..100,
        steps in prop::collection::vec(step(), 1..30),
    ) {
        let form = form(bits, forgets);
        let mut set = MemorySet::new(form, most_bytes, depth);
        let mut model: BTreeMap<u64, i64> = BTreeMap::new();
        let mut now = start;
        let mut used: BTreeSet<u64> = BTreeSet::new();
        for step in steps {
            match step {
                Step::Put(elements) => {
                    let hashes: Vec<u64> = elements.iter().map(|&element| hash_of(element, narrow)).collect();
                    used.extend(&hashes);
                    set.put(&hashes, now);
                    model.extend(hashes.iter().map(|&hash| (form.prefix(hash), now)));
                }
                Step::Remove(element) => {
                    let hash = hash_of(element, narrow);
                    set.remove(hash);
                    model.remove(&form.prefix(hash));
                }
                Step::Pass(slices) => now += i64::from(slices),
                Step::Expire => set.expire(now),
            }
            // What was forgotten once may be dropped, so that a clock set back doesn't bring it
            // back; here it only compares what is certain.
            if forgets {
                model.retain(|_, slice| *slice >= now - 8);
                model.values_mut().for_each(|slice| *slice = (*slice).min(now + 7));
                set.expire(now);
            }
            prop_assert_eq!(tree::check_leaves(&mut set.rows.keys().copied().collect::<Vec<u64>>()), Ok(()));
            for &hash in &used {
                prop_assert_eq!(set.contains(hash, now), model.contains_key(&form.prefix(hash)));
            }
        }
    }

    #[test]
    fn rows_are_read_as_they_were_written(
        bits in 16u32..=60, forgets: bool, path: u64, depth in 0u32..16, hashes in prop::collection::vec(any::<u64>(), 0..2000),
        now in (i64::MIN + 100)..(i64::MAX - 100),
    ) {
        let form = form(bits, forgets);
        let slice = |hash: &u64| if forgets { now - (hash % 9) as i64 } else { 0 };
        let row = row(form, tree::covering(path, depth), hashes.iter().map(|hash| (*hash, slice(hash))));
        let bytes: Vec<u8> = row.write(form);
        prop_assert_eq!(bytes.len() % 8, 0);
        prop_assert_eq!(Row::parse(form, row.bucket as i64, &bytes), Ok(row.clone()));
        for part in row.clone().split(form, 200) {
            prop_assert!(tree::depth(part.bucket) >= depth);
            let written: Vec<u8> = part.write(form);
            prop_assert!(written.len() <= 200 || tree::depth(part.bucket) == bits);
            prop_assert_eq!(Row::parse(form, part.bucket as i64, &written), Ok(part));
        }
    }

    #[test]
    fn any_change_of_a_row_is_noticed(
        forgets: bool, hashes in prop::collection::vec(any::<u64>(), 0..300), at: prop::sample::Index, bit in 0u32..8,
        bytes in prop::collection::vec(any::<u8>(), 0..64), cut: prop::sample::Index,
    ) {
        let form = form(40, forgets);
        let row = row(form, 1500, hashes.iter().map(|hash| (*hash, 0)));
        let good: Vec<u8> = row.write(form);
        let mut bad = good.clone();
        bad[at.index(good.len())] ^= 1 << bit;
        prop_assert!(Row::parse(form, 1500, &bad).is_err());
        prop_assert!(Row::parse(form, 1500, &good[..cut.index(good.len())]).is_err());
        let of_another = Row::parse(form, 1501, &good).unwrap_err();
        prop_assert_eq!(of_another, "its checksum does not fit its bytes and its bucket");
        prop_assert!(Row::parse(form, 1500, &bytes).is_err());
    }

    #[test]
    fn buckets_are_checked_for_gaps_and_overlaps(
        splits in prop::collection::vec(any::<prop::sample::Index>(), 0..60), wrong: prop::sample::Index, how in 0..3,
    ) {
        let mut buckets = vec![1u64];
        for split in splits {
            let bucket = buckets.swap_remove(split.index(buckets.len()));
            buckets.extend([bucket * 2, bucket * 2 + 1]);
        }
        prop_assert_eq!(tree::check_leaves(&mut buckets.clone()), Ok(()));
        let place = wrong.index(buckets.len());
        let bucket = buckets[place];
        let mut bad = buckets;
        match how {
            0 => drop(bad.swap_remove(place)),
            1 => bad.push(bucket * 2 + 1),
            _ => bad.push(bucket / 2),
        }
        if how == 2 && bucket == 1 {
            return Ok(());
        }
        match tree::check_leaves(&mut bad) {
            Err(TreeFlaw::Gap { hash }) => prop_assert!(how == 0 && tree::covers(bucket, hash)),
            Err(TreeFlaw::Overlap { bucket: a, next: b }) => {
                prop_assert!(how > 0);
                prop_assert!(tree::covers(a, tree::first_hash(b)) || tree::covers(b, tree::first_hash(a)));
            }
            Ok(()) => prop_assert!(false, "not noticed"),
        }
    }
}

#[test]
fn the_stored_form_is_frozen() {
    let plain = form(40, false);
    assert_eq!(hex(&Row::empty(1024).write::<Vec<u8>>(plain)), GOLDEN[0]);
    let hashes = (0..20u64).map(|i| (hash::hash(&i.to_le_bytes()) >> 24, 0));
    assert_eq!(hex(&row(plain, 1500, hashes).write::<Vec<u8>>(plain)), GOLDEN[1]);
    let kept = form(30, true);
    let hashes = (0..10u64).map(|i| (hash::hash(&i.to_le_bytes()) >> 34, 1000 + (i % 9) as i64));
    assert_eq!(hex(&row(kept, 1024, hashes).write::<Vec<u8>>(kept)), GOLDEN[2]);
}

#[test]
fn bits_are_the_fewest_that_keep_the_promise() {
    let bits = |capacity, fpr| SetForm::fewest_bits(capacity, fpr);
    let rate_of_2_30 = 1.0 / (1u64 << 30) as f64;
    assert_eq!(bits(10_000_000_000, 0.01), Some(40));
    assert_eq!(bits(1, 0.5), Some(16));
    assert_eq!(bits(655, 0.01), Some(16));
    assert_eq!(bits(656, 0.01), Some(17));
    assert_eq!(bits(1 << 30, rate_of_2_30), Some(60));
    assert_eq!(bits((1 << 30) + 1000, rate_of_2_30), None);
}

/// A row is split at the same size on machines of 32 and of 64 bits: by the whole hash of its
/// bucket.
#[test]
fn rows_are_split_at_sizes_that_are_the_same_everywhere() {
    // From XXH64 of the bucket in Python: 400 + hash % 401.
    let expected = [
        (1024, GOLDEN_SPLITS[0]),
        (1025, GOLDEN_SPLITS[1]),
        (3000, GOLDEN_SPLITS[2]),
    ];
    for (bucket, bytes) in expected {
        assert_eq!(bytes_at_split(bucket, MOST_BYTES), bytes, "bucket {bucket}");
        // The row is split by one hash more than fit.
        let form = form(40, false);
        let width = 40 - tree::depth(bucket);
        let of_bucket = |i: u64| (hash::hash(&i.to_le_bytes()) >> (64 - width), 0);
        let mut count = 1;
        loop {
            let full = row(form, bucket, (0..count).map(of_bucket));
            let stored = full.write::<Vec<u8>>(form).len();
            assert_eq!(full.split(form, MOST_BYTES).len() > 1, stored > bytes, "{stored} bytes");
            if stored > bytes {
                break;
            }
            count += 1;
        }
    }
}

#[test]
fn rows_hold_what_the_model_of_the_documentation_says() {
    // Bits of an element: log2 of the distance between neighbours, and two.
    let form = form(40, false);
    for (depth, hashes) in [(10, 100u64), (15, 200), (20, 190)] {
        let bucket = tree::covering(u64::MAX / 3, depth);
        let row = row(form, bucket, (0..hashes).map(|i| (hash::hash(&i.to_le_bytes()), 0)));
        let bits = row.write::<Vec<u8>>(form).len() as f64 * 8.0 / row.entries.len() as f64;
        let model = f64::from(40 - depth) - (hashes as f64).log2() + 2.0;
        assert!((bits - model).abs() < 1.6, "{bits} bits where {model:.2} were expected");
    }
}

#[test]
fn what_is_later_than_a_clock_that_was_set_back_stays_so() {
    let form = form(40, true);
    let slices = |row: &Row| row.entries.iter().map(|entry| entry.time_slice).collect::<Vec<_>>();
    let mut row = row(form, 1024, [(1, 100), (2, 105), (3, 90), (4, 130)]);
    assert_eq!(row.forget(form, 100), 1);
    // As far as there are slices for it.
    assert_eq!(slices(&row), [100, 105, 107]);
    row.put(&[row.entries[0].hash], 100);
    let bytes = row.clone().split(form, MOST_BYTES)[0].write::<Vec<u8>>(form);
    let mut row = Row::parse(form, 1024, &bytes).expect("a row that was written");
    assert_eq!(slices(&row), [100, 105, 107]);
    // The clock was set right again.
    assert_eq!((row.forget(form, 109), row.forget(form, 114), row.forget(form, 116)), (1, 1, 1));
    assert!(row.entries.is_empty());
}

#[test]
fn halves_that_fit_are_joined() {
    let form = form(40, false);
    let (left, right) = (row(form, 2048, [(5, 0), (7, 0)]), row(form, 2049, [(9, 0)]));
    let joined = Row::join(&left, &right, form, MOST_BYTES).expect("three hashes fit");
    assert_eq!((joined.bucket, joined.entries.len()), (1024, 3));
    assert_eq!(Row::join(&right, &left, form, MOST_BYTES), None);
    assert_eq!(Row::join(&left, &row(form, 2050, []), form, MOST_BYTES), None);
    assert_eq!(Row::join(&left, &right, form, 8), None);
}

/// The sizes at which the rows of buckets 1024, 1025 and 3000 are split.
const GOLDEN_SPLITS: [usize; 3] = [642, 501, 548];
/// Also written by a program of plain Python, from rows.md.
const GOLDEN: [&str; 3] = [
    "01280000028445c3",
    "012844403e959bd5522801596ebbcc0d4afda8082e34dfef03fd04ca110b3ff358885e2c8fa0f19895c628f971ab624c5d35a066a76d162e40ad54b72c988721893242d0265c6900000014007997844e",
    "019ee80300000000000090cfb35a12107e82c5728d471a2350b39b05cb822a5059090085e14d010000000a00a73e4f9a",
];
