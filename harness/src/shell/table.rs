//! Plain tables for terminals: columns padded, numbers to the right.

use std::fmt::Write;

/// Rows under a header.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(header: &[&'static str]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table as text; columns whose every cell is a number (or empty) stand to the right.
    pub(crate) fn render(&self) -> String {
        let columns = self.header.len();
        let cell = |row: &Vec<String>, column: usize| row.get(column).cloned().unwrap_or_default();
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| cell(row, column).chars().count());
            cells.chain([self.header[column].chars().count()]).max().unwrap_or(0)
        };
        let is_number = |column: usize| {
            let mut cells = self.rows.iter().map(|row| cell(row, column));
            cells.all(|text| text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
        };
        let shape: Vec<(usize, bool)> = (0..columns).map(|c| (width(c), is_number(c))).collect();
        let mut text = String::new();
        let header: Vec<String> = self.header.iter().map(ToString::to_string).collect();
        for row in std::iter::once(&header).chain(&self.rows) {
            let line: Vec<String> =
                shape.iter().enumerate().map(|(c, &shape)| pad(&cell(row, c), shape)).collect();
            let _ = writeln!(text, "{}", line.join("  ").trim_end());
        }
        text
    }
}

fn pad(text: &str, (width, right): (usize, bool)) -> String {
    if right { format!("{text:>width$}") } else { format!("{text:<width$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right() {
        let mut table = Table::new(&["planner", "height"]);
        table.row(["bump".to_owned(), "12345".to_owned()]);
        table.row(["best-fit".to_owned(), "7".to_owned()]);
        assert_eq!(table.render(), "planner   height\nbump       12345\nbest-fit       7\n");
    }
}
