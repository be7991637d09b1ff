//! A trace, and how it is put together from what a file says.

pub(crate) mod directive;
pub(crate) mod draft;
pub(crate) mod ids;
pub(crate) mod options;
pub(crate) mod pauses;

use planlab_dsa::{Instance, Labels};

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

    /// The life of a buffer in the steps of the file.
    pub(crate) fn life(&self, buffer: usize) -> (u64, u64) {
        let live = self.instance.buffers()[buffer].live;
        let ranked = (u64::from(live.start().get()), u64::from(live.end().get()));
        self.labels.buffers[buffer].original_steps.unwrap_or(ranked)
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
        directive::nanoseconds_per_step(self.labels.meta_value(directive::UNIT_KEY)?)
    }

    /// The optimal height in bytes, where the workload was built around one (metadata `optimum`).
    #[must_use]
    pub fn known_optimum(&self) -> Option<u64> {
        self.labels.meta_value("optimum")?.parse().ok()
    }
}
