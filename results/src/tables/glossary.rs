//! The single list of the columns that SQL sees, with their units and meanings.

/// A column of a table of [`Tables`](crate::queries::Tables).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnDoc {
    /// `rows`, `replays`, `schedules` or `instances`.
    pub table: &'static str,
    /// The column's name.
    pub name: &'static str,
    /// `bytes`, `ns`, `count`, `share`, `text`, `true/false`, ...
    pub unit: &'static str,
    /// The meaning of its values.
    pub meaning: &'static str,
}

const fn row(name: &'static str, unit: &'static str, meaning: &'static str) -> ColumnDoc {
    ColumnDoc { table: "rows", name, unit, meaning }
}

const fn instance(name: &'static str, unit: &'static str, meaning: &'static str) -> ColumnDoc {
    ColumnDoc { table: "instances", name, unit, meaning }
}

const fn replay(name: &'static str, unit: &'static str, meaning: &'static str) -> ColumnDoc {
    ColumnDoc { table: "replays", name, unit, meaning }
}

const fn schedule(name: &'static str, unit: &'static str, meaning: &'static str) -> ColumnDoc {
    ColumnDoc { table: "schedules", name, unit, meaning }
}

/// All columns, by table. Integers are signed, so that differences may be negative; a value past 2^63 - 1 is null.
pub const COLUMNS: &[ColumnDoc] = &[
    row("workload", "text", "Workload key: chainer/alexnet/train/b32"),
    row("workload_group", "text", "First two parts of the key: chainer/alexnet"),
    row("planner", "text", "Planner key"),
    row("parameters", "JSON", "Parameters of the planner"),
    row("threads", "count", "Threads that the planner may use"),
    row("seed", "number", "Seed of the run's random numbers"),
    row("repetition", "number", "From 0"),
    row("suite", "text", "Suite that asked for the cell, or empty"),
    row(
        "lane",
        "text",
        "timing: ran alone; quality: may have run beside other cells, so its times are not ranked",
    ),
    row("status", "text", "optimal, feasible, infeasible, unknown, unsupported, timeout, ..."),
    row("is_answer", "true/false", "Whether there is a plan, or a proof that no plan exists"),
    row("is_failure", "true/false", "Whether the planner crashed, was killed, or gave a false answer"),
    row("buffers", "count", "Buffers of the instance"),
    row("height", "bytes", "Height of the best verified plan"),
    row(
        "load",
        "bytes",
        "Most bytes live at one step; a buffer that may overwrite another does not count at its first",
    ),
    row("load_without_in_place", "bytes", "The same, if every buffer counts from its first step"),
    row("bound", "bytes", "Best bound on any plan that this run proved"),
    row("best_bound", "bytes", "Best bound on any plan that any run proved"),
    row("bound_evidence", "text", "Evidence for `bound`: load, search, mip, ..."),
    row(
        "bound_scope",
        "text",
        "any; no-hand-over in rows of older versions whose instance permits no hand-over",
    ),
    row(
        "bound_without_in_place",
        "bytes",
        "Best bound on plans without hand-overs, if the instance permits some and the planner uses none",
    ),
    row("gap", "share", "(height - best_bound) / best_bound; null in cells that were asked for a capacity"),
    row("fragmentation", "share", "(height - load) / load"),
    row("hand_overs", "count", "Buffers that take their memory over from an input"),
    row("time_ns", "ns", "Median planning time (the lower of two middles)"),
    row("samples_ns", "list of ns", "Planning time of each sample"),
    row("reported_ns", "ns", "Time that an external planner itself says it took"),
    row("orders_run", "count", "Random legal orders of the graph in which the plan was run"),
    row("orders_failed", "count", "Those in which two live buffers overlapped"),
    row("order_bound", "bytes", "Least memory of any legal order of the graph, as proved"),
    row("cpu_ns", "ns", "CPU time of the process"),
    row("work", "count", "Work done, in the planner's units"),
    row("peak_rss_bytes", "bytes", "Most resident memory of the process"),
    row("wall_limit_ns", "ns", "Time limit"),
    row("memory_limit_bytes", "bytes", "Memory limit"),
    row("work_limit", "count", "Work limit, in the planner's units"),
    row("target_bytes", "bytes", "Capacity that was asked for; null: the lowest height"),
    row("mechanism", "text", "What enforced the limits"),
    row("stop", "text", "Why the run stopped: finished, proved, deadline, ..."),
    row("reason", "text", "What went wrong, in one line, or empty"),
    row("exit_code", "number", "Exit code of the process"),
    row("signal", "number", "Signal that ended the process"),
    row("stderr_tail", "text", "Last of what the process wrote to stderr"),
    row("trajectory_elapsed_ns", "list of ns", "When the plan or the bound became better"),
    row("trajectory_height", "list of bytes", "Height at these times; null before the first plan"),
    row(
        "trajectory_bound",
        "list of bytes",
        "Bound at these times; of older rows that on plans without hand-overs",
    ),
    row(
        "cell",
        "text",
        "Digest of what makes the cell: content of the workload, planner, version, limits, seed",
    ),
    row("instance", "text", "Digest of the instance"),
    row("plan", "text", "Digest of the plan"),
    row("planner_version", "text", "Digest of the planner's sources"),
    row("started_ns", "ns", "When the cell started, since 1970"),
    row("schema", "number", "Version of the row"),
    row("machine_host", "text", "Fingerprint of the machine: times compare only if it is equal"),
    row("machine_cpu", "text", "CPU model"),
    row("machine_cores", "count", "Cores that the process may use"),
    row("machine_kernel", "text", "Kernel release"),
    row("machine_governor", "text", "Frequency governor"),
    row("machine_turbo", "text", "on, off or unknown"),
    row("machine_load_average_milli", "count", "Load average when the cell started, in thousandths"),
    row("machine_concurrency", "count", "Cells that ran at the same time, this one included"),
    row("machine_git_commit", "text", "Commit of the program"),
    row("machine_git_dirty", "true/false", "Whether the tree had changes that were not committed"),
    row("machine_rustc", "text", "Compiler"),
    row("machine_flags", "text", "Profile and flags of the build"),
    instance("instance", "text", "Digest of the instance"),
    instance("workload", "text", "Key of the first workload that has it"),
    instance("workload_group", "text", "First two parts of the key"),
    instance("buffers", "count", "Buffers"),
    instance(
        "load",
        "bytes",
        "Most bytes live at one step; a buffer that may overwrite another does not count at its first",
    ),
    instance("load_without_in_place", "bytes", "The same, if every buffer counts from its first step"),
    instance("best_bound", "bytes", "Best bound that any run proved for all plans"),
    instance(
        "best_bound_without_in_place",
        "bytes",
        "Best bound that any run proved for plans without a hand-over",
    ),
    instance("best_height", "bytes", "Lowest height of any plan"),
    instance("best_height_without_in_place", "bytes", "Lowest height of a plan without a hand-over"),
    instance("cells", "count", "Cells that name it"),
    instance("rows", "count", "Rows that name it"),
    replay("workload", "text", "Workload key, or what the keys of a sequence share"),
    replay("contender", "text", "Who hands the memory out: plan, profile-guided, glibc, jemalloc, ..."),
    replay("planner", "text", "Who planned, if there is a plan"),
    replay("device", "text", "simulated, host, cuda:0, ..."),
    replay("device_name", "text", "What the device calls itself"),
    replay("play", "text", "What is done with the memory: none, pages, pattern, kernels, operations"),
    replay("threads", "count", "Threads"),
    replay("repetition", "number", "Number of the process, from 0"),
    replay("suite", "text", "Suite that asked for it, or empty"),
    replay("status", "text", "complete, out-of-memory, corrupt, unavailable, failed"),
    replay("reason", "text", "What went wrong, in one line, or empty"),
    replay("requests", "count", "Requests of one propagation, or of the sequence"),
    replay("requested_peak", "bytes", "Most bytes of requests live at once"),
    replay("reserved_peak", "bytes", "Most bytes reserved"),
    replay("used_peak", "bytes", "Most bytes handed out at once, as the contender rounds them"),
    replay("physical_peak", "bytes", "Most bytes by the counters of the process or the device"),
    replay("retained", "bytes", "Bytes that live from before to after, in no other figure"),
    replay("fragmentation", "share", "(reserved_peak - requested_peak) / requested_peak"),
    replay("capacity", "bytes", "Most that might be reserved"),
    replay("propagations", "count", "Propagations that were timed"),
    replay("time_ns", "ns", "Median wall time of one propagation"),
    replay("alloc_median_ps", "count", "Picoseconds for a request, median of the batches"),
    replay("free_median_ps", "count", "Picoseconds for a free, median of the batches"),
    replay("device_allocations", "count", "Calls for memory to the device or the system, warm-up included"),
    replay("search_steps", "count", "Entries of free lists looked at in one propagation"),
    replay("lock_wait_ns", "ns", "Time that threads waited for locks"),
    replay("refusals", "count", "How often the device had no room"),
    replay("missed_unknown", "count", "Requests that were in no plan, of contenders that plan by themselves"),
    replay("missed_larger", "count", "Requests larger than planned"),
    replay("missed_taken", "count", "Requests whose planned place was in use"),
    replay("missed_outliving", "count", "Requests that outlive their propagation and are not planned"),
    replay("missed_no_memory", "count", "Requests of a plan for which the device had no memory"),
    replay("warm_up", "count", "Propagations before the timed ones"),
    replay("is_steady", "true/false", "Whether the reserved bytes had stopped changing by then"),
    replay("cell", "text", "Digest of what makes the row but for the repetition"),
    replay("instance", "text", "Digest of the instance, or of those of a sequence"),
    replay("plan", "text", "Digest of the plan"),
    replay("started_ns", "ns", "When it started, since 1970"),
    replay("machine_host", "text", "Fingerprint of the machine"),
    replay("machine_cpu", "text", "CPU model"),
    schedule("workload", "text", "Workload key: ideal/resnet50/train/b512"),
    schedule("batch", "count", "Images, or sequences, of an iteration"),
    schedule("machine", "text", "Key of the machine"),
    schedule("rates_digest", "text", "Digest of the machine but for its memory; none in older rows"),
    schedule("times", "text", "Where the times of the passes are from: roofline, given; none in older rows"),
    schedule("capacity", "bytes", "Memory that the schedule may take"),
    schedule("scheduler", "text", "Scheduler key"),
    schedule("status", "text", "optimal, feasible, unknown (there is no schedule), timeout, ..."),
    schedule("reason", "text", "What went wrong, or why there is no schedule"),
    schedule("stop", "text", "Why the run stopped: finished, proved, deadline, ..."),
    schedule("iteration_ns", "ns", "Time of an iteration by the best valid schedule"),
    schedule("images_per_second", "per second", "Batch over iteration time"),
    schedule("compute_ns", "ns", "Time of an iteration in which nothing waits"),
    schedule("loss", "share", "1 - compute_ns / iteration_ns: how much slower than if all of it fitted"),
    schedule("bound_ns", "ns", "Time below which no schedule of bound_scope is, as proved"),
    schedule("iteration_gap", "share", "(iteration_ns - bound_ns) / bound_ns"),
    schedule("bound_evidence", "text", "Evidence for `bound_ns`: compute, lp"),
    schedule(
        "bound_scope",
        "text",
        "any; in older rows also classes: the schedules that `bound_ns` is about",
    ),
    schedule("kept", "count", "Feature maps that stay on the device"),
    schedule("swapped", "count", "Feature maps that are copied to the host and back"),
    schedule("recomputed", "count", "Feature maps that are computed again"),
    schedule("copied_out", "bytes", "Bytes that are copied to the host"),
    schedule("recompute_ns", "ns", "Time of functions that are computed again"),
    schedule("live_peak", "bytes", "Most bytes in use at once, parameters included"),
    schedule("best_fit_height", "bytes", "Memory that the offsets of an online best fit need"),
    schedule("height", "bytes", "Memory that the best offsets need"),
    schedule("height_bound", "bytes", "Proven bound on `height`"),
    schedule("height_evidence", "text", "Evidence for `height_bound`: load, search, ..."),
    schedule("fits", "true/false", "Whether the offsets fit the capacity"),
    schedule("planner", "text", "Planner that placed the buffers"),
    schedule("planner_wall_ns", "ns", "Time limit of the planner"),
    schedule("planner_status", "text", "How the planner ended; without an answer the height is best fit's"),
    schedule("planner_reason", "text", "Why it ended so, if it says"),
    schedule("maps", "count", "Feature maps that a backward pass reads"),
    schedule("functions", "count", "Functions of the net"),
    schedule("base", "bytes", "Parameters and workspace: taken throughout"),
    schedule("copy_out", "bytes/s", "Rate of copies to the host"),
    schedule("copy_in", "bytes/s", "Rate of copies from the host"),
    schedule(
        "disturbed_percent",
        "list of percent",
        "By how much operation times are off in these draws, at most",
    ),
    schedule("disturbed_draws", "list of count", "How many draws"),
    schedule("disturbed_median_ns", "list of ns", "Iteration with such times, the median"),
    schedule("disturbed_worst_ns", "list of ns", "Iteration with such times, the slowest"),
    schedule(
        "disturbed_compute_ns",
        "list of ns",
        "Iteration in which nothing waits with such times, the median",
    ),
    schedule("elapsed_ns", "ns", "Time of the run"),
    schedule("cpu_ns", "ns", "CPU time of the process"),
    schedule("peak_rss_bytes", "bytes", "Most resident memory of the process"),
    schedule("work", "count", "Simulated iterations"),
    schedule("trajectory_elapsed_ns", "list of ns", "When the schedule became better"),
    schedule("trajectory_work", "list of count", "Simulated iterations by these times"),
    schedule("trajectory_iteration_ns", "list of ns", "Iteration time at these times"),
    schedule("seed", "number", "Seed of the run's random numbers"),
    schedule("repetition", "number", "From 0"),
    schedule("suite", "text", "Suite that asked for the cell, or empty"),
    schedule("wall_limit_ns", "ns", "Time limit"),
    schedule("memory_limit_bytes", "bytes", "Memory limit"),
    schedule("work_limit", "count", "Work limit, in simulated iterations"),
    schedule("mechanism", "text", "What enforced the limits"),
    schedule("exit_code", "number", "Exit code of the process"),
    schedule("signal", "number", "Signal that ended the process"),
    schedule("stderr_tail", "text", "Last of what the process wrote to stderr"),
    schedule(
        "cell",
        "text",
        "Digest of what makes the cell: problem, scheduler, planner, version, limits, seed",
    ),
    schedule("problem", "text", "Digest of the problem: net, machine, times, capacity"),
    schedule("schedule", "text", "Digest of the schedule"),
    schedule("instance", "text", "Digest of the placement instance of its buffers"),
    schedule("plan", "text", "Digest of the plan of their offsets"),
    schedule("scheduler_version", "text", "Digest of the scheduler's sources"),
    schedule("started_ns", "ns", "When the cell started, since 1970"),
    schedule("schema", "number", "Version of the row"),
    schedule("machine_host", "text", "Fingerprint of the machine that planned"),
    schedule("machine_cpu", "text", "CPU model"),
    schedule("machine_cores", "count", "Cores that the process may use"),
    schedule("machine_kernel", "text", "Kernel release"),
    schedule("machine_governor", "text", "Frequency governor"),
    schedule("machine_turbo", "text", "on, off or unknown"),
    schedule("machine_load_average_milli", "count", "Load average when the cell started, in thousandths"),
    schedule("machine_concurrency", "count", "Cells that ran at the same time, this one included"),
    schedule("machine_git_commit", "text", "Commit of the program"),
    schedule("machine_git_dirty", "true/false", "Whether the tree had changes that were not committed"),
    schedule("machine_rustc", "text", "Compiler"),
    schedule("machine_flags", "text", "Profile and flags of the build"),
];

