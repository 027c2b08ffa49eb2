//! The server with limited memory: a control group, as version 1 or 2 of the kernel's has them.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Control groups of a version of the kernel's.
#[derive(Clone, Copy)]
struct Version {
    directory: &'static str,
    /// The file of a group that has its limit, in bytes.
    file: &'static str,
    no_limit: &'static str,
}

const VERSIONS: [Version; 2] = [
    Version {
        directory: "/sys/fs/cgroup/memory",
        file: "memory.limit_in_bytes",
        no_limit: "-1",
    },
    Version {
        directory: "/sys/fs/cgroup",
        file: "memory.max",
        no_limit: "max",
    },
];
/// Which controllers the groups of version 2 have.
const CONTROLLERS: &str = "/sys/fs/cgroup/cgroup.subtree_control";
/// How often the kernel is asked for a limit that it refuses while pages are still being written.
const ATTEMPTS: usize = 50;

/// What the names of groups begin with; the number of the process that has made the group follows.
const PREFIX: &str = "pg_bloom.";

/// A control group for the server, which is removed when this is dropped.
pub struct Limit {
    group: PathBuf,
    version: Version,
    /// The server's directory.
    server: PathBuf,
}

impl Limit {
    /// Makes a control group for the server that the environment names. Fails with the reason where
    /// that is impossible.
    pub fn new() -> Result<Limit, String> {
        let server = std::env::var("PGHOST").map_err(|_| "PGHOST names no server".to_owned())?;
        fs::write("/proc/sys/vm/drop_caches", "1")
            .map_err(|error| format!("the cache can't be emptied: {error}"))?;
        // In version 2 a group gets the files of the controllers that the one above hands down.
        if let Ok(mut control) = OpenOptions::new().write(true).open(CONTROLLERS) {
            let _ = control.write_all(b"+memory");
        }
        let mut reasons = Vec::new();
        for version in VERSIONS {
            remove_left(version.directory);
            match make_group(version) {
                Ok(group) => return Ok(Limit { group, version, server: server.into() }),
                Err(reason) => reasons.push(reason),
            }
        }
        Err(format!("there are no control groups for memory ({})", reasons.join("; ")))
    }

    /// Stops the server, empties the operating system's cache, and starts the server with at most this
    /// many bytes of memory, or any number.
    pub fn restart(&self, most_bytes: Option<u64>) {
        self.script("stop", "");
        self.empty_cache();
        let file = self.group.join(self.version.file);
        let limit = most_bytes.map_or(self.version.no_limit.into(), |bytes| bytes.to_string());
        let mut attempts = 0;
        while let Err(error) = fs::write(&file, &limit) {
            attempts += 1;
            assert!(attempts < ATTEMPTS, "{}: {error}", file.display());
            thread::sleep(Duration::from_millis(100));
        }
        let processes = self.group.join("cgroup.procs");
        self.script("start", &format!("echo $$ >'{}' && ", processes.display()));
    }

    /// Writes what is to be written, and drops what was read.
    fn empty_cache(&self) {
        assert!(runs("sync"), "what was written can be synchronized");
        fs::write("/proc/sys/vm/drop_caches", "1").expect("the cache can be emptied");
    }

    fn script(&self, action: &str, before: &str) {
        let script = format!("{before}exec scripts/server {action} '{}'", self.server.display());
        assert!(runs(&script), "{script} failed");
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        // Also after a failure, whatever state the server is in.
        let in_server =
            |action| runs(&format!("scripts/server {action} '{}'", self.server.display()));
        in_server("stop");
        // Processes that have ended are still in their group for a moment.
        let start = Instant::now();
        while fs::remove_dir(&self.group).is_err() && start.elapsed() < Duration::from_secs(10) {
            thread::sleep(Duration::from_millis(50));
        }
        in_server("start");
    }
}

/// Removes the groups of processes that are gone, which a signal has ended before they could do it.
fn remove_left(directory: &str) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let own = std::process::id().to_string();
        let is_left = |process| process == own || !Path::new("/proc").join(process).exists();
        if process.is_some_and(is_left) {
            // That of another server with the same processes, in a container, isn't empty and stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Makes a group for this process, and returns its directory. Fails with the reason if it can't have
/// a limit, or if processes can't be moved into it, as into one of another namespace.
fn make_group(version: Version) -> Result<PathBuf, String> {
    let group = Path::new(version.directory).join(format!("{PREFIX}{}", std::process::id()));
    fs::create_dir(&group).map_err(|error| format!("{}: {error}", group.display()))?;
    let processes = group.join("cgroup.procs");
    let reason = if !group.join(version.file).exists() {
        format!("{} has no {}", group.display(), version.file)
    } else if !runs(&format!("echo $$ >'{}'", processes.display())) {
        format!("{} can't be written", processes.display())
    } else {
        return Ok(group);
    };
    let _ = fs::remove_dir(&group);
    Err(reason)
}

/// Runs a script of the shell, and returns whether it has succeeded.
fn runs(script: &str) -> bool {
    let status = Command::new("sh").args(["-c", script]).status();
    status.is_ok_and(|status| status.success())
}
