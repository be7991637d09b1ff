//! Files as workloads of a bench: TRACE arguments, each under the key of its content.

use planlab_files::TemporaryFolder;
use planlab_workloads::{FileOptions, FileWorkload};

use super::source::{Origin, Source, input_limits, parse_alignment};
use crate::cli::{Choice, Reading};
use crate::shell::exit::Failure;
use crate::shell::output::print_note;
use crate::shell::target::scratch_folder;

/// What TRACE arguments name.
#[derive(Default)]
pub(crate) struct NamedFiles {
    pub(crate) files: Vec<FileWorkload>,
    /// Keys of other workloads, and patterns over them.
    pub(crate) keys: Vec<String>,
    /// The copies of what can be read only once. They are removed with this value.
    copies: Vec<TemporaryFolder>,
}

impl NamedFiles {
    /// Reads all files, so that an error in the last one comes before any cell runs.
    pub(crate) fn read_named(arguments: &[String], reading: &Reading) -> Result<Self, Failure> {
        if arguments.iter().filter(|argument| *argument == "-").count() > 1 {
            return Err(Failure::from_usage("standard input can be read only once, but - is named twice"));
        }
        let options = file_options(reading)?;
        let mut named = Self::default();
        for argument in arguments {
            let copies = scratch_folder()?;
            let source = Source::resolve_argument(argument, reading, copies.path())?;
            let Origin::File(path) = &source.origin else {
                named.keys.push(source.name);
                continue;
            };
            let (file, notices) =
                FileWorkload::open_file(path, &source.name, options.clone(), input_limits())?;
            notices.iter().for_each(|notice| print_note(&format!("{}: {notice}", source.name)));
            named.files.push(file);
            named.copies.push(copies);
        }
        if named.files.is_empty() && options != FileOptions::default() {
            return Err(Failure::from_usage(
                "--align, --pins, --part, --dim and --in-place are for files, and no file is named",
            ));
        }
        Ok(named)
    }
}

fn file_options(reading: &Reading) -> Result<FileOptions, Failure> {
    let align = parse_alignment(reading.align)?;
    let (part, dims) = (reading.parts.part.clone(), reading.parts.dims.clone());
    let without_in_place = reading.in_place == Some(Choice::No);
    Ok(FileOptions { align, pins: reading.pins, part, dims, without_in_place })
}
