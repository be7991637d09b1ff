//! JSON Lines: a header object, then an object on each line.

use planlab_files::FormatError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A line, and its number from 1.
type Line<'t> = (u64, &'t str);

/// The header of a file, or an error without one, and the further lines; empty lines are left out.
pub(super) fn split_header<'t>(
    file: &str,
    text: &'t str,
) -> Result<(Line<'t>, impl Iterator<Item = Line<'t>> + use<'t>), FormatError> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, text)| !text.trim_ascii().is_empty());
    let header = lines.next();
    let empty = || FormatError::new(file, 1, "the file is empty: there is no header object");
    Ok((header.ok_or_else(empty)?, lines))
}

/// What every header says of its file.
#[derive(serde::Deserialize)]
struct Kind {
    planlab: String,
    version: u32,
}

/// Whether the first line that is not empty is a header of this kind, of any version. `start` may be cut off behind it.
pub(super) fn begins_with_header(start: &[u8], kind: &str) -> bool {
    let mut lines = start.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let header = lines.next().and_then(|line| serde_json::from_slice::<Kind>(line).ok());
    header.is_some_and(|header| header.planlab == kind)
}

/// The header of a file of this kind, in version 1. A wrong kind is reported before errors in the fields.
pub(super) fn parse_header<H: DeserializeOwned>(text: &str, kind: &str) -> Result<H, String> {
    let bad = |error: serde_json::Error| format!("not a header: {error}");
    let Kind { planlab, version } = serde_json::from_str(text).map_err(bad)?;
    if planlab != kind || version != 1 {
        return Err(format!("a `{planlab}` of version {version}, not a {kind} of version 1"));
    }
    serde_json::from_str(text).map_err(bad)
}

pub(super) fn to_line(object: &impl Serialize) -> String {
    // Numbers, strings and lists of them always have a JSON form.
    serde_json::to_string(object).map_or_else(|_| String::new(), |text| text + "\n")
}
