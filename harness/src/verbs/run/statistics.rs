//! Sums up the library's counts of all processes.

use std::collections::BTreeMap;
use std::ffi::OsString;

use planlab_dsa::{Bytes, gap};
use planlab_results::format;
use planlab_results::table::Table;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::shell::JSON_VERSION;
use crate::shell::exit::{Exit, Failure};
use crate::shell::quantity::{as_seconds, format_percent, format_seconds};

/// Reasons why requests were not planned: the library's names, and their meaning.
const MISSES: [(&str, &str); 7] = [
    ("unplanned", "before a plan, or between rounds"),
    ("outliving", "outlives its round, or is resized"),
    ("late", "a block of the round before was in use"),
    ("other_size", "another size or alignment than planned"),
    ("other_order", "a block that should have been free was in use"),
    ("departed", "later in a round that left its plan"),
    ("reentrant", "requested by a signal handler in the middle of another call"),
];
/// The most plans that the table shows.
const SHOWN: usize = 12;

/// A line of the library's file, for one process.
#[derive(Debug, Deserialize)]
struct Process {
    pid: u32,
    counts: BTreeMap<String, u64>,
    plans: Vec<Plan>,
    #[serde(default)]
    devices: Vec<Device>,
    minor_faults: Option<u64>,
    peak_rss: Option<u64>,
}

/// The GPU memory that the program requested from the library.
#[derive(Clone, Debug, Deserialize)]
struct Device {
    device: String,
    streams: u64,
    counts: BTreeMap<String, u64>,
    memory: BTreeMap<String, u64>,
    plans: Vec<Plan>,
}

impl Device {
    fn device_count(&self, name: &str) -> u64 {
        self.counts.get(name).or_else(|| self.memory.get(name)).copied().unwrap_or(0)
    }

    fn device_object(&self) -> Value {
        json!({
            "device": self.device,
            "streams": self.streams,
            "requests": self.device_count("requests"),
            "bytes": self.device_count("bytes"),
            "planned": self.device_count("planned"),
            "planned_bytes": self.device_count("planned_bytes"),
            "missed": missed_reasons(&self.counts).map(|(name, _, count)| (name.to_owned(), count.into())).collect::<Map<_, _>>(),
            "rounds": self.device_count("rounds"),
            "departures": self.device_count("departures"),
            "plans": self.plans.iter().map(plan_object).collect::<Vec<_>>(),
            "memory": self.memory,
        })
    }

    fn device_text(&self) -> String {
        let (requests, planned) = (self.device_count("requests"), self.device_count("planned"));
        let mut text = format!(
            "{}: {}, {}, on {}; planned: {planned} ({})\n",
            self.device,
            count_noun(requests, "request"),
            format::format_bytes(self.device_count("bytes")),
            count_noun(self.streams, "stream"),
            format_percent(share_of(planned, requests))
        );
        for (_, means, count) in missed_reasons(&self.counts) {
            text += &format!("{}: missed: {count}, {means}\n", self.device);
        }
        text += &format!(
            "{}: {} held at most, {} in use at most; requests to the driver: {}; no room: {}\n",
            self.device,
            format::format_bytes(self.device_count("reserved_peak")),
            format::format_bytes(self.device_count("used_peak")),
            self.device_count("device_allocations"),
            self.device_count("out_of_memory")
        );
        text + &plan_table(&self.plans)
    }
}

/// Requests that no plan served, by reason.
fn missed_reasons(counts: &BTreeMap<String, u64>) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
    let all = MISSES.iter().map(|&(name, means)| (name, means, counts.get(name).copied().unwrap_or(0)));
    all.filter(|&(_, _, count)| count > 0)
}

#[derive(Clone, Debug, Deserialize)]
struct Plan {
    requests: u64,
    planned: u64,
    bytes: Bytes,
    height: Bytes,
    load: Bytes,
    bound: Bytes,
    planning_ns: u64,
    rounds: u64,
    departures: u64,
    faults_before_milli: u64,
}

impl Plan {
    /// The bytes that a round saves by using memory more than once.
    fn bytes_saved(&self) -> u64 {
        self.bytes.get().saturating_sub(self.height.get())
    }

    /// Page faults that its rounds would have taken at the rate before the plan.
    fn faults_saved(&self) -> u64 {
        self.rounds.saturating_mul(self.faults_before_milli) / 1000
    }
}

/// All processes of a run.
#[derive(Debug, Default)]
pub(super) struct Total {
    processes: usize,
    counts: BTreeMap<String, u64>,
    /// Sorted by rounds, most first.
    plans: Vec<Plan>,
    devices: Vec<Device>,
    /// Minor page faults of the program itself.
    minor_faults: Option<u64>,
    peak_rss: Option<u64>,
}

