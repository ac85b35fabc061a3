//! What came out.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One relay.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RelayReport {
    /// Providers that were connected.
    pub providers: usize,
    /// Resident memory before the first of them came.
    pub base_bytes: u64,
    /// What it grew by, for each.
    pub bytes_each: u64,
    /// CPU time while nothing was asked, in percent of one core.
    pub idle_cpu_percent: f64,
}

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct FleetReport {
    /// Providers.
    pub count: usize,
    /// Handshakes a second of all relays together.
    pub admissions_per_second: u32,
    /// Until all were connected for the first time, seconds.
    pub ramp_s: f64,
    /// Each of them.
    pub relays: Vec<RelayReport>,
    /// Providers that were back in the end.
    pub back: usize,
    /// From the moment at which the relays listened again until all were back, seconds.
    pub back_s: f64,
    /// 1.5 × count / admissions per second.
    pub back_limit_s: f64,
    /// Connections that were dialled, both times.
    pub dials: u64,
    /// Why dials failed and links ended, both times.
    pub causes: BTreeMap<String, u64>,
    /// File descriptors that a process may have.
    pub descriptors: u64,
    /// Cores of the machine.
    pub cores: usize,
}

impl FleetReport {
    /// All were back in time.
    #[must_use]
    pub fn is_back_in_time(&self) -> bool {
        self.back == self.count && self.back_s <= self.back_limit_s
    }

    /// Of the relay where it is the most.
    #[must_use]
    pub fn bytes_each(&self) -> u64 {
        self.relays.iter().map(|relay| relay.bytes_each).max().unwrap_or(0)
    }

    /// Of the relay where it is the most.
    #[must_use]
    pub fn idle_cpu_percent(&self) -> f64 {
        self.relays.iter().map(|relay| relay.idle_cpu_percent).fold(0.0, f64::max)
    }

    /// For people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{name:<34} {value}");
        };
        line("providers", format!("{} on {} relays", self.count, self.relays.len()));
        line("handshakes a second", self.admissions_per_second.to_string());
        line("all connected after", format!("{:.1} s", self.ramp_s));
        line("relay memory each", format!("{:.1} KiB", self.bytes_each() as f64 / 1024.0));
        line("relay CPU while idle", format!("{:.2} % of a core", self.idle_cpu_percent()));
        let back = format!("{:.1} s (limit {:.1} s)", self.back_s, self.back_limit_s);
        line("all back after the relays were killed", back);
        if self.back < self.count {
            line("not back", (self.count - self.back).to_string());
        }
        line("connections dialled", self.dials.to_string());
        let causes: Vec<String> =
            self.causes.iter().map(|(cause, count)| format!("{cause} {count}")).collect();
        line("ended or failed, by cause", causes.join(", "));
        line("machine", format!("{} cores, {} descriptors a process", self.cores, self.descriptors));
        text
    }
}
