//! Files and folders that appear whole or not at all, and what a writer may remove.
//!
//! - [`NewFile`] is a file that is going to be written: its place is tried first, its content comes last.
//! - [`NewFolder`] is a folder that is replaced as a whole. It lists its files in a manifest, and only a folder
//!   that holds nothing else is replaced.
//! - [`TemporaryFolder`] is for what nobody keeps.
//! - [`FormatError`] is what every reader says of a file that it cannot read: file, line, reason.
//!
//! What is not whole yet has a hidden name, `.planlab-tmp-<boot>-<random>`, and is locked by its process. An
//! interrupted process removes its own by [`abandon`]; those of a process that was killed are removed by the
//! next one that writes to the same folder.

mod error;
mod file;
mod folder;
mod place;
mod temporary;

pub use error::{FolderError, FormatError, SaveError, is_disk_full};
pub use file::{NewFile, save};
pub use folder::{NewFolder, first_foreign};
pub use place::Place;
pub use temporary::{TemporaryFolder, abandon, create_folders, is_temporary, remove_leftovers, settle};
