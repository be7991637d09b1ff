//! Makes a report: from a store to a folder of pages.

use std::path::{Path, PathBuf};

use planlab_files::NewFolder;
use planlab_results::audit::{Finding, audit_frameworks, audit_replays, audit_schedules, audit_shards};
use planlab_results::framework::read_frameworks;
use planlab_results::queries::Tables;
use planlab_results::replay::read_rows;
use planlab_results::schedule::read_schedules;
use serde_json::json;

use crate::data::frameworks::Frameworks;
use crate::data::planners::model::Model;
use crate::data::replays::Replays;
use crate::data::schedules::Schedules;
use crate::format::format_count;
use crate::site::output::{Frame, Writer};
use crate::site::page::Page;
use crate::site::{ReportOptions, Site, draw_instances, draw_nets, file_slug, make_unique};
use crate::{ReportError, pages};

/// The files that were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The number of pages.
    pub pages: usize,
    /// The number of all files, pages included.
    pub files: usize,
}

/// A report, ready to be written.
#[derive(Clone, Debug)]
pub struct Report {
    store: PathBuf,
    model: Model,
    replays: Replays,
    schedules: Schedules,
    frameworks: Frameworks,
    findings: Vec<Finding>,
    options: ReportOptions,
    slugs: Vec<String>,
    planner_slugs: Vec<String>,
}

/// The kind of folder, as its manifest states.
const KIND: &str = "report";

impl Report {
    /// Reads the records of a store.
    ///
    /// # Errors
    ///
    /// [`ReportError::Store`] if they cannot be read.
    pub fn from_store(dir: impl AsRef<Path>, options: ReportOptions) -> Result<Self, ReportError> {
        let dir = dir.as_ref();
        let tables = Tables::open(dir)?;
        let rows = read_rows(dir)?;
        let mut findings = tables.audit()?;
        findings.extend(audit_replays(&rows));
        findings.extend(tables.audit_plans(dir)?);
        let schedules = read_schedules(dir)?;
        findings.extend(audit_schedules(&schedules));
        let frameworks = read_frameworks(dir)?;
        findings.extend(audit_frameworks(&frameworks));
        let model = Model::new(tables)?;
        findings.extend(audit_shards(dir, model.row_count() > 0 || !schedules.is_empty())?);
        findings.sort_by_key(|finding| !finding.is_refutation());
        let slugs = make_unique(model.workloads.iter().map(|workload| file_slug(&workload.key)));
        let planner_slugs = make_unique(model.all.planners.iter().map(|planner| file_slug(&planner.label)));
        let store = dir.to_path_buf();
        let (replays, schedules) = (Replays::new(rows), Schedules::new(schedules));
        let frameworks = Frameworks::new(frameworks);
        Ok(Self { store, model, replays, schedules, frameworks, findings, options, slugs, planner_slugs })
    }

    /// The findings of the audit.
    #[must_use]
    pub fn audit_findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Writes the report into a folder, which is replaced as a whole. It must be absent, empty, or contain only an
    /// earlier report. The same records and options give the same bytes, except that drawings of nets depend on their
    /// source.
    ///
    /// # Errors
    ///
    /// [`ReportError::Folder`] if the folder contains other files or cannot be written; [`ReportError::Draw`].
    pub fn write_to(&self, out: impl AsRef<Path>) -> Result<Written, ReportError> {
        self.write_into(Self::open_folder(out, &self.store)?)
    }

    /// Checks whether a report of `store` may be written to a folder, before the report is made.
    ///
    /// # Errors
    ///
    /// Like [`NewFolder::create`].
    pub fn open_folder(out: impl AsRef<Path>, store: impl AsRef<Path>) -> Result<NewFolder, ReportError> {
        Ok(NewFolder::create(out.as_ref(), KIND, &[store])?)
    }

    /// Writes the report into the folder from [`Report::open_folder`].
    ///
    /// # Errors
    ///
    /// Like [`Report::write_to`].
    pub fn write_into(&self, mut folder: NewFolder) -> Result<Written, ReportError> {
        let mut site = Site {
            store: &self.store,
            options: &self.options,
            model: &self.model,
            replays: &self.replays,
            schedules: &self.schedules,
            frameworks: &self.frameworks,
            findings: &self.findings,
            slugs: &self.slugs,
            planner_slugs: &self.planner_slugs,
            instances: Vec::new(),
            drawn: Vec::new(),
        };
        site.instances = draw_instances(&site, &mut folder)?;
        site.drawn = draw_nets(&site, &mut folder)?;
        let pages = pages::of_report(&site)?;
        let mut writer = Writer::new(folder, self.page_frame(&pages));
        for page in pages {
            writer.write_page(&page)?;
        }
        for planner in 0..self.model.all.planners.len() {
            writer.write_page(&pages::of_planner(&site, planner))?;
        }
        for workload in 0..self.model.workloads.len() {
            for page in pages::of_workload(&site, workload) {
                writer.write_page(&page)?;
            }
        }
        Ok(Written { pages: writer.pages, files: writer.folder.commit(self.manifest_entries())? })
    }

    fn manifest_entries(&self) -> serde_json::Map<String, serde_json::Value> {
        let about = [
            ("command", json!(self.options.command)),
            ("records", json!(self.model.row_count())),
            ("digest", json!(self.model.digest)),
            ("replays", json!(self.replays.rows)),
            ("schedules", json!(self.schedules.rows)),
            ("frameworks", json!(self.frameworks.rows)),
            ("schema", json!(planlab_results::SCHEMA)),
        ];
        about.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
    }

    fn page_frame(&self, pages: &[Page]) -> Frame {
        let (count, digest) = (format_count(self.model.row_count()), &self.model.digest);
        let records = format!("{count} records (digest {digest}, schema {})", planlab_results::SCHEMA);
        let further = [
            ("replays", self.replays.rows, &self.replays.digest),
            ("schedules", self.schedules.rows, &self.schedules.digest),
            ("of frameworks", self.frameworks.rows, &self.frameworks.digest),
        ];
        let further = further.into_iter().filter(|(_, rows, _)| *rows > 0).map(|(kind, rows, digest)| {
            format!(" and {} {kind} (digest {digest})", format_count(rows as u64))
        });
        let links = pages.iter().filter_map(|page| Some((page.file.clone(), page.name?))).collect();
        let records = records + &further.collect::<String>();
        Frame { command: self.options.command.clone(), records, links }
    }
}
