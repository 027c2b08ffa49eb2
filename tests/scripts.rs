//! What the scripts say when something is missing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Runs a script where a package is not installed, whatever this machine has.
fn without_package(script: &str, arguments: &[&str], package: &str) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("without-{package}"));
    fs::create_dir_all(&directory).expect("a directory can be made");
    let query = directory.join("dpkg-query");
    let answer = format!("#!/bin/sh\ncase \"$*\" in *' {package}') exit 1 ;; esac\necho installed 1\n");
    fs::write(&query, answer).expect("a script can be written");
    fs::set_permissions(&query, fs::Permissions::from_mode(0o755)).expect("a script can be made executable");
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").expect("there is a PATH"));
    let mut command = Command::new(root.join("scripts").join(script));
    command.args(arguments).env("PATH", path).env("MATRIX_DIR", directory.join("matrix"));
    command.output().expect("the script runs")
}

#[test]
fn building_postgresql_says_what_is_missing_and_what_installs_it() {
    for package in ["flex", "libicu-dev", "debian-archive-keyring"] {
        let output = without_package("matrix", &["build", "18"], package);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{said}");
        assert!(said.contains(&format!("these packages are missing: {package}\n")), "{said}");
        assert!(said.contains("scripts/setup matrix installs them"), "{said}");
    }
}
