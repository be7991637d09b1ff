//! Files and folders that appear whole or not at all, and the rules for what a writer may remove.
//!
//! - [`NewFile`] is a file to be written: its place is tried first, its content comes last.
//! - [`NewFolder`] is a folder that is replaced as a whole. It lists its files in a manifest, and replaces only a
//!   folder that holds nothing but listed files.
//! - [`TemporaryFolder`] is for files that are not kept.
//! - [`FormatError`] is the error of every reader for a file that it cannot read: file, line, reason.
//!
//! Unfinished output has a hidden name, `.planlab-tmp-<boot>-<random>`, and is locked by its process. An interrupted
//! process removes its own with [`abandon_all`]. The next process that writes to the same folder removes what a killed
//! process left.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod error;
mod file;
mod folder;
mod place;
mod temporary;

pub use error::{FolderError, FormatError, SaveError, is_disk_full};
pub use file::{NewFile, is_same_file, open_regular, save_file};
pub use folder::{NewFolder, first_foreign};
pub use place::ResolvedFolder;
pub use temporary::{
    TemporaryFolder, abandon_all, create_folders, is_temporary, remove_leftovers, settle_after_abandon,
};
