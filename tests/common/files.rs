//! Damaged files of indexes, and what is asked of them then.

use super::{Random, Server, column};
use postgres::Client;

/// Bytes of a page, of PostgreSQL's header and of the special space.
const PAGE: usize = 8192;
const HEADER: usize = 24;
const SPECIAL: usize = 8;

/// A number that code may be wrong about.
fn odd_number(random: &mut Random) -> u32 {
    match random.below(3) {
        0 => *random.pick(&[
            0,
            1,
            2,
            127,
            128,
            0xFFFF,
            i32::MAX as u32,
            1 << 31,
            u32::MAX - 1,
            u32::MAX,
        ]),
        1 => random.below(300) as u32,
        _ => random.bits() as u32,
    }
}

/// Damages the file of an index in one of many ways, and says how.
pub fn damage(random: &mut Random, file: &mut Vec<u8>) -> String {
    let pages = file.len() / PAGE;
    // The metapage is one of many, and what matters most.
    let page = if random.below(3) == 0 { 0 } else { random.below(pages) };
    let (start, end) = (page * PAGE, (page + 1) * PAGE);
    let payload = start + HEADER..end - SPECIAL;
    let somewhere = |random: &mut Random, from: usize, to: usize| from + random.below(to - from);
    match random.below(12) {
        0 => {
            let at = somewhere(random, payload.start, payload.end);
            file[at] ^= 1 << random.below(8);
            format!("a bit of page {page}")
        }
        1 => {
            let at = somewhere(random, end - SPECIAL, end);
            file[at] = random.bits() as u8;
            format!("special space of page {page}")
        }
        2 => {
            let at = somewhere(random, start, start + HEADER);
            file[at] ^= 1 << random.below(8);
            format!("header of page {page}")
        }
        3 => {
            file[start..end].fill(0);
            format!("page {page} zeroed")
        }
        4 => {
            let other = random.below(pages);
            (0..PAGE).for_each(|i| file.swap(start + i, other * PAGE + i));
            format!("pages {page} and {other} swapped")
        }
        5 => {
            let left = random.below(pages);
            file.truncate(left * PAGE);
            format!("truncated to {left} of {pages} pages")
        }
        6 => {
            file[start..end]
                .iter_mut()
                .for_each(|byte| *byte = random.bits() as u8);
            format!("page {page} random")
        }
        7 => {
            file[payload.clone()]
                .iter_mut()
                .for_each(|byte| *byte = random.bits() as u8);
            format!("payload of page {page} random")
        }
        8 => {
            let other = random.below(pages);
            file.copy_within(start..end, other * PAGE);
            format!("page {page} copied over {other}")
        }
        9 => {
            file[payload.clone()].fill(0);
            format!("payload of page {page} zeroed")
        }
        // Fields of the metapage, and of its first runs.
        10 => {
            let field = random.below(16);
            let number = odd_number(random);
            file[HEADER + 4 * field..][..4].copy_from_slice(&number.to_le_bytes());
            format!("field {field} of the metapage is {number}")
        }
        _ => {
            let field = 16 + random.below(25);
            let number = odd_number(random);
            file[HEADER + 4 * field..][..4].copy_from_slice(&number.to_le_bytes());
            format!("field {field} of the metapage, in a run, is {number}")
        }
    }
}

/// What a statement did: nothing wrong, or an error that is as it should be.
pub fn refuses(client: &mut Client, damage: &str, sql: &str) -> bool {
    let Err(error) = client.simple_query(sql) else {
        return false;
    };
    let error = error
        .as_db_error()
        .unwrap_or_else(|| panic!("{damage}: {sql}: the session died: {error:?}"));
    let (state, hint) = (error.code().code(), error.hint().unwrap_or_default());
    let said = format!("{} / {}", error.message(), error.detail().unwrap_or_default());
    // XX001 is what PostgreSQL says of a page whose header is impossible, and of one behind the end
    // of the file.
    assert!(["XX001", "XX002"].contains(&state), "{damage}: {sql}: {state} {said}");
    // The check names the row that it misses.
    let names = said.contains("block") || said.contains(" row (");
    assert!(names, "{damage}: {sql}: no block is named: {said}");
    assert!(state == "XX001" || hint.contains("REINDEX"), "{damage}: {sql}: {said}: hint {hint}");
    true
}

/// The rows that a query finds; `None` if it is refused.
pub fn found(client: &mut Client, damage: &str, sql: &str) -> Option<Vec<String>> {
    if refuses(client, damage, sql) {
        return None;
    }
    Some(column(client, sql))
}

/// Asserts that no process of the server died.
pub fn assert_no_crash(server: &Server) {
    let log = std::fs::read_to_string(server.dir().join("log")).expect("the server has a log");
    for sign in [
        "PANIC",
        "TRAP",
        "terminated by signal",
        "was not properly shut down",
    ] {
        assert!(!log.contains(sign), "the log has {sign}");
    }
}
