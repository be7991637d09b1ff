//! Keeps one row of each cell and repetition: the latest, or the best.

use std::collections::BTreeMap;

use crate::rows::{Row, RowKind, rank_row};

/// Rows in the order of their first appearance, only one of each cell and repetition.
#[derive(Debug)]
pub(crate) struct Latest<R> {
    rows: Vec<Row<R>>,
    index: BTreeMap<(String, u32), usize>,
}

impl<R: RowKind> Latest<R> {
    /// Keeps the latest of each.
    pub(crate) fn from_rows(rows: impl IntoIterator<Item = Row<R>>) -> Self {
        let mut latest = Self { rows: Vec::new(), index: BTreeMap::new() };
        for row in rows {
            latest.put_row(row);
        }
        latest
    }

    /// Keeps the best of each; among equals the latest.
    pub(crate) fn best_of(rows: impl IntoIterator<Item = Row<R>>) -> Self {
        let mut best = Self::from_rows([]);
        for row in rows {
            let there = best.get(&row.cell, row.repetition);
            if there.is_none_or(|there| rank_row(there) <= rank_row(&row)) {
                best.put_row(row);
            }
        }
        best
    }

    /// Adds a row; returns its index, or `None` if the identical row is already present.
    pub(crate) fn put_row(&mut self, row: Row<R>) -> Option<usize> {
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

    pub(crate) fn get(&self, cell: &str, repetition: u32) -> Option<&Row<R>> {
        self.index.get(&(cell.to_owned(), repetition)).map(|&at| &self.rows[at])
    }

    pub(crate) fn rows(&self) -> &[Row<R>] {
        &self.rows
    }

    pub(crate) fn into_rows(self) -> Vec<Row<R>> {
        self.rows
    }
}
