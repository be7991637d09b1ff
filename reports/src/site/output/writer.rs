//! Writes pages into a folder, with the files of their tables and figures.

use planlab_files::NewFolder;
use planlab_results::table::Table;

use super::html::{self, Frame};
use crate::ReportError;
use crate::site::names::file_slug;
use crate::site::page::{Page, Piece};
use crate::site::parts::viewer;

/// The folder while it is filled.
pub(crate) struct Writer {
    pub(crate) folder: NewFolder,
    frame: Frame,
    /// Whether the script of viewers is written.
    has_script: bool,
    pub(crate) pages: usize,
}

impl Writer {
    pub(crate) const fn new(folder: NewFolder, frame: Frame) -> Self {
        Self { folder, frame, has_script: false, pages: 0 }
    }

    pub(crate) fn write_page(&mut self, page: &Page) -> Result<(), ReportError> {
        for table in page.tables_with_files() {
            self.put_table(table, &table.to_csv())?;
        }
        for piece in &page.pieces {
            if let Piece::Grid(grid) = piece {
                self.put_table(&grid.table, &grid.csv)?;
            }
        }
        for figure in page.figures_with_files() {
            let name = format!("plots/{}.svg", file_slug(figure.drawing.title()));
            self.folder.put_file(&name, figure.drawing.to_svg()?.as_bytes())?;
        }
        if page.has_viewer() && !self.has_script {
            self.folder.put_file(viewer::SCRIPT_FILE, viewer::SCRIPT.as_bytes())?;
            self.has_script = true;
        }
        self.pages += 1;
        Ok(self.folder.put_file(&page.file, html::page_html(page, &self.frame)?.as_bytes())?)
    }

    fn put_table(&mut self, table: &Table, csv: &str) -> Result<(), ReportError> {
        self.folder.put_file(&format!("tables/{}.csv", table.name), csv.as_bytes())?;
        Ok(self.folder.put_file(&format!("tables/{}.tex", table.name), table.to_latex().as_bytes())?)
    }
}
