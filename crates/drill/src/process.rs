//! What `/proc` says about processes, and signals to them.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::{Pid, kill_process};

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

/// CPU time that a process has used in all its living threads, from the scheduler's own count (nanoseconds), or from
/// clock ticks where the kernel keeps no such count.
///
/// # Errors
/// The process is gone.
pub fn cpu_time(pid: u32) -> io::Result<Duration> {
    let mut total_ns = 0_u64;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end between the listing and the reading.
        let text = fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
        total_ns += text.split_whitespace().next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    }
    let stat = Stat::read(pid).ok_or_else(|| gone(pid))?;
    let ticked =
        Duration::from_secs_f64(stat.cpu_ticks as f64 / rustix::param::clock_ticks_per_second() as f64);
    Ok(if total_ns == 0 { ticked } else { Duration::from_nanos(total_ns) })
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
        let before = cpu_time(me).unwrap();
        let end = clock::now() + Duration::from_millis(60);
        while clock::now() < end {
            std::hint::black_box(before);
        }
        // Other work on the machine may take most of the time, so only a small part is asked for.
        assert!(cpu_time(me).unwrap() > before);
        assert!(resident_bytes(me).unwrap() > 0);
    }
}
