//! What the benchmarks ran on, and what the operating system says about a process.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The kind of CPU, as its maker names it.
pub fn cpu() -> String {
    field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown CPU".into())
}

/// The machine in a few words: CPU, cores, memory, kernel.
pub fn describe() -> String {
    let cores = thread::available_parallelism().map_or(1, |n| n.get());
    let kib: u64 = field("/proc/meminfo", "MemTotal")
        .and_then(|total| total.split(' ').next()?.parse().ok())
        .unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{}, {cores} cores, {:.0} GB of memory, Linux {}",
        cpu(),
        kib as f64 / 1024.0 / 1024.0,
        kernel.trim()
    )
}

/// The most memory of its own that a process has while this is watching: what it shares with others
/// is not counted.
pub struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Watch {
    /// Starts watching, a hundred times a second.
    pub fn start(pid: i32) -> Watch {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let thread = thread::spawn(move || {
            let mut most = 0;
            while !seen.load(Ordering::Relaxed) {
                most = most.max(own_kib(pid));
                thread::sleep(Duration::from_millis(10));
            }
            most
        });
        Watch { stop, thread }
    }

    /// The most that was seen, in MB.
    pub fn stop(self) -> f64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("watching does not fail") as f64 / 1024.0
    }
}

fn own_kib(pid: i32) -> u64 {
    field(&format!("/proc/{pid}/status"), "RssAnon")
        .and_then(|size| size.split(' ').next()?.parse().ok())
        .unwrap_or_default()
}
