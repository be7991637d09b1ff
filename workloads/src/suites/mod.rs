//! Suites: which planners run on which workloads, and which heights are expected.
//!
//! A suite is a TOML file, one of `suites/` (embedded) or the user's own:
//!
//! ```toml
//! name = "mine"
//! analysis = "What this suite is for, and what its results mean."
//! include = ["smoke"]                  # groups and expectations of embedded suites, optional
//!
//! [[group]]
//! workloads = ["torch/*/train/*"]      # keys, or patterns with `*` and `?`; `*/process` selects processes
//! planners = ["best-fit", "first-fit/*"]
//! except = ["first-fit/input"]         # optional
//! allocators = ["cupy2rc1-pool"]       # online allocators on the same workloads; optional, also without planners
//! time_limit = 10.0                    # seconds per cell, optional; or several: time_limits = [10.0, 60.0]
//! capacities = [1048576, 1100800]      # bytes, one cell each: any plan that fits counts; optional
//! threads = [1, 2]                     # for planners that use several, optional
//! repetitions = 5                      # optional; a cell without an answer is not repeated
//! max_buffers = 20000                  # leaves out larger workloads, optional
//! quick = true                         # no searches, no planners beyond their practical size, optional
//!
//! [[group]]
//! files = ["nets/*.csv", "my.onnx"]    # traces in files of any format, relative to this file; also beside `workloads`
//! dims = { batch = 8 }                 # values of dynamic dimensions of these files, optional
//! part = "cuda:0"                      # the trace to take from files that contain several, optional
//! align = 512                          # bytes: rounds sizes up and aligns offsets, optional
//! planners = ["best-fit", "portfolio"]
//!
//! [[schedule]]                         # nets in training that may not fit, optional; also without groups
//! nets = ["resnet50", "vgg*"]          # of `planlab list models`
//! batches = [256, 512]
//! machines = ["x86-pcie3"]             # of `planlab list machines`
//! schedulers = ["*"]
//! except = ["local-search"]            # optional
//! sizes = [224, 320]                   # height and width of input images, instead of the net's, optional
//! links = [16e9]                       # bytes per second, instead of the machine's, optional
//! capacities = [14_950_000_000]        # bytes, instead of the machine's, optional
//! peak_shares = [0.9, 0.5]             # shares of what each net needs if it keeps everything, optional
//! time_limit = 60.0                    # seconds per scheduler, optional
//! work_limit = 10000                   # simulated iterations per scheduler, optional
//! planner = "portfolio"                # the planner for the offsets, optional
//! planner_time_limit = 10.0            # seconds for that planner, optional
//! repetitions = 3                      # optional
//!
//! [[expect]]                           # an expected height, checked after the run
//! workload = "chainer/alexnet/infer/b1"
//! planner = "best-fit"
//! height = 10169344
//!
//! [limits]                             # optional
//! mip_max_buffers = 300                # no `mip/*` on larger workloads
//! samples = 5                          # timed runs per cell
//! single_above = 1.0                   # only one sample if a run takes more seconds than this
//! alone = true                         # one process per cell; otherwise quick planners share one on small workloads
//! ```
//!
//! Several groups may select the same cell (planner, workload, capacity and, if a group lists them, threads and time
//! limit); it takes the limits of the first. Planners `external/*` that are not provided are left out with a notice.
//! Every other name has to match something, and every `[[expect]]` a cell of the suite.

mod files;
mod group;
mod schedule_group;
mod schedules;
mod select;
mod suite;
#[cfg(test)]
mod tests;

pub use group::Group;
pub use schedule_group::ScheduleGroup;
pub use schedules::SchedulePick;
pub use select::{Baseline, Pick, Selection};
pub use suite::{Expectation, Limits, Suite, SuiteError, builtin};
