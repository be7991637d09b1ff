//! What all pages share: head, navigation, footer.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::ReportError;
use crate::drawing::Drawing;

const STYLE: &str = include_str!("../assets/style.css");
const SORTING: &str = include_str!("../assets/tables.js");

/// What made a page.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// The command that makes it again.
    pub(crate) command: String,
    /// The records that it is made of.
    pub(crate) records: String,
    /// File and name of the pages that are there for these records alone.
    pub(crate) sections: Vec<(&'static str, &'static str)>,
}

/// A whole page; `root` leads from it to the report's folder.
pub(crate) fn page(title: &str, root: &str, origin: &Origin, body: &Markup) -> String {
    let before =
        [("index.html", "Summary"), ("boards.html", "Suites"), ("gaps.html", "Gaps"), ("nets.html", "Nets")];
    let behind = [("scale.html", "Scale"), ("claims.html", "Claims"), ("cells.html", "All cells")];
    let links = before.iter().chain(&origin.sections).chain(&behind);
    document(
        title,
        &html! {
            header {
                strong { "planlab" }
                @for (target, name) in links { a href=(format!("{root}{target}")) { (name) } }
            }
            main { (body) }
            footer {
                "Made by " code { (origin.command) } " from " (origin.records) "."
            }
        },
    )
}

/// A document with the style and the scripts in it.
pub(crate) fn document(title: &str, body: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                // An empty icon keeps browsers from looking for one.
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                (body)
                script { (PreEscaped(SORTING)) }
            }
        }
    };
    markup.into_string()
}

/// A plot with a caption.
pub(crate) fn plot(drawing: &Drawing, caption: &str) -> Result<Markup, ReportError> {
    let svg = drawing.to_inline_svg()?;
    Ok(html! {
        figure { div.plot { (PreEscaped(svg)) } figcaption { (caption) } }
    })
}

/// A picture in a file beside the page.
pub(crate) fn picture(target: &str, size: (u32, u32), caption: &str) -> Markup {
    html! {
        figure.map {
            a href=(target) { img src=(target) width=(size.0) height=(size.1) alt=(caption) loading="lazy"; }
            figcaption { (caption) }
        }
    }
}

/// Names and values.
pub(crate) fn facts(pairs: &[(&str, String)]) -> Markup {
    html! {
        dl.facts { @for (name, value) in pairs { dt { (name) } dd { (value) } } }
    }
}
