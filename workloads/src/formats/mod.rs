//! Trace and plan files.
//!
//! One reader understands the lab's trace CSV in both of its shapes, `MiniMalloc`'s CSV and the
//! dialects of idealloc; the header says which it is. A file that begins with `{` is a graph (JSON Lines) and is read as
//! the trace that it lowers to; files of other tools are known by their content as well (see [`import`]). Bytes that begin like a zstd frame or
//! a gzip file are decompressed first, whatever the file is called; a name that ends in `.zst` or `.gz` promises such bytes. Inputs are read
//! line by line, within [`InputLimits`].
//!
//! ```
//! use planlab_workloads::formats::{read_trace, ReadOptions};
//!
//! let trace = read_trace("two.csv", b"id,lower,upper,size\na,0,2,64\nb,1,3,32\n", &ReadOptions::default())?;
//! assert_eq!(trace.instance.load().bytes.get(), 96);
//! let error = read_trace("bad.csv", b"id,lower,upper\na,0,2\n", &ReadOptions::default()).unwrap_err();
//! assert_eq!(error.to_string(), "bad.csv:1: missing column `size`; the header has `id`, `lower`, `upper`");
//! # Ok::<(), planlab_workloads::FormatError>(())
//! ```

mod directive;
mod draft;
mod error;
mod events;
mod export;
mod flatbuffer;
mod graph;
mod header;
pub mod import;
mod lab;
mod limits;
mod names;
mod plan;
mod save;
mod text;
mod unique;
mod unpacked;
mod write;

use planlab_dsa::{Alignment, Instance, Labels};

pub use error::ExportError;
pub use export::{
    IntoModelError, with_offline_plan, write_c_header, write_offline_plan, write_perfetto, write_plan_json,
    write_requests,
};
pub use graph::read_graph_from;
pub use lab::{read_trace, read_trace_from};
pub use limits::InputLimits;
pub use names::is_file_name;
pub use plan::{PlanFile, Unmatched};
pub use planlab_files::FormatError;
pub use save::{compress, save, write};
pub use unpacked::{check_input, read_bytes, read_document};
pub use write::{write_idealloc, write_minimalloc, write_plan, write_trace};

/// A problem with what its file says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trace {
    /// The placement problem.
    pub instance: Instance,
    /// Names, categories and metadata.
    pub labels: Labels,
    /// What the reader left out or assumed, a sentence each.
    pub notices: Vec<String>,
}

impl Trace {
    /// An instance with its labels.
    ///
    /// # Panics
    ///
    /// If there is not exactly one label for each buffer.
    #[must_use]
    pub fn new(instance: Instance, labels: Labels) -> Self {
        assert_eq!(instance.len(), labels.buffers.len(), "one label for each buffer");
        Self { instance, labels, notices: Vec::new() }
    }

    /// Sets the metadata `workload` to a key.
    pub(crate) fn name_workload(&mut self, key: &str) {
        self.labels.metadata.retain(|(name, _)| name != "workload");
        self.labels.metadata.insert(0, ("workload".to_owned(), key.to_owned()));
    }

    /// Nanoseconds of a step as the file has it, where the file says that steps are times (`# step-unit: us`).
    ///
    /// ```
    /// use planlab_workloads::formats::{read_trace, ReadOptions};
    ///
    /// let text = "# step-unit: us\nid,lower,upper,size\na,0,7,64\n";
    /// let trace = read_trace("t.csv", text.as_bytes(), &ReadOptions::default())?;
    /// assert_eq!(trace.step_nanoseconds(), Some(1000));
    /// # Ok::<(), planlab_workloads::FormatError>(())
    /// ```
    #[must_use]
    pub fn step_nanoseconds(&self) -> Option<u64> {
        directive::nanoseconds(self.labels.meta(directive::UNIT_KEY)?)
    }

    /// The optimal height in bytes, where the workload was built around one (metadata `optimum`).
    #[must_use]
    pub fn optimum(&self) -> Option<u64> {
        self.labels.meta("optimum")?.parse().ok()
    }
}

/// Which ends of `lower,upper` belong to a live range. A column `end` is always inclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// `[lower, upper)`: live at `lower`, no longer at `upper`.
    #[default]
    HalfOpen,
    /// `[lower, upper]`: live at both.
    Inclusive,
    /// `(lower, upper)`: live at neither.
    Open,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 3] = [Self::HalfOpen, Self::Inclusive, Self::Open];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HalfOpen => "half-open",
            Self::Inclusive => "inclusive",
            Self::Open => "open",
        }
    }

    /// The half-open `[lower, upper)` of a range in this dialect; `None` past 2^64 - 1.
    const fn half_open(self, lower: u64, upper: u64) -> Option<(u64, u64)> {
        match self {
            Self::HalfOpen => Some((lower, upper)),
            Self::Inclusive => match upper.checked_add(1) {
                Some(upper) => Some((lower, upper)),
                None => None,
            },
            Self::Open => match lower.checked_add(1) {
                Some(lower) => Some((lower, upper)),
                None => None,
            },
        }
    }
}

impl std::str::FromStr for Dialect {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|dialect| dialect.name() == name);
        known.ok_or_else(|| format!("unknown dialect `{name}`; there are half-open, inclusive, open"))
    }
}

/// How a trace is read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// What `upper` means. Default: half-open.
    pub dialect: Dialect,
    /// Take a plan as a trace, its offsets as pins. Default: refuse it.
    pub pins: bool,
    /// Rank the steps even if they fit 32 bits. Default: only if they do not fit.
    pub rank_steps: bool,
    /// Sizes are rounded up to it and offsets are multiples of it, whatever the file's metadata say.
    /// Default: as the file says.
    pub alignment: Option<Alignment>,
    /// How much is read. Default: what any trace needs.
    pub limits: InputLimits,
    /// The trace to take of a file that holds several. Default: the only one.
    pub part: Option<String>,
    /// Values of dynamic dimensions, by name. Default: none.
    pub dims: Vec<(String, u64)>,
    /// Leave out the permissions to overwrite a buffer in place. Default: as the file says.
    pub without_in_place: bool,
}
