//! Events of Chrome's traces, as far as memory needs them.
//!
//! A trace has events of many tools, and any field of them may be anything. So nothing is refused here that is JSON: a field
//! of another type than usual keeps it, and the caller judges the event.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Events may be in threads of one number in several processes.
pub(crate) type Thread = (String, String);

/// An event: the fields that matter, null if it does not have them.
#[derive(Default)]
pub(crate) struct RawEvent {
    pub(crate) ph: Value,
    pub(crate) name: Value,
    pub(crate) pid: Value,
    tid: Value,
    pub(crate) ts: Value,
    dur: Value,
    pub(crate) arguments: RawArguments,
}

/// Arguments of an event of memory.
#[derive(Default)]
pub(crate) struct RawArguments {
    pub(crate) address: Value,
    pub(crate) bytes: Value,
    pub(crate) allocated: Value,
    pub(crate) reserved: Value,
    pub(crate) device_type: Value,
    pub(crate) device: Value,
    pub(crate) index: Value,
}

impl RawEvent {
    /// Its process and its thread.
    pub(crate) fn thread(&self) -> Thread {
        (self.pid.to_string(), self.tid.to_string())
    }

    /// When it was; 0 if it does not say.
    pub(crate) fn time(&self) -> Option<f64> {
        number_or_zero(&self.ts)
    }

    /// When it began and when it was over.
    pub(crate) fn span(&self) -> Option<(f64, f64)> {
        let from = self.time()?;
        Some((from, from + number_or_zero(&self.dur)?))
    }
}

fn number_or_zero(value: &Value) -> Option<f64> {
    if value.is_null() { Some(0.0) } else { value.as_f64() }
}

impl<'de> Deserialize<'de> for RawEvent {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(Anything::<Self>::default()).map(|found| found.fields)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum EventKey {
    Ph,
    Name,
    Pid,
    Tid,
    Ts,
    Dur,
    Args,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(field_identifier)]
enum ArgumentKey {
    #[serde(rename = "Addr")]
    Address,
    Bytes,
    #[serde(rename = "Total Allocated")]
    Allocated,
    #[serde(rename = "Total Reserved")]
    Reserved,
    #[serde(rename = "Device Type")]
    DeviceType,
    #[serde(rename = "Device Id")]
    Device,
    #[serde(rename = "Ev Idx")]
    Index,
    #[serde(other)]
    Other,
}

/// Fields of an object.
trait Fields: Default {
    /// Reads the next field; `false` at the end.
    fn next<'de, A: MapAccess<'de>>(&mut self, map: &mut A) -> Result<bool, A::Error>;
}

impl Fields for RawEvent {
    fn next<'de, A: MapAccess<'de>>(&mut self, map: &mut A) -> Result<bool, A::Error> {
        let Some(key) = map.next_key()? else { return Ok(false) };
        let field = match key {
            EventKey::Ph => &mut self.ph,
            EventKey::Name => &mut self.name,
            EventKey::Pid => &mut self.pid,
            EventKey::Tid => &mut self.tid,
            EventKey::Ts => &mut self.ts,
            EventKey::Dur => &mut self.dur,
            EventKey::Args => {
                self.arguments = map.next_value::<Anything<RawArguments>>()?.fields;
                return Ok(true);
            }
            EventKey::Other => return map.next_value::<IgnoredAny>().map(|_| true),
        };
        *field = map.next_value::<Anything<Nothing>>()?.value;
        Ok(true)
    }
}

impl Fields for RawArguments {
    fn next<'de, A: MapAccess<'de>>(&mut self, map: &mut A) -> Result<bool, A::Error> {
        let Some(key) = map.next_key()? else { return Ok(false) };
        let field = match key {
            ArgumentKey::Address => &mut self.address,
            ArgumentKey::Bytes => &mut self.bytes,
            ArgumentKey::Allocated => &mut self.allocated,
            ArgumentKey::Reserved => &mut self.reserved,
            ArgumentKey::DeviceType => &mut self.device_type,
            ArgumentKey::Device => &mut self.device,
            ArgumentKey::Index => &mut self.index,
            ArgumentKey::Other => return map.next_value::<IgnoredAny>().map(|_| true),
        };
        *field = map.next_value::<Anything<Nothing>>()?.value;
        Ok(true)
    }
}

/// An object whose fields do not matter.
#[derive(Default)]
struct Nothing;

impl Fields for Nothing {
    fn next<'de, A: MapAccess<'de>>(&mut self, map: &mut A) -> Result<bool, A::Error> {
        Ok(map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some())
    }
}

/// Any JSON: the fields of an object, or a value. Of an array only that it is one.
#[derive(Default)]
struct Anything<F> {
    fields: F,
    value: Value,
}

impl<F: Fields> Anything<F> {
    fn of(value: impl Into<Value>) -> Self {
        Self { fields: F::default(), value: value.into() }
    }
}

impl<'de, F: Fields> Deserialize<'de> for Anything<F> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(Self::default())
    }
}

impl<'de, F: Fields> Visitor<'de> for Anything<F> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self, E> {
        Ok(Self::of(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self, E> {
        Ok(Self::of(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self, E> {
        Ok(Self::of(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self, E> {
        Ok(Self::of(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self, E> {
        Ok(Self::of(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self, A::Error> {
        while array.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::of(Value::Array(Vec::new())))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while self.fields.next(&mut map)? {}
        self.value = Value::Object(serde_json::Map::new());
        Ok(self)
    }
}

/// The keys of the object that JSON begins with, as far as it is there.
pub(crate) fn keys(json: &[u8]) -> Vec<&[u8]> {
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
            keys(json.as_bytes()).into_iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect()
        };
        assert_eq!(
            found(r#"{"a" : {"b":1}, "c":["d"], "e":"f\\","g":"h\"i","j":1} {"k":1}"#),
            ["a", "c", "e", "g", "j"]
        );
        assert_eq!(found(r#"{"a":1,"b""#), ["a"]);
        assert_eq!(found(r#"{"a":1,"b"#), ["a"]);
        assert!(found(r#"[{"a":1}]"#).is_empty() && found("").is_empty());
    }
}
