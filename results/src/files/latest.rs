//! Keeps the latest row of each cell and repetition.

use std::collections::BTreeMap;

use crate::rows::Row;

/// Rows in the order of their first appearance, only the latest of each cell and repetition.
#[derive(Debug)]
pub(crate) struct Latest<R> {
    rows: Vec<R>,
    index: BTreeMap<(String, u32), usize>,
}

impl<R: Row> Latest<R> {
    /// Keeps the latest of each.
    pub(crate) fn from_rows(rows: impl IntoIterator<Item = R>) -> Self {
        let mut latest = Self { rows: Vec::new(), index: BTreeMap::new() };
        for row in rows {
            latest.put_row(row);
        }
        latest
    }

    /// Adds a row; returns its index, or `None` if the identical row is already present.
    pub(crate) fn put_row(&mut self, row: R) -> Option<usize> {
        let (cell, repetition) = row.key();
        let key = (cell.to_owned(), repetition);
        if let Some(&at) = self.index.get(&key) {
            if self.rows[at] == row {
                return None;
            }
            self.rows[at] = row;
            return Some(at);
        }
        self.index.insert(key, self.rows.len());
        self.rows.push(row);
        Some(self.rows.len() - 1)
    }

    pub(crate) fn get(&self, cell: &str, repetition: u32) -> Option<&R> {
        self.index.get(&(cell.to_owned(), repetition)).map(|&at| &self.rows[at])
    }

    pub(crate) fn rows(&self) -> &[R] {
        &self.rows
    }

    pub(crate) fn into_rows(self) -> Vec<R> {
        self.rows
    }
}
