//! Where traces and plans come from: workload keys, files, standard input.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::Context;
use planlab_dsa::{Alignment, Plan};
use planlab_workloads::formats::import::{self, Imported, Reader};
use planlab_workloads::formats::{
    Document, InputLimits, PlanFile, check_input, is_file_name, read_bytes, read_document, read_trace,
    read_trace_from, recognise_document, write_trace,
};
use planlab_workloads::{Catalog, FileWorkload, ReadOptions, Trace, WorkloadError, did_you_mean};
use serde::{Deserialize, Serialize};

use crate::cli::Choice;
use crate::shell::exit::{Failure, InFile};

static LIMITS: OnceLock<InputLimits> = OnceLock::new();

/// Sets how much of an input is read; nothing leaves it at its default.
pub(crate) fn set_limit(bytes: Option<u64>) {
    if let Some(bytes) = bytes {
        // Set once for each process, by its command line.
        let _ = LIMITS.set(InputLimits::new(bytes));
    }
}

/// How much of an input is read.
pub(crate) fn input_limits() -> InputLimits {
    LIMITS.get().copied().unwrap_or_default()
}

/// A trace that a child can open again by itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Source {
    pub(crate) origin: Origin,
    /// What people see: the workload's key or the file's name.
    pub(crate) name: String,
    pub(crate) corpus: Option<PathBuf>,
    pub(crate) align: Option<u64>,
    pub(crate) pins: bool,
    pub(crate) part: Option<String>,
    pub(crate) dims: Vec<(String, u64)>,
    /// Whether permissions to overwrite in place count.
    pub(crate) in_place: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Origin {
    Workload,
    File(PathBuf),
    /// A file under the key of its content.
    Keyed(Box<FileWorkload>),
}

impl Source {
    /// The same source under the key that `bench` gives a file, so that rows of both belong together.
    pub(crate) fn under_its_key(mut self, trace: &Trace) -> Self {
        if let Origin::File(_) = self.origin {
            self.name = FileWorkload::part_key(&self.name, self.part.as_deref(), &trace.instance.digest());
        }
        self
    }

    /// What a TRACE argument means: `-`, a file, or a workload's key. Standard input is copied to a file
    /// in `scratch`, so that it can be opened again.
    pub(crate) fn resolve_argument(
        argument: &str,
        reading: &crate::cli::Reading,
        scratch: &Path,
    ) -> Result<Self, Failure> {
        let source = |origin, name: &str| Self {
            origin,
            name: name.to_owned(),
            corpus: reading.corpus.corpus.clone(),
            align: reading.align,
            pins: reading.pins,
            part: reading.parts.part.clone(),
            dims: reading.parts.dims.clone(),
            in_place: reading.in_place != Some(Choice::No),
        };
        if argument == "-" {
            let copy = scratch.join("stdin.csv");
            keep_copy(STDIN, io::stdin(), &copy)?;
            return Ok(source(Origin::File(copy), STDIN));
        }
        let path = Path::new(argument);
        if path.exists() && !path.is_file() && !path.is_dir() {
            // A pipe can be read once, and the child opens its trace again.
            let copy = scratch.join("piped.csv");
            keep_copy(argument, open_file(path, argument)?, &copy)?;
            return Ok(source(Origin::File(copy), argument));
        }
        if path.is_file() || is_file_name(argument) {
            return Ok(source(Origin::File(path.to_owned()), argument));
        }
        if path.is_dir() {
            return Err(Failure::from_usage(format!("{argument}: this is a folder, not a trace")));
        }
        Ok(source(Origin::Workload, argument))
    }

    /// A workload of the catalog, as a suite names it.
    pub(crate) fn from_workload(key: &str, corpus: Option<&Path>) -> Self {
        Self {
            origin: Origin::Workload,
            name: key.to_owned(),
            corpus: corpus.map(Path::to_owned),
            align: None,
            pins: false,
            part: None,
            dims: Vec::new(),
            in_place: true,
        }
    }

    /// Whether it is a file, rather than a workload's key.
    pub(crate) const fn is_file(&self) -> bool {
        !matches!(self.origin, Origin::Workload)
    }

    /// A workload of a catalog, which may be a file.
    pub(crate) fn of_catalog(key: &str, catalog: &Catalog) -> Self {
        let source = Self::from_workload(key, catalog.corpus());
        match catalog.find_file(key) {
            Some(file) => Self { origin: Origin::Keyed(Box::new(file.clone())), ..source },
            None => source,
        }
    }

    pub(crate) fn read_options(&self) -> Result<ReadOptions, Failure> {
        Ok(ReadOptions {
            pins: self.pins,
            limits: input_limits(),
            alignment: parse_alignment(self.align)?,
            part: self.part.clone(),
            dims: self.dims.clone(),
            without_in_place: !self.in_place,
            ..ReadOptions::default()
        })
    }
}

/// What `--align` says.
pub(crate) fn parse_alignment(bytes: Option<u64>) -> Result<Option<Alignment>, Failure> {
    let known =
        |bytes| Alignment::new(bytes).ok_or_else(|| Failure::from_usage("an alignment must be above 0"));
    bytes.map(known).transpose()
}

/// What errors call standard input.
const STDIN: &str = "<stdin>";

