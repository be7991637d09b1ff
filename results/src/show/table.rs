//! Tables for terminals, Markdown, CSV with raw numbers, and LaTeX. Report pages show them as HTML.

use comfy_table::presets::{ASCII_MARKDOWN, NOTHING};
use comfy_table::{CellAlignment, Table as Grid};

use planlab_dsa::printable_line;

use super::format::{format_bytes, format_count, format_nanoseconds, format_percent, format_rounded};

/// A value: formatted for people, but raw in CSV.
#[derive(Clone, Debug, PartialEq)]
pub enum CellValue {
    /// No value.
    Missing,
    /// A text.
    Text(String),
    /// A text that links to a page, given by its file within the report's folder.
    Link(String, String),
    /// A whole number.
    Count(u64),
    /// Bytes.
    Bytes(u64),
    /// Nanoseconds.
    Nanoseconds(f64),
    /// A share, shown as a percentage.
    Share(f64),
    /// A share whose background colour grows with it, and a remark.
    Heat(f64, String),
    /// A number.
    Number(f64),
}

impl CellValue {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A whole number.
    #[must_use]
    pub const fn count(number: usize) -> Self {
        Self::Count(number as u64)
    }

    /// Bytes, if they are known.
    pub fn bytes(number: impl Into<Option<u64>>) -> Self {
        Self::or_missing(number.into().map(Self::Bytes))
    }

    /// Nanoseconds, if they are known.
    pub fn nanoseconds(number: impl Into<Option<f64>>) -> Self {
        Self::or_missing(number.into().map(Self::Nanoseconds))
    }

    /// A share, if it is known.
    pub fn share(share: impl Into<Option<f64>>) -> Self {
        Self::or_missing(share.into().map(Self::Share))
    }

    /// A number, if it is known.
    pub fn number(number: impl Into<Option<f64>>) -> Self {
        Self::or_missing(number.into().map(Self::Number))
    }

    /// The value, if there is one.
    #[must_use]
    pub fn or_missing(value: Option<Self>) -> Self {
        value.unwrap_or(Self::Missing)
    }

    /// The value as people read it.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::Missing => "\u{2013}".to_owned(),
            Self::Text(text) | Self::Link(text, _) => text.clone(),
            Self::Count(number) => format_count(*number),
            Self::Bytes(number) => format_bytes(*number),
            Self::Nanoseconds(number) => format_nanoseconds(*number),
            Self::Share(share) | Self::Heat(share, _) => format_percent(*share),
            Self::Number(number) if *number > 0.0 && *number < 0.001 => "< 0.001".to_owned(),
            Self::Number(number) => format!("{number:.3}"),
        }
    }

    /// The value as programs read it.
    #[must_use]
    pub fn raw(&self) -> String {
        match self {
            Self::Missing => String::new(),
            Self::Text(text) | Self::Link(text, _) => text.clone(),
            Self::Count(number) | Self::Bytes(number) => number.to_string(),
            // The last digits of logarithms differ between machines, so these are not written.
            Self::Nanoseconds(number) => format_rounded(*number, 1),
            Self::Share(number) | Self::Heat(number, _) | Self::Number(number) => format_rounded(*number, 9),
        }
    }

    /// Whether the value is not a text.
    #[must_use]
    pub const fn is_number(&self) -> bool {
        !matches!(self, Self::Text(_) | Self::Link(..))
    }
}

/// The columns of a table: the key, the title, and the value of a row, which a pattern takes apart. What several values need
/// is computed by `let`s before them.
#[macro_export]
macro_rules! columns {
    (|$row:pat_param| [$($columns:tt)*]) => {
        $crate::columns!(|$row| { [$($columns)*] })
    };
    (|$row:pat_param| {
        $(let $name:tt $(: $type:ty)? = $shared:expr;)*
        [$(($key:expr, $title:expr, $value:expr $(,)?)),* $(,)?]
    }) => {
        (&[$(($key, $title)),*], |$row| {
            $(let $name $(: $type)? = $shared;)*
            vec![$($value),*]
        })
    };
}
pub use columns;

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name in CSV, with the unit: `height_bytes`.
    pub key: String,
    /// The name on pages.
    pub title: String,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The name of its files; empty if it has none.
    pub name: String,
    /// A description of its contents.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// The rows; each has one value per column.
    pub rows: Vec<Vec<CellValue>>,
    /// Whether the column titles are rotated, for many narrow columns.
    pub turned: bool,
}