impl Total {
    /// Sums up the lines of all processes; `pid` is the program's.
    ///
    /// # Errors
    ///
    /// If a line is not in the library's format.
    pub(super) fn from_lines(lines: &str, pid: u32) -> Result<Self, Failure> {
        let mut total = Self::default();
        for (number, line) in lines.lines().enumerate() {
            let process: Process = serde_json::from_str(line).map_err(|error| {
                let reason = format!("line {} of the statistics: {error}", number + 1);
                Failure::new(Exit::Incomplete, reason)
            })?;
            total.add_process(process, pid);
        }
        let most_rounds_first = |plan: &Plan| std::cmp::Reverse((plan.rounds, plan.requests));
        total.plans.sort_by_key(most_rounds_first);
        total.devices.iter_mut().for_each(|device| device.plans.sort_by_key(most_rounds_first));
        Ok(total)
    }

    fn add_process(&mut self, process: Process, pid: u32) {
        self.processes += 1;
        for (name, count) in process.counts {
            *self.counts.entry(name).or_default() += count;
        }
        self.plans.extend(process.plans);
        self.devices.extend(process.devices);
        if process.pid == pid {
            (self.minor_faults, self.peak_rss) = (process.minor_faults, process.peak_rss);
        }
    }

    fn total_count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }

    fn bytes_saved(&self) -> u64 {
        self.plans.iter().map(Plan::bytes_saved).sum()
    }

    fn faults_saved(&self) -> u64 {
        self.plans.iter().map(Plan::faults_saved).sum()
    }

    pub(super) fn total_object(&self, command: &[OsString], exit_code: u8, min_size: u64) -> Value {
        let command: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        let missed: Map<_, _> =
            missed_reasons(&self.counts).map(|(name, _, count)| (name.to_owned(), count.into())).collect();
        let plans: Vec<Value> = self.plans.iter().map(plan_object).collect();
        json!({
            "version": JSON_VERSION,
            "program": command,
            "exit_code": exit_code,
            "processes": self.processes,
            "min_size": min_size,
            "requests": self.total_count("requests"),
            "bytes": self.total_count("bytes"),
            "planned": self.total_count("planned"),
            "planned_bytes": self.total_count("planned_bytes"),
            "missed": missed,
            "rounds": self.total_count("rounds"),
            "departures": self.total_count("departures"),
            "foreign_frees": self.total_count("foreign_frees"),
            "wrong_frees": self.total_count("wrong_frees"),
            "plans": plans,
            "devices": self.devices.iter().map(Device::device_object).collect::<Vec<_>>(),
            "bytes_saved": self.bytes_saved(),
            "faults_saved": self.faults_saved(),
            "minor_faults": self.minor_faults,
            "peak_rss": self.peak_rss,
            "allocator_seconds": as_seconds(self.total_count("nanoseconds")),
        })
    }

    pub(super) fn total_text(&self, min_size: u64) -> String {
        let (requests, planned) = (self.total_count("requests"), self.total_count("planned"));
        let devices: String = self.devices.iter().map(Device::device_text).collect();
        if requests == 0 {
            return if devices.is_empty() { none_seen(min_size) + "\n" } else { devices };
        }
        let mut text = format!(
            "requests of at least {}: {requests}, {}, in {}\n",
            format::format_bytes(min_size),
            format::format_bytes(self.total_count("bytes")),
            count_noun(self.processes as u64, "process")
        );
        let share = format_percent(share_of(planned, requests));
        text += &format!(
            "planned: {planned} ({share}), {}\n",
            format::format_bytes(self.total_count("planned_bytes"))
        );
        for (_, means, count) in missed_reasons(&self.counts) {
            text += &format!("missed: {count}, {means}\n");
        }
        let (rounds, departures) = (self.total_count("rounds"), self.total_count("departures"));
        text += &format!("rounds that followed their plan: {rounds}; that departed from it: {departures}\n");
        if self.plans.is_empty() {
            text +=
                "no plan: no sequence of large requests came twice in a row, or too few bytes were in use\n";
        }
        if self.total_count("wrong_frees") > 0 {
            text +=
                &format!("frees of planned memory with no live block: {}\n", self.total_count("wrong_frees"));
        }
        text += &plan_table(&self.plans);
        let time = format_seconds(self.total_count("nanoseconds"));
        if !self.plans.is_empty() {
            let saved = format::format_bytes(self.bytes_saved());
            text += &format!(
                "shared by planned requests: {saved}, their sizes less the heights; glibc reuses memory, too\n"
            );
        }
        text += &format!("page faults saved, about: {}\n", self.faults_saved());
        text += &format!("in the allocator, by samples: {time}\n");
        text + &devices
    }
}

