//! The report: from a store to a folder of pages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use planlab_dsa::{Digest, Instance, Labels};
use planlab_files::NewFolder;
use planlab_results::audit::{Finding, audit, audit_plans, audit_replays, audit_shards};
use planlab_results::replay::read_rows;
use planlab_results::scale::curves;
use planlab_results::{load_instance, load_plan, read_records};
use serde_json::json;

use crate::chosen::choose;
use crate::claims::claims;
use crate::format::count;
use crate::model::Model;
use crate::nets::{PoolTotals, memory_figures, time_figures};
use crate::pages::layout::{Origin, page};
use crate::pages::replays::{Section, Sources, pools, sections};
use crate::pages::scale::Scale;
use crate::pages::workload::Mapped;
use crate::pages::{boards, cell, cells, claims as claims_page, index, scale, tables, workload};
use crate::replays::Replays;
use crate::table::Table;
use crate::{MapOptions, ReportError, fragmentation_map, placement_map};

/// What a report shows beside the records.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReportOptions {
    /// The title of the summary.
    pub title: String,
    /// The command that makes the report, as its pages name it.
    pub command: String,
    /// What is known of workloads beside the records.
    pub totals: PoolTotals,
    /// The planner whose plans get maps beside the best ones, and whose times are shown by net.
    pub baseline: String,
    /// How many plans at most get maps and a page of their own: the best and the baseline's of each workload
    /// first, then, of workloads of up to 2,000 buffers, one of each of the three lowest heights.
    pub maps: usize,
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self {
            title: "Memory planning benchmark".to_owned(),
            command: "planlab report".to_owned(),
            totals: PoolTotals::new(),
            baseline: "best-fit".to_owned(),
            maps: 800,
        }
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Pages.
    pub pages: usize,
    /// All files, pages included.
    pub files: usize,
}

/// A report that can be written.
#[derive(Clone, Debug)]
pub struct Report {
    store: PathBuf,
    model: Model,
    replays: Replays,
    /// The pages of replays.
    sections: Vec<Section>,
    origin: Origin,
    findings: Vec<Finding>,
    options: ReportOptions,
    slugs: Vec<String>,
}

/// Who writes the folder, as its manifest says.
const KIND: &str = "report";

impl Report {
    /// Reads the records of a store.
    ///
    /// # Errors
    ///
    /// [`ReportError::Store`] where they cannot be read.
    pub fn from_store(dir: impl AsRef<Path>, options: ReportOptions) -> Result<Self, ReportError> {
        let dir = dir.as_ref();
        let model = Model::new(read_records(dir)?);
        let rows = read_rows(dir)?;
        let mut findings = audit(model.records());
        findings.extend(audit_replays(&rows));
        findings.extend(audit_plans(dir, model.records())?);
        findings.extend(audit_shards(dir, model.records())?);
        findings.sort_by_key(|finding| !finding.is_refutation());
        let slugs = unique(model.workloads.iter().map(|workload| slug(&workload.key)));
        let replays = Replays::new(rows);
        let pages: Vec<String> = slugs.iter().map(|slug| page_file(slug)).collect();
        let (totals, baseline) = (&options.totals, options.baseline.as_str());
        let sections = sections(&Sources { model: &model, replays: &replays, totals, baseline }, &pages);
        let origin = origin(&options.command, &model, &replays, &sections);
        let store = dir.to_path_buf();
        Ok(Self { store, model, replays, sections, origin, findings, options, slugs })
    }

    /// What the audit found.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Writes the report into a folder, which is replaced as a whole: it must be empty, absent, or an
    /// earlier report with nothing beside. The same records and options give the same bytes.
    ///
    /// # Errors
    ///
    /// [`ReportError::Folder`] where the folder holds something else or cannot be written,
    /// [`ReportError::Draw`].
    pub fn write(&self, out: impl AsRef<Path>) -> Result<Written, ReportError> {
        self.write_into(Self::folder(out, &self.store)?)
    }

    /// Looks whether a report of `store` may be written to a folder, before there is one to write.
    ///
    /// # Errors
    ///
    /// As [`NewFolder::create`].
    pub fn folder(out: impl AsRef<Path>, store: impl AsRef<Path>) -> Result<NewFolder, ReportError> {
        Ok(NewFolder::create(out.as_ref(), KIND, &[store])?)
    }

