//! Tables that can be read as text and rendered as Markdown.

use std::fmt::Write;

/// A Markdown table, columns padded.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let header: Vec<String> = header.iter().map(ToString::to_string).collect();
    let width = |column: usize| {
        let cells = rows.iter().chain([&header]).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |row: &[String]| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!(" {cell:<width$} |"));
        format!("|{}", cells.collect::<String>())
    };
    let rule: String = widths.iter().map(|width| format!("{}|", "-".repeat(width + 2))).collect();
    let mut text = String::new();
    let _ = writeln!(text, "{}\n|{rule}", line(&header));
    for row in rows {
        let _ = writeln!(text, "{}", line(row));
    }
    text
}

/// Lines of comma-separated cells, quoted where they must be.
pub(crate) fn csv(header: &[&str], rows: &[Vec<String>]) -> String {
    let quote = |cell: &str| {
        if cell.contains([',', '"', '\n']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell.to_owned()
        }
    };
    let mut text = format!("{}\n", header.join(","));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| quote(cell)).collect();
        let _ = writeln!(text, "{}", cells.join(","));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_padded_and_cells_quoted() {
        let rows = vec![vec!["a".to_owned(), "12".to_owned()], vec!["bcd".to_owned(), "x, \"y\"".to_owned()]];
        assert_eq!(
            table(&["k", "value"], &rows),
            "| k   | value  |\n|-----|--------|\n| a   | 12     |\n| bcd | x, \"y\" |\n"
        );
        assert_eq!(csv(&["k", "value"], &rows), "k,value\na,12\nbcd,\"x, \"\"y\"\"\"\n");
    }
}
