//! Tables, plots and pages, made from records alone.
//!
//! A [`Report`] is one folder that opens from disk, without a server or network. The same records give the same bytes
//! every time. The pictures of a single instance or plan ([`placement_map`], [`load_curve_plot`], [`ShowPage`]) need no
//! records.

mod data;
mod error;
mod figures;
mod pages;
mod report;
mod site;

pub use data::instances::own::{Held, OwnPlacement};
pub use data::nets::parts::{PoolTotal, PoolTotals};
pub use data::planners::ratios::Named;
pub use data::schedules::track::{PlacedBuffer, ScheduleTrack, StreamEvent};
pub use error::ReportError;
pub use figures::{Drawing, MapOptions, load_curve_plot, placement_map};
pub use pages::offload::show::schedule_page;
pub use pages::overview::show::ShowPage;
pub use pages::planners::ratios::ratio_files;
pub use pages::planners::scale::scale_files;
pub use planlab_results::format;
pub use report::{Report, Written};
pub use site::parts::viewer::CallStacks;
pub use site::{KnownNets, KnownPlanner, ReportOptions};
