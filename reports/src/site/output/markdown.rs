//! Writes a page as Markdown, without pictures.

use crate::site::page::{Page, Piece, Span, Text};

/// Name and content of each file: the page, its tables in LaTeX, then the CSV of tables without a place on the page.
pub(crate) fn page_files(page: &Page) -> Vec<(String, String)> {
    let tables = page.files.iter().map(|table| (format!("{}.csv", table.name), table.to_csv()));
    let name = page.file.strip_suffix(".md").unwrap_or(&page.file);
    let pages =
        [(page.file.clone(), page_markdown(page)), (format!("{name}.tex"), tables_as_latex(&page.pieces))];
    pages.into_iter().chain(tables).collect()
}

/// The tables of a page, each with the heading above it as a comment.
fn tables_as_latex(pieces: &[Piece]) -> String {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Heading(title) | Piece::Subheading(title) => text += &format!("% {title}\n"),
            Piece::Table(table) | Piece::Folded(_, table) => text += &(table.to_latex() + "\n"),
            Piece::Grid(grid) => text += &(grid.table.to_latex() + "\n"),
            Piece::Panels(panels) => panels.iter().for_each(|panel| text += &tables_as_latex(panel)),
            _ => {}
        }
    }
    text
}

fn page_markdown(page: &Page) -> String {
    let mut markdown = format!("# {}\n\n", text_markdown(&page.heading));
    for piece in page.pieces.iter().filter_map(piece_markdown) {
        markdown += piece.trim_end_matches('\n');
        markdown += "\n\n";
    }
    markdown
}

fn piece_markdown(piece: &Piece) -> Option<String> {
    Some(match piece {
        Piece::Heading(title) => format!("## {title}"),
        Piece::Subheading(title) => format!("### {title}"),
        Piece::Text(_, words) => text_markdown(words),
        Piece::List(items) => items.iter().map(|item| format!("- {}\n", text_markdown(item))).collect(),
        Piece::Panels(panels) => {
            panels.iter().flatten().filter_map(self::piece_markdown).collect::<Vec<_>>().join("\n\n")
        }
        Piece::Facts(facts) => facts.iter().map(|(name, value)| format!("- {name}: {value}\n")).collect(),
        Piece::Table(table) | Piece::Folded(_, table) => table.to_markdown(),
        Piece::Grid(grid) => grid.table.to_markdown(),
        Piece::Verbatim(text) => format!("```\n{}\n```", text.trim_end_matches('\n')),
        Piece::Figure(_) | Piece::Picture(_) | Piece::Pictures(_) | Piece::Timeline(_) | Piece::Viewer(_) => {
            return None;
        }
    })
}

fn text_markdown(text: &Text) -> String {
    let span = |span: &Span| match span {
        Span::Plain(text) => text.clone(),
        Span::Code(text) => format!("`{text}`"),
        Span::Emphasis(text) => format!("*{text}*"),
        Span::Strong(text) => format!("**{text}**"),
        Span::Link(text, target) => format!("[{text}]({target})"),
    };
    text.0.iter().map(span).collect()
}

#[cfg(test)]
mod tests {
    use planlab_results::table::Table;

    use super::*;

    #[test]
    fn pieces_have_a_blank_line_between_them() {
        let mut table = Table::new(&["k", "v"]);
        table.push_texts(["a", "1"].map(str::to_owned));
        let made =
            Text::from("Made by ").code("x").plain(": ").strong("bold").plain(", ").link("here", "y.md");
        let pieces = [Piece::text(made), Piece::heading("Head"), Piece::Table(table)];
        let files = page_files(&Page::new("x.md", "Title").with(pieces.clone()));
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["x.md", "x.tex"]);
        assert_eq!(
            files[1].1,
            "% Head\n\\begin{tabular}{ll}\n\\hline\nk & v \\\\\n\\hline\na & 1 \\\\\n\\hline\n\\end{tabular}\n\n"
        );
        assert_eq!(
            page_markdown(&Page::new("x.md", "Title").with(pieces)),
            "# Title\n\nMade by `x`: **bold**, [here](y.md)\n\n## Head\n\n| k | v |\n|---|---|\n| a | 1 |\n\n"
        );
    }
}
