//! What `/proc` says about processes, and signals to them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::{Pid, Resource, getrlimit, kill_process, setrlimit};

pub use rustix::process::Signal;

/// Sends a signal; a process that is already gone is no error.
///
/// # Errors
/// As `kill(2)`, without `ESRCH`.
pub fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a process id"));
    };
    match kill_process(pid, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Raises this process' limit of open descriptors as far as it may go, for itself and for what it starts from now on.
/// Returns the limit.
pub fn raise_descriptor_limit() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If it may not be raised, it stays.
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The living children of a process, zombies left out.
#[must_use]
pub fn children(parent: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| Stat::read(*pid).is_some_and(|stat| stat.parent == parent && stat.state != 'Z'))
        .collect()
}

/// The title of a process (its command line), as servers set it to say what they do.
#[must_use]
pub fn title(pid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
    Some(text.trim_end().to_owned())
}

/// The state letter of a process (`R`, `S`, `T` for stopped, …).
#[must_use]
pub fn state(pid: u32) -> Option<char> {
    Stat::read(pid).map(|stat| stat.state)
}

/// When a process started, in clock ticks since boot: with the process id it names a process for good.
#[must_use]
pub fn start_ticks(pid: u32) -> Option<u64> {
    Stat::read(pid).map(|stat| stat.start_ticks)
}

/// How much CPU time each thread of a process has used so far: the scheduler's own count in nanoseconds, or clock
/// ticks of the whole process where the kernel keeps no such count. The time of threads that end between two samples
/// is not seen.
#[derive(Clone, Debug)]
pub struct CpuSample {
    thread_ns: BTreeMap<u32, u64>,
    ticked: Duration,
}

impl CpuSample {
    /// Reads the counts now.
    ///
    /// # Errors
    /// The process is gone.
    pub fn read(pid: u32) -> io::Result<Self> {
        let stat = Stat::read(pid).ok_or_else(|| gone(pid))?;
        let ticked =
            Duration::from_secs_f64(stat.cpu_ticks as f64 / rustix::param::clock_ticks_per_second() as f64);
        let mut thread_ns = BTreeMap::new();
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            let task = task?;
            let id = task.file_name().to_str().and_then(|name| name.parse().ok());
            // A thread may end between the listing and the reading.
            let text = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            let used = text.split_whitespace().next().and_then(|field| field.parse().ok());
            if let (Some(id), Some(used)) = (id, used) {
                thread_ns.insert(id, used);
            }
        }
        Ok(Self { thread_ns, ticked })
    }

    /// CPU time used from this sample to a later one of the same process.
    #[must_use]
    pub fn until(&self, later: &Self) -> Duration {
        if later.thread_ns.values().all(|used| *used == 0) {
            return later.ticked.saturating_sub(self.ticked);
        }
        let used =
            |(id, used): (&u32, &u64)| used.saturating_sub(self.thread_ns.get(id).copied().unwrap_or(0));
        Duration::from_nanos(later.thread_ns.iter().map(used).sum())
    }
}

/// Resident memory of a process in bytes (`VmRSS`).
///
/// # Errors
/// The process is gone.
pub fn resident_bytes(pid: u32) -> io::Result<u64> {
    status_field(pid, "VmRSS:").map(|kilobytes| kilobytes * 1024)
}

/// Threads of a process.
///
/// # Errors
/// The process is gone.
pub fn thread_count(pid: u32) -> io::Result<u64> {
    status_field(pid, "Threads:")
}

/// Open file descriptors of a process.
///
/// # Errors
/// The process is gone, or belongs to someone else.
pub fn descriptor_count(pid: u32) -> io::Result<usize> {
    fs::read_dir(format!("/proc/{pid}/fd")).map(Iterator::count)
}

fn status_field(pid: u32, name: &str) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).ok_or_else(|| gone(pid))
}

fn gone(pid: u32) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("process {pid} is gone"))
}

/// The fields of `/proc/PID/stat` that are used here (proc_pid_stat(5)).
struct Stat {
    state: char,
    parent: u32,
    cpu_ticks: u64,
    start_ticks: u64,
}

impl Stat {
    fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name of the program, in parentheses, may itself hold spaces and parentheses: count from the last one.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            cpu_ticks: number(11)? + number(12)?,
            start_ticks: number(19)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn a_process_name_with_parentheses_does_not_shift_the_fields() {
        let text = "42 (a) b)) S 7 42 42 0 -1 4194304 1 0 0 0 11 22 0 0 20 0 1 0 333 1 1";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.state, stat.parent, stat.cpu_ticks, stat.start_ticks), ('S', 7, 33, 333));
    }

    #[test]
    fn cpu_time_grows_with_work() {
        let me = std::process::id();
        let before = CpuSample::read(me).unwrap();
        let end = clock::now() + Duration::from_millis(60);
        while clock::now() < end {
            std::hint::black_box(&before);
        }
        // Other work on the machine may take most of the time, so only a small part is asked for.
        let used = before.until(&CpuSample::read(me).unwrap());
        assert!(used > Duration::from_millis(2), "{used:?}");
        assert!(resident_bytes(me).unwrap() > 0);
    }
}
