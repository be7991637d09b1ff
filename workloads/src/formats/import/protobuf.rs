//! Protocol buffers: messages decoded by `prost`, with the byte at which they break.
//!
//! A message of two bytes may be a hundred in memory. So its fields are counted before it is decoded.

use std::ops::Range;

use prost::Message;
pub(crate) use prost::bytes::Bytes;

use crate::formats::FormatError;

/// What a message takes in memory.
pub(crate) struct Layout {
    /// Bytes of the decoded message by itself.
    pub(crate) size: usize,
    /// Its fields that take room of their own, by their number.
    pub(crate) fields: &'static [(u64, Holds)],
}

/// What such a field holds.
pub(crate) enum Holds {
    /// A text, one of several.
    Text,
    /// Whole numbers, several.
    Numbers,
    /// Numbers of four bytes, several.
    Floats,
    /// A message.
    Message(&'static Layout),
}

/// Layouts: the name of each, the type of a message that takes room of its own, and the fields.
macro_rules! layouts {
    ($($name:ident($($message:ty)?): $($number:literal $holds:ident $(($inner:ident))?),*;)*) => {$(
        static $name: Layout = Layout {
            size: size_of::<($($message,)?)>(),
            fields: &[$(($number, Holds::$holds $((&$inner))?)),*],
        };
    )*};
}
pub(crate) use layouts;

/// A message with its layout.
pub(crate) trait DecodableMessage: Message + Default {
    const LAYOUT: &'static Layout;
}

/// A decoded message may take `TIMES` the bytes of its file and [`SMALL`] more. The names and shapes of a model take a few
/// times their bytes, and weights are not decoded.
const TIMES: usize = 8;
/// Bytes that every file may take.
const SMALL: usize = 64 << 20;
/// What an allocation takes beside its bytes.
const OVERHEAD: usize = 16;

/// Decodes a message. Messages that lie in each other more than a hundred deep are refused, and those that would take
/// far more memory than the file is long.
///
/// # Errors
///
/// The byte at which the file is no such message, and the field that it is in.
pub(crate) fn decode_message<M: DecodableMessage>(file: &str, bytes: &Bytes) -> Result<M, FormatError> {
    let length = bytes.len();
    let mut scan = Scan { all: length, left: length.saturating_mul(TIMES).saturating_add(SMALL) };
    let scanned = scan.scan_message(bytes, 0, M::LAYOUT, DEEPEST);
    scanned.map_err(|(at, reason)| FormatError::at_byte(file, at as u64, reason))?;
    // Fields of bytes share this memory: the weights of a net are not copied.
    let mut rest = bytes.clone();
    let mut message = M::default();
    message.merge(&mut rest).map_err(|error| {
        let at = length - rest.len();
        let end = if rest.is_empty() { ", the end of the file" } else { "" };
        FormatError::at_byte(file, at as u64, format!("not a message of this format{end}: {error}"))
    })?;
    Ok(message)
}

/// Messages in each other; `prost` refuses more.
const DEEPEST: usize = 100;

/// A walk over a message before it is decoded.
struct Scan {
    /// Bytes of the file.
    all: usize,
    /// Bytes that may still be taken.
    left: usize,
}

impl Scan {
    /// Counts what a message takes that begins at a byte of the file. What is no message is left to the decoder.
    fn scan_message(
        &mut self,
        bytes: &[u8],
        from: usize,
        layout: &Layout,
        depth: usize,
    ) -> Result<(), (usize, String)> {
        let mut rest = bytes;
        while !rest.is_empty() && depth > 0 {
            let at = from + bytes.len() - rest.len();
            let Some((key, value, behind)) = split_field(rest) else {
                let is_last = from + bytes.len() == self.all;
                return fault_of_field(rest, is_last).map_or(Ok(()), |reason| Err((at, reason)));
            };
            let held = layout.fields.iter().find(|(number, _)| *number == key >> 3).map(|(_, holds)| holds);
            rest = behind;
            let takes = match held {
                None => 0,
                Some(Holds::Text) => size_of::<String>() + value.len() + OVERHEAD,
                Some(Holds::Numbers) => 8 * value.len().max(1),
                Some(Holds::Floats) => value.len(),
                Some(Holds::Message(inner)) => inner.size,
            };
            self.left = self.left.checked_sub(takes).ok_or_else(|| {
                let reason = "its messages take far more memory than the file is long: it is no honest one";
                (at, reason.to_owned())
            })?;
            if let Some(Holds::Message(inner)) = held {
                let start = from + bytes.len() - rest.len() - value.len();
                self.scan_message(value, start, inner, depth - 1)?;
            }
        }
        Ok(())
    }
}

/// The key of the field at the front, its value (none of a number) and what follows; `None` if it is cut or of no known
/// type.
fn split_field(bytes: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (key, behind) = read_varint(bytes)?;
    let (value, rest): (&[u8], &[u8]) = match key & 7 {
        0 => (&[][..], read_varint(behind)?.1),
        1 => behind.split_at_checked(8)?,
        5 => behind.split_at_checked(4)?,
        2 => {
            let (length, behind) = read_varint(behind)?;
            behind.split_at_checked(usize::try_from(length).ok()?)?
        }
        _ => return None,
    };
    Some((key, value, rest))
}

/// What is wrong with a field that cannot be split off; what a decoder says better is left to it.
fn fault_of_field(bytes: &[u8], is_last: bool) -> Option<String> {
    let (key, behind) = read_varint(bytes)?;
    match key & 7 {
        0 | 1 | 5 => None,
        2 => {
            let (length, behind) = read_varint(behind)?;
            let (number, have) = (key >> 3, behind.len());
            let cut = if is_last { ": the file is cut short or damaged" } else { "" };
            Some(format!("field {number} of a message has {length} bytes, but {have} follow{cut}"))
        }
        wire => Some(format!("wire type {wire}: no field of this format has it")),
    }
}

/// A field of a message that may be cut behind it.
pub(crate) struct Field<'b> {
    pub(crate) number: u64,
    pub(crate) value: WireValue<'b>,
    /// What follows it; empty if it is cut.
    pub(crate) rest: &'b [u8],
}