/// The columns of a table.
pub(super) fn columns_of(table: &str) -> impl Iterator<Item = &'static ColumnDoc> {
    COLUMNS.iter().filter(move |column| column.table == table)
}

/// The unit of a column; columns with the same name have the same unit in all tables.
pub(super) fn unit_of(name: &str) -> &'static str {
    COLUMNS.iter().find(|column| column.name == name).map_or("", |column| column.unit)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_field_of_a_row_is_a_column() {
        let tables = [
            ("rows", crate::files::frame::to_frame(&[])),
            ("schedules", crate::files::frame::schedules_to_frame(&[])),
        ];
        for (table, frame) in tables {
            let frame = frame.expect("an empty table");
            let documented: BTreeSet<&str> = columns_of(table).map(|column| column.name).collect();
            for name in frame.get_column_names() {
                // The view over rows has these columns under the names of the glossary.
                let name = match (table, name.as_str()) {
                    ("rows", "relaxed_load") => "load",
                    ("rows", "load") => "load_without_in_place",
                    (_, name) => name,
                };
                assert!(documented.contains(name), "{table}: {name} is not in COLUMNS");
            }
        }
    }

    #[test]
    fn no_column_is_listed_twice_or_has_two_units() {
        let mut seen = BTreeSet::new();
        for column in COLUMNS {
            assert!(seen.insert((column.table, column.name)), "{column:?}");
            assert_eq!(column.unit, unit_of(column.name), "{column:?}");
        }
    }
}
