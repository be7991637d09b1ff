//! A table of CSV as its columns.

use std::fmt::Write;

/// Writes the cell of a row.
type WriteCell<'t> = Box<dyn Fn(&mut String, usize) + 't>;

/// The columns of a table that it uses, by name.
#[derive(Default)]
pub(crate) struct Columns<'t>(Vec<(&'static str, WriteCell<'t>)>);

impl<'t> Columns<'t> {
    pub(crate) fn cells(
        &mut self,
        is_used: bool,
        name: &'static str,
        cell: impl Fn(&mut String, usize) + 't,
    ) {
        if is_used {
            self.0.push((name, Box::new(cell)));
        }
    }

    pub(crate) fn numbers(
        &mut self,
        is_used: bool,
        name: &'static str,
        number: impl Fn(usize) -> Option<u64> + 't,
    ) {
        self.cells(is_used, name, move |out, row| {
            number(row).into_iter().for_each(|value| put(out, value));
        });
    }

    pub(crate) fn texts(
        &mut self,
        is_used: bool,
        name: &'static str,
        text: impl Fn(usize) -> Option<&'t str> + 't,
    ) {
        self.cells(is_used, name, move |out, row| quote(out, text(row).unwrap_or("")));
    }

    /// Writes the header and a number of rows.
    pub(crate) fn write(&self, rows: usize, out: &mut String) {
        let names: Vec<&str> = self.0.iter().map(|(name, _)| *name).collect();
        out.push_str(&names.join(","));
        out.push('\n');
        for row in 0..rows {
            for (index, (_, cell)) in self.0.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                cell(out, row);
            }
            out.push('\n');
        }
    }
}

/// Writes a number.
pub(crate) fn put(out: &mut String, value: u64) {
    write!(out, "{value}").expect("a string takes everything");
}

/// Whether a text cell needs no quotes.
pub(crate) fn is_plain(text: &str) -> bool {
    text.trim_ascii() == text && !text.starts_with('#') && !text.contains([',', '"', '\n', '\r'])
}

/// Writes a text cell, quoted if necessary. Line feeds become spaces, so that a row is one line.
pub(crate) fn quote(out: &mut String, text: &str) {
    if is_plain(text) {
        out.push_str(text);
        return;
    }
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\"\""),
            '\n' => out.push(' '),
            letter => out.push(letter),
        }
    }
    out.push('"');
}