pub(crate) enum WireValue<'b> {
    Number(u64),
    /// As far as they are there.
    Bytes(&'b [u8]),
}

/// The first field of what may be the start of a message; of the kinds only numbers and bytes.
pub(crate) fn first_field(bytes: &[u8]) -> Option<Field<'_>> {
    let (key, rest) = read_varint(bytes)?;
    let number = key >> 3;
    match key & 7 {
        0 => read_varint(rest).map(|(value, rest)| Field { number, value: WireValue::Number(value), rest }),
        2 => {
            let (length, rest) = read_varint(rest)?;
            let length = usize::try_from(length).ok()?.min(rest.len());
            let (value, rest) = rest.split_at(length);
            Some(Field { number, value: WireValue::Bytes(value), rest })
        }
        _ => None,
    }
}

/// The byte at which a message that was decoded begins: of each message that it is in, and of itself, the field and how
/// many of this field come before. As far in as the file has them.
pub(crate) fn message_place(file: &[u8], path: &[(u64, usize)]) -> u64 {
    let (mut at, mut message) = (0, file);
    for &(number, before) in path {
        let Some(value) =
            byte_fields(message).filter(|(known, _)| *known == number).map(|(_, value)| value).nth(before)
        else {
            break;
        };
        at += value.start;
        message = &message[value];
    }
    at as u64
}

/// The fields of a message that are bytes: the number of each, and where they lie.
fn byte_fields(message: &[u8]) -> impl Iterator<Item = (u64, Range<usize>)> {
    let mut rest = message;
    let all = std::iter::from_fn(move || {
        let (key, value, behind) = split_field(rest)?;
        rest = behind;
        let end = message.len() - rest.len();
        Some((key, end - value.len()..end))
    });
    all.filter(|(key, _)| key & 7 == 2).map(|(key, value)| (key >> 3, value))
}

fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
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
pub(crate) fn is_name(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && std::str::from_utf8(bytes).is_ok_and(|name| !name.contains(|c: char| c.is_control() || c == ' '))
}

#[cfg(test)]
pub(crate) mod wire {
    //! Writes messages for tests.

    /// A field of bytes or of a message.
    pub(crate) fn bytes(number: u8, value: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2];
        field.extend(varint(value.len() as u64));
        field.extend(value);
        field
    }

    pub(crate) fn varint(mut value: u64) -> Vec<u8> {
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

    impl DecodableMessage for Tree {
        const LAYOUT: &'static Layout = &TREE;
    }

    layouts! { TREE(Tree): 1 Text, 2 Message(TREE); }

    fn refused(bytes: Vec<u8>) -> FormatError {
        decode_message::<Tree>("tree", &bytes.into()).expect_err("broken")
    }

    #[test]
    fn broken_messages_are_refused_at_their_byte() {
        let whole = [wire::bytes(1, b"root"), wire::bytes(2, &wire::bytes(1, b"leaf"))].concat();
        assert_eq!(decode_message::<Tree>("tree", &whole.clone().into()).expect("whole").below.len(), 1);
        for cut in (1..whole.len()).filter(|&cut| cut != 6) {
            let error = refused(whole[..cut].to_vec());
            assert!(error.byte().is_some_and(|at| at <= cut as u64), "{error}");
        }
        let mut far = vec![0x0A];
        far.extend(wire::varint(1 << 63));
        assert_eq!(refused(far).byte(), Some(0));
        let endless = vec![0xFF; 64];
        assert!(refused(endless).byte().is_some_and(|at| at <= 10));
    }

    #[test]
    fn a_message_of_many_empty_ones_is_refused() {
        // Two bytes each, and the size of a tree in memory.
        let honest = wire::bytes(2, b"").repeat(100_000);
        assert_eq!(decode_message::<Tree>("tree", &honest.into()).expect("small").below.len(), 100_000);
        let many = wire::bytes(2, b"").repeat(4_000_000);
        let error = refused(many);
        let at = error.byte().expect("a byte");
        assert!(
            at > 1_000_000 && error.reason().contains("far more memory than the file is long"),
            "{error}"
        );
        assert!(refused(vec![0x0B]).reason().contains("wire type 3"));
    }

    #[test]
    fn a_field_that_is_cut_says_so() {
        let mut whole = wire::bytes(2, &wire::bytes(1, b"leaf"));
        whole.truncate(6);
        assert_eq!(
            refused(whole).to_string(),
            "tree: byte 0: field 2 of a message has 6 bytes, but 4 follow: the file is cut short or damaged"
        );
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
    fn messages_are_found_where_they_lie() {
        let inner = [wire::bytes(1, b"leaf"), vec![3 << 3, 200, 1], wire::bytes(2, b"x")].concat();
        let whole = [wire::bytes(1, b"root"), wire::bytes(2, b"ab"), wire::bytes(2, &inner)].concat();
        assert_eq!(
            [message_place(&whole, &[]), message_place(&whole, &[(2, 0)]), message_place(&whole, &[(2, 1)])],
            [0, 8, 12]
        );
        // Behind the inner name and the number.
        assert_eq!(message_place(&whole, &[(2, 1), (2, 0)]), 12 + 6 + 3 + 2);
        assert_eq!(whole[23], b'x');
        // As far as it is there.
        assert_eq!([message_place(&whole, &[(2, 1), (9, 0)]), message_place(&whole, &[(2, 7)])], [12, 0]);
    }

    #[test]
    fn a_cut_field_is_still_a_field() {
        let bytes = wire::bytes(7, &[1, 2, 3]);
        let field = first_field(&bytes[..4]).expect("there");
        assert!(
            matches!(field.value, WireValue::Bytes([1, 2])) && field.number == 7 && field.rest.is_empty()
        );
        assert!(first_field(&[0x0A]).is_none() && first_field(&[0xFF; 20]).is_none());
    }
}
