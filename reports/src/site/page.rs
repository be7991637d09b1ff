//! A page as data: its texts, figures and links, independent of the output format.

use planlab_results::table::Table;

use super::parts::grid::Grid;
use super::parts::timeline::TimelinePart;
use super::parts::viewer::ViewerPart;
use crate::figures::Drawing;

/// A page. File names are relative to the report's folder.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) file: String,
    /// The place in the navigation; a page without one is only reached from other pages.
    pub(crate) name: Option<Entry>,
    pub(crate) title: String,
    /// The title on the page itself.
    pub(crate) heading: Text,
    pub(crate) pieces: Vec<Piece>,
    /// Tables that are only files.
    pub(crate) files: Vec<Table>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Menu {
    /// Beside the menus, not in one.
    Top,
    Planners,
    Memory,
    Allocators,
    Run,
}

impl Menu {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Top => "",
            Self::Planners => "Planners",
            Self::Memory => "Memory",
            Self::Allocators => "Allocators",
            Self::Run => "This run",
        }
    }
}

/// A page's place in the navigation: the question that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) menu: Menu,
    pub(crate) question: &'static str,
}

#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Heading(String),
    Subheading(String),
    Text(Style, Text),
    List(Vec<Text>),
    /// Groups of pieces, two beside each other if there is room.
    Panels(Vec<Vec<Self>>),
    /// Names and values.
    Facts(Vec<(String, String)>),
    /// A table; it has files unless it has no name.
    Table(Table),
    /// A long table that opens on demand, and its title.
    Folded(String, Table),
    Figure(Figure),
    Picture(Picture),
    /// Pictures beside each other.
    Pictures(Vec<Picture>),
    /// A table that the browser sorts and filters; it has files too.
    Grid(Grid),
    Timeline(TimelinePart),
    /// Placements to zoom and search; at most one on a page.
    Viewer(ViewerPart),
    /// A text to keep as it is, with its line breaks.
    Verbatim(String),
}

/// The style of a paragraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    /// The most important sentence of a page.
    Lead,
    Note,
    /// Good news.
    Fine,
    /// Bad news.
    Alert,
}

/// A text of a paragraph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) Vec<Span>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    Plain(String),
    Code(String),
    Emphasis(String),
    Strong(String),
    /// The displayed text, and the file that it links to.
    Link(String, String),
}

/// A plot with its caption.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub(crate) drawing: Drawing,
    pub(crate) caption: String,
    pub(crate) head: Head,
}

/// How the title of a figure appears above it. A figure with a title has a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    None,
    Heading,
    Subheading,
}

/// A picture of pixels.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    pub(crate) file: String,
    /// In pixels.
    pub(crate) size: (u32, u32),
    pub(crate) caption: String,
    /// Whether it scrolls in a frame, because it is much taller than a screen.
    pub(crate) is_tall: bool,
}

impl Page {
    pub(crate) fn new(file: impl Into<String>, title: impl Into<String>) -> Self {
        let (file, title) = (file.into(), title.into());
        let heading = Text::from(title.as_str());
        Self { file, name: None, title, heading, pieces: Vec::new(), files: Vec::new() }
    }

    /// The page with a place in the navigation.
    pub(crate) fn in_menu(mut self, menu: Menu, question: &'static str) -> Self {
        self.name = Some(Entry { menu, question });
        self
    }

    pub(crate) fn with(mut self, pieces: impl IntoIterator<Item = Piece>) -> Self {
        self.pieces.extend(pieces);
        self
    }

    /// All pieces, those inside panels included.
    fn all_pieces(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.iter().flat_map(|piece| match piece {
            Piece::Panels(panels) => panels.iter().flatten().collect::<Vec<_>>(),
            piece => vec![piece],
        })
    }

    pub(crate) fn tables_with_files(&self) -> impl Iterator<Item = &Table> {
        let shown = self.all_pieces().filter_map(|piece| match piece {
            Piece::Table(table) | Piece::Folded(_, table) if !table.name.is_empty() => Some(table),
            _ => None,
        });
        shown.chain(&self.files)
    }

