//! Row-level security that hides rows at one moment and not at another, as no sensible policy does:
//! a call must end, and write nothing that would be lost.

use crate::common::{run, state_of, value};
use crate::{server, try_add_all};
use pg_bloom_core::hash;
use pg_bloom_core::set::{Row, SetForm, tree};
use postgres::Client;

const CAPACITY: u64 = 1_000_000;
const FPR: f64 = 1e-6;

/// The bucket of an element at this depth of the tree.
fn bucket_at(x: i32, depth: u32) -> u64 {
    tree::covering(hash::hash(&i64::from(x).to_le_bytes()), depth)
}

/// The least element, from 1, whose bucket at this depth is so.
fn element_with(depth: u32, is_wanted: impl Fn(u64) -> bool) -> i32 {
    (1..).find(|&x| is_wanted(bucket_at(x, depth))).expect("there is one")
}

/// A set `s` that the role of the second client writes by policies of its own, which call
/// `is_visible` and `is_lockable` with a bucket, and may use the sequence `calls`.
fn prepare(name: &str, is_visible: &str, is_lockable: &str) -> (Client, Client) {
    let mut owner = server().database(name);
    run(
        &mut owner,
        &format!(
            "SELECT bloom_set_create('s', 'integer', {CAPACITY}, {FPR});
             CREATE ROLE {name}; GRANT ALL ON s TO {name};
             CREATE SEQUENCE calls MINVALUE 0; GRANT ALL ON SEQUENCE calls TO {name};
             CREATE FUNCTION is_visible(bucket bigint) RETURNS boolean VOLATILE LANGUAGE plpgsql AS
                $$ BEGIN RETURN {is_visible}; END $$;
             CREATE FUNCTION is_lockable(bucket bigint) RETURNS boolean VOLATILE LANGUAGE plpgsql AS
                $$ BEGIN RETURN {is_lockable}; END $$;
             ALTER TABLE s ENABLE ROW LEVEL SECURITY;
             CREATE POLICY visible ON s FOR SELECT USING (is_visible(bucket));
             CREATE POLICY lockable ON s FOR UPDATE USING (is_lockable(bucket)) WITH CHECK (true);
             CREATE POLICY inserted ON s FOR INSERT WITH CHECK (true)"
        ),
    );
    let mut writer = server().connect(name);
    run(&mut writer, &format!("SET ROLE {name}; SET statement_timeout = '60s'"));
    (owner, writer)
}

/// The rows of two leaves can't be locked by turns, the one in each odd attempt and the other in
/// each even one: neither fails twice in turn.
#[test]
fn a_call_ends_if_two_rows_cannot_be_locked_by_turns() {
    let (mut owner, mut writer) =
        prepare("by_turns", "true", "nextval('calls') / 2 % 2 <> bucket % 2");
    let even = element_with(tree::FIRST_DEPTH, |bucket| bucket % 2 == 0);
    let odd = element_with(tree::FIRST_DEPTH, |bucket| bucket % 2 == 1);
    let error = try_add_all(&mut writer, "s", &[even, odd]).expect_err("they can't be locked");
    assert_eq!(state_of(&error), "55000");
    let message = error.as_db_error().expect("the server's").message().to_owned();
    assert!(message.ends_with("cannot be locked"), "{message}");
    assert_eq!(value::<f64>(&mut owner, "SELECT elements FROM bloom_set_info('s')"), 0.0);
}

/// Two rows for the same hashes, of which the call sees one first and the other later: both are
/// locked by then, and neither is written.
#[test]
fn rows_that_overlap_are_not_written_whenever_they_are_seen() {
    let bits = SetForm::fewest_bits(CAPACITY, FPR).expect("a set can have these");
    let form = SetForm { bits, forgets: false };
    let depth_of_halves = tree::FIRST_DEPTH + 1;
    let of_left = element_with(depth_of_halves, |bucket| bucket % 2 == 0);
    let left = bucket_at(of_left, depth_of_halves);
    let (right, parent) = (left + 1, left / 2);
    let of_right = element_with(depth_of_halves, |bucket| bucket == right);
    let elsewhere = element_with(tree::FIRST_DEPTH, |bucket| bucket != parent);

    for (name, replaced) in [("overlapping_left", left), ("overlapping_right", right)] {
        // One half is seen until somebody tries to lock it, and the parent from then on.
        let is_visible = format!(
            "CASE bucket WHEN {parent} THEN (SELECT is_called FROM calls)
                WHEN {replaced} THEN (SELECT NOT is_called FROM calls) ELSE true END"
        );
        let is_lockable =
            format!("CASE bucket WHEN {replaced} THEN nextval('calls') < 0 ELSE true END");
        let (mut owner, mut writer) = prepare(name, &is_visible, &is_lockable);
        let halves: Vec<i64> = vec![left as i64, right as i64];
        let rows = [left, right].map(|bucket| Row::empty(bucket).write::<Vec<u8>>(form));
        let insert = "INSERT INTO s SELECT * FROM unnest($1::bigint[], $2::bytea[])";
        owner
            .execute(insert, &[&halves, &rows.as_slice()])
            .expect("they are rows of the set");

        let error = try_add_all(&mut writer, "s", &[of_left, of_right, elsewhere])
            .expect_err("two rows overlap");
        assert_eq!(state_of(&error), "55000");
        let message = error.as_db_error().expect("the server's").message().to_owned();
        assert!(message.ends_with("has two rows for the same hashes"), "{message}");
        let written = "SELECT count(*) FROM s WHERE octet_length(hashes) > 8";
        assert_eq!(value::<i64>(&mut owner, written), 0);
    }
}
