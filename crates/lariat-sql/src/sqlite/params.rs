//! Parameters and columns of SQLite.

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value as Sqlite, ValueRef};

use crate::field::{FieldType, Quantity, Value};
use crate::sql::Param;

impl ToSql for Param {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(Sqlite::Null),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Integer(number) => ToSqlOutput::Owned(Sqlite::Integer(*number)),
            Self::Real(number) => ToSqlOutput::Owned(Sqlite::Real(*number)),
            Self::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

/// Reads a column.
pub(super) fn read(column: ValueRef<'_>) -> rusqlite::Result<Param> {
    Ok(match column {
        ValueRef::Null => Param::Null,
        ValueRef::Integer(number) => Param::Integer(number),
        ValueRef::Real(number) => Param::Real(number),
        ValueRef::Text(_) => Param::Text(column.as_str()?.to_owned()),
        ValueRef::Blob(bytes) => Param::Bytes(bytes.to_vec()),
    })
}

/// Returns a value as it was stored to be shown; none if it is not of its type.
pub(super) fn value(of: FieldType, shown: &Param) -> Option<Value> {
    Some(match (of, shown) {
        (FieldType::Text, Param::Text(text)) => Value::Text(text.as_str().into()),
        (FieldType::Natural, Param::Text(text)) => Value::Natural(text.as_str().into()),
        (FieldType::Integer, Param::Integer(number)) => Value::Integer(*number),
        (FieldType::Real, Param::Real(number)) => Value::Real(*number),
        (FieldType::Boolean, Param::Integer(number)) => Value::Boolean(*number != 0),
        (FieldType::Time, Param::Integer(micros)) => Value::Time(*micros),
        (FieldType::Quantity, Param::Bytes(key)) => {
            Value::Quantity(Quantity::from_key(key.as_slice().try_into().ok()?))
        }
        (FieldType::Ip, Param::Bytes(key)) => Value::Ip(match key.split_first()? {
            (4, octets) => <[u8; 4]>::try_from(octets).ok()?.into(),
            (_, octets) => <[u8; 16]>::try_from(octets).ok()?.into(),
        }),
        _ => return None,
    })
}