impl Table {
    /// An empty table with these titles, without a name.
    #[must_use]
    pub fn new(titles: &[&str]) -> Self {
        let columns: Vec<(&str, &str)> = titles.iter().map(|title| (*title, *title)).collect();
        Self::for_page("", "", &columns)
    }

    /// An empty table that is only written to a file; its column names are `keys`, separated by blanks.
    pub fn for_file(name: impl Into<String>, keys: &str) -> Self {
        let columns: Vec<(&str, &str)> = keys.split_whitespace().map(|key| (key, key)).collect();
        Self::for_page(name, "", &columns)
    }

    /// An empty table for a page; each column has its key and its title.
    pub fn for_page(name: impl Into<String>, caption: impl Into<String>, columns: &[(&str, &str)]) -> Self {
        let columns =
            columns.iter().map(|(key, title)| Column { key: (*key).into(), title: (*title).into() });
        Self {
            name: name.into(),
            caption: caption.into(),
            columns: columns.collect(),
            rows: Vec::new(),
            turned: false,
        }
    }

    /// A table for a page with these rows; the columns and the values of a row come from [`columns!`].
    pub fn from_rows<R>(
        name: impl Into<String>,
        caption: impl Into<String>,
        rows: impl IntoIterator<Item = R>,
        (columns, values): (&[(&str, &str)], impl FnMut(R) -> Vec<CellValue>),
    ) -> Self {
        Self { rows: rows.into_iter().map(values).collect(), ..Self::for_page(name, caption, columns) }
    }

    /// Adds a row with one value per column.
    pub fn push(&mut self, row: Vec<CellValue>) {
        debug_assert_eq!(row.len(), self.columns.len(), "a value for each column of {}", self.name);
        self.rows.push(row);
    }

    /// Adds a row of texts.
    pub fn push_texts(&mut self, cells: impl IntoIterator<Item = String>) {
        self.push(cells.into_iter().map(CellValue::Text).collect());
    }

    /// The same without the columns that have a value in no row.
    #[must_use]
    pub fn without_empty_columns(mut self) -> Self {
        if self.rows.is_empty() {
            return self;
        }
        let is_empty = |value: &CellValue| matches!(value.shown().as_str(), "" | "-" | "n/a" | "\u{2013}");
        let kept: Vec<bool> =
            (0..self.columns.len()).map(|at| !self.rows.iter().all(|row| is_empty(&row[at]))).collect();
        let mut keep = kept.iter();
        self.columns.retain(|_| keep.next() == Some(&true));
        for row in &mut self.rows {
            let mut keep = kept.iter();
            row.retain(|_| keep.next() == Some(&true));
        }
        self
    }

    /// Whether a column contains only numbers.
    #[must_use]
    pub fn is_number(&self, column: usize) -> bool {
        self.rows.iter().all(|row| row[column].is_number())
    }

    /// The table as text for a terminal; columns in which every cell is a number (or empty) are right-aligned.
    #[must_use]
    pub fn render(&self) -> String {
        let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let mut grid = self.terminal_grid(NOTHING);
        for (at, column) in grid.column_iter_mut().enumerate() {
            column.set_padding((0, 2));
            let mut cells = self.rows.iter().map(|row| row[at].shown());
            if cells.all(|cell| cell.is_empty() || is_number(&cell)) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        grid.trim_fmt() + "\n"
    }

    /// The table in Markdown, with padded columns.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        format!("{}\n", self.terminal_grid(ASCII_MARKDOWN))
    }

