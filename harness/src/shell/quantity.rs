//! Durations and sizes as people write them: `10s`, `250ms`, `4GiB`.

use std::time::Duration;

pub(crate) use planlab_results::format::format_seconds;

/// Reads `250ms`, `10s`, `2m`, `1h`; a bare number is seconds.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split_unit(text);
    let scale = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{text}`: `{unit}` is not a unit of time (ns, us, ms, s, m, h)")),
    };
    let seconds: f64 = number.parse().map_err(|_| format!("`{text}`: `{number}` is not a number"))?;
    match Duration::try_from_secs_f64(seconds * scale) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(format!("`{text}`: a time limit must be above 0 and finite")),
    }
}

/// Reads `4GiB`, `1.5GB`, `500MB`, `1048576`; a bare number is bytes.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split_unit(text);
    let scale: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        _ => {
            return Err(format!("`{text}`: `{unit}` is not a unit of memory (B, KiB, MiB, GiB, kB, MB, GB)"));
        }
    };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{decimals}");
    let all: u128 = digits.parse().map_err(|_| format!("`{text}`: `{number}` is not a number"))?;
    let places = u32::try_from(decimals.len()).ok().and_then(|places| 10_u128.checked_pow(places));
    let product = all.checked_mul(u128::from(scale)).zip(places);
    let bytes = match product {
        Some((product, places)) if product % places > 0 => {
            return Err(format!("`{text}`: this is not a whole number of bytes"));
        }
        Some((product, places)) => u64::try_from(product / places).ok(),
        None => None,
    };
    bytes.filter(|&bytes| bytes > 0).ok_or_else(|| format!("`{text}`: out of range"))
}

/// Reads `5%` or `0.05`.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let (number, unit) = split_unit(text);
    let scale = match unit {
        "" => 1.0,
        "%" => 0.01,
        _ => return Err(format!("`{text}`: `{unit}` is not a unit of a share (%)")),
    };
    match number.parse::<f64>() {
        Ok(number) if number >= 0.0 && number.is_finite() => Ok(number * scale),
        _ => Err(format!("`{text}`: a share must be a number from 0, or a percentage")),
    }
}

fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(text.len());
    (&text[..digits], text[digits..].trim())
}

/// Bytes with a unit and in full: `10.6 MiB (11143168)`; below 1 KiB in full alone.
pub(crate) fn format_memory(bytes: u64) -> String {
    let short = planlab_results::format::format_bytes(bytes);
    if bytes < 1024 { short } else { format!("{short} ({bytes})") }
}

/// A ratio as per cent; a dash if there is no ratio.
pub(crate) fn format_percent(ratio: Option<f64>) -> String {
    // Adding 0 removes the sign of a zero.
    let rounded = |ratio: f64| (100_000.0 * ratio).round() / 1000.0 + 0.0;
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.3} %", rounded(ratio)))
}

/// Nanoseconds of a duration, saturating after 584 years.
pub(crate) fn as_nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Seconds, for programs.
#[expect(clippy::cast_precision_loss, reason = "seconds as a number")]
pub(crate) fn as_seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// Converts seconds to nanoseconds, rounded; 0 if the value is not a valid time.
pub(crate) fn nanoseconds_of(seconds: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let nanoseconds = (seconds * 1e9).round() as u64;
    nanoseconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read() {
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("10"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_bytes("4GiB"), Ok(4 << 30));
        assert_eq!(parse_bytes("1048576"), Ok(1 << 20));
        assert_eq!(parse_bytes("500 MB"), Ok(500_000_000));
        assert_eq!((parse_bytes("1.5GiB"), parse_bytes("14.95GB")), (Ok(3 << 29), Ok(14_950_000_000)));
        assert_eq!((parse_share("5%"), parse_share("0.25"), parse_share("0")), (Ok(0.05), Ok(0.25), Ok(0.0)));
    }

    #[test]
    fn bytes_have_a_unit_and_all_digits() {
        let shown = [0, 1023, 1024, 11_143_168].map(format_memory);
        assert_eq!(shown, ["0 B", "1023 B", "1.00 KiB (1024)", "10.6 MiB (11143168)"]);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "0s", "-1s", "NaN", "infs", "3 weeks", "1e999"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        for text in ["", "0", "-1", "1.5", "1.2.3MB", "0.1KiB", "99999999999GiB", "4 elephants"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
        for text in ["", "%", "-5%", "NaN", "inf", "5 ms"] {
            assert!(parse_share(text).is_err(), "{text}");
        }
    }
}
