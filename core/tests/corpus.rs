//! Replays the inputs that fuzzing found to reach something, through the functions that it calls: `make fuzz` looks for more.

#[path = "../fuzz/src/lib.rs"]
mod fuzz;

use std::panic::catch_unwind;
use std::path::Path;

/// Runs every committed input of a target, and says which of them breaks a promise.
fn replay(target: &str) {
    let (_, run) = fuzz::TARGETS.into_iter().find(|(name, _)| *name == target).expect("a target of this name");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let inputs: Vec<_> =
        std::fs::read_dir(&folder).expect("the target has inputs").map(|entry| entry.unwrap().path()).collect();
    assert!(inputs.len() >= 15, "only {} inputs in {}", inputs.len(), folder.display());
    for path in inputs {
        let input = std::fs::read(&path).expect("the input can be read");
        assert!(catch_unwind(|| run(&input)).is_ok(), "the input is {}", path.display());
    }
}

#[test]
fn parse() {
    replay("parse");
}

#[test]
fn operations() {
    replay("operations");
}

#[test]
fn state() {
    replay("state");
}

#[test]
fn sizing() {
    replay("sizing");
}

#[test]
fn parquet() {
    replay("parquet");
}

#[test]
fn counting() {
    replay("counting");
}
