//! Scalars of JSON, some of which are messages in protobuf.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::error::ProtobufError;
use super::wire::{Message, Payload};
use crate::schema::Scalar;

/// The largest whole number that every smaller one is a double of.
const WHOLE: f64 = 9_007_199_254_740_992.0;

pub(super) fn scalar(scalar: Scalar, payload: Payload<'_>) -> Result<Value, ProtobufError> {
    Ok(match scalar {
        Scalar::String => text(payload.bytes()?),
        Scalar::Bool | Scalar::Int32 | Scalar::Int64 => varint(scalar, payload.varint()?),
        Scalar::Number => number(payload.double()?),
        Scalar::Bytes => BASE64.encode(payload.bytes()?).into(),
        Scalar::Time => match time(payload.bytes()?)? {
            Some((seconds, _)) => format!("{seconds:.0}").into(),
            None => Value::Null,
        },
        Scalar::MicroTime => match time(payload.bytes()?)? {
            Some((seconds, nanos)) => micro_time(seconds, nanos)?.into(),
            None => Value::Null,
        },
        Scalar::IntOrString => int_or_string(payload.bytes()?)?,
        Scalar::Quantity => quantity(payload.bytes()?)?,
    })
}

/// Reads a number of a type; it is truncated if it does not fit, as in Go.
pub(super) fn varint(scalar: Scalar, value: u64) -> Value {
    match scalar {
        Scalar::Bool => (value != 0).into(),
        Scalar::Int32 => (value as i32).into(),
        _ => value.cast_signed().into(),
    }
}

/// JSON has no bytes that are no text; Go replaces them as well.
fn text(bytes: &[u8]) -> Value {
    String::from_utf8_lossy(bytes).into()
}

fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < WHOLE {
        // Go writes whole numbers without a point.
        (value as i64).into()
    } else {
        value.into()
    }
}

/// Reads a point in time: seconds, and the rest in nanoseconds.
fn time(message: &[u8]) -> Result<Option<(Timestamp, i32)>, ProtobufError> {
    // Go writes a zero time as an empty message and reads it back as null.
    if message.is_empty() {
        return Ok(None);
    }
    let (mut seconds, mut nanos) = (0, 0);
    for field in Message::of(message) {
        match field? {
            (1, payload) => seconds = payload.varint()?.cast_signed(),
            (2, payload) => nanos = payload.varint()? as i32,
            _ => {}
        }
    }
    let seconds = Timestamp::from_second(seconds).map_err(|_| ProtobufError::Time)?;
    Ok(Some((seconds, nanos)))
}

fn micro_time(seconds: Timestamp, nanos: i32) -> Result<String, ProtobufError> {
    // Cut, not rounded, as the layout of Go does.
    let micros = i64::from(nanos).div_euclid(1000);
    let time = seconds.checked_add(SignedDuration::from_micros(micros));
    time.map(|time| format!("{time:.6}"))
        .map_err(|_| ProtobufError::Time)
}

fn int_or_string(message: &[u8]) -> Result<Value, ProtobufError> {
    let (mut is_text, mut number, mut string) = (false, 0, Value::from(""));
    for field in Message::of(message) {
        match field? {
            // The fields may come in any order, so the type is applied at the end.
            (1, payload) => is_text = payload.varint()? == 1,
            (2, payload) => number = payload.varint()? as i32,
            (3, payload) => string = text(payload.bytes()?),
            _ => {}
        }
    }
    Ok(if is_text { string } else { number.into() })
}

fn quantity(message: &[u8]) -> Result<Value, ProtobufError> {
    let mut amount = Value::from("0");
    for field in Message::of(message) {
        if let (1, payload) = field? {
            amount = text(payload.bytes()?);
        }
    }
    Ok(amount)
}
