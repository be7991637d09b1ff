//! What the name of a file says, where the file itself is not there.

use super::import::READERS;

/// Endings of files that readers know by their content alone.
const ENDINGS: [&str; 9] = [".csv", ".jsonl", ".json", ".zst", ".pkl", ".pb", ".txt", ".log", ".gz"];

/// Whether an argument can only be meant as a file, which may be missing: its ending is that of a format, or it leads from
/// a folder (`/`, `./`, `../`, `~/`), as no workload's key does.
///
/// ```
/// use planlab_workloads::formats::is_file_name;
///
/// assert!(is_file_name("net.onnx") && is_file_name("../net") && is_file_name("/tmp/net"));
/// assert!(!is_file_name("chainer/alexnet/infer/b1"));
/// ```
#[must_use]
pub fn is_file_name(argument: &str) -> bool {
    let endings = ENDINGS.iter().chain(READERS.iter().flat_map(|reader| reader.endings));
    let folders = ["/", "./", "../", "~/"];
    endings.into_iter().any(|ending| argument.ends_with(ending))
        || folders.iter().any(|folder| argument.starts_with(folder))
}
