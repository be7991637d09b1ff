//! Formats numbers for people.

const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// A whole number as a real one, for display.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub const fn as_real(number: u64) -> f64 {
    number as f64
}

/// A count as a real number.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub const fn count_real(number: usize) -> f64 {
    number as f64
}

/// Bytes with a binary unit: `9.70 MiB`.
#[must_use]
pub fn format_bytes(number: u64) -> String {
    let unit = binary_unit(number);
    if unit == 0 {
        format!("{number} B")
    } else {
        format!("{} {}", format_significant(scale_to_unit(number, unit)), UNITS[unit])
    }
}

/// The unit in which a number lies between 1 and 1024, as an index for [`unit_name`].
#[must_use]
pub fn binary_unit(number: u64) -> usize {
    (number.max(1).ilog2() / 10) as usize
}

/// The name of the unit with this index.
#[must_use]
pub fn unit_name(unit: usize) -> &'static str {
    UNITS[unit.min(UNITS.len() - 1)]
}

fn scale_to_unit(number: u64, unit: usize) -> f64 {
    as_real(number) / unit_size(unit)
}

/// The number of bytes in the unit.
#[must_use]
pub fn unit_size(unit: usize) -> f64 {
    as_real(1 << (10 * unit.min(6)))
}

/// Nanoseconds with a decimal unit: `12.3 ms`.
#[must_use]
pub fn format_nanoseconds(number: f64) -> String {
    let (size, unit) = match number.abs() {
        n if n < 1e3 => (1.0, "ns"),
        n if n < 1e6 => (1e3, "\u{b5}s"),
        n if n < 1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", format_significant(number / size))
}

/// Nanoseconds with three decimals: `12.345 ms`.
#[must_use]
pub fn format_seconds(nanoseconds: u64) -> String {
    let value = as_real(nanoseconds);
    match nanoseconds {
        0..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => format!("{:.3} us", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.3} ms", value / 1e6),
        _ => format!("{:.3} s", value / 1e9),
    }
}

/// A share as a percentage: `1.23 %`; positive values too small to show are `< 0.01 %`.
#[must_use]
pub fn format_percent(share: f64) -> String {
    let value = share * 100.0;
    if value == 0.0 {
        "0 %".to_owned()
    } else if value.abs() < 0.01 {
        if value > 0.0 { "< 0.01 %".to_owned() } else { "> -0.01 %".to_owned() }
    } else if value.abs() < 100.0 {
        format!("{value:.2} %")
    } else {
        format!("{value:.0} %")
    }
}

/// A whole number with thin spaces between groups: `1 234 567`.
#[must_use]
pub fn format_count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A whole number with its noun: `1 workload`, `2 workloads`.
#[must_use]
pub fn format_counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", format_count(number), if number == 1 { "" } else { "s" })
}

/// Bytes with a binary unit, and exactly: `2.00 KiB (2 048 bytes)`.
#[must_use]
pub fn exact_bytes(number: u64) -> String {
    format!("{} ({} bytes)", format_bytes(number), format_count(number))
}

/// A number with one decimal or more, and at most `decimals`.
#[must_use]
pub fn format_rounded(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A short whole number for axes: `1`, `10`, `10k`, `1M`.
#[must_use]
pub fn short_count(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{}G", n / 1e9),
        n if n >= 1e6 => format!("{}M", n / 1e6),
        n if n >= 1e4 => format!("{}k", n / 1e3),
        n => format!("{n}"),
    }
}

/// Three significant digits, for numbers from 0 to 1024.
fn format_significant(number: f64) -> String {
    match number.abs() {
        n if n >= 99.95 => format!("{number:.0}"),
        n if n >= 9.995 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_by_hand() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (10_169_344, "9.70 MiB"),
            (u64::MAX, "16.0 EiB"),
        ];
        for (number, text) in cases {
            assert_eq!(format_bytes(number), text);
        }
    }

    #[test]
    fn times_by_hand() {
        for (number, text) in
            [(0.0, "0.00 ns"), (999.0, "999 ns"), (12_345.0, "12.3 \u{b5}s"), (2.5e9, "2.50 s")]
        {
            assert_eq!(format_nanoseconds(number), text);
        }
    }

    #[test]
    fn shares_and_counts_by_hand() {
        let cases =
            [(0.0, "0 %"), (0.000_01, "< 0.01 %"), (0.0123, "1.23 %"), (12.0, "1200 %"), (-0.5, "-50.00 %")];
        for (share, text) in cases {
            assert_eq!(format_percent(share), text);
        }
        assert_eq!(format_count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(format_count(12), "12");
        assert_eq!([1e3, 1e5, 1e6].map(short_count), ["1000", "100k", "1M"]);
    }
}
