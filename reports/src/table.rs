//! Tables: on a page, as CSV with raw numbers, as LaTeX.

use maud::{Markup, html};

use crate::format::{bytes, count, nanoseconds, percent};

/// A value: shown for people, written raw into CSV.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Missing,
    Text(String),
    /// A text that leads to a page.
    Link(String, String),
    Count(u64),
    Bytes(u64),
    Nanoseconds(f64),
    /// A share, shown as a percentage.
    Share(f64),
    /// A share with a background that grows with it, and a remark.
    Heat(f64, String),
    Number(f64),
}

impl Value {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn count(number: usize) -> Self {
        Self::Count(number as u64)
    }

    pub(crate) fn or_missing(value: Option<Self>) -> Self {
        value.unwrap_or(Self::Missing)
    }

    /// As people read it.
    fn shown(&self) -> String {
        match self {
            Self::Missing => "\u{2013}".to_owned(),
            Self::Text(text) | Self::Link(text, _) => text.clone(),
            Self::Count(number) => count(*number),
            Self::Bytes(number) => bytes(*number),
            Self::Nanoseconds(number) => nanoseconds(*number),
            Self::Share(share) | Self::Heat(share, _) => percent(*share),
            Self::Number(number) if *number > 0.0 && *number < 0.001 => "< 0.001".to_owned(),
            Self::Number(number) => format!("{number:.3}"),
        }
    }

    /// As programs read it.
    fn raw(&self) -> String {
        match self {
            Self::Missing => String::new(),
            Self::Text(text) | Self::Link(text, _) => text.clone(),
            Self::Count(number) | Self::Bytes(number) => number.to_string(),
            // Logarithms differ in their last digits between machines: no digit is written that may.
            Self::Nanoseconds(number) => rounded(*number, 1),
            Self::Share(number) | Self::Heat(number, _) | Self::Number(number) => rounded(*number, 9),
        }
    }

    const fn is_number(&self) -> bool {
        !matches!(self, Self::Text(_) | Self::Link(..))
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// Its name in CSV, with the unit: `height_bytes`.
    pub(crate) key: String,
    /// Its name on pages.
    pub(crate) title: String,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    /// The name of its files.
    pub(crate) name: String,
    pub(crate) caption: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Value>>,
    /// Whether the column titles are turned, for many narrow columns.
    pub(crate) turned: bool,
}

impl Table {
    pub(crate) fn new(name: impl Into<String>, caption: impl Into<String>, columns: &[(&str, &str)]) -> Self {
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

    pub(crate) fn push(&mut self, row: Vec<Value>) {
        debug_assert_eq!(row.len(), self.columns.len(), "a value for each column of {}", self.name);
        self.rows.push(row);
    }

    /// The table on a page, with links to its files; `root` leads from the page to the report's folder.
    pub(crate) fn to_html(&self, root: &str) -> Markup {
        html! {
            figure.table {
                (self.grid(root))
                figcaption {
                    (self.caption) " "
                    a href=(format!("{root}tables/{}.csv", self.name)) { "CSV" } " "
                    a href=(format!("{root}tables/{}.tex", self.name)) { "LaTeX" }
                }
            }
        }
    }

    /// The table on a page, without files.
    pub(crate) fn to_html_alone(&self) -> Markup {
        html! { figure.table { (self.grid("")) figcaption { (self.caption) } } }
    }

    /// Whether a column holds numbers alone.
    fn is_number(&self, column: usize) -> bool {
        self.rows.iter().all(|row| row[column].is_number())
    }

    fn grid(&self, root: &str) -> Markup {
        html! {
            div.scroll {
                table.sortable.turned[self.turned] {
                    thead { tr { @for (at, column) in self.columns.iter().enumerate() { th.number[self.is_number(at)] scope="col" { span { (column.title) } } } } }
                    tbody { @for row in &self.rows { tr { @for value in row { (cell(value, root)) } } } }
                }
            }
        }
    }

    /// Comma-separated values with raw numbers.
    pub(crate) fn to_csv(&self) -> String {
        let keys: Vec<String> = self.columns.iter().map(|column| quoted(&column.key)).collect();
        let mut text = keys.join(",") + "\n";
        for row in &self.rows {
            let values: Vec<String> = row.iter().map(|value| quoted(&value.raw())).collect();
            text += &values.join(",");
            text.push('\n');
        }
        text
    }

    /// A LaTeX table.
    pub(crate) fn to_latex(&self) -> String {
        let format: String =
            (0..self.columns.len()).map(|at| if self.is_number(at) { 'r' } else { 'l' }).collect();
        let titles: Vec<String> = self.columns.iter().map(|column| latex(&column.title)).collect();
        let mut text = format!("% {}\n\\begin{{tabular}}{{{format}}}\n\\hline\n", one_line(&self.caption));
        text += &format!("{} \\\\\n\\hline\n", titles.join(" & "));
        for row in &self.rows {
            let values: Vec<String> = row.iter().map(|value| latex(&value.shown())).collect();
            text += &format!("{} \\\\\n", values.join(" & "));
        }
        text + "\\hline\n\\end{tabular}\n"
    }
}

/// A number with at most so many decimals.
fn rounded(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn cell(value: &Value, root: &str) -> Markup {
    let raw = value.raw();
    html! {
        @match value {
            Value::Text(text) => td { (text) },
            Value::Link(text, target) => td { a href=(format!("{root}{target}")) { (text) } },
            Value::Heat(share, remark) => {
                td.number.heat data-v=(raw) title=(remark) style=(format!("--h:{:.0}%", warmth(*share))) {
                    (value.shown())
                }
            }
            Value::Bytes(number) => td.number data-v=(raw) title=(format!("{} bytes", count(*number))) { (value.shown()) },
            Value::Missing => td.number.missing { (value.shown()) },
            _ => td.number data-v=(raw) { (value.shown()) },
        }
    }
}

/// How warm a share is, 0 to 100: logarithmic, 100 at a share of 1.
fn warmth(share: f64) -> f64 {
    let scale = crate::drawing::axis::Scale::Shifted { high: 1.0, shift: 0.01 };
    (scale.place(share) * 100.0).clamp(0.0, 100.0)
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn latex(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in one_line(text).chars() {
        match letter {
            '\\' => safe.push_str("\\textbackslash{}"),
            '~' => safe.push_str("\\textasciitilde{}"),
            '^' => safe.push_str("\\textasciicircum{}"),
            '<' => safe.push_str("\\textless{}"),
            '>' => safe.push_str("\\textgreater{}"),
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => safe.extend(['\\', letter]),
            '\u{2013}' => safe.push_str("--"),
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
        let mut table = Table::new(
            "sample",
            "A sample, of 50 %.",
            &[("name", "Name"), ("height_bytes", "Height"), ("gap", "Gap")],
        );
        table.push(vec![Value::text("a,\"b\" <i>"), Value::Bytes(2048), Value::Share(0.0125)]);
        table.push(vec![
            Value::Link("x_1".to_owned(), "w/x.html".to_owned()),
            Value::Missing,
            Value::Heat(1.0, "r".to_owned()),
        ]);
        table
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

    #[test]
    fn html_is_escaped() {
        let html = sample().to_html("../").into_string();
        assert!(html.contains("a,&quot;b&quot; &lt;i&gt;") && !html.contains("<i>"), "{html}");
        assert!(html.contains(r#"<a href="../w/x.html">x_1</a>"#), "{html}");
        assert!(html.contains(r#"data-v="0.0125">1.25 %"#) && html.contains("--h:100%"), "{html}");
    }
}