    /// Whether it has timelines, which need a script.
    pub(crate) fn has_timelines(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Timeline(_)))
    }

    /// Whether it has a viewer, which needs a script and a style.
    pub(crate) fn has_viewer(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Viewer(_)))
    }

    pub(crate) fn figures_with_files(&self) -> impl Iterator<Item = &Figure> {
        self.all_pieces().filter_map(|piece| match piece {
            Piece::Figure(figure) if figure.head != Head::None => Some(figure),
            _ => None,
        })
    }
}

impl Piece {
    pub(crate) fn heading(text: impl Into<String>) -> Self {
        Self::Heading(text.into())
    }

    /// A table under a heading; nothing without rows.
    pub(crate) fn section(heading: &str, table: Table) -> Vec<Self> {
        if table.rows.is_empty() { Vec::new() } else { vec![Self::heading(heading), Self::Table(table)] }
    }

    pub(crate) fn text(text: impl Into<Text>) -> Self {
        Self::Text(Style::Plain, text.into())
    }

    pub(crate) fn lead(text: impl Into<Text>) -> Self {
        Self::Text(Style::Lead, text.into())
    }

    pub(crate) fn note(text: impl Into<Text>) -> Self {
        Self::Text(Style::Note, text.into())
    }

    pub(crate) fn fine(text: impl Into<Text>) -> Self {
        Self::Text(Style::Fine, text.into())
    }

    pub(crate) fn alert(text: impl Into<Text>) -> Self {
        Self::Text(Style::Alert, text.into())
    }

    /// A figure without a title or file.
    pub(crate) fn plot(drawing: Drawing, caption: impl Into<String>) -> Self {
        Self::Figure(Figure { drawing, caption: caption.into(), head: Head::None })
    }

    /// A figure that forms a section of the page.
    pub(crate) fn chapter(drawing: Drawing, caption: impl Into<String>) -> Self {
        Self::Figure(Figure { drawing, caption: caption.into(), head: Head::Heading })
    }

    /// A figure with its title above.
    pub(crate) fn figure(drawing: Drawing, caption: impl Into<String>) -> Self {
        Self::Figure(Figure { drawing, caption: caption.into(), head: Head::Subheading })
    }

    pub(crate) fn facts<N: Into<String>>(facts: impl IntoIterator<Item = (N, String)>) -> Self {
        Self::Facts(facts.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}

impl Text {
    /// A text with `code` and *emphasis* from our own source; nothing is escaped in it.
    pub(crate) fn from_marked(text: &str) -> Self {
        let spans = text.split('`').enumerate().flat_map(|(at, part)| match at % 2 {
            0 => part
                .split('*')
                .enumerate()
                .map(|(at, part)| match at % 2 {
                    0 => Span::Plain(part.to_owned()),
                    _ => Span::Emphasis(part.to_owned()),
                })
                .collect(),
            _ => vec![Span::Code(part.to_owned())],
        });
        Self(spans.collect())
    }

    fn and(mut self, span: Span) -> Self {
        self.0.push(span);
        self
    }

    pub(crate) fn plain(self, text: impl Into<String>) -> Self {
        self.and(Span::Plain(text.into()))
    }

    pub(crate) fn code(self, text: impl Into<String>) -> Self {
        self.and(Span::Code(text.into()))
    }

    pub(crate) fn strong(self, text: impl Into<String>) -> Self {
        self.and(Span::Strong(text.into()))
    }

    /// Adds a text that links to a file.
    pub(crate) fn link(self, text: impl Into<String>, file: impl Into<String>) -> Self {
        self.and(Span::Link(text.into(), file.into()))
    }
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        Self::default().plain(text)
    }
}

impl Picture {
    pub(crate) fn file(name: &str, size: (u32, u32), caption: impl Into<String>) -> Self {
        Self { file: name.to_owned(), size, caption: caption.into(), is_tall: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_in_a_text_are_spans() {
        let text = Text::from_marked("*Ours* by `a*b`.");
        let spans = [
            Span::Plain(String::new()),
            Span::Emphasis("Ours".to_owned()),
            Span::Plain(" by ".to_owned()),
            Span::Code("a*b".to_owned()),
            Span::Plain(".".to_owned()),
        ];
        assert_eq!(text.0, spans);
    }
}
