//! Writes a page as HTML.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use planlab_dsa::printable_text;
use planlab_results::table::{CellValue, Table};

use crate::ReportError;
use crate::format::format_count;
use crate::site::page::{Entry, Figure, Head, Menu, Page, Picture, Piece, Span, Style, Text};
use crate::site::parts::{grid, timeline, viewer};

const STYLE: &str = include_str!("../../assets/style.css");
const SORTING: &str = include_str!("../../assets/tables.js");

/// The common data of all pages of a report.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// The command that makes the report again.
    pub(crate) command: String,
    /// A description of its records.
    pub(crate) records: String,
    /// File and place of every page in the navigation.
    pub(crate) links: Vec<(String, Entry)>,
}

pub(crate) fn page_html(page: &Page, frame: &Frame) -> Result<String, ReportError> {
    let root = "../".repeat(page.file.matches('/').count());
    let script =
        page.has_viewer().then(|| html! { script src=(format!("{root}{}", viewer::SCRIPT_FILE)) {} });
    Ok(document_html(
        page,
        &html! {
            header {
                strong { "planlab" }
                (navigation_html(page, frame, &root))
            }
            main { (body_html(page, &root)?) }
            footer {
                "Made by " code { (frame.command) } " from " (frame.records) "."
            }
            (script.unwrap_or_default())
        },
    ))
}

/// The questions, by menu. Of several menus only one is open; a menu of one page is a link.
fn navigation_html(page: &Page, frame: &Frame, root: &str) -> Markup {
    let mut links: Vec<&(String, Entry)> = frame.links.iter().collect();
    links.sort_by_key(|(_, entry)| entry.menu);
    let link = |(file, entry): &(String, Entry)| {
        let current = (*file == page.file).then_some("page");
        html! { a href=(format!("{root}{file}")) aria-current=[current] { (entry.question) } }
    };
    html! {
        nav aria-label="Questions" {
            @for menu in links.chunk_by(|a, b| a.1.menu == b.1.menu) {
                @if menu[0].1.menu == Menu::Top || menu.len() == 1 {
                    @for entry in menu { (link(entry)) }
                } @else {
                    details name="menu" {
                        summary { (menu[0].1.menu.name()) }
                        div { @for entry in menu { (link(entry)) } }
                    }
                }
            }
        }
    }
}

/// A standalone page, as a single file.
pub(crate) fn page_alone(page: &Page, command: &str) -> Result<String, ReportError> {
    let script = page.has_viewer().then(|| html! { script { (PreEscaped(viewer::SCRIPT)) } });
    Ok(document_html(
        page,
        &html! {
            main { (body_html(page, "")?) }
            footer { "Made by " code { (command) } "." }
            (script.unwrap_or_default())
        },
    ))
}

fn document_html(page: &Page, body: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (page.title) }
                // An empty icon prevents browsers from requesting one.
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) @if page.has_viewer() { (PreEscaped(viewer::STYLE)) } }
            }
            body {
                (body)
                script { (PreEscaped(SORTING)) }
            }
        }
    };
    // What a page shows is of many hands; no letter of it hides or turns the text around it.
    printable_text(&markup.into_string()).into_owned()
}

/// Title and pieces; `root` is the path from the page to the report's folder.
fn body_html(page: &Page, root: &str) -> Result<Markup, ReportError> {
    let pieces = pieces_html(&page.pieces, root)?;
    Ok(html! {
        h1 { (text_html(&page.heading, root)) }
        (pieces)
        @if page.has_timelines() { script { (PreEscaped(timeline::SCRIPT)) } }
    })
}

fn pieces_html(pieces: &[Piece], root: &str) -> Result<Markup, ReportError> {
    let parts: Vec<Markup> = pieces.iter().map(|part| piece_html(part, root)).collect::<Result<_, _>>()?;
    Ok(html! { @for part in parts { (part) } })
}

fn piece_html(piece: &Piece, root: &str) -> Result<Markup, ReportError> {
    Ok(match piece {
        Piece::Heading(title) => html! { h2 { (title) } },
        Piece::Subheading(title) => html! { h3 { (title) } },
        Piece::Text(style, words) => paragraph_html(*style, &text_html(words, root)),
        Piece::List(items) => html! { ul.findings { @for item in items { li { (text_html(item, root)) } } } },
        Piece::Panels(panels) => {
            let panels = panels.iter().map(|panel| pieces_html(panel, root));
            let panels: Vec<Markup> = panels.collect::<Result<_, _>>()?;
            html! { div.panels { @for panel in panels { section { (panel) } } } }
        }
        Piece::Facts(facts) => html! {
            dl.facts { @for (name, value) in facts { dt { (name) } dd { (value) } } }
        },
        Piece::Table(table) => table_html(table, root),
        Piece::Folded(name, table) => html! { details { summary { (name) } (table_html(table, root)) } },
        Piece::Figure(part) => figure_html(part)?,
        Piece::Picture(part) => picture_html(part, root),
        Piece::Pictures(parts) => html! { div.pair { @for part in parts { (picture_html(part, root)) } } },
        Piece::Grid(grid) => grid::grid_html(grid, root),
        Piece::Timeline(part) => timeline::timeline_html(part),
        Piece::Viewer(part) => viewer::viewer_html(part),
        Piece::Verbatim(text) => html! { pre { (text) } },
    })
}

fn paragraph_html(style: Style, text: &Markup) -> Markup {
    match style {
        Style::Lead => html! { p.lead { (text) } },
        Style::Plain => html! { p { (text) } },
        Style::Note => html! { p.note { (text) } },
        Style::Fine => html! { p.fine { (text) } },
        Style::Alert => html! { p.alert { (text) } },
    }
}

