//! Sets that forget. Time passes by moving the time slices of what is stored back.

use crate::common::{Random, run, value};
use crate::{add_all, named, server, wait_for_waiter};
use pg_bloom_core::set::{Row, SetForm};
use postgres::Client;
use std::collections::{BTreeMap, BTreeSet};
use std::thread;

/// The form of the sets of these tests: any capacity that has so many bits.
const FORM: SetForm = SetForm { bits: 60, forgets: true };
/// What has that form.
const MADE_FOR: &str = "1000000000000000, 0.001, '8 days'";

/// Moves a set to a time that is so many time slices later. Each is a day long.
fn pass(client: &mut Client, time_slices: i64) {
    let rows = client
        .query("SELECT bucket, hashes FROM s WHERE octet_length(hashes) > 16", &[])
        .expect("a table");
    let move_back = |stored: postgres::Row| {
        let bucket: i64 = stored.get(0);
        let mut row = Row::parse(FORM, bucket, stored.get(1)).expect("a row of the set");
        row.first_time_slice -= time_slices;
        for entry in &mut row.entries {
            entry.time_slice -= time_slices;
        }
        (bucket, row.write::<Vec<u8>>(FORM))
    };
    let (buckets, moved): (Vec<i64>, Vec<Vec<u8>>) = rows.into_iter().map(move_back).unzip();
    let update = "UPDATE s SET hashes = n.hashes FROM unnest($1::bigint[], $2::bytea[]) AS n (bucket, hashes)
        WHERE s.bucket = n.bucket";
    client.execute(update, &[&buckets, &moved]).expect("rows of the set");
}

fn present(client: &mut Client, elements: &[i32]) -> BTreeSet<i32> {
    let row = client.query_one("SELECT bloom_set_present('s', $1::integer[])", &[&elements]);
    row.expect("a set can be asked")
        .get::<_, Vec<i32>>(0)
        .into_iter()
        .collect()
}

/// A month, a time slice at a time: an element is there until eight time slices after it was new
/// (or renewed) have passed, and not afterwards; time slices end while the test runs, so one more
/// is allowed. What is forgotten is new again.
#[test]
fn a_set_forgets_after_eight_to_nine_time_slices() {
    for (name, renew) in [("month", false), ("renewed_month", true)] {
        let mut client = server().database(name);
        run(&mut client, &format!("SELECT bloom_set_create('s', 'integer', {MADE_FOR}, {renew})"));
        let mut random = Random(7);
        let mut since: BTreeMap<i32, i64> = BTreeMap::new();
        let all: Vec<i32> = (0..2000).collect();
        for day in 0..40 {
            let idle = (20..30).contains(&day);
            let batch: Vec<i32> = (0..if idle { 0 } else { random.below(300) })
                .map(|_| random.below(2000) as i32)
                .collect();
            let new: BTreeSet<i32> = add_all(&mut client, "s", &batch).into_iter().collect();
            for &x in batch.iter().collect::<BTreeSet<_>>() {
                match since.get(&x) {
                    Some(&before) if new.contains(&x) => {
                        assert!(day - before >= 8, "{x} was new on {before} and is on {day}")
                    }
                    Some(&before) => {
                        assert!(day - before <= 9, "{x} of {before} is still there on {day}")
                    }
                    None => assert!(new.contains(&x)),
                }
                if renew || new.contains(&x) {
                    since.insert(x, day);
                }
            }
            if random.below(4) == 0 {
                let before: f64 = value(&mut client, "SELECT elements FROM bloom_set_info('s')");
                let dropped: i64 = value(&mut client, "SELECT bloom_set_expire('s')");
                assert_eq!(
                    value::<i64>(&mut client, "SELECT bloom_set_expire('s')"),
                    0,
                    "{dropped} were dropped"
                );
                assert!(
                    value::<f64>(&mut client, "SELECT elements FROM bloom_set_info('s')") <= before
                );
            }
            let there = present(&mut client, &all);
            for &x in &all {
                let age = since.get(&x).map(|&at| day - at);
                let (must, may) = (age.is_some_and(|age| age < 8), age.is_some_and(|age| age <= 9));
                assert!(may || !there.contains(&x), "{x} is there after {age:?}");
                assert!(!must || there.contains(&x), "{x} is forgotten after {age:?}");
            }
            pass(&mut client, 1);
        }
        pass(&mut client, 10);
        let held = value::<i64>(&mut client, "SELECT bloom_set_expire('s')");
        assert!(held > 0 && present(&mut client, &all).is_empty());
        let empty =
            "SELECT elements = 0 AND oldest IS NULL AND rows = 1024 FROM bloom_set_info('s')";
        assert!(value::<bool>(&mut client, empty));
    }
}

