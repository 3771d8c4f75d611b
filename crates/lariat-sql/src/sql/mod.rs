//! SQL: which tables a kind has, and the statements that a query becomes.
//!
//! Names come from numbers alone, and values are always parameters: no text of a user or an object becomes part of a statement.

mod joins;
mod layout;
mod select;

pub(crate) use layout::Layout;
pub(crate) use select::{From, Select};

use std::cmp::Ordering;
use std::fmt::Write;

use crate::field::{Value, natural_key};

/// A value that is given with a statement, or that a row has.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Param {
    Null,
    Text(String),
    Integer(i64),
    Real(f64),
    Bytes(Vec<u8>),
}

/// A statement and its parameters.
#[derive(Debug, Default)]
pub(crate) struct Statement {
    pub(crate) text: String,
    pub(crate) params: Vec<Param>,
}

impl Statement {
    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds a parameter in this place.
    pub(crate) fn bind(&mut self, param: Param) {
        self.params.push(param);
        // Writing to a string does not fail.
        let _ = write!(self.text, "?{}", self.params.len());
    }

    /// Adds what makes a list, with a separator between its parts.
    pub(crate) fn join<T>(
        &mut self,
        parts: impl IntoIterator<Item = T>,
        separator: &str,
        mut add: impl FnMut(&mut Self, T),
    ) {
        for (number, part) in parts.into_iter().enumerate() {
            if number > 0 {
                self.push(separator);
            }
            add(self, part);
        }
    }
}

impl Param {
    /// Compares stored values of one column as the database does; what is missing comes last.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            (Self::Integer(one), Self::Integer(other)) => one.cmp(other),
            (Self::Real(one), Self::Real(other)) => one.total_cmp(other),
            (Self::Bytes(one), Self::Bytes(other)) => one.cmp(other),
            (Self::Null, Self::Null) => Ordering::Equal,
            (Self::Null, _) => Ordering::Greater,
            (_, Self::Null) => Ordering::Less,
            // Not of one column.
            _ => Ordering::Equal,
        }
    }

    /// Returns a value as it is stored and compared for equality.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Text(text) => Self::Text(text.to_string()),
            Value::Natural(text) => Self::Bytes(natural_key(text)),
            Value::Integer(number) | Value::Time(number) => Self::Integer(*number),
            Value::Real(number) => Self::Real(*number),
            Value::Boolean(is) => Self::Integer(i64::from(*is)),
            Value::Quantity(amount) => Self::Bytes(amount.to_key().to_vec()),
            Value::Ip(address) => Self::Bytes(ip_key(address)),
        }
    }
}

/// Returns bytes that compare as addresses do.
fn ip_key(address: &std::net::IpAddr) -> Vec<u8> {
    match address {
        std::net::IpAddr::V4(address) => [&[4], address.octets().as_slice()].concat(),
        std::net::IpAddr::V6(address) => [&[6], address.octets().as_slice()].concat(),
    }
}