fn text_html(text: &Text, root: &str) -> Markup {
    html! {
        @for span in &text.0 {
            @match span {
                Span::Plain(text) => (text),
                Span::Code(text) => code { (text) },
                Span::Emphasis(text) => em { (text) },
                Span::Strong(text) => strong { (text) },
                Span::Link(text, target) => a href=(format!("{root}{target}")) { (text) },
            }
        }
    }
}

/// A plot of at most this width in pixels fits half a page; its letters stay readable there.
const SMALL: u32 = 700;

fn figure_html(figure: &Figure) -> Result<Markup, ReportError> {
    let (title, svg) = (figure.drawing.title(), figure.drawing.to_inline_svg()?);
    Ok(html! {
        @match figure.head {
            Head::None => {},
            Head::Heading => h2 { (title) },
            Head::Subheading => h3 { (title) },
        }
        figure { div.plot.small[figure.drawing.size().0 <= SMALL] tabindex="0" { (PreEscaped(svg)) } figcaption { (figure.caption) } }
    })
}

fn picture_html(picture: &Picture, root: &str) -> Markup {
    let Picture { file, size: (width, height), caption, is_tall } = picture;
    let target = format!("{root}{file}");
    let image = html! { img src=(target) width=(width) height=(height) alt=(caption) loading="lazy"; };
    html! {
        figure.map {
            @if *is_tall { div.tall tabindex="0" { (image) } } @else { a href=(target) { (image) } }
            figcaption { (caption) }
        }
    }
}

/// A table of more rows scrolls in a frame of its own, so that its titles stay in view.
const HIGH: usize = 30;

/// A table, with links to its files if it has any.
fn table_html(table: &Table, root: &str) -> Markup {
    html! {
        figure.table {
            p.note.sideways hidden { "Scroll sideways: the table continues to the right." }
            div.scroll.high[table.rows.len() > HIGH] tabindex="0" {
                table.sortable.turned[table.turned] {
                    thead { tr { @for (at, column) in table.columns.iter().enumerate() { th.number[table.is_number(at)] scope="col" { span { (column.title) } } } } }
                    tbody { @for row in &table.rows { tr { @for (at, value) in row.iter().enumerate() { (cell_html(value, table.is_number(at), root)) } } } }
                }
            }
            figcaption {
                (table.caption)
                @if !table.name.is_empty() {
                    " " a href=(format!("{root}tables/{}.csv", table.name)) { "CSV" } " "
                    a href=(format!("{root}tables/{}.tex", table.name)) { "LaTeX" }
                }
            }
        }
    }
}

/// Longer texts need a wide column, and their links may break.
const LONG: usize = 44;

fn cell_html(value: &CellValue, is_number: bool, root: &str) -> Markup {
    let raw = value.raw();
    html! {
        @match value {
            CellValue::Text(text) => td.long[text.chars().count() > LONG] { (text) },
            CellValue::Link(text, target) => td.long[text.chars().count() > LONG] { a href=(format!("{root}{target}")) { (text) } },
            CellValue::Heat(share, remark) => {
                td.number.heat data-v=(raw) title=(remark) style=(format!("--h:{:.0}%", cell_warmth(*share))) {
                    (value.shown())
                }
            }
            CellValue::Bytes(number) => td.number data-v=(raw) title=(format!("{} bytes", format_count(*number))) { (value.shown()) },
            CellValue::Missing => td.missing.number[is_number] { (value.shown()) },
            _ => td.number data-v=(raw) { (value.shown()) },
        }
    }
}

/// The colour of a share on a logarithmic scale from 0 to 100; 100 at a share of 1.
fn cell_warmth(share: f64) -> f64 {
    const SHIFT: f64 = 0.01;
    let place = (share.max(0.0) / SHIFT).ln_1p() / (1.0 / SHIFT).ln_1p();
    if place.is_finite() { (place * 100.0).clamp(0.0, 100.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paper_gets_whole_tables_and_the_colours_that_mean_something() {
        let (_, print) = STYLE.split_once("@media print").expect("a style for paper");
        assert!(print.contains("td.heat, .keys i, .map img") && print.contains("print-color-adjust: exact"));
        assert!(print.contains(".scroll, .scroll.high, .plot, .tall, #grid { overflow: visible"));
        assert!(print.contains("table:has(th:nth-child(22))") && print.contains("nav, .filters"));
        assert!(
            print.contains("details:has(table.turned)::details-content { content-visibility: visible; }")
        );
    }

    #[test]
    fn html_is_escaped() {
        let columns = [("name", "Name"), ("height_bytes", "Height"), ("gap", "Gap")];
        let mut table = Table::for_page("sample", "A sample, of 50 %.", &columns);
        table.push(vec![CellValue::text("a,\"b\" <i>"), CellValue::Bytes(2048), CellValue::Share(0.0125)]);
        let link = CellValue::Link("x_1".to_owned(), "w/x.html".to_owned());
        table.push(vec![link, CellValue::Missing, CellValue::Heat(1.0, "r".to_owned())]);
        let html = table_html(&table, "../").into_string();
        assert!(html.contains("a,&quot;b&quot; &lt;i&gt;") && !html.contains("<i>"), "{html}");
        assert!(html.contains(r#"<a href="../w/x.html">x_1</a>"#), "{html}");
        assert!(html.contains(r#"data-v="0.0125">1.25 %"#) && html.contains("--h:100%"), "{html}");
        assert!(html.contains(r#"<a href="../tables/sample.csv">CSV</a>"#), "{html}");
    }
}
