//! Size and nesting of a JSON value, taken before any other code recurses into it.
//!
//! Both walks stop at their limit, so a value built in memory with 10,000 levels or a billion
//! items costs no more than the limit does.

use std::io;

use serde_json::Value;

use crate::error::SchemaError;
use crate::limits::{MAX_BYTES, MAX_NESTING};

/// A schema that later steps may walk recursively: nesting first, then bytes.
pub(crate) fn measure_schema(schema: &Value) -> Result<(), SchemaError> {
    // A value needs a byte of text and a string its length, so the byte limit bounds this walk.
    let mut bytes_left = MAX_BYTES;
    nesting(schema, MAX_NESTING, &mut bytes_left)?;
    serde_json::to_writer(Ruler { left: MAX_BYTES }, schema).map_err(|_| SchemaError::TooLarge)
}

fn nesting(value: &Value, levels_left: usize, bytes_left: &mut usize) -> Result<(), SchemaError> {
    let spend = |left: &mut usize, bytes: usize| {
        *left = left.checked_sub(bytes).ok_or(SchemaError::TooLarge)?;
        Ok(())
    };
    spend(bytes_left, 1)?;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        Value::String(text) => spend(bytes_left, text.len()),
        Value::Array(items) => {
            let below = levels_left.checked_sub(1).ok_or(SchemaError::TooNested)?;
            items.iter().try_for_each(|item| nesting(item, below, bytes_left))
        }
        Value::Object(map) => {
            let below = levels_left.checked_sub(1).ok_or(SchemaError::TooNested)?;
            map.iter().try_for_each(|(name, item)| {
                spend(bytes_left, name.len())?;
                nesting(item, below, bytes_left)
            })
        }
    }
}

/// A writer that keeps nothing and fails when it is full.
struct Ruler {
    left: usize,
}

impl io::Write for Ruler {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Arguments are nested deeper than the limit.
#[derive(Debug)]
pub(crate) struct TooDeep;

/// The weight of arguments: one per value plus one per byte of text. Refuses deep nesting.
pub(crate) fn weigh(value: &Value, levels_left: usize) -> Result<u64, TooDeep> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(1),
        Value::String(text) => Ok(1 + text.len() as u64),
        Value::Array(items) => {
            let below = levels_left.checked_sub(1).ok_or(TooDeep)?;
            items.iter().try_fold(1, |sum: u64, item| Ok(sum.saturating_add(weigh(item, below)?)))
        }
        Value::Object(map) => {
            let below = levels_left.checked_sub(1).ok_or(TooDeep)?;
            map.iter().try_fold(1, |sum: u64, (name, item)| {
                Ok(sum.saturating_add(name.len() as u64).saturating_add(weigh(item, below)?))
            })
        }
    }
}
