//! The files that a suite names: finds them beside the suite, reads them, and adds their keys to its groups.

use std::path::{Path, PathBuf};

use ::glob::Pattern;

use super::suite::{Suite, SuiteError};
use crate::files::FileWorkload;
use crate::formats::InputLimits;
use crate::glob::is_glob;

impl Suite {
    /// Reads the files that the groups name, relative to the suite's own file, and adds their keys to the groups'
    /// workloads. Returns the files, for [`Catalog::with_files`](crate::Catalog::with_files), and what the readers
    /// noticed.
    ///
    /// # Errors
    ///
    /// [`SuiteError::Bad`] with the line of a pattern that matches no file; [`SuiteError::File`] for a file that cannot
    /// be read.
    pub fn open_files(
        &mut self,
        limits: InputLimits,
    ) -> Result<(Vec<FileWorkload>, Vec<String>), SuiteError> {
        let folder = Path::new(&self.file).parent().unwrap_or(Path::new("")).to_owned();
        let (mut files, mut notices) = (Vec::new(), Vec::new());
        for at in 0..self.groups.len() {
            let options = self.groups[at].file_options();
            for pattern in self.groups[at].files.clone() {
                for path in self.matching_paths(&folder, &pattern)? {
                    let name = path.display().to_string();
                    let (file, said) = FileWorkload::open_file(&path, &name, options.clone(), limits)?;
                    notices.extend(said.iter().map(|notice| format!("{name}: {notice}")));
                    self.groups[at].workloads.push(file.key.clone());
                    files.push(file);
                }
            }
        }
        Ok((files, notices))
    }

    /// The files that a pattern matches, in order of their names. A name without a wildcard need not exist: reading it
    /// reports that.
    fn matching_paths(&self, folder: &Path, pattern: &str) -> Result<Vec<PathBuf>, SuiteError> {
        if !is_glob(pattern) && !pattern.contains('[') {
            return Ok(vec![folder.join(pattern)]);
        }
        let whole = Path::new(&Pattern::escape(&folder.to_string_lossy())).join(pattern);
        let bad = |reason: String| self.error_at_text(pattern, reason);
        let found = ::glob::glob(&whole.to_string_lossy())
            .map_err(|error| bad(format!("`{pattern}` is not a pattern of files: {error}")))?;
        let found = found.collect::<Result<Vec<PathBuf>, _>>().map_err(|error| bad(error.to_string()))?;
        let files: Vec<PathBuf> = found.into_iter().filter(|path| path.is_file()).collect();
        if files.is_empty() {
            return Err(bad(format!("no file matches `{pattern}`")));
        }
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Catalog;
    use crate::suites::suite::{builtin, parse};

    const TRACE: &str = "id,lower,upper,size\nx,0,3,4096\ny,1,2,1000\n";

    fn suite(folder: &Path, group: &str) -> Result<Suite, SuiteError> {
        let text = format!("name = \"mine\"\nanalysis = \"\"\n[[group]]\n{group}\nplanners = [\"bump\"]\n");
        parse(&folder.join("mine.toml").display().to_string(), &text, builtin())
    }

    #[test]
    fn files_beside_the_suite_become_workloads() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("nets")).expect("writable");
        for (name, text) in [
            ("nets/a.csv", TRACE.to_owned()),
            ("nets/b.csv", TRACE.replace("1000", "2000")),
            ("one.csv", TRACE.replace("1000", "3000")),
        ] {
            fs::write(folder.path().join(name), text).expect("writable");
        }
        let group = "files = [\"nets/*.csv\", \"one.csv\"]\nalign = 512";
        let mut suite = suite(folder.path(), group).expect("well formed");
        let (files, notices) = suite.open_files(InputLimits::default()).expect("readable");
        assert!(notices.is_empty(), "{notices:?}");
        let names: Vec<&str> = files.iter().filter_map(|file| file.key.split('/').nth(1)).collect();
        assert_eq!(names, ["a.csv", "b.csv", "one.csv"]);
        let catalog = Catalog::new(None).with_files(files.clone());
        let selection = suite.select_cells(&catalog, &["bump".to_owned()], |_, _| true).expect("valid");
        let picked: Vec<&str> = selection.picks.iter().map(|pick| pick.workload.as_str()).collect();
        assert_eq!(picked, files.iter().map(|file| file.key.as_str()).collect::<Vec<_>>());
        let trace = catalog.load(picked[0]).expect("readable");
        assert_eq!(trace.instance.load().bytes.get(), 4096 + 1024, "sizes are rounded up to the alignment");
    }

    #[test]
    fn a_wrong_name_is_an_error_with_its_place() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let error = |group: &str| {
            let opened = suite(folder.path(), group)
                .and_then(|mut suite| suite.open_files(InputLimits::default()).map(drop));
            let place = format!("{}/", folder.path().display());
            opened.expect_err(group).to_string().replace(&place, "")
        };
        assert_eq!(error("files = [\"*.csv\"]"), "mine.toml:4: no file matches `*.csv`");
        assert!(error("files = [\"none.csv\"]").starts_with("none.csv: No such file"));
        let without = "mine.toml:3: a group has neither workloads nor files";
        assert_eq!(error(""), without);
        assert_eq!(
            error("workloads = [\"x\"]\npart = \"cuda:0\""),
            "mine.toml:3: align, part, dims and in_place are for a group with files"
        );
    }
}