/// The clock was set back: what is of later is of the present. It neither vanishes at once nor
/// stays longer.
#[test]
fn what_comes_from_the_future_is_of_the_present() {
    let mut client = server().database("future");
    run(&mut client, &format!("SELECT bloom_set_create('s', 'integer', {MADE_FOR})"));
    add_all(&mut client, "s", &[1, 2, 3]);
    pass(&mut client, -100);
    assert_eq!(present(&mut client, &[1, 2, 3, 4]).len(), 3);
    let old = "SELECT oldest BETWEEN now() - interval '1 day' AND now() FROM bloom_set_info('s')";
    assert!(value::<bool>(&mut client, old));
    // Writing its row makes it so.
    assert_eq!(add_all(&mut client, "s", &[2, 3]), []);
    add_all(&mut client, "s", &(10..4000).collect::<Vec<i32>>());
    pass(&mut client, 10);
    let rest = present(&mut client, &(10..4000).collect::<Vec<i32>>());
    assert!(rest.is_empty());
    // Rows that nobody wrote still have theirs.
    assert!(present(&mut client, &[1, 2, 3]).len() <= 3);
    pass(&mut client, 101);
    assert!(present(&mut client, &[1, 2, 3]).is_empty());
}

/// A call that waits for a row while its elements are forgotten writes them with the time at which
/// it writes.
#[test]
fn a_call_that_waits_uses_the_time_at_which_it_writes() {
    let mut client = server().database("waits");
    run(&mut client, "SELECT bloom_set_create('s', 'integer', keep => '2 seconds')");
    let (mut first, mut second) = (named("waits", "first"), named("waits", "second"));
    run(&mut first, "BEGIN");
    assert_eq!(add_all(&mut first, "s", &[1]), [1]);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| add_all(&mut second, "s", &[1]));
        wait_for_waiter(&mut client, "second");
        // What the first added is forgotten when the second gets its row.
        thread::sleep(std::time::Duration::from_millis(2400));
        run(&mut first, "COMMIT");
        assert_eq!(waiting.join().expect("it adds"), [1]);
    });
    // It was added after the commit, so the row's time slice is no older than that.
    let is_recent = "SELECT oldest > clock_timestamp() - interval '60 seconds' OR oldest IS NULL FROM bloom_set_info('s')";
    assert!(value::<bool>(&mut client, is_recent));
}

/// Elements are remembered for as long as promised whatever other elements there are: none goes
/// with the time slice of another that was there when it came.
#[test]
fn elements_do_not_vanish_with_others() {
    let mut client = server().database("alone");
    run(&mut client, &format!("SELECT bloom_set_create('s', 'integer', {MADE_FOR})"));
    for day in 0..30 {
        let batch: Vec<i32> = (day * 1000..(day + 1) * 1000).collect();
        assert_eq!(add_all(&mut client, "s", &batch), batch);
        let recent: Vec<i32> = ((day - 7).max(0) * 1000..(day + 1) * 1000).collect();
        assert_eq!(present(&mut client, &recent).len(), recent.len());
        pass(&mut client, 1);
    }
}

/// While a call waits to renew an element another session removes it: then it is new to the one
/// that waited.
#[test]
fn what_was_removed_before_it_could_be_renewed_is_new() {
    let mut client = server().database("removed_meanwhile");
    run(&mut client, &format!("SELECT bloom_set_create('s', 'integer', {MADE_FOR}, true)"));
    assert_eq!(add_all(&mut client, "s", &[5]), [5]);
    pass(&mut client, 1);
    let (mut second, mut observer) =
        (named("removed_meanwhile", "second"), named("removed_meanwhile", "observer"));
    let mut removing = client.transaction().expect("a transaction");
    let removed: bool = removing
        .query_one("SELECT bloom_set_remove('s', 5)", &[])
        .expect("it is removed")
        .get(0);
    assert!(removed);
    let added = thread::scope(|scope| {
        let waiting = scope.spawn(move || add_all(&mut second, "s", &[5]));
        wait_for_waiter(&mut observer, "second");
        removing.commit().expect("it ends");
        waiting.join().expect("the second session adds")
    });
    assert_eq!(added, [5]);
    assert_eq!(present(&mut client, &[5]), BTreeSet::from([5]));
}