    /// Writes the report into the folder that [`Report::folder`] has found.
    ///
    /// # Errors
    ///
    /// As [`Report::write`].
    pub fn write_into(&self, folder: NewFolder) -> Result<Written, ReportError> {
        let mut folder = Folder { inner: folder, pages: 0 };
        self.fill(&mut folder)?;
        let about = [
            ("command", json!(self.options.command)),
            ("records", json!(self.model.records().len())),
            ("digest", json!(self.model.digest)),
            ("replays", json!(self.replays.rows)),
            ("schema", json!(planlab_results::SCHEMA)),
        ];
        let about = about.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
        Ok(Written { pages: folder.pages, files: folder.inner.commit(about)? })
    }

    fn page_of(&self, workload: usize) -> String {
        page_file(&self.slugs[workload])
    }

    fn fill(&self, folder: &mut Folder) -> Result<(), ReportError> {
        let mut sums = BTreeMap::new();
        let mut pages_of_plans = BTreeMap::new();
        for (number, chosen) in choose(&self.model, &self.options).into_iter().enumerate() {
            let stored = self.stored(number);
            if let Some((instance, _)) = &stored {
                sums.insert(number, instance.total().get());
            }
            for map in self.write_workload(folder, number, stored.as_ref(), &chosen)? {
                if let Some(plan) = &self.model.row(&self.model.cells[map.cell]).plan {
                    pages_of_plans.insert((number, plan.clone()), map.page);
                }
            }
        }
        self.write_summary(folder, &sums)?;
        self.write_boards(folder)?;
        self.write_scale(folder)?;
        self.write_claims(folder)?;
        self.write_cells(folder, &pages_of_plans)?;
        self.write_sections(folder)
    }

    /// The instance of a workload, where the store holds it. What cannot be read is among the findings.
    fn stored(&self, workload: usize) -> Option<(Instance, Labels)> {
        let digest = self.model.workloads[workload].instance.parse::<Digest>().ok()?;
        load_instance(&self.store, digest).ok()
    }

    fn write_summary(&self, folder: &mut Folder, sums: &BTreeMap<usize, u64>) -> Result<(), ReportError> {
        let model = &self.model;
        let tables = index::Tables {
            failures: tables::failures(model, &self.replays, &self.findings),
            leaderboard: tables::leaderboard(model),
            allocators: pools::summary(model, &self.replays),
            replayed: pools::sentence(&self.replays),
            pairs: tables::pairs(model),
            gaps_by_group: tables::gaps_by_group(model),
            statuses: tables::statuses(model),
            machines: tables::machines(model),
            workloads: tables::workloads(model, |number| self.page_of(number)),
        };
        let gaps = tables::gaps(model, |number| self.page_of(number));
        let all = [
            &tables.failures,
            &tables.leaderboard,
            &tables.gaps_by_group,
            &tables.statuses,
            &tables.machines,
            &tables.workloads,
            &gaps,
        ];
        for table in all.into_iter().chain(&tables.pairs).chain(&tables.allocators) {
            folder.put_table(table)?;
        }
        let mut figures = index::figures(model);
        let mut nets = memory_figures(model, &self.options.baseline, &self.options.totals, sums);
        nets.extend(time_figures(model, &self.options.baseline));
        for (drawing, _) in figures.iter().chain(nets.iter().map(|(_, figure)| figure)) {
            folder.put(&format!("plots/{}.svg", slug(drawing.title())), drawing.to_svg()?.as_bytes())?;
        }
        // The nets whose own pool is known are compared with it on the summary; all are on their page.
        let routes = self.routes_with_pools();
        let nets_of = nets.iter().filter(|(route, _)| routes.contains(route.as_str()));
        figures.extend(nets_of.map(|(_, figure)| figure.clone()));
        let body = index::body(model, &self.options.title, &self.findings, &tables, &figures)?;
        folder.put_page("index.html", &page(&self.options.title, "", &self.origin, &body))?;
        folder.put_page("nets.html", &page("Nets", "", &self.origin, &index::nets_body(&nets)?))?;
        let body = index::gaps_body(&gaps);
        folder.put_page("gaps.html", &page("Gap by workload and planner", "", &self.origin, &body))
    }

