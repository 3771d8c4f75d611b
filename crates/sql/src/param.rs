//! Values of statements and of rows.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::field::{Value, natural_key};

/// A parameter of a statement, or a value of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Param {
    Null,
    Text(String),
    Integer(i64),
    Real(f64),
    Bytes(Vec<u8>),
    /// Any number of values of a column; no column of a row contains a list.
    List(List),
}

/// Values of one type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum List {
    Texts(Vec<String>),
    Integers(Vec<i64>),
    Bytes(Vec<Vec<u8>>),
}

/// A value to be written, which is borrowed if possible.
#[derive(Debug, Clone)]
pub(crate) enum Arg<'a> {
    Null,
    Text(Cow<'a, str>),
    Integer(i64),
    Real(f64),
    Bytes(Cow<'a, [u8]>),
}

impl Param {
    /// Returns the approximate size in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let beside = match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        size_of::<Self>() + beside
    }
}

impl List {
    /// Converts parameters to a list; returns them if no list has their type.
    pub(crate) fn of(params: Vec<Param>) -> Result<Self, Vec<Param>> {
        match params.first() {
            // All values are of one field, so the type of the first is the type of all.
            Some(Param::Text(_)) => {
                let texts = params.into_iter().filter_map(|param| match param {
                    Param::Text(text) => Some(text),
                    _ => None,
                });
                Ok(Self::Texts(texts.collect()))
            }
            Some(Param::Integer(_)) => {
                let numbers = params.into_iter().filter_map(|param| match param {
                    Param::Integer(number) => Some(number),
                    _ => None,
                });
                Ok(Self::Integers(numbers.collect()))
            }
            Some(Param::Bytes(_)) => {
                let all = params.into_iter().filter_map(|param| match param {
                    Param::Bytes(bytes) => Some(bytes),
                    _ => None,
                });
                Ok(Self::Bytes(all.collect()))
            }
            _ => Err(params),
        }
    }
}

impl Param {
    /// Compares values of one column as the database does; null comes last.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            (Self::Integer(one), Self::Integer(other)) => one.cmp(other),
            // A total order even if NaN occurs, because the result decides where a page begins.
            (Self::Real(one), Self::Real(other)) => one.total_cmp(other),
            (Self::Bytes(one), Self::Bytes(other)) => one.cmp(other),
            (Self::Null, Self::Null) => Ordering::Equal,
            // As in the ORDER BY of both databases: NULL is last in ascending order and first in descending order.
            (Self::Null, _) => Ordering::Greater,
            (_, Self::Null) => Ordering::Less,
            // From a cursor for a column of another type; there is no order.
            _ => Ordering::Equal,
        }
    }

    /// Returns a value as it is stored and compared for equality.
    pub(crate) fn of(value: &Value) -> Self {
        match Arg::of(value) {
            Arg::Null => Self::Null,
            Arg::Text(text) => Self::Text(text.into_owned()),
            Arg::Integer(number) => Self::Integer(number),
            Arg::Real(number) => Self::Real(number),
            Arg::Bytes(bytes) => Self::Bytes(bytes.into_owned()),
        }
    }
}

impl<'a> Arg<'a> {
    pub(crate) fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    pub(crate) fn bytes(bytes: &'a [u8]) -> Self {
        Self::Bytes(Cow::Borrowed(bytes))
    }

    /// Returns a value as it is stored and compared for equality.
    pub(crate) fn of(value: &'a Value) -> Self {
        match value {
            Value::Text(text) => Self::text(text),
            Value::Natural(text) => Self::Bytes(natural_key(text).into()),
            Value::Integer(number) | Value::Time(number) => Self::Integer(*number),
            Value::Real(number) => Self::Real(*number),
            Value::Boolean(is) => Self::Integer(i64::from(*is)),
            Value::Quantity(amount) => Self::Bytes(amount.to_key().to_vec().into()),
            Value::Ip(address) => Self::Bytes(ip_key(address).into()),
        }
    }
}

/// Returns bytes that compare as addresses do.
fn ip_key(address: &std::net::IpAddr) -> Vec<u8> {
    match address {
        // The first byte separates the families: all IPv4 addresses sort before all IPv6 addresses.
        std::net::IpAddr::V4(address) => [&[4], address.octets().as_slice()].concat(),
        std::net::IpAddr::V6(address) => [&[6], address.octets().as_slice()].concat(),
    }
}
