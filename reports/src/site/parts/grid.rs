//! A long table that can be sorted and filtered in the browser.

use std::collections::BTreeSet;

use super::script_data;
use maud::{Markup, PreEscaped, html};
use planlab_results::table::{CellValue, Table};
use rustc_hash::FxHashMap;
use serde_json::{Value as Json, json};

use crate::data::natural::natural;

const SCRIPT: &str = include_str!("../../assets/cells.js");

/// A table with the information on its columns that the browser needs.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    /// The displayed rows.
    pub(crate) table: Table,
    /// All rows as comma-separated values.
    pub(crate) csv: String,
    /// The format of each column's values. A `word` is one of few texts, a `link` the path of a page.
    pub(crate) kinds: Vec<&'static str>,
    /// Columns with a list of choices, each with the text for no choice.
    pub(crate) choosers: Vec<(&'static str, &'static str)>,
    /// The columns in the order of the page, by their index; the file keeps the table's order.
    pub(crate) order: Vec<usize>,
    /// The pages of the words of the first column.
    pub(crate) pages: Vec<String>,
}

impl Grid {
    /// The distinct texts of a column, in natural order; empty for other columns.
    fn column_words(&self, column: usize) -> Vec<String> {
        if self.kinds[column] != "word" {
            return Vec::new();
        }
        let texts = self.table.rows.iter().filter_map(|row| match &row[column] {
            CellValue::Text(text) => Some(text.clone()),
            _ => None,
        });
        let mut words: Vec<String> = texts.collect::<BTreeSet<_>>().into_iter().collect();
        words.sort_by(|a, b| natural(a, b));
        words
    }

    fn grid_data<'w>(&self, words: &'w [Vec<String>]) -> Json {
        let title = |&at: &usize| {
            let column = &self.table.columns[at];
            json!({ "key": column.key, "title": column.title, "kind": self.kinds[at] })
        };
        let titles: Vec<Json> = self.order.iter().map(title).collect();
        let named = self.table.columns.iter().zip(words);
        let named: serde_json::Map<String, Json> =
            named.map(|(column, words)| (column.key.clone(), json!(words))).collect();
        let number = |words: &'w Vec<String>| words.iter().map(String::as_str).zip(0..).collect();
        let numbers: Vec<FxHashMap<&str, usize>> = words.iter().map(number).collect();
        let row = |row: &Vec<CellValue>| -> Vec<Json> {
            self.order.iter().map(|&at| encode_value(&row[at], &numbers[at])).collect()
        };
        let rows: Vec<Vec<Json>> = self.table.rows.iter().map(row).collect();
        json!({ "columns": titles, "words": named, "rows": rows, "pages": self.pages })
    }
}

pub(crate) fn grid_html(grid: &Grid, root: &str) -> Markup {
    debug_assert!(root.is_empty(), "the browser finds the pages beside this one");
    let words: Vec<Vec<String>> = (0..grid.kinds.len()).map(|column| grid.column_words(column)).collect();
    let data = grid.grid_data(&words);
    let options = |key: &str| {
        let column = grid.table.columns.iter().position(|column| column.key == key);
        column.map_or(&[][..], |column| &words[column])
    };
    let columns = || grid.order.iter().map(|&at| (&grid.table.columns[at], &grid.kinds[at]));
    html! {
        noscript { p.alert { "This table needs JavaScript; the CSV file holds the same rows." } }
        div.filters {
            input type="search" placeholder="words, -words" aria-label="words" data-filter="q";
            @for (key, all) in &grid.choosers { (chooser_html(key, all, options(key))) }
            button #reset type="button" { "reset" }
            span #shown aria-live="polite" {}
        }
        div #grid tabindex="0" {
            table {
                thead { tr { @for (column, kind) in columns() { th.number[!matches!(*kind, "word" | "text" | "link")] scope="col" { (column.title) } } } }
                tbody {}
            }
        }
        script #data type="application/json" { (script_data(&data)) }
        script { (PreEscaped(SCRIPT)) }
    }
}

fn chooser_html(key: &str, all: &str, options: &[String]) -> Markup {
    html! {
        select data-filter=(key) aria-label=(key) {
            option value="" { (all) }
            @for option in options { option value=(option) { (option) } }
        }
    }
}

fn encode_value(value: &CellValue, words: &FxHashMap<&str, usize>) -> Json {
    match value {
        CellValue::Missing => Json::Null,
        CellValue::Text(text) | CellValue::Link(text, _) => {
            words.get(text.as_str()).map_or_else(|| json!(text), |number| json!(number))
        }
        CellValue::Count(number) | CellValue::Bytes(number) => json!(number),
        CellValue::Nanoseconds(number)
        | CellValue::Share(number)
        | CellValue::Heat(number, _)
        | CellValue::Number(number) => {
            json!(number)
        }
    }
}
