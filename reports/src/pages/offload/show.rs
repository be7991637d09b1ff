//! Schedules of one net below each other on one axis of time, as one file.

use planlab_results::table::{CellValue, Table, columns};

use crate::ReportError;
use crate::data::schedules::track::ScheduleTrack;
use crate::format::as_real;
use crate::site::output::page_alone;
use crate::site::page::{Page, Piece};
use crate::site::parts::viewer::ViewerPart;

/// A page about schedules: for each a map of its streams and its memory over time to zoom and search, below a table of
/// what an iteration costs. A single file that needs nothing else; `command` makes it again.
///
/// # Errors
///
/// [`ReportError::Draw`] if a figure cannot be drawn.
pub fn schedule_page(tracks: &[ScheduleTrack], title: &str, command: &str) -> Result<String, ReportError> {
    let horizon = tracks.iter().map(|track| track.iteration_ns).max().unwrap_or(0);
    let mut pieces = vec![Piece::Table(total_table(tracks))];
    for (number, track) in tracks.iter().enumerate() {
        pieces.push(Piece::heading(format!("{}: {}", track.name, track.scheduler)));
        pieces.push(Piece::Viewer(ViewerPart::from_track(track, horizon, number, CAPTION)));
    }
    page_alone(&Page::new("", title).with(pieces), command)
}

const CAPTION: &str = "Time across. Above, what each stream does; below, the bytes in use, and each buffer from its start \
    to its end at its offset. Point at an event or a buffer to read what it waits for. Times are simulated. All schedules \
    of the page move together.";

fn total_table(tracks: &[ScheduleTrack]) -> Table {
    let time = |ns: u64| CellValue::Nanoseconds(as_real(ns));
    let table = Table::from_rows(
        "",
        "One iteration of each schedule. Waits: nothing is computed. Peak: the most bytes in use at once. Height: what the \
         offsets need. Both include the parameters and the workspace.",
        tracks,
        columns!(|track| [
            ("schedule", "Schedule", CellValue::text(&track.name)),
            ("scheduler", "Scheduler", CellValue::text(&track.scheduler)),
            ("net", "Net", CellValue::text(&track.net)),
            ("machine", "Machine", CellValue::text(&track.machine)),
            ("iteration_ns", "Iteration", time(track.iteration_ns)),
            ("waiting_ns", "Compute waits", time(track.waiting_ns)),
            ("recompute_ns", "Recomputes", time(track.recompute_ns)),
            ("copied_out_bytes", "Copied out", CellValue::Bytes(track.copied_out)),
            ("copied_in_bytes", "Copied in", CellValue::Bytes(track.copied_in)),
            ("peak_bytes", "Peak", CellValue::Bytes(track.peak.0)),
            ("height_bytes", "Height", CellValue::Bytes(track.height)),
            ("capacity_bytes", "Capacity", CellValue::bytes(track.capacity)),
        ]),
    );
    table.without_empty_columns()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_of_a_page_have_one_axis_and_one_table() {
        let track = |name: &str, iteration_ns| ScheduleTrack {
            name: name.to_owned(),
            scheduler: "joint".to_owned(),
            iteration_ns,
            copied_out: 2048,
            ..ScheduleTrack::default()
        };
        let tracks = [track("a.jsonl", 4_000_000), track("<b>.jsonl", 9_000_000)];
        let page = schedule_page(&tracks, "net", "planlab show").expect("drawn");
        for part in ["a.jsonl: joint", "&lt;b&gt;.jsonl: joint", "2.00 KiB", "Compute waits"] {
            assert!(page.contains(part), "{part}");
        }
        assert_eq!(page.matches("max=\"8999999\"").count(), 2, "both have the longer axis");
        assert!(!page.contains("Capacity"), "it is unknown");
        assert!(page.contains("viewer-help-0") && page.contains("viewer-help-1"));
    }
}
