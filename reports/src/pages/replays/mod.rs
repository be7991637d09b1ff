//! The pages of replays: each is there where there are rows for it.

mod gain;
mod iterations;
mod memory;
pub(crate) mod pools;
mod pytorch;
mod requests;
mod threads;
mod time;

use maud::{Markup, html};

use super::index::Figure;
use super::layout::plot;
use crate::ReportError;
use crate::model::Model;
use crate::nets::PoolTotals;
use crate::replays::Replays;
use crate::table::Table;

/// A page that is made of tables and figures.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// Its file, from the report's folder.
    pub(crate) file: &'static str,
    /// What the navigation calls it.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) pieces: Vec<Piece>,
}

/// A part of a page.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Heading(String),
    Text(String),
    Table(Table),
    Figure(Figure),
}

/// What the pages are made of.
pub(crate) struct Sources<'a> {
    pub(crate) model: &'a Model,
    pub(crate) replays: &'a Replays,
    pub(crate) totals: &'a PoolTotals,
    /// The planner whose plans stand for planning where no allocator replayed one.
    pub(crate) baseline: &'a str,
}

impl Sources<'_> {
    /// The page of a workload, where it has one.
    fn page<'p>(&self, pages: &'p [String], workload: &str) -> Option<&'p str> {
        let at = self.model.workloads.iter().position(|known| known.key == workload)?;
        pages.get(at).map(String::as_str)
    }
}

/// All pages that there are rows for; `pages` are those of the model's workloads.
pub(crate) fn sections(sources: &Sources<'_>, pages: &[String]) -> Vec<Section> {
    let all = [
        memory::section(sources, pages),
        time::section(sources),
        requests::section(sources),
        threads::section(sources),
        iterations::section(sources),
        pytorch::section(sources, pages),
    ];
    all.into_iter().flatten().collect()
}

impl Section {
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Table> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Table(table) => Some(table),
            _ => None,
        })
    }

    pub(crate) fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Figure(figure) => Some(figure),
            _ => None,
        })
    }

    /// The body of the page.
    pub(crate) fn body(&self) -> Result<Markup, ReportError> {
        let pieces: Vec<Markup> = self.pieces.iter().map(Piece::markup).collect::<Result<_, _>>()?;
        Ok(html! {
            h1 { (self.title) }
            @for piece in pieces { (piece) }
        })
    }
}

impl Piece {
    fn markup(&self) -> Result<Markup, ReportError> {
        Ok(match self {
            Self::Heading(text) => html! { h2 { (text) } },
            Self::Text(text) => html! { p.note { (text) } },
            Self::Table(table) => table.to_html(""),
            Self::Figure((drawing, caption)) => html! {
                h3 { (drawing.title()) }
                (plot(drawing, caption)?)
            },
        })
    }
}