    fn write_boards(&self, folder: &mut Folder) -> Result<(), ReportError> {
        let boards = boards::boards(&self.model);
        for board in &boards {
            folder.put_table(&board.table)?;
        }
        let body = boards::body(&boards);
        folder.put_page("boards.html", &page("Leaderboards by suite", "", &self.origin, &body))
    }

    fn write_scale(&self, folder: &mut Folder) -> Result<(), ReportError> {
        let scale = Scale::new(&self.model, &curves(self.model.records()));
        for table in [&scale.fits, &scale.points] {
            folder.put_table(table)?;
        }
        for (drawing, _) in &scale.figures {
            folder.put(&format!("plots/{}.svg", slug(drawing.title())), drawing.to_svg()?.as_bytes())?;
        }
        let body = scale::body(&scale)?;
        folder.put_page("scale.html", &page("Growth with the number of buffers", "", &self.origin, &body))
    }

    fn write_claims(&self, folder: &mut Folder) -> Result<(), ReportError> {
        let table =
            claims_page::table(&self.model, claims(), &self.options.totals, |number| self.page_of(number));
        folder.put_table(&table)?;
        folder.put_page("claims.html", &page("Claims", "", &self.origin, &claims_page::body(&table)))
    }

    fn write_sections(&self, folder: &mut Folder) -> Result<(), ReportError> {
        for section in &self.sections {
            for table in section.tables() {
                folder.put_table(table)?;
            }
            for (drawing, _) in section.figures() {
                folder.put(&format!("plots/{}.svg", slug(drawing.title())), drawing.to_svg()?.as_bytes())?;
            }
            folder.put_page(section.file, &page(section.title, "", &self.origin, &section.body()?))?;
        }
        Ok(())
    }

    /// Routes of workloads whose framework's pool is known.
    fn routes_with_pools(&self) -> BTreeSet<&str> {
        let known = self.options.totals.iter().filter(|(_, total)| total.pool.is_some());
        known.filter_map(|(key, _)| key.split('/').next()).collect()
    }

    fn write_cells(
        &self,
        folder: &mut Folder,
        pages: &BTreeMap<(usize, String), String>,
    ) -> Result<(), ReportError> {
        let table = cells::table(&self.model, |workload, record| {
            pages.get(&(workload, record.plan.clone()?)).map(String::as_str)
        });
        folder.put_table(&table)?;
        let body = cells::body(&self.model, &table, |number| self.page_of(number));
        folder.put_page("cells.html", &page("All cells", "", &self.origin, &body))
    }

    /// Writes a workload's page, its maps and the pages of their cells; gives the maps.
    fn write_workload(
        &self,
        folder: &mut Folder,
        number: usize,
        stored: Option<&(Instance, Labels)>,
        chosen: &[usize],
    ) -> Result<Vec<Mapped>, ReportError> {
        let mapped = match stored {
            Some(stored) => self.write_maps(folder, number, stored, chosen)?,
            None => Vec::new(),
        };
        let page_of = |wanted: &crate::model::Cell| {
            let found = mapped.iter().find(|map| std::ptr::eq(&raw const self.model.cells[map.cell], wanted));
            found.map(|map| map.page.clone())
        };
        let name = format!("workloads/{}", self.slugs[number]);
        let table = tables::cells_of(&self.model, number, &name, page_of);
        folder.put_table(&table)?;
        let allocators = pools::of_workload(&self.model, number, &self.replays, &name);
        if let Some(allocators) = &allocators {
            folder.put_table(allocators)?;
        }
        let instance = stored.map(|(instance, _)| instance);
        let (tables, baseline) = ((&table, allocators.as_ref()), &self.options.baseline);
        let body = workload::body(&self.model, number, instance, &mapped, baseline, tables)?;
        let title = &self.model.workloads[number].key;
        folder.put_page(&self.page_of(number), &page(title, "../", &self.origin, &body))?;
        for map in &mapped {
            let body = cell::body(&self.model, map, &self.page_of(number));
            let title = format!("{} on {title}", self.model.planner(&self.model.cells[map.cell]).label);
            folder.put_page(&map.page, &page(&title, "../", &self.origin, &body))?;
        }
        Ok(mapped)
    }