    fn terminal_grid(&self, style: &str) -> Grid {
        let safe = |text: &str| match style {
            ASCII_MARKDOWN => {
                printable_line(&text.replace('|', "\\|").replace(['\n', '\r'], " ")).into_owned()
            }
            _ => text.to_owned(),
        };
        let mut grid = Grid::new();
        grid.load_preset(style);
        grid.set_header(self.columns.iter().map(|column| safe(&column.title)));
        grid.add_rows(self.rows.iter().map(|row| row.iter().map(|value| safe(&value.shown()))));
        grid
    }

    /// Comma-separated values with raw numbers.
    ///
    /// # Panics
    ///
    /// If a row does not have one value per column.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let keys = self.columns.iter().map(|column| column.key.clone()).collect();
        let rows = self.rows.iter().map(|row| row.iter().map(CellValue::raw).collect());
        for record in std::iter::once(keys).chain(rows) {
            let record: Vec<String> = record;
            writer.write_record(record).expect("a value for each column");
        }
        let text = writer.into_inner().expect("memory takes every row");
        String::from_utf8(text).expect("the values are text")
    }

    /// A LaTeX table.
    #[must_use]
    pub fn to_latex(&self) -> String {
        let format: String =
            (0..self.columns.len()).map(|at| if self.is_number(at) { 'r' } else { 'l' }).collect();
        let titles: Vec<String> = self.columns.iter().map(|column| escape_latex(&column.title)).collect();
        let caption = printable_line(&one_line(&self.caption)).into_owned();
        let mut text = if caption.is_empty() { String::new() } else { format!("% {caption}\n") };
        text += &format!("\\begin{{tabular}}{{{format}}}\n\\hline\n{}\\hline\n", latex_row(&titles));
        for row in &self.rows {
            let values: Vec<String> = row.iter().map(|value| escape_latex(&value.shown())).collect();
            text += &latex_row(&values);
        }
        text + "\\hline\n\\end{tabular}\n"
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A row of cells. What follows the end of a row must not look like its argument (`[`) or its star.
fn latex_row(cells: &[String]) -> String {
    let row = cells.join(" & ");
    let guard = if row.trim_start().starts_with(['[', '*']) { "{}" } else { "" };
    format!("{guard}{row} \\\\\n")
}

/// A text whose letters stand for themselves.
fn escape_latex(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut before = ' ';
    for letter in printable_line(&one_line(text)).chars() {
        // Two of them would be one dash.
        if (before, letter) == ('-', '-') {
            safe.push_str("{}");
        }
        before = letter;
        match letter {
            '\\' => safe.push_str("\\textbackslash{}"),
            '~' => safe.push_str("\\textasciitilde{}"),
            '^' => safe.push_str("\\textasciicircum{}"),
            '<' => safe.push_str("\\textless{}"),
            '>' => safe.push_str("\\textgreater{}"),
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => safe.extend(['\\', letter]),
            '|' => safe.push_str("\\textbar{}"),
            '`' => safe.push_str("\\textasciigrave{}"),
            '\u{2013}' | '\u{2212}' => safe.push_str("--"),
            '\u{2026}' => safe.push_str("\\ldots{}"),
            '\u{d7}' => safe.push_str("\\ensuremath{\\times}"),
            '\u{2264}' => safe.push_str("\\ensuremath{\\leq}"),
            '\u{2265}' => safe.push_str("\\ensuremath{\\geq}"),
            '\u{202f}' => safe.push_str("\\,"),
            '\u{b5}' => safe.push_str("\\ensuremath{\\mu}"),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::for_page(
            "sample",
            "A sample, of 50 %.",
            &[("name", "Name"), ("height_bytes", "Height"), ("gap", "Gap")],
        );
        table.push(vec![CellValue::text("a,\"b\" <i>"), CellValue::Bytes(2048), CellValue::Share(0.0125)]);
        table.push(vec![
            CellValue::Link("x_1".to_owned(), "w/x.html".to_owned()),
            CellValue::Missing,
            CellValue::Heat(1.0, "r".to_owned()),
        ]);
        table
    }

    #[test]
    fn columns_without_a_value_are_left_out() {
        let mut table = Table::new(&["a", "b", "c", "d"]);
        assert_eq!(table.clone().without_empty_columns().columns.len(), 4, "no rows say nothing");
        table.push_texts(["1", "-", "", "x"].map(str::to_owned));
        table.push_texts(["2", "n/a", "3", "-"].map(str::to_owned));
        let titles = |table: &Table| table.columns.iter().map(|c| c.title.clone()).collect::<String>();
        let shown = table.without_empty_columns();
        assert_eq!(titles(&shown), "acd");
        let row: Vec<String> = shown.rows[1].iter().map(CellValue::shown).collect();
        assert_eq!(row, ["2", "3", "-"]);
    }

    #[test]
    fn csv_holds_raw_numbers() {
        insta::assert_snapshot!(sample().to_csv(), @r#"
        name,height_bytes,gap
        "a,""b"" <i>",2048,0.0125
        x_1,,1
        "#);
    }

    #[test]
    fn latex_is_escaped() {
        insta::assert_snapshot!(sample().to_latex(), @r#"
        % A sample, of 50 %.
        \begin{tabular}{lrr}
        \hline
        Name & Height & Gap \\
        \hline
        a,"b" \textless{}i\textgreater{} & 2.00 KiB & 1.25 \% \\
        x\_1 & -- & 100 \% \\
        \hline
        \end{tabular}
        "#);
    }

    /// What LaTeX would take for a command, an argument, a comment, a cell, a ligature.
    #[test]
    fn latex_is_balanced_whatever_the_cells_hold() {
        let nasty = [
            "\\end{tabular}",
            "a & b",
            "50 % off",
            "$x_1^2$",
            "{",
            "}}",
            "[2ex]",
            "*",
            "# 1",
            "~",
            "--start",
            "a\nb",
            "\\",
            "|x|",
            "\u{2265} 3 \u{d7} \u{b5}s\u{2026}",
            "`q` \"q\"",
            "a\u{202e}b\u{ffff}",
        ];
        let mut table = Table::new(&["[key]", "50 %"]);
        nasty.iter().for_each(|text| table.push_texts([(*text).to_owned(), "x".to_owned()]));
        let text = table.to_latex();
        // Characters that LaTeX reads, without those behind a backslash.
        let mut bare = String::new();
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            if letter == '\\' {
                letters.next();
            } else {
                bare.push(letter);
            }
        }
        let mut depth = 0_i32;
        for letter in bare.chars() {
            depth += i32::from(letter == '{') - i32::from(letter == '}');
            assert!(depth >= 0 && !"%$#_^~`|".contains(letter), "{letter}: {text}");
        }
        let (begins, ends) = (text.matches("\\begin").count(), text.matches("\\end{").count());
        assert_eq!((depth, begins, ends), (0, 1, 1), "{text}");
        let rows: Vec<&str> = text.lines().filter(|line| line.ends_with("\\\\")).collect();
        assert_eq!(rows.len(), nasty.len() + 1, "{text}");
        assert!(rows.iter().all(|row| row.replace("\\&", "").matches('&').count() == 1), "{text}");
        assert!(!rows.iter().any(|row| row.starts_with(['[', '*'])), "{text}");
        assert!(text.contains("-{}-start") && text.contains("a b & x"), "{text}");
        assert!(text.is_ascii(), "{text}");
    }

    #[test]
    fn numbers_stand_to_the_right_on_a_terminal() {
        let mut table = Table::new(&["planner", "height", "status"]);
        table.push_texts(["bump", "12345", "feasible"].map(str::to_owned));
        table.push_texts(["best-fit", "7", ""].map(str::to_owned));
        assert_eq!(
            table.render(),
            "planner   height  status\nbump       12345  feasible\nbest-fit       7\n"
        );
    }

    #[test]
    fn markdown_is_padded_and_bars_are_escaped() {
        let mut table = Table::new(&["k", "value"]);
        assert_eq!(table.to_markdown(), "| k | value |\n|---|-------|\n");
        table.push_texts(["a", "12"].map(str::to_owned));
        table.push_texts(["bcd", "x|y"].map(str::to_owned));
        assert_eq!(
            table.to_markdown(),
            "| k   | value |\n|-----|-------|\n| a   | 12    |\n| bcd | x\\|y  |\n"
        );
    }
}
