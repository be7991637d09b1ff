//! Drawings of nets, one file each.

use planlab_files::NewFolder;

use super::names::file_slug;
use super::sources::Site;
use super::stored::Drawn;
use crate::ReportError;
use crate::data::nets::models::{Question, model_cases};

/// Draws each net with questions about its graph, at its smallest batch, inference before training.
pub(crate) fn draw_nets(site: &Site<'_>, folder: &mut NewFolder) -> Result<Vec<Drawn>, ReportError> {
    let mut cases = model_cases(site.model, site.replays);
    cases.retain(|case| case.question == Question::Plan && case.orders.is_some());
    cases.sort_by_key(|case| (case.group_name().to_owned(), case.is_trained(), case.batch, case.key.len()));
    cases.dedup_by(|a, b| a.group_name() == b.group_name());
    let mut drawn = Vec::new();
    for case in cases {
        let Some(svg) = (site.options.nets.draw)(&case.key) else { continue };
        let file = format!("nets/{}.svg", file_slug(&case.key));
        folder.put_file(&file, svg.as_bytes())?;
        drawn.push(Drawn { size: picture_size(&svg), file, key: case.key });
    }
    Ok(drawn)
}

/// Width and height of a picture. Graphviz gives points; 4 of them are about 5 pixels.
fn picture_size(svg: &str) -> (u32, u32) {
    let number = |name: &str| {
        let (_, rest) = svg.split_once(name)?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
    };
    let of = |name| number(name).unwrap_or(800).saturating_mul(5) / 4;
    (of(" width=\""), of(" height=\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_says_its_size() {
        assert_eq!(picture_size("<svg width=\"400pt\" height=\"88.5pt\">"), (500, 110));
        assert_eq!(picture_size("<svg>"), (1000, 1000));
    }
}