    fn write_maps(
        &self,
        folder: &mut Folder,
        workload: usize,
        (instance, labels): &(Instance, Labels),
        chosen: &[usize],
    ) -> Result<Vec<Mapped>, ReportError> {
        let model = &self.model;
        let top = chosen.iter().filter_map(|&cell| model.row(&model.cells[cell]).height).max().unwrap_or(0);
        let mut mapped = Vec::new();
        for &number in chosen {
            let cell = &model.cells[number];
            let digest = model.row(cell).plan.as_deref().and_then(|plan| plan.parse::<Digest>().ok());
            let Some(digest) = digest else { continue };
            // A stored plan is a claim like any other; one that is missing or false is the audit's business.
            let Ok(plan) = load_plan(&self.store, digest) else { continue };
            let Ok(plan) = instance.verify(plan) else { continue };
            let label = slug(&model.planner(cell).label);
            let again = mapped.iter().filter(|map: &&Mapped| model.cells[map.cell].planner == cell.planner);
            let again = match again.count() {
                0 => String::new(),
                before => format!("-{}", before + 1),
            };
            let name = format!("{}--{label}{again}", self.slugs[workload]);
            let title = format!("{} on {}", model.planner(cell).label, model.workloads[workload].key);
            let options = MapOptions::default().with_size(900, 560).with_top(top).with_title(title);
            let drawing = placement_map(instance, labels, Some(&plan), &options);
            let map = Mapped {
                cell: number,
                page: format!("cells/{name}.html"),
                placement: format!("maps/{name}.png"),
                free: format!("maps/{name}-free.png"),
                size: drawing.size(),
            };
            folder.put(&map.placement, &drawing.to_png()?)?;
            folder.put(&map.free, &fragmentation_map(instance, &plan, &options).to_png()?)?;
            mapped.push(map);
        }
        Ok(mapped)
    }
}

/// The page of the workload of this short name, from the report's folder.
fn page_file(slug: &str) -> String {
    format!("workloads/{slug}.html")
}

fn origin(command: &str, model: &Model, replays: &Replays, sections: &[Section]) -> Origin {
    let records = format!(
        "{} records (digest {}, schema {})",
        count(model.records().len() as u64),
        model.digest,
        planlab_results::SCHEMA
    );
    let replayed = match replays.rows {
        0 => String::new(),
        rows => format!(" and {} replays (digest {})", count(rows as u64), replays.digest),
    };
    let sections = sections.iter().map(|section| (section.file, section.name)).collect();
    Origin { command: command.to_owned(), records: records + &replayed, sections }
}

/// A folder that is being filled.
struct Folder {
    inner: NewFolder,
    pages: usize,
}

impl Folder {
    fn put(&mut self, name: &str, content: &[u8]) -> Result<(), ReportError> {
        Ok(self.inner.put(name, content)?)
    }

    fn put_page(&mut self, name: &str, page: &str) -> Result<(), ReportError> {
        self.pages += 1;
        self.put(name, page.as_bytes())
    }

    fn put_table(&mut self, table: &Table) -> Result<(), ReportError> {
        self.put(&format!("tables/{}.csv", table.name), table.to_csv().as_bytes())?;
        self.put(&format!("tables/{}.tex", table.name), table.to_latex().as_bytes())
    }
}

/// A name for files: lower-case letters, digits, dots and dashes.
pub(crate) fn slug(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '/' => name.push('.'),
            letter if letter.is_ascii_alphanumeric() || letter == '.' || letter == '_' => {
                name.push(letter.to_ascii_lowercase());
            }
            _ if name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    // Long names do not fit file systems; a digest keeps them apart.
    if name.len() > 120 {
        name.truncate(100);
        name = format!("{name}-{}", Digest::of_bytes(text.as_bytes()).short());
    }
    let name = name.trim_matches(['-', '.']);
    if name.is_empty() { "x".to_owned() } else { name.to_owned() }
}

/// Names that differ, by a number behind those that came before.
fn unique(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let free = |name: String| {
        let mut candidate = name.clone();
        let mut number = 2;
        while !taken.insert(candidate.clone()) {
            candidate = format!("{name}-{number}");
            number += 1;
        }
        candidate
    };
    names.map(free).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_safe_and_differ() {
        let names = ["a/b", "a.b", "../x", "A b <c>", "", "ä"].map(slug);
        assert_eq!(names, ["a.b", "a.b", "x", "a-b-c", "x", "x"]);
        assert_eq!(unique(names.into_iter()), ["a.b", "a.b-2", "x", "a-b-c", "x-2", "x-3"]);
        assert!(slug(&"long/".repeat(100)).len() < 120);
    }
}
