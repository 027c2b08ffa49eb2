//! The disk that the server's data is on.

use pg_bloom_benches::median;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::Instant;

/// Where numbers are in a line of /proc/diskstats.
const READS: usize = 3;
const SECTORS_READ: usize = 5;
const SECTOR_BYTES: f64 = 512.0;
/// Pages that are read to measure how long a random one takes.
const RANDOM_READS: u64 = 201;

/// A block device.
pub struct Disk {
    /// Its numbers, as /proc/diskstats begins its line with them.
    numbers: [String; 2],
}

/// What was read from a disk since the machine was started, by whatever processes.
#[derive(Clone, Copy, Default)]
pub struct DiskReads {
    pub requests: f64,
    pub bytes: f64,
}

impl DiskReads {
    pub fn since(self, earlier: DiskReads) -> DiskReads {
        DiskReads {
            requests: self.requests - earlier.requests,
            bytes: self.bytes - earlier.bytes,
        }
    }
}

impl Disk {
    /// Returns the disk of a file; `None` if its file system isn't on one.
    pub fn of(path: &Path) -> Option<Disk> {
        let device = fs::metadata(path).ok()?.dev();
        // As the macros major() and minor() take a number apart.
        let major = (device >> 8 & 0xFFF) | (device >> 32 & !0xFFF);
        let minor = (device & 0xFF) | (device >> 12 & !0xFF);
        let disk = Disk { numbers: [major.to_string(), minor.to_string()] };
        disk.line().map(|_| disk)
    }

    fn line(&self) -> Option<Vec<String>> {
        let text = fs::read_to_string("/proc/diskstats").ok()?;
        let mut lines = text
            .lines()
            .map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        lines.find(|fields| fields.get(..2) == Some(&self.numbers))
    }

    pub fn reads(&self) -> DiskReads {
        let line = self.line().expect("the disk is still there");
        let number = |place: usize| line[place].parse::<f64>().expect("a number");
        DiskReads {
            requests: number(READS),
            bytes: number(SECTORS_READ) * SECTOR_BYTES,
        }
    }
}

/// Returns the median time, in seconds, of reading a random page of a file that isn't in memory.
pub fn random_read_time(path: &Path) -> f64 {
    let file = File::open(path).expect("a file of the server can be read");
    let pages = file.metadata().expect("it has a size").len() / 8192;
    // Steps of a size that has no divisor in common with that of the file, nearly always.
    let step = pages / RANDOM_READS * 97 + 1;
    let mut times: Vec<f64> = (0..RANDOM_READS)
        .map(|i| {
            let start = Instant::now();
            let at = i * step % pages.max(1) * 8192;
            file.read_at(&mut [0; 8192], at).expect("a page can be read");
            start.elapsed().as_secs_f64()
        })
        .collect();
    median(&mut times)
}