fn plan_table(plans: &[Plan]) -> String {
    if plans.is_empty() {
        return String::new();
    }
    let titles = ["plans", "requests", "planned", "height", "load", "gap", "as planned", "not", "planning"];
    let mut table = Table::new(&titles);
    let groups = group_plans(plans);
    for (count, plan) in groups.iter().take(SHOWN) {
        table.push_texts(vec![
            count.to_string(),
            plan.requests.to_string(),
            plan.planned.to_string(),
            format::format_bytes(plan.height.get()),
            format::format_bytes(plan.load.get()),
            format_percent(Some(gap(plan.height, plan.bound))),
            plan.rounds.to_string(),
            plan.departures.to_string(),
            format_seconds(plan.planning_ns),
        ]);
    }
    let more: u64 = groups.iter().skip(SHOWN).map(|(count, _)| count).sum();
    let rest = if more > 0 { format!("and {}\n", count_noun(more, "other plan")) } else { String::new() };
    table.render() + &rest
}

/// Groups plans with equal figures, as threads with the same work have. Returns the number of each group, and a plan
/// with their rounds together.
fn group_plans(plans: &[Plan]) -> Vec<(u64, Plan)> {
    let mut groups: Vec<(u64, Plan)> = Vec::new();
    for plan in plans {
        let figures =
            |plan: &Plan| (plan.requests, plan.planned, plan.bytes, plan.height, plan.load, plan.bound);
        match groups.iter_mut().find(|(_, of)| figures(of) == figures(plan)) {
            Some((count, of)) => {
                *count += 1;
                of.rounds += plan.rounds;
                of.departures += plan.departures;
                of.planning_ns = of.planning_ns.max(plan.planning_ns);
            }
            None => groups.push((1, plan.clone())),
        }
    }
    groups
}

fn count_noun(number: u64, what: &str) -> String {
    let plural = if what.ends_with('s') { "es" } else { "s" };
    format!("{number} {what}{}", if number == 1 { "" } else { plural })
}

/// The possible reasons for missing statistics.
pub(super) fn none_seen(min_size: u64) -> String {
    format!(
        "no large request was seen: the program made no request of at least {}, or it is static or set-uid, has an allocator of \
         its own, or ended by a signal or by _exit",
        format::format_bytes(min_size)
    )
}

fn plan_object(plan: &Plan) -> Value {
    json!({
        "requests": plan.requests,
        "planned": plan.planned,
        "bytes": plan.bytes,
        "height": plan.height,
        "load": plan.load,
        "bound": plan.bound,
        "gap": gap(plan.height, plan.bound),
        "rounds": plan.rounds,
        "departures": plan.departures,
        "faults_before": plan.faults_before_milli / 1000,
        "planning_seconds": as_seconds(plan.planning_ns),
    })
}

#[expect(clippy::cast_precision_loss, reason = "a ratio")]
fn share_of(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_gpus_is_told_beside_that_of_the_host() {
        let plan = r#"{"requests":41,"planned":41,"bytes":2500,"height":900,"load":800,"bound":900,"planning_ns":5,"rounds":3,"departures":1,"faults_before_milli":0}"#;
        let device = format!(
            r#"{{"device":"cuda:0","streams":2,"counts":{{"requests":100,"bytes":5000,"planned":75,"unplanned":25}},
            "memory":{{"reserved_peak":4096,"used_peak":2048,"device_allocations":7,"out_of_memory":0}},"plans":[{plan}]}}"#
        );
        let line = format!(
            r#"{{"pid":7,"counts":{{}},"plans":[],"devices":[{device}],"minor_faults":1,"peak_rss":2}}"#
        )
        .replace('\n', "");
        let total = Total::from_lines(&line, 7).expect("as the library writes it");
        let text = total.total_text(4096);
        assert!(text.starts_with("cuda:0: 100 requests, 4.88 KiB, on 2 streams"), "{text}");
        assert!(text.contains("cuda:0: missed: 25, before a plan, or between rounds\n"), "{text}");
        let object = total.total_object(&[], 0, 4096);
        let device = &object["devices"][0];
        assert_eq!(
            (device["planned"].as_u64(), device["missed"]["unplanned"].as_u64()),
            (Some(75), Some(25))
        );
        assert_eq!(
            (device["plans"][0]["height"].as_u64(), device["memory"]["reserved_peak"].as_u64()),
            (Some(900), Some(4096))
        );
    }
}
