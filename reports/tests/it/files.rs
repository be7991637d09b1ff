//! The files of a report.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Deref;
use std::path::Path;

use planlab_reports::{Report, ReportOptions};

/// All files of a folder, by their path in it.
pub(crate) struct Files(BTreeMap<String, Vec<u8>>);

impl Deref for Files {
    type Target = BTreeMap<String, Vec<u8>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Files {
    pub(crate) fn read(root: &Path) -> Self {
        let mut files = BTreeMap::new();
        let mut folders = vec![root.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("reads") {
                let path = entry.expect("reads").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(root).expect("lies inside").display().to_string();
                    files.insert(name, fs::read(path).expect("reads"));
                }
            }
        }
        Self(files)
    }

    /// Writes a report of the folder's `store` into its folder `out`.
    pub(crate) fn of_report(dir: &Path, options: ReportOptions) -> Self {
        let report = Report::from_store(dir.join("store"), options).expect("reads");
        report.write_to(dir.join("out")).expect("writes");
        Self::read(&dir.join("out"))
    }

    #[track_caller]
    pub(crate) fn text(&self, name: &str) -> String {
        let bytes = self.0.get(name).unwrap_or_else(|| panic!("there is no {name}"));
        String::from_utf8(bytes.clone()).expect("is text")
    }

    /// Fails unless another report has the same files with the same bytes.
    #[track_caller]
    pub(crate) fn assert_same(&self, other: &Self) {
        assert!(self.keys().eq(other.keys()), "{:?}", other.keys());
        for (name, content) in &self.0 {
            assert!(other[name] == *content, "{name} differs");
        }
    }

    /// Fails unless a file has all of these parts.
    #[track_caller]
    pub(crate) fn has<P: AsRef<str>>(&self, name: &str, parts: impl IntoIterator<Item = P>) {
        self.text(name).has(parts);
    }
}

/// A text that has parts.
pub(crate) trait Parts {
    /// Fails unless it has all of these parts.
    fn has<P: AsRef<str>>(&self, parts: impl IntoIterator<Item = P>);
}

impl Parts for str {
    #[track_caller]
    fn has<P: AsRef<str>>(&self, parts: impl IntoIterator<Item = P>) {
        for part in parts {
            assert!(self.contains(part.as_ref()), "{}\n{self}", part.as_ref());
        }
    }
}
