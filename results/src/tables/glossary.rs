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

/// Declares columns by table: name, unit and meaning.
macro_rules! documented {
    ($($table:ident { $($name:ident $unit:literal $meaning:literal)* })*) => {
        &[$($(ColumnDoc {
            table: stringify!($table),
            name: stringify!($name),
            unit: $unit,
            meaning: $meaning,
        },)*)*]
    };
}

/// All columns, by table. Integers are signed, so that differences may be negative; a value past 2^63 - 1 is null.
pub const COLUMNS: &[ColumnDoc] = documented! {
    rows {
        workload "text" "Workload key: chainer/alexnet/train/b32"
        workload_group "text" "First two parts of the key: chainer/alexnet"
        planner "text" "Planner key"
        parameters "JSON" "Parameters of the planner"
        threads "count" "Threads that the planner may use"
        seed "number" "Seed of the run's random numbers"
        repetition "number" "From 0"
        suite "text" "Suite that asked for the cell, or empty"
        lane "text" "timing: ran alone; quality: may have run beside other cells, so its times are not ranked"
        status "text" "optimal, feasible, infeasible, unknown, unsupported, timeout, ..."
        is_answer "true/false" "Whether there is a plan, or a proof that no plan exists"
        is_failure "true/false" "Whether the planner crashed, was killed, or gave a false answer"
        buffers "count" "Buffers of the instance"
        height "bytes" "Height of the best verified plan"
        load "bytes" "Most bytes live at one step; a buffer that may overwrite another does not count at its first"
        load_without_in_place "bytes" "The same, if every buffer counts from its first step"
        bound "bytes" "Best bound on any plan that this run proved"
        best_bound "bytes" "Best bound on any plan that any run proved"
        bound_evidence "text" "Evidence for `bound`: load, search, mip, ..."
        bound_scope "text" "any; no-hand-over in rows of older versions whose instance permits no hand-over"
        bound_without_in_place "bytes" "Best bound on plans without hand-overs, if the instance permits some and the planner uses none"
        gap "share" "(height - best_bound) / best_bound; null in cells that were asked for a capacity"
        fragmentation "share" "(height - load) / load"
        hand_overs "count" "Buffers that take their memory over from an input"
        time_ns "ns" "Median planning time (the lower of two middles)"
        samples_ns "list of ns" "Planning time of each sample"
        reported_ns "ns" "Time that an external planner itself says it took"
        orders_run "count" "Random legal orders of the graph in which the plan was run"
        orders_failed "count" "Those in which two live buffers overlapped"
        order_bound "bytes" "Least memory of any legal order of the graph, as proved"
        cpu_ns "ns" "CPU time of the process"
        work "count" "Work done, in the planner's units"
        peak_rss_bytes "bytes" "Most resident memory of the process"
        wall_limit_ns "ns" "Time limit"
        memory_limit_bytes "bytes" "Memory limit"
        work_limit "count" "Work limit, in the planner's units"
        target_bytes "bytes" "Capacity that was asked for; null: the lowest height"
        mechanism "text" "What enforced the limits"
        stop "text" "Why the run stopped: finished, proved, deadline, ..."
        reason "text" "What went wrong, in one line, or empty"
        exit_code "number" "Exit code of the process"
        signal "number" "Signal that ended the process"
        stderr_tail "text" "Last of what the process wrote to stderr"
        trajectory_elapsed_ns "list of ns" "When the plan or the bound became better"
        trajectory_height "list of bytes" "Height at these times; null before the first plan"
        trajectory_bound "list of bytes" "Bound at these times; of older rows that on plans without hand-overs"
        cell "text" "Digest of what makes the cell: content of the workload, planner, version, limits, seed"
        instance "text" "Digest of the instance"
        plan "text" "Digest of the plan"
        planner_version "text" "Digest of the planner's sources"
        started_ns "ns" "When the cell started, since 1970"
        schema "number" "Version of the row"
        machine_host "text" "Fingerprint of the machine: times compare only if it is equal"
        machine_cpu "text" "CPU model"
        machine_cores "count" "Cores that the process may use"
        machine_kernel "text" "Kernel release"
        machine_governor "text" "Frequency governor"
        machine_turbo "text" "on, off or unknown"
        machine_load_average_milli "count" "Load average when the cell started, in thousandths"
        machine_concurrency "count" "Cells that ran at the same time, this one included"
        machine_git_commit "text" "Commit of the program"
        machine_git_dirty "true/false" "Whether the tree had changes that were not committed"
        machine_rustc "text" "Compiler"
        machine_flags "text" "Profile and flags of the build"
    }
    instances {
        instance "text" "Digest of the instance"
        workload "text" "Key of the first workload that has it"
        workload_group "text" "First two parts of the key"
        buffers "count" "Buffers"
        load "bytes" "Most bytes live at one step; a buffer that may overwrite another does not count at its first"
        load_without_in_place "bytes" "The same, if every buffer counts from its first step"
        best_bound "bytes" "Best bound that any run proved for all plans"
        best_bound_without_in_place "bytes" "Best bound that any run proved for plans without a hand-over"
        best_height "bytes" "Lowest height of any plan"
        best_height_without_in_place "bytes" "Lowest height of a plan without a hand-over"
        cells "count" "Cells that name it"
        rows "count" "Rows that name it"
    }
    replays {
        workload "text" "Workload key, or what the keys of a sequence share"
        contender "text" "Who hands the memory out: plan, profile-guided, glibc, jemalloc, ..."
        planner "text" "Who planned, if there is a plan"
        device "text" "simulated, host, cuda:0, ..."
        device_name "text" "What the device calls itself"
        play "text" "What is done with the memory: none, pages, pattern, kernels, operations"
        threads "count" "Threads"
        repetition "number" "Number of the process, from 0"
        suite "text" "Suite that asked for it, or empty"
        status "text" "complete, out-of-memory, corrupt, unavailable, failed"
        reason "text" "What went wrong, in one line, or empty"
        requests "count" "Requests of one propagation, or of the sequence"
        requested_peak "bytes" "Most bytes of requests live at once"
        reserved_peak "bytes" "Most bytes reserved"
        used_peak "bytes" "Most bytes handed out at once, as the contender rounds them"
        physical_peak "bytes" "Most bytes by the counters of the process or the device"
        retained "bytes" "Bytes that live from before to after, in no other figure"
        fragmentation "share" "(reserved_peak - requested_peak) / requested_peak"
        capacity "bytes" "Most that might be reserved"
        propagations "count" "Propagations that were timed"
        time_ns "ns" "Median wall time of one propagation"
        alloc_median_ps "count" "Picoseconds for a request, median of the batches"
        free_median_ps "count" "Picoseconds for a free, median of the batches"
        device_allocations "count" "Calls for memory to the device or the system, warm-up included"
        search_steps "count" "Entries of free lists looked at in one propagation"
        lock_wait_ns "ns" "Time that threads waited for locks"
        refusals "count" "How often the device had no room"
        missed_unknown "count" "Requests that were in no plan, of contenders that plan by themselves"
        missed_larger "count" "Requests larger than planned"
        missed_taken "count" "Requests whose planned place was in use"
        missed_outliving "count" "Requests that outlive their propagation and are not planned"
        missed_no_memory "count" "Requests of a plan for which the device had no memory"
        warm_up "count" "Propagations before the timed ones"
        is_steady "true/false" "Whether the reserved bytes had stopped changing by then"
        cell "text" "Digest of what makes the row but for the repetition"
        instance "text" "Digest of the instance, or of those of a sequence"
        plan "text" "Digest of the plan"
        started_ns "ns" "When it started, since 1970"
        machine_host "text" "Fingerprint of the machine"
        machine_cpu "text" "CPU model"
    }
    schedules {
        workload "text" "Workload key: ideal/resnet50/train/b512"
        batch "count" "Images, or sequences, of an iteration"
        machine "text" "Key of the machine"
        rates_digest "text" "Digest of the machine but for its memory; none in older rows"
        times "text" "Where the times of the passes are from: roofline, given; none in older rows"
        capacity "bytes" "Memory that the schedule may take"
        in_core_bytes "bytes" "Memory if every feature map is kept; none in older rows"
        least_memory "bytes" "Proven bound on the memory of every schedule; none in older rows"
        least_memory_evidence "text" "Evidence for `least_memory`: compute, search"
        scheduler "text" "Scheduler key"
        threads "count" "Threads that the scheduler may use; none in older rows"
        status "text" "optimal, feasible, infeasible (no schedule fits, as proved), unknown, timeout, ..."
        reason "text" "What went wrong, or why there is no schedule"
        stop "text" "Why the run stopped: finished, proved, deadline, ..."
        iteration_ns "ns" "Time of an iteration by the best valid schedule"
        images_per_second "per second" "Batch over iteration time"
        compute_ns "ns" "Time of an iteration in which nothing waits"
        loss "share" "1 - compute_ns / iteration_ns: how much slower than if all of it fitted"
        bound_ns "ns" "Time below which no schedule of bound_scope is, as proved"
        iteration_gap "share" "(iteration_ns - bound_ns) / bound_ns"
        bound_evidence "text" "Evidence for `bound_ns`: compute, lp, search"
        bound_scope "text" "any; in older rows also classes: the schedules that `bound_ns` is about"
        kept "count" "Feature maps that stay on the device"
        swapped "count" "Feature maps that are copied to the host and back"
        recomputed "count" "Feature maps that are computed again"
        copied_out "bytes" "Bytes that are copied to the host"
        recompute_ns "ns" "Time of functions that are computed again"
        live_peak "bytes" "Most bytes in use at once, parameters included"
        best_fit_height "bytes" "Memory that the offsets of an online best fit need"
        height "bytes" "Memory that the best offsets need"
        height_bound "bytes" "Proven bound on `height`"
        height_evidence "text" "Evidence for `height_bound`: load, search, ..."
        fits "true/false" "Whether the offsets fit the capacity"
        planner "text" "Planner that placed the buffers"
        planner_wall_ns "ns" "Time limit of the planner"
        planner_status "text" "How the planner ended; without an answer the height is best fit's"
        planner_reason "text" "Why it ended so, if it says"
        maps "count" "Feature maps that a backward pass reads"
        functions "count" "Functions of the net"
        base "bytes" "Parameters and workspace: taken throughout"
        copy_out "bytes/s" "Rate of copies to the host"
        copy_in "bytes/s" "Rate of copies from the host"
        disturbed_percent "list of percent" "By how much operation times are off in these draws, at most"
        disturbed_draws "list of count" "How many draws"
        disturbed_median_ns "list of ns" "Iteration with such times, the median"
        disturbed_worst_ns "list of ns" "Iteration with such times, the slowest"
        disturbed_compute_ns "list of ns" "Iteration in which nothing waits with such times, the median"
        elapsed_ns "ns" "Time of the run"
        cpu_ns "ns" "CPU time of the process"
        peak_rss_bytes "bytes" "Most resident memory of the process"
        work "count" "Simulated iterations"
        trajectory_elapsed_ns "list of ns" "When the schedule became better"
        trajectory_work "list of count" "Simulated iterations by these times"
        trajectory_iteration_ns "list of ns" "Iteration time at these times"
        seed "number" "Seed of the run's random numbers"
        repetition "number" "From 0"
        suite "text" "Suite that asked for the cell, or empty"
        wall_limit_ns "ns" "Time limit"
        memory_limit_bytes "bytes" "Memory limit"
        work_limit "count" "Work limit, in simulated iterations"
        mechanism "text" "What enforced the limits"
        exit_code "number" "Exit code of the process"
        signal "number" "Signal that ended the process"
        stderr_tail "text" "Last of what the process wrote to stderr"
        cell "text" "Digest of what makes the cell: problem, scheduler, planner, version, limits, seed"
        problem "text" "Digest of the problem: net, machine, times, capacity"
        schedule "text" "Digest of the schedule"
        instance "text" "Digest of the placement instance of its buffers"
        plan "text" "Digest of the plan of their offsets"
        scheduler_version "text" "Digest of the scheduler's sources"
        started_ns "ns" "When the cell started, since 1970"
        schema "number" "Version of the row"
        machine_host "text" "Fingerprint of the machine that planned"
        machine_cpu "text" "CPU model"
        machine_cores "count" "Cores that the process may use"
        machine_kernel "text" "Kernel release"
        machine_governor "text" "Frequency governor"
        machine_turbo "text" "on, off or unknown"
        machine_load_average_milli "count" "Load average when the cell started, in thousandths"
        machine_concurrency "count" "Cells that ran at the same time, this one included"
        machine_git_commit "text" "Commit of the program"
        machine_git_dirty "true/false" "Whether the tree had changes that were not committed"
        machine_rustc "text" "Compiler"
        machine_flags "text" "Profile and flags of the build"
    }
};

pub(super) fn columns_of(table: &str) -> impl Iterator<Item = &'static ColumnDoc> {
    COLUMNS.iter().filter(move |column| column.table == table)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn every_field_of_a_row_is_a_column() {
        use crate::files::frame::column_names;
        use crate::rows::{Record, ScheduleRow};

        for (table, names) in
            [("rows", column_names::<Record>()), ("schedules", column_names::<ScheduleRow>())]
        {
            let documented: BTreeSet<&str> = columns_of(table).map(|column| column.name).collect();
            for name in names {
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
        let (mut seen, mut units) = (BTreeSet::new(), BTreeMap::new());
        for column in COLUMNS {
            assert!(seen.insert((column.table, column.name)), "{column:?}");
            assert_eq!(column.unit, *units.entry(column.name).or_insert(column.unit), "{column:?}");
        }
    }
}