/// What errors call an input.
pub(crate) fn input_name(argument: &str) -> &str {
    if argument == "-" { STDIN } else { argument }
}

/// Opens a file, or standard input for `-`.
pub(crate) fn open_reader(argument: &str) -> Result<Box<dyn Read>, Failure> {
    Ok(match argument {
        "-" => Box::new(io::stdin()),
        path => Box::new(open_file(Path::new(path), argument)?),
    })
}

/// Opens a file that errors call `name`.
pub(super) fn open_file(path: &Path, name: &str) -> Result<File, Failure> {
    Ok(File::open(path).with_context(|| InFile(name.to_owned()))?)
}

/// All bytes of a file that is no trace.
pub(crate) fn read_file_bytes(argument: &str) -> Result<Vec<u8>, Failure> {
    Ok(read_bytes(input_name(argument), open_reader(argument)?, input_limits())?)
}

/// The text of a document (JSON, TOML).
pub(crate) fn read_file_document(argument: &str) -> Result<String, Failure> {
    Ok(read_document(input_name(argument), open_reader(argument)?, input_limits())?)
}

/// The text of a document, or what the file holds instead.
pub(crate) fn open_document(argument: &str) -> Result<Document<'static>, Failure> {
    Ok(recognise_document(input_name(argument), open_reader(argument)?, input_limits())?)
}

/// Copies what can be read once to a file, which takes no more than may be read of it.
fn keep_copy(name: &str, input: impl Read, copy: &Path) -> Result<(), Failure> {
    let mut tee = Tee { input, copy: File::create(copy)?, failed: None };
    let checked = check_input(name, &mut tee, input_limits());
    match tee.failed {
        Some(error) => Err(error.into()),
        None => Ok(checked?),
    }
}

/// Copies what is read of an input to a file.
struct Tee<R> {
    input: R,
    copy: File,
    /// Why the copy could not be written.
    failed: Option<io::Error>,
}

impl<R: Read> Read for Tee<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        if let Err(error) = self.copy.write_all(&buffer[..count]) {
            self.failed = Some(error);
            return Err(io::Error::other("the copy cannot be written"));
        }
        Ok(count)
    }
}

/// Opens a trace.
pub(crate) fn open_trace(source: &Source) -> Result<Trace, Failure> {
    let options = source.read_options()?;
    match &source.origin {
        Origin::Workload => {
            if let Some(part) = &source.part {
                return Err(Failure::from_usage(format!(
                    "{} is a single trace without parts, so it has no part `{part}`",
                    source.name
                )));
            }
            let catalog = Catalog::new(source.corpus.clone()).with_limits(input_limits());
            let trace = catalog.load(&source.name).map_err(neither_error)?;
            if source.align.is_none() && source.in_place {
                return Ok(trace);
            }
            // The catalog reads its own files: go through the text to round sizes as a file would.
            Ok(read_trace(&source.name, &write_trace(&trace), &options)?)
        }
        Origin::File(path) => {
            let file = open_file(path, &source.name)?;
            Ok(read_trace_from(&source.name, file, &options)?)
        }
        Origin::Keyed(file) => Ok(file.read_trace(input_limits())?),
    }
}

/// Refuses a trace of several arenas for `what`, which has one memory for all buffers.
pub(crate) fn refuse_several_arenas(name: &str, trace: &Trace, what: &str) -> Result<(), Failure> {
    match trace.instance.arenas() {
        [_] => Ok(()),
        arenas => Err(Failure::from_usage(format!(
            "{name} has {} arenas, and {what} has one memory for all buffers",
            arenas.len()
        ))),
    }
}

/// The error of an argument that is no file either.
fn neither_error(error: WorkloadError) -> Failure {
    match &error {
        WorkloadError::Unknown { key, nearest } => Failure::from_usage(format!(
            "there is no file and no workload `{key}`{}; `planlab list workloads` lists them",
            did_you_mean(nearest)
        )),
        _ => error.into(),
    }
}

/// Opens a trace with what a framework says beside it: all parts of a file of another tool, or those that are asked for.
pub(crate) fn open_parts(source: &Source) -> Result<Imported, Failure> {
    match &source.origin {
        Origin::Workload | Origin::Keyed(_) => Ok(Imported::from_trace("all", open_trace(source)?)),
        Origin::File(path) => {
            let file = open_file(path, &source.name)?;
            Ok(import::read(&source.name, file, None, &source.read_options()?)?)
        }
    }
}

/// Reads a file that is asked for by itself, with options of its own; without a format it is known by its content.
pub(crate) fn import_parts(
    argument: &str,
    format: Option<&Reader>,
    options: ReadOptions,
) -> Result<Imported, Failure> {
    Ok(import::read(
        input_name(argument),
        open_reader(argument)?,
        format,
        &ReadOptions { limits: input_limits(), ..options },
    )?)
}

/// Reads the rows of a plan.
pub(crate) fn plan_file(argument: &str) -> Result<PlanFile, Failure> {
    Ok(PlanFile::read_rows(input_name(argument), open_reader(argument)?, input_limits())?)
}

/// Reads a plan of a trace.
pub(crate) fn read_plan(argument: &str, trace: &Trace) -> Result<Plan, Failure> {
    Ok(plan_file(argument)?.plan_for(trace)?)
}
