//! Replays the inputs that fuzzing found to reach something, and those that were defects, through
//! the functions that it calls: `make fuzz` looks for more.
//!
//! `corpus/TARGET.tar.gz` has the fewest inputs that reach all that was reached.
//! `regressions/TARGET/` has the inputs that broke a promise once, each named after the defect.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files of a folder, none if there is no such folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .map(|entry| entry.expect("the folder can be read").path())
        .collect()
}

/// The committed inputs of a target, unpacked.
fn corpus(target: &str) -> Vec<PathBuf> {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("corpus/{target}.tar.gz"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("corpus-{target}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let tar = Command::new("tar")
        .arg("-xzf")
        .arg(&archive)
        .arg("-C")
        .arg(&folder)
        .status();
    assert!(tar.expect("tar runs").success(), "{} could not be unpacked", archive.display());
    files(&folder)
}

/// Runs every committed input of a target, and says which of them breaks a promise.
fn replay(target: &str) {
    let (_, run) = pg_bloom_fuzz::TARGETS
        .into_iter()
        .find(|(name, _)| *name == target)
        .expect("a target of this name");
    let found = corpus(target);
    assert!(found.len() >= 15, "only {} inputs of {target}", found.len());
    let regressions =
        files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions").join(target));
    for path in regressions.iter().chain(&found) {
        let input = std::fs::read(path).expect("the input can be read");
        assert!(catch_unwind(|| run(&input)).is_ok(), "the input is {}", path.display());
    }
    if let Some(folder) = found.first().and_then(|path| path.parent()) {
        std::fs::remove_dir_all(folder).expect("the unpacked inputs can be deleted");
    }
}

/// A test for each target, and none forgotten.
macro_rules! targets {
    ($($target:ident)*) => {
        $(#[test] fn $target() { replay(stringify!($target)); })*

        #[test]
        fn every_target_is_replayed() {
            let replayed = [$(stringify!($target)),*];
            assert_eq!(pg_bloom_fuzz::TARGETS.map(|(name, _)| name), replayed);
        }
    };
}

targets! { parse operations state sizing parquet counting index_keys index_filters patterns sets }
