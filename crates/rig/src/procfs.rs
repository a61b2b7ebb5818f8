//! What `/proc` tells about a process: CPU in nanoseconds, resident memory, and the machine beneath.
//!
//! CPU comes from the `schedstat` of each thread, which counts nanoseconds; the ticks of `stat` (a
//! hundredth of a second) serve when a thread ended within the window and took its count with it. Memory is
//! `VmRSS`. Parsers are pure and take text; readers are one line each.

use std::collections::BTreeMap;
use std::time::Duration;
use std::{fs, io};

/// CPU that a process has used until now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cpu {
    /// Nanoseconds on a core, by thread.
    threads: BTreeMap<u32, u64>,
    /// User and system ticks of the whole process, ended threads included.
    ticks: u64,
}

impl Cpu {
    /// Reads the counters of a process.
    pub(crate) fn of(pid: u32) -> io::Result<Cpu> {
        let mut threads = BTreeMap::new();
        for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
            let name = entry?.file_name();
            let Some(thread) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
            // A thread that ends between the two reads is one that ended within the window.
            if let Ok(text) = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")) {
                threads.insert(thread, parse_schedstat(&text).ok_or_else(|| odd("schedstat"))?);
            }
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let ticks = parse_stat_ticks(&stat).ok_or_else(|| odd("stat"))?;
        Ok(Cpu { threads, ticks })
    }

    /// CPU used between an earlier reading and this one.
    pub(crate) fn since(&self, earlier: &Cpu, ticks_per_second: u64) -> Duration {
        let thread_ended = earlier.threads.keys().any(|thread| !self.threads.contains_key(thread));
        if thread_ended {
            let ticks = self.ticks.saturating_sub(earlier.ticks);
            return Duration::from_nanos(ticks * 1_000_000_000 / ticks_per_second.max(1));
        }
        let used = |(thread, now): (&u32, &u64)| {
            now.saturating_sub(earlier.threads.get(thread).copied().unwrap_or(0))
        };
        Duration::from_nanos(self.threads.iter().map(used).sum())
    }
}

fn odd(file: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("/proc: {file} has another form than expected"))
}

/// Ticks of `stat` in a second.
pub(crate) fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second()
}

/// CPU that the calling thread has used until now.
pub(crate) fn own_thread_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Resident bytes of a process.
pub(crate) fn resident_bytes(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    parse_kib(&text, "VmRSS:").map(|kib| kib * 1024).ok_or_else(|| odd("status"))
}

/// The most bytes that a process has held since it began or since [`reset_peak`].
pub(crate) fn peak_bytes(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    parse_kib(&text, "VmHWM:").map(|kib| kib * 1024).ok_or_else(|| odd("status"))
}

/// Lets the peak of a process begin anew at what it holds (proc(5), `clear_refs`).
pub(crate) fn reset_peak(pid: u32) -> io::Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5")
}

/// Bytes that a process has read from files and sockets since it began, from the page cache or not (proc(5), `rchar`).
pub(crate) fn read_bytes(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/io"))?;
    parse_rchar(&text).ok_or_else(|| odd("io"))
}

/// The processor's name, as the kernel prints it.
pub(crate) fn processor() -> Option<String> {
    parse_processor(&fs::read_to_string("/proc/cpuinfo").ok()?)
}

/// The kernel's release.
pub(crate) fn kernel() -> Option<String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(release.trim().to_owned())
}

/// The kind of file system that holds a path, from the mount table: the longest mount point that is a prefix.
pub(crate) fn file_system(path: &std::path::Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    parse_file_system(&fs::read_to_string("/proc/self/mounts").ok()?, &path)
}

/// `schedstat`: nanoseconds on a core, nanoseconds waiting, number of runs.
fn parse_schedstat(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// `stat`: the command in parentheses may hold anything, so fields are counted from its last parenthesis;
/// `utime` and `stime` are the 14th and 15th.
fn parse_stat_ticks(text: &str) -> Option<u64> {
    let (_, after) = text.rsplit_once(')')?;
    let mut fields = after.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn parse_kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

fn parse_rchar(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("rchar:"))?.trim().parse().ok()
}

fn parse_processor(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn parse_file_system(mounts: &str, path: &std::path::Path) -> Option<String> {
    let mounted = mounts.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let best = mounted.filter(|(point, _)| path.starts_with(point)).max_by_key(|(point, _)| point.len());
    best.map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn stat_is_read_past_a_strange_command() {
        let text = "42 (a) b (c) S 1 42 42 0 -1 4194560 1071 0 0 0 123 45 0 0 20 0 5 0 3089 2703360 224 18446744073709551615";
        assert_eq!(parse_stat_ticks(text), Some(168));
        assert_eq!(parse_stat_ticks("42 (x) S 1"), None);
        assert_eq!(parse_stat_ticks(""), None);
    }

    #[test]
    fn schedstat_and_status_and_cpuinfo() {
        assert_eq!(parse_schedstat("313860778 13148373 78\n"), Some(313_860_778));
        assert_eq!(parse_schedstat("\n"), None);
        let status = "Name:\tx\nVmHWM:\t 9999 kB\nVmRSS:\t   11264 kB\nThreads: 4\n";
        assert_eq!(parse_kib(status, "VmRSS:"), Some(11264));
        assert_eq!(parse_kib(status, "VmHWM:"), Some(9999));
        assert_eq!(parse_kib("VmRSS:\t12 MB\n", "VmRSS:"), None);
        assert_eq!(parse_rchar("rchar: 17\nwchar: 4\n"), Some(17));
        assert_eq!(parse_rchar("wchar: 4\n"), None);
        assert_eq!(
            parse_processor("processor\t: 0\nmodel name\t: Some CPU 3\n").as_deref(),
            Some("Some CPU 3")
        );
        assert_eq!(parse_processor("processor\t: 0\n"), None);
    }

    #[test]
    fn the_longest_mount_point_decides() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /tmp/data xfs rw 0 0\n";
        let check = |path: &str, kind: &str| {
            assert_eq!(parse_file_system(mounts, Path::new(path)).as_deref(), Some(kind), "{path}");
        };
        check("/home", "ext4");
        check("/tmp/x", "tmpfs");
        check("/tmp/data/x", "xfs");
        check("/tmpfoo", "ext4");
        assert_eq!(parse_file_system("", Path::new("/")), None);
    }

    fn cpu(threads: &[(u32, u64)], ticks: u64) -> Cpu {
        Cpu { threads: threads.iter().copied().collect(), ticks }
    }

    #[test]
    fn cpu_is_summed_over_threads_also_new_ones() {
        let (before, after) = (cpu(&[(1, 100), (2, 50)], 7), cpu(&[(1, 300), (2, 60), (3, 5)], 9));
        assert_eq!(after.since(&before, 100), Duration::from_nanos(215));
    }

    #[test]
    fn ticks_serve_when_a_thread_has_ended() {
        let (before, after) = (cpu(&[(1, 100), (2, 50)], 7), cpu(&[(1, 300)], 9));
        assert_eq!(after.since(&before, 100), Duration::from_millis(20));
    }

    #[test]
    fn the_own_process_can_be_read() {
        let before = Cpu::of(std::process::id()).unwrap();
        let after = Cpu::of(std::process::id()).unwrap();
        assert!(!after.threads.is_empty());
        assert!(after.ticks >= before.ticks);
        assert!(resident_bytes(std::process::id()).unwrap() > 100_000);
        assert!(peak_bytes(std::process::id()).unwrap() > 100_000);
        assert!(own_thread_cpu() > Duration::ZERO);
        assert!(ticks_per_second() > 0);
        assert!(kernel().is_some());
    }
}
