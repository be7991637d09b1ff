//! Numbers as the viewer reads them: little-endian arrays of the narrowest type, divided by their common divisor, in base64.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value as Json, json};

use crate::format::as_real;

/// Packs numbers. Those beyond 2^53 that have no small common divisor lose their last digits, as every number in a browser.
pub(super) fn pack_numbers(values: impl IntoIterator<Item = u64>) -> Json {
    let mut values: Vec<u64> = values.into_iter().collect();
    let unit = values.iter().fold(0, |unit, &value| greatest_common_divisor(unit, value)).max(1);
    let most = values.iter().max().map_or(0, |most| most / unit);
    if most > u64::from(u32::MAX) {
        let bytes = values.iter().flat_map(|&value| as_real(value).to_le_bytes());
        return packed_json("f64", 1, bytes.collect());
    }
    values.iter_mut().for_each(|value| *value /= unit);
    let (kind, width) = match most {
        0..=0xff => ("u8", 1),
        0x100..=0xffff => ("u16", 2),
        _ => ("u32", 4),
    };
    let bytes = values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(width));
    packed_json(kind, unit, bytes.collect())
}

fn packed_json(kind: &str, unit: u64, bytes: Vec<u8>) -> Json {
    json!({ "type": kind, "unit": unit, "data": BASE64_STANDARD.encode(bytes) })
}

/// The greatest common divisor.
const fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_type_holds_the_numbers() {
        let kind = |values: &[u64]| {
            let packed = pack_numbers(values.iter().copied());
            let size =
                BASE64_STANDARD.decode(packed["data"].as_str().expect("is text")).expect("is base64").len();
            (packed["type"].as_str().expect("is text").to_owned(), packed["unit"].as_u64(), size)
        };
        assert_eq!(kind(&[0, 512, 512 * 255]), ("u8".to_owned(), Some(512), 3));
        assert_eq!(kind(&[1, 256]), ("u16".to_owned(), Some(1), 4));
        assert_eq!(kind(&[1 << 40, 3 << 40]), ("u8".to_owned(), Some(1 << 40), 2));
        assert_eq!(kind(&[1, 1 << 20]), ("u32".to_owned(), Some(1), 8));
        assert_eq!(kind(&[1, 1 << 40]), ("f64".to_owned(), Some(1), 16));
        assert_eq!(kind(&[]), ("u8".to_owned(), Some(1), 0));
    }
}
