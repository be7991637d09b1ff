//! Traces: read from files, or workloads by their keys.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use numpy::PyArray1;
use planlab_dsa::{Alignment, ArenaId, Buffer, Label};
use planlab_workloads::formats::{self, read_trace, read_trace_from, save_file, write_trace};
use planlab_workloads::{Catalog, Dialect, ReadOptions, Trace, WorkloadError, did_you_mean};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::planning::{Limits, Told, bad, plan};

/// A placement problem with what its file says about it.
#[pyclass(frozen, name = "NativeTrace", module = "planlab._native")]
pub(crate) struct NativeTrace {
    trace: Trace,
}

impl NativeTrace {
    fn buffers<'py, T: numpy::Element>(
        &self,
        py: Python<'py>,
        of: impl Fn(&Buffer) -> T,
    ) -> Bound<'py, PyArray1<T>> {
        PyArray1::from_vec(py, self.trace.instance.buffers().iter().map(of).collect())
    }

    fn labels<T>(&self, of: impl Fn(&Label) -> T) -> Vec<T> {
        self.trace.labels.buffers.iter().map(of).collect()
    }

    /// Both ends of every live range: as the file had them, if these fit, else as the planner sees them.
    fn steps(&self) -> Vec<(i64, i64)> {
        let original = |label: &Label| {
            let (lower, upper) = label.original_steps?;
            Some((i64::try_from(lower).ok()?, i64::try_from(upper).ok()?))
        };
        let all: Option<Vec<(i64, i64)>> = self.trace.labels.buffers.iter().map(original).collect();
        let seen = |buffer: &Buffer| (buffer.live.start().get().into(), buffer.live.end().get().into());
        all.unwrap_or_else(|| self.trace.instance.buffers().iter().map(seen).collect())
    }
}

/// The arguments of Python that say how a file is read.
#[derive(FromPyObject)]
struct FileOptions {
    alignment: Option<u64>,
    pins: bool,
    dialect: String,
    part: Option<String>,
    dims: Vec<(String, u64)>,
    in_place: bool,
}

impl FileOptions {
    fn checked(self) -> PyResult<ReadOptions> {
        let dialect: Dialect = self.dialect.parse().map_err(bad)?;
        let alignment = match self.alignment {
            Some(bytes) => Some(Alignment::new(bytes).ok_or_else(|| bad("`alignment` is 0".to_owned()))?),
            None => None,
        };
        Ok(ReadOptions {
            dialect,
            alignment,
            pins: self.pins,
            without_in_place: !self.in_place,
            part: self.part,
            dims: self.dims,
            ..ReadOptions::default()
        })
    }
}

/// The error that Python's own `open` raises.
pub(crate) fn of_the_system(name: &str, error: &io::Error) -> PyErr {
    let Some(code) = error.raw_os_error() else { return PyOSError::new_err(error.to_string()) };
    let words = error.to_string();
    let words = words.strip_suffix(&format!(" (os error {code})")).unwrap_or(&words);
    PyOSError::new_err((code, words.to_owned(), name.to_owned()))
}

/// Whether a name can only be that of a file.
#[pyfunction]
pub(crate) fn is_file_name(name: &str) -> bool {
    formats::is_file_name(name)
}

/// Writes a file whole or not at all, compressed if its name ends in `.zst` or `.gz`.
#[pyfunction]
pub(crate) fn write_file(py: Python<'_>, path: PathBuf, content: &[u8]) -> PyResult<()> {
    let name = path.display().to_string();
    py.detach(|| save_file(&path, content)).map_err(|error| of_the_system(&name, &error.into_source()))
}

#[pymethods]
impl NativeTrace {
    /// Reads a file; `name` is what errors call it.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf, name: &str, options: FileOptions) -> PyResult<Self> {
        let options = options.checked()?;
        let file = File::open(path).map_err(|error| of_the_system(name, &error))?;
        let read = py.detach(|| read_trace_from(name, file, &options));
        Ok(Self { trace: read.map_err(|error| bad(error.to_string()))? })
    }

    /// Reads the content of a file; `name` is what errors call it.
    #[staticmethod]
    fn parse(py: Python<'_>, name: &str, content: &[u8], options: FileOptions) -> PyResult<Self> {
        let options = options.checked()?;
        let read = py.detach(|| read_trace(name, content, &options));
        Ok(Self { trace: read.map_err(|error| bad(error.to_string()))? })
    }

    /// A workload by its key.
    #[staticmethod]
    fn workload(py: Python<'_>, key: &str, corpus: Option<PathBuf>) -> PyResult<Self> {
        let loaded = py.detach(|| Catalog::new(corpus).load(key));
        let said = |error| match error {
            WorkloadError::Unknown { key, nearest } => {
                format!("there is no file and no workload `{key}`{}", did_you_mean(&nearest))
            }
            error => error.to_string(),
        };
        Ok(Self { trace: loaded.map_err(|error| bad(said(error)))? })
    }

    fn __len__(&self) -> usize {
        self.trace.instance.len()
    }

    fn lower<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_vec(py, self.steps().into_iter().map(|(lower, _)| lower).collect())
    }

    fn upper<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_vec(py, self.steps().into_iter().map(|(_, upper)| upper).collect())
    }

    fn size<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        self.buffers(py, |buffer| buffer.size.get())
    }

    fn alignment<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        self.buffers(py, |buffer| buffer.align.get())
    }

    /// -1 where a buffer has no pin; a pin past 2^63 - 1 is left out too.
    fn pins<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.buffers(py, |buffer| buffer.pin.and_then(|pin| i64::try_from(pin.get()).ok()).unwrap_or(-1))
    }

    fn arena<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        self.buffers(py, |buffer| u32::from(buffer.arena.get()))
    }

    fn arena_names(&self) -> Vec<String> {
        let numbers = (0..).take(self.trace.instance.arenas().len());
        numbers.map(|number| self.trace.instance.arena_name(ArenaId::new(number)).into_owned()).collect()
    }

    fn ids(&self) -> Vec<String> {
        self.labels(|label| label.name.clone())
    }

    fn categories(&self) -> Vec<Option<String>> {
        self.labels(|label| label.category.clone())
    }

    fn operations(&self) -> Vec<Option<String>> {
        self.labels(|label| label.op.clone())
    }

    fn metadata(&self) -> Vec<(String, String)> {
        self.trace.labels.metadata.clone()
    }

    fn notices(&self) -> Vec<String> {
        self.trace.notices.clone()
    }

    fn load(&self) -> u64 {
        self.trace.instance.load().bytes.get()
    }

    /// The number of permissions to overwrite a buffer in place.
    fn permissions(&self) -> usize {
        self.trace.instance.in_place().len()
    }

    /// Its CSV, which keeps all that planlab knows of it.
    fn csv<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| write_trace(&self.trace)))
    }

    fn plan<'py>(&self, py: Python<'py>, limits: Limits) -> PyResult<Told<'py>> {
        plan(py, &self.trace.instance, limits.asked()?)
    }
}
