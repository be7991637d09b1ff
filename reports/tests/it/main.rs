//! Tests of reports, as files.

mod budgets;
mod files;
#[path = "../../../results/tests/it/common/fixtures.rs"]
mod fixtures;
mod frameworks;
mod offload;
mod offload_cases;
mod offload_fronts;
mod replays;
mod report;
