//! Protocol buffers: messages decoded by `prost`, with the byte at which they break.

use prost::Message;
use prost::bytes::Bytes;

use super::super::FormatError;

/// Decodes a message. Messages that lie in each other more than a hundred deep are refused.
///
/// # Errors
///
/// The byte at which the file is no such message, and the field that it is in.
pub(super) fn decode<M: Message + Default>(file: &str, bytes: Vec<u8>) -> Result<M, FormatError> {
    let length = bytes.len();
    // Fields of bytes share this memory: the weights of a net are not copied.
    let mut rest = Bytes::from(bytes);
    let mut message = M::default();
    message.merge(&mut rest).map_err(|error| {
        let at = length - rest.len();
        let end = if rest.is_empty() { ", the end of the file" } else { "" };
        FormatError::at_byte(file, at as u64, format!("not a message of this format{end}: {error}"))
    })?;
    Ok(message)
}

/// A field of a message that may be cut behind it.
pub(super) struct Field<'b> {
    pub(super) number: u64,
    pub(super) value: Value<'b>,
    /// What follows it; empty if it is cut.
    pub(super) rest: &'b [u8],
}

pub(super) enum Value<'b> {
    Number(u64),
    /// As far as they are there.
    Bytes(&'b [u8]),
}

/// The first field of what may be the start of a message; of the kinds only numbers and bytes.
pub(super) fn first_field(bytes: &[u8]) -> Option<Field<'_>> {
    let (key, rest) = varint(bytes)?;
    let number = key >> 3;
    match key & 7 {
        0 => varint(rest).map(|(value, rest)| Field { number, value: Value::Number(value), rest }),
        2 => {
            let (length, rest) = varint(rest)?;
            let length = usize::try_from(length).ok()?.min(rest.len());
            let (value, rest) = rest.split_at(length);
            Some(Field { number, value: Value::Bytes(value), rest })
        }
        _ => None,
    }
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (at, &byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7F).checked_shl(7 * u32::try_from(at).ok()?)?;
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

/// Whether bytes are a name: some printable letters, no space among them.
pub(super) fn is_name(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && std::str::from_utf8(bytes).is_ok_and(|name| !name.contains(|c: char| c.is_control() || c == ' '))
}

#[cfg(test)]
pub(super) mod wire {
    //! Writes messages for tests.

    /// A field of bytes or of a message.
    pub(in super::super) fn bytes(number: u8, value: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2];
        field.extend(varint(value.len() as u64));
        field.extend(value);
        field
    }

    pub(in super::super) fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value > 0x7F {
            bytes.push(u8::try_from(value & 0x7F).expect("seven bits") | 0x80);
            value >>= 7;
        }
        bytes.push(u8::try_from(value).expect("seven bits"));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, PartialEq, Message)]
    struct Tree {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(message, repeated, tag = "2")]
        below: Vec<Tree>,
    }

    fn refused(bytes: Vec<u8>) -> FormatError {
        decode::<Tree>("tree", bytes).expect_err("broken")
    }

    #[test]
    fn broken_messages_are_refused_at_their_byte() {
        let whole = [wire::bytes(1, b"root"), wire::bytes(2, &wire::bytes(1, b"leaf"))].concat();
        assert_eq!(decode::<Tree>("tree", whole.clone()).expect("whole").below.len(), 1);
        for cut in (1..whole.len()).filter(|&cut| cut != 6) {
            let error = refused(whole[..cut].to_vec());
            assert!(error.byte().is_some_and(|at| at <= cut as u64), "{error}");
        }
        let mut far = vec![0x0A];
        far.extend(wire::varint(1 << 63));
        assert_eq!(refused(far).byte(), Some(11));
        let endless = vec![0xFF; 64];
        assert!(refused(endless).byte().is_some_and(|at| at <= 10));
    }

    #[test]
    fn messages_in_messages_end_somewhere() {
        let mut deep = wire::bytes(1, b"leaf");
        for _ in 0..10_000 {
            deep = wire::bytes(2, &deep);
        }
        let error = refused(deep);
        assert!(error.reason().contains("recursion limit"), "{error}");
    }

    #[test]
    fn a_cut_field_is_still_a_field() {
        let bytes = wire::bytes(7, &[1, 2, 3]);
        let field = first_field(&bytes[..4]).expect("there");
        assert!(matches!(field.value, Value::Bytes([1, 2])) && field.number == 7 && field.rest.is_empty());
        assert!(first_field(&[0x0A]).is_none() && first_field(&[0xFF; 20]).is_none());
    }
}
