//! Events of Chrome's traces, as far as memory needs them.
//!
//! A trace has events of many tools, and any field of them may be anything. So nothing is refused here that is JSON: a field
//! of another type than usual keeps it, and the caller judges the event.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The object with the arguments of an event.
const ARGUMENTS: &str = "args";

/// Reads any JSON as far as it matters: of an object the fields with these names, of an array only that it is one.
#[derive(Clone, Copy)]
pub(crate) struct Extract(&'static [&'static str]);

impl Extract {
    pub(crate) const EVENT: Self = Self(&["ph", "name", "pid", "tid", "ts", "dur", ARGUMENTS]);
    const MEMORY: Self =
        Self(&["Addr", "Bytes", "Total Allocated", "Total Reserved", "Device Type", "Device Id", "Ev Idx"]);
    const NOTHING: Self = Self(&[]);
}

impl<'de> DeserializeSeed<'de> for Extract {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Extract {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Value, A::Error> {
        while array.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array(Vec::new()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if self.0.contains(&key.as_str()) {
                let inner = if key == ARGUMENTS { Self::MEMORY } else { Self::NOTHING };
                fields.insert(key, map.next_value_seed(inner)?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Value::Object(fields))
    }
}

/// The keys of the object that JSON begins with, as far as it is there.
pub(crate) fn object_keys(json: &[u8]) -> Vec<&[u8]> {
    let (mut keys, mut depth, mut at) = (Vec::new(), 0_usize, 0);
    if !json.starts_with(b"{") {
        return keys;
    }
    while let Some(byte) = json.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => {
                let Some(length) = text_length(&json[at..]) else { return keys };
                let text = &json[at..at + length];
                at += length + 1;
                if depth == 1 && json[at..].trim_ascii_start().starts_with(b":") {
                    keys.push(text);
                }
            }
            _ => {}
        }
        if depth == 0 {
            return keys;
        }
    }
    keys
}

/// Bytes of a text to its closing quote.
fn text_length(text: &[u8]) -> Option<usize> {
    let mut is_escaped = false;
    text.iter().position(|&byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_first_object() {
        let found = |json: &str| -> Vec<String> {
            let keys = object_keys(json.as_bytes()).into_iter();
            keys.map(|key| String::from_utf8_lossy(key).into_owned()).collect()
        };
        let keys = found(r#"{"a" : {"b":1}, "c":["d"], "e":"f\\","g":"h\"i","j":1} {"k":1}"#);
        assert_eq!(keys, ["a", "c", "e", "g", "j"]);
        assert_eq!(found(r#"{"a":1,"b""#), ["a"]);
        assert_eq!(found(r#"{"a":1,"b"#), ["a"]);
        assert!(found(r#"[{"a":1}]"#).is_empty() && found("").is_empty());
    }
}
