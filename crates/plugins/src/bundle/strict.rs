//! JSON without ambiguity: two readers of these bytes read the same.
//!
//! Refused before anything else looks: a key that stands twice, an integer
//! that a double cannot hold, bytes after the end, deep nesting, too many bytes.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use toolyard_protocol::limits::{PLUGIN_BYTES, PLUGIN_DEPTH};

/// The largest integer whose neighbours are doubles too: 2^53 - 1.
const MOST: u64 = (1 << 53) - 1;

/// Reads a document, or says why it is none.
pub(super) fn read(text: &[u8]) -> Result<Value, String> {
    if text.len() > PLUGIN_BYTES {
        return Err(format!("the document has {} bytes, the limit is {PLUGIN_BYTES}", text.len()));
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Strict { depth: 0 }.deserialize(&mut reader).map_err(|e| e.to_string())?;
    reader.end().map_err(|e| format!("something follows the document: {e}"))?;
    Ok(value)
}

/// One value, so many levels below the top.
#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn below<E: de::Error>(self) -> Result<Self, E> {
        if self.depth >= PLUGIN_DEPTH {
            return Err(E::custom(format!("the document nests deeper than {PLUGIN_DEPTH} levels")));
        }
        Ok(Self { depth: self.depth + 1 })
    }
}

fn beyond<E: de::Error>(number: impl fmt::Display) -> E {
    E::custom(format!("{number} is an integer beyond 2^53 - 1, which not every reader keeps"))
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E: de::Error>(self, it: bool) -> Result<Value, E> {
        Ok(Value::Bool(it))
    }
    fn visit_u64<E: de::Error>(self, it: u64) -> Result<Value, E> {
        if it > MOST { Err(beyond(it)) } else { Ok(Value::from(it)) }
    }
    fn visit_i64<E: de::Error>(self, it: i64) -> Result<Value, E> {
        if it.unsigned_abs() > MOST { Err(beyond(it)) } else { Ok(Value::from(it)) }
    }
    fn visit_f64<E: de::Error>(self, it: f64) -> Result<Value, E> {
        // An integer that no u64 holds arrives here, rounded already.
        #[expect(clippy::cast_precision_loss, reason = "2^53 - 1 is a double")]
        let most = MOST as f64;
        if it.fract() == 0.0 && it.abs() > most {
            return Err(beyond(it));
        }
        Number::from_f64(it).map(Value::Number).ok_or_else(|| E::custom("a number is out of range"))
    }
    fn visit_str<E: de::Error>(self, it: &str) -> Result<Value, E> {
        Ok(Value::String(it.to_owned()))
    }
    fn visit_string<E: de::Error>(self, it: String) -> Result<Value, E> {
        Ok(Value::String(it))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(below)? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut all = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let value = fields.next_value_seed(below)?;
            if all.contains_key(&name) {
                let shown: String = name.chars().take(64).collect();
                return Err(de::Error::custom(format!("the key {shown:?} stands twice in one object")));
            }
            all.insert(name, value);
        }
        Ok(Value::Object(all))
    }
}
