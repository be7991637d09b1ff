//! The header line: the order of the columns.

use std::borrow::Cow;

use strsim::osa_distance;

use super::cells::split;
use crate::formats::error::quote_excerpt;
use crate::nearest::did_you_mean;

/// A valid trace has fewer columns; a longer line is not a header.
const MOST_COLUMNS: usize = 256;

planlab_dsa::named_enum! {
    /// The content of a column, by the name that messages use.
    pub(crate) enum Column {
        Id = "id",
        Lower = "lower",
        Upper = "upper",
        /// The last step of the live range, inclusive.
        End = "end",
        Size = "size",
        Alignment = "alignment",
        Offset = "offset",
        Hint = "hint",
        Gaps = "gaps",
        MayOverwrite = "may_overwrite",
        Overwrites = "overwrites",
        Apart = "apart",
        Arena = "arena",
        Category = "category",
        Op = "op",
        Step = "step",
        Event = "event",
        Stream = "stream",
    }
}

impl Column {
    /// Whether a misspelt name may mean it: the file would silently lose its data.
    const fn may_be_misspelt(self) -> bool {
        !matches!(self, Self::End | Self::Overwrites | Self::Op | Self::Step | Self::Stream)
    }

    fn from_name(name: &str) -> Option<Self> {
        match name {
            "buffer" | "buffer_id" => Some(Self::Id),
            "begin" | "start" => Some(Self::Lower),
            _ => Self::ALL.into_iter().find(|column| column.name() == name),
        }
    }
}

/// The position of each column.
pub(crate) struct Header {
    at: [Option<usize>; Column::ALL.len()],
    names: Vec<String>,
    /// Names of unknown columns.
    pub(crate) unknown: Vec<String>,
}

