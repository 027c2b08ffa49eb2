//! Programs in Python: those of `tests/format`, which are docs/format.md in Python, and clients of
//! a server.

use super::{Server, fed};
use std::path::Path;
use std::process::{Command, Output};

/// The lines that a program prints of these.
pub fn lines(program: &str, arguments: &[&str], input: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/format")
        .join(program);
    let Output { status, stdout, stderr } =
        fed(Command::new("python3").arg(path).args(arguments), input.as_bytes());
    assert!(status.success(), "{program} failed: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout)
        .expect("what it prints is text")
        .lines()
        .map(str::to_owned)
        .collect()
}

/// The Python with drivers and with the package of python/, in the environment that clients of the
/// server need.
pub fn client(server: &Server) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/python/bin/python");
    let package = root.join("target/wheels/installed");
    assert!(python.exists() && package.exists(), "run scripts/setup python && scripts/wheel first");
    let mut command = Command::new(python);
    for (name, value) in server.program("psql").get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}
