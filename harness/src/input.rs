//! Where traces and plans come from: workload keys, files, standard input.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use planlab_dsa::{Alignment, Plan};
use planlab_workloads::formats::{read_plan, read_trace, write_trace};
use planlab_workloads::{Catalog, ReadOptions, Trace};
use serde::{Deserialize, Serialize};

use crate::exit::Failure;

/// A trace that a child can open again by itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Source {
    pub(crate) origin: Origin,
    /// What people see: the workload's key or the file's name.
    pub(crate) name: String,
    pub(crate) corpus: Option<PathBuf>,
    pub(crate) align: Option<u64>,
    pub(crate) pins: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Origin {
    Workload,
    File(PathBuf),
}

impl Source {
    /// What a TRACE argument means: `-`, a file, or a workload's key. Standard input is copied to a file
    /// in `scratch`, so that it can be opened again.
    pub(crate) fn resolve(
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
        };
        if argument == "-" {
            let copy = scratch.join("stdin.csv");
            fs::write(&copy, stdin()?)?;
            return Ok(source(Origin::File(copy), "<stdin>"));
        }
        let path = Path::new(argument);
        if path.exists() && !path.is_file() && !path.is_dir() {
            // A pipe can be read once, and the child opens its trace again.
            let copy = scratch.join("piped.csv");
            fs::write(&copy, fs::read(path).with_context(|| argument.to_owned())?)?;
            return Ok(source(Origin::File(copy), argument));
        }
        if path.is_file() || is_file_name(argument) {
            return Ok(source(Origin::File(path.to_owned()), argument));
        }
        if path.is_dir() {
            return Err(Failure::usage(format!("{argument}: a folder is no trace")));
        }
        Ok(source(Origin::Workload, argument))
    }

    /// A workload of the catalog, as a suite names it.
    pub(crate) fn workload(key: &str, corpus: Option<&Path>) -> Self {
        let corpus = corpus.map(Path::to_owned);
        Self { origin: Origin::Workload, name: key.to_owned(), corpus, align: None, pins: false }
    }

    fn options(&self) -> Result<ReadOptions, Failure> {
        let align = match self.align {
            Some(bytes) => Some(Alignment::new(bytes).ok_or_else(|| Failure::usage("an alignment of 0"))?),
            None => None,
        };
        Ok(ReadOptions::default().with_pins(self.pins).with_alignment(align))
    }
}

fn is_file_name(argument: &str) -> bool {
    [".csv", ".csv.zst", ".zst"].iter().any(|ending| argument.ends_with(ending))
}

fn stdin() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The bytes of a file, or of standard input for `-`.
pub(crate) fn bytes(argument: &str) -> Result<Vec<u8>, Failure> {
    if argument == "-" {
        return Ok(stdin()?);
    }
    Ok(fs::read(argument).with_context(|| argument.to_owned())?)
}

/// Opens a trace.
pub(crate) fn open(source: &Source) -> Result<Trace, Failure> {
    let options = source.options()?;
    match &source.origin {
        Origin::Workload => {
            let trace = Catalog::new(source.corpus.clone()).load(&source.name)?;
            match source.align {
                // The catalog reads its own files: go through the text to round sizes as a file would.
                Some(_) => Ok(read_trace(&source.name, &write_trace(&trace), &options)?),
                None => Ok(trace),
            }
        }
        Origin::File(path) => {
            let bytes = fs::read(path).with_context(|| source.name.clone())?;
            Ok(read_trace(&source.name, &bytes, &options)?)
        }
    }
}

/// Reads a plan of a trace.
pub(crate) fn plan(argument: &str, trace: &Trace) -> Result<Plan, Failure> {
    let name = if argument == "-" { "<stdin>" } else { argument };
    Ok(read_plan(name, &bytes(argument)?, trace)?)
}