impl Header {
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let mut fields = Vec::new();
        split(line, MOST_COLUMNS, &mut fields)?;
        if fields.len() > MOST_COLUMNS {
            let line = quote_excerpt(line);
            return Err(format!("the header has more than {MOST_COLUMNS} columns: `{line}`"));
        }
        let names: Vec<String> = fields.iter().map(|field| field.to_ascii_lowercase()).collect();
        let mut header = Self { at: [None; Column::ALL.len()], names, unknown: Vec::new() };
        for index in 0..header.names.len() {
            header.enter_column(index)?;
        }
        if let (Some(upper), Some(end)) =
            (header.column_index(Column::Upper), header.column_index(Column::End))
        {
            return Err(header.duplicate_reason(upper, end));
        }
        Ok(header)
    }

    fn enter_column(&mut self, index: usize) -> Result<(), String> {
        match Column::from_name(&self.names[index]) {
            None => self.unknown.push(self.names[index].clone()),
            Some(column) => match self.at[column as usize] {
                Some(first) => return Err(self.duplicate_reason(first, index)),
                None => self.at[column as usize] = Some(index),
            },
        }
        Ok(())
    }

    fn duplicate_reason(&self, first: usize, second: usize) -> String {
        format!("the columns `{}` and `{}` say the same thing", self.names[first], self.names[second])
    }

    /// Rejects an unknown column whose name resembles a column that the header lacks.
    pub(crate) fn no_typo(&self) -> Result<(), String> {
        for name in &self.unknown {
            let lacks = |column: &Column| column.may_be_misspelt() && !self.has_column(*column);
            let mut lacking = Column::ALL.into_iter().filter(lacks).map(Column::name);
            if let Some(meant) = lacking.find(|known| is_slip(name, known)) {
                return Err(format!("unknown column `{}`{}", quote_excerpt(name), did_you_mean(&[meant])));
            }
        }
        Ok(())
    }

    pub(crate) fn column_index(&self, column: Column) -> Option<usize> {
        self.at[column as usize]
    }

    pub(crate) fn has_column(&self, column: Column) -> bool {
        self.column_index(column).is_some()
    }

    /// How many of its columns are known.
    pub(crate) fn known_columns(&self) -> usize {
        self.at.iter().flatten().count()
    }

    /// Rejects a header that lacks one of `columns`.
    pub(crate) fn require_columns(&self, columns: &[Column]) -> Result<(), String> {
        let missing = columns.iter().filter(|&&column| !self.has_column(column));
        let missing: Vec<String> = missing.map(|column| format!("`{}`", column.name())).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let mut shown = String::new();
        for name in &self.names {
            let separator = if shown.is_empty() { "" } else { ", " };
            if shown.len() > 300 {
                shown.push_str(", ...");
                break;
            }
            shown = format!("{shown}{separator}`{}`", quote_excerpt(name));
        }
        let columns = if missing.len() == 1 { "column" } else { "columns" };
        let is_other = self.names.len() == 1 && self.names[0].contains([';', '\t']);
        let hint = if is_other { "; columns are separated by commas" } else { "" };
        Err(format!("missing {columns} {}; the header has {shown}{hint}", missing.join(", ")))
    }

    /// Rejects a header that has one of `columns`.
    pub(crate) fn forbid_columns(&self, columns: &[Column], why: &str) -> Result<(), String> {
        match columns.iter().find_map(|&column| self.column_index(column)) {
            Some(index) => Err(format!("the column `{}` {why}", self.names[index])),
            None => Ok(()),
        }
    }

    /// Splits a row; rejects one whose number of fields differs from the header's.
    pub(crate) fn split_row<'a>(&self, line: &'a str) -> Result<Vec<Cow<'a, str>>, String> {
        let columns = self.names.len();
        let mut fields = Vec::with_capacity(columns);
        split(line, columns, &mut fields)?;
        match fields.len() {
            count if count == columns => Ok(fields),
            count if count > columns => Err(format!("more fields than the header's {columns}")),
            count => Err(format!("{count} fields, but the header has {columns}")),
        }
    }

    /// The field of a column; empty if the column does not exist.
    pub(crate) fn field_of<'f>(&self, fields: &'f [Cow<'_, str>], column: Column) -> &'f str {
        self.column_index(column).map_or("", |index| &fields[index])
    }
}

/// Whether a name differs from a column's by one letter (by two for long names), or is a prefix of it. Short words are
/// too similar to each other to decide.
fn is_slip(name: &str, known: &str) -> bool {
    const SHORT: usize = 3;
    const LONG: usize = 8;
    // Column names are ASCII, and far shorter than this.
    let start: String = name.chars().take(32).collect();
    let most = if known.len() < LONG { 1 } else { 2 };
    let is_beginning = start.chars().count() > SHORT && known.starts_with(name);
    known.len() > SHORT && (osa_distance(&start, known) <= most || is_beginning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_from_a_word_of_its_own() {
        let meant = |name: &str| {
            let header = Header::parse(&format!("id,lower,upper,size,{name}")).expect("a header");
            header.no_typo().err()
        };
        for (name, known) in [
            ("aligment", "alignment"),
            ("Allignement", "alignment"),
            ("align", "alignment"),
            ("ofset", "offset"),
            ("hints", "hint"),
            ("gap", "gaps"),
            ("may-overwrite", "may_overwrite"),
            ("arenas", "arena"),
        ] {
            let expected = format!("unknown column `{}`; did you mean `{known}`?", name.to_ascii_lowercase());
            assert_eq!(meant(name), Some(expected));
        }
        // The last four resemble a column that is present, or one without any data here.
        for name in [
            "name", "kind", "layer", "time", "type", "device", "segment", "comment", "line", "ptr", "idx",
            "sizes", "power", "ops", "stop",
        ] {
            assert_eq!(meant(name), None, "{name}");
        }
        let header = Header::parse("id,lower,uper,size").expect("a header");
        assert!(header.no_typo().is_err_and(|reason| reason.contains("`upper`")));
    }
}
