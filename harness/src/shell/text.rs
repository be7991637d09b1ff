//! What a verb says: words, and tables that `--table` gives another form.

use std::ops::{Add, AddAssign};

use planlab_results::table::Table;

/// The form of tables on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
pub(crate) enum TableForm {
    Csv,
    Markdown,
    Latex,
}

/// An empty table with these titles, which are separated by commas.
pub(crate) fn titled_table(titles: &str) -> Table {
    Table::new(&titles.split(", ").collect::<Vec<_>>())
}

/// Words and tables in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text(Vec<Part>);

#[derive(Clone, Debug)]
enum Part {
    Words(String),
    Table(Table),
}

impl Text {
    /// All of it for a terminal, with aligned columns.
    pub(crate) fn plain(&self) -> String {
        let part = |part: &Part| match part {
            Part::Words(words) => words.clone(),
            Part::Table(table) => table.render(),
        };
        self.0.iter().map(part).collect()
    }

    /// The tables in another form, with a blank line between two; `None` if there is no table.
    pub(crate) fn tables_as(&self, form: TableForm) -> Option<String> {
        let written = |table: &Table| match form {
            TableForm::Csv => table.to_csv(),
            TableForm::Markdown => table.to_markdown(),
            TableForm::Latex => table.to_latex(),
        };
        let tables = self.0.iter().filter_map(|part| match part {
            Part::Table(table) => Some(written(table)),
            Part::Words(_) => None,
        });
        let tables: Vec<String> = tables.collect();
        (!tables.is_empty()).then(|| tables.join("\n"))
    }

    /// The lines between the tables that are not blank.
    pub(crate) fn text_lines(&self) -> String {
        let words = self.0.iter().filter_map(|part| match part {
            Part::Words(words) => Some(words.as_str()),
            Part::Table(_) => None,
        });
        let lines = words.flat_map(str::lines).filter(|line| !line.trim().is_empty());
        lines.map(|line| format!("{line}\n")).collect()
    }
}

impl From<Table> for Text {
    fn from(table: Table) -> Self {
        Self(vec![Part::Table(table)])
    }
}

impl From<String> for Text {
    fn from(words: String) -> Self {
        Self(vec![Part::Words(words)])
    }
}

impl From<&str> for Text {
    fn from(words: &str) -> Self {
        words.to_owned().into()
    }
}

impl<T: Into<Self>> Add<T> for Text {
    type Output = Self;

    fn add(mut self, more: T) -> Self {
        self += more;
        self
    }
}

impl<T: Into<Self>> AddAssign<T> for Text {
    fn add_assign(&mut self, more: T) {
        self.0.extend(more.into().0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_stand_apart_from_words() {
        let table = |title: &str| {
            let mut table = Table::new(&[title, "share"]);
            table.push_texts(["a_b|c".to_owned(), "5 %".to_owned()]);
            table
        };
        let text =
            Text::from("head\n\n") + table("one") + "between\n\n" + table("two") + String::from("end\n");
        assert_eq!(
            text.plain(),
            "head\n\none    share\na_b|c    5 %\nbetween\n\ntwo    share\na_b|c    5 %\nend\n"
        );
        assert_eq!(text.text_lines(), "head\nbetween\nend\n");
        let tables = |form| text.tables_as(form).expect("two tables");
        assert_eq!(tables(TableForm::Csv), "one,share\na_b|c,5 %\n\ntwo,share\na_b|c,5 %\n");
        assert!(tables(TableForm::Markdown).starts_with("| one    | share |\n"));
        assert!(tables(TableForm::Latex).contains("\na\\_b\\textbar{}c & 5 \\% \\\\\n"));
        assert_eq!(Text::from("no table\n").tables_as(TableForm::Csv), None);
    }
}
