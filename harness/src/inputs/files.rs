//! Files as workloads of a bench: TRACE arguments, each under the key of its content.

use planlab_files::TemporaryFolder;
use planlab_workloads::{FileOptions, FileWorkload};

use super::source::{Origin, Source, alignment, limits};
use crate::cli::{Choice, Reading};
use crate::shell::exit::Failure;
use crate::shell::output::note;
use crate::shell::target::scratch;

/// What TRACE arguments name.
#[derive(Default)]
pub(crate) struct Named {
    pub(crate) files: Vec<FileWorkload>,
    /// Keys of other workloads, and patterns over them.
    pub(crate) keys: Vec<String>,
    /// The copies of what can be read only once. They are removed with this value.
    copies: Vec<TemporaryFolder>,
}

impl Named {
    /// Reads all files, so that an error in the last one comes before any cell runs.
    pub(crate) fn of(arguments: &[String], reading: &Reading) -> Result<Self, Failure> {
        if arguments.iter().filter(|argument| *argument == "-").count() > 1 {
            return Err(Failure::usage("standard input can be read only once, but - is named twice"));
        }
        let options = options(reading)?;
        let mut named = Self::default();
        for argument in arguments {
            let copies = scratch()?;
            let source = Source::resolve(argument, reading, copies.path())?;
            let Origin::File(path) = &source.origin else {
                named.keys.push(source.name);
                continue;
            };
            let (file, notices) = FileWorkload::open(path, &source.name, options.clone(), limits())?;
            notices.iter().for_each(|notice| note(&format!("{}: {notice}", source.name)));
            named.files.push(file);
            named.copies.push(copies);
        }
        if named.files.is_empty() && options != FileOptions::default() {
            return Err(Failure::usage(
                "--align, --pins, --part, --dim and --in-place are for files, and no file is named",
            ));
        }
        Ok(named)
    }
}

fn options(reading: &Reading) -> Result<FileOptions, Failure> {
    let align = alignment(reading.align)?;
    let (part, dims) = (reading.parts.part.clone(), reading.parts.dims.clone());
    let without_in_place = reading.in_place == Some(Choice::No);
    Ok(FileOptions { align, pins: reading.pins, part, dims, without_in_place })
}
