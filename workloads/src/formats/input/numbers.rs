//! Whole numbers in text, and the errors for other text.

use crate::formats::error::quote_excerpt;

/// A whole number from 0 to 2^64 - 1.
pub(crate) fn whole(what: &str, field: &str) -> Result<u64, String> {
    if let Ok(number) = field.parse::<u64>()
        && !field.starts_with('+')
    {
        return Ok(number);
    }
    let digits = field.strip_prefix('-').unwrap_or(field);
    let numeric = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let shown = quote_excerpt(field);
    Err(match (field.is_empty(), numeric, field.starts_with('-')) {
        (true, ..) => format!("{what} is empty"),
        (_, true, true) => format!("{what} {shown} is negative"),
        (_, true, false) => format!("{what} {shown} does not fit 64 bits"),
        (_, false, _) => format!("{what} `{shown}` is not a whole number"),
    })
}

/// As [`whole`]; an empty field and -1 give `None`.
pub(crate) fn maybe(what: &str, field: &str) -> Result<Option<u64>, String> {
    if field.is_empty() || field == "-1" { Ok(None) } else { whole(what, field).map(Some) }
}

/// A whole number above 0.
pub(crate) fn positive(what: &str, field: &str) -> Result<u64, String> {
    match whole(what, field)? {
        0 => Err(format!("{what} is 0")),
        number => Ok(number),
    }
}
