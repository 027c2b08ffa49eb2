//! The programs of `tests/format`: docs/format.md in Python.

use super::fed;
use std::path::Path;
use std::process::{Command, Output};

/// The lines that a program prints of these.
pub fn lines(program: &str, arguments: &[&str], input: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format").join(program);
    let Output { status, stdout, stderr } = fed(Command::new("python3").arg(path).args(arguments), input.as_bytes());
    assert!(status.success(), "{program} failed: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).expect("what it prints is text").lines().map(str::to_owned).collect()
}
