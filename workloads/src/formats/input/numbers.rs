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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_say_what_is_wrong_with_them() {
        for (field, reason) in [
            ("", "size is empty"),
            ("-5", "size -5 is negative"),
            ("18446744073709551616", "size 18446744073709551616 does not fit 64 bits"),
            ("NaN", "size `NaN` is not a whole number"),
            ("+3", "size `+3` is not a whole number"),
            ("1.5", "size `1.5` is not a whole number"),
        ] {
            assert_eq!(whole("size", field), Err(reason.to_owned()));
        }
        assert_eq!(whole("size", "18446744073709551615"), Ok(u64::MAX));
        assert_eq!(maybe("hint", "-1"), Ok(None));
    }
}
