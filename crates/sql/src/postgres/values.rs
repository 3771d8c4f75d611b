//! Parameters and columns.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};

use super::text;
use crate::param::{List, Param};

/// A parameter, as the library expects it.
#[derive(Debug)]
pub(super) struct Bound<'a>(pub(super) &'a Param);

type Failed = Box<dyn Error + Sync + Send>;

impl ToSql for Bound<'_> {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Failed> {
        // `accepts` allows every type, so a value of another width would be sent and misread.
        if !fits(self.0, of) {
            return Err(format!("a parameter is of another type than {of}").into());
        }
        match self.0 {
            Param::Null => Ok(IsNull::Yes),
            Param::Text(it) => text::write(it).as_ref().to_sql(of, out),
            Param::Integer(number) => number.to_sql(of, out),
            Param::Real(number) => number.to_sql(of, out),
            Param::Bytes(bytes) => bytes.to_sql(of, out),
            Param::List(List::Integers(numbers)) => numbers.to_sql(of, out),
            Param::List(List::Bytes(all)) => all.to_sql(of, out),
            Param::List(List::Texts(texts)) => {
                let texts: Vec<_> = texts.iter().map(|it| text::write(it)).collect();
                texts.to_sql(of, out)
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        // `fits` decides, because it knows the value.
        true
    }

    fn to_sql_checked(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Failed> {
        self.to_sql(of, out)
    }
}

/// Returns whether a parameter is of a type; the client would send it in any case.
fn fits(param: &Param, of: &Type) -> bool {
    match param {
        Param::Null => true,
        Param::Text(_) => *of == Type::TEXT,
        Param::Integer(_) => *of == Type::INT8,
        Param::Real(_) => *of == Type::FLOAT8,
        Param::Bytes(_) => *of == Type::BYTEA,
        Param::List(List::Texts(_)) => *of == Type::TEXT_ARRAY,
        Param::List(List::Integers(_)) => *of == Type::INT8_ARRAY,
        Param::List(List::Bytes(_)) => *of == Type::BYTEA_ARRAY,
    }
}

impl<'a> FromSql<'a> for Param {
    fn from_sql(of: &Type, raw: &'a [u8]) -> Result<Self, Failed> {
        Ok(match *of {
            // Text of the catalog has the type `name`.
            Type::TEXT | Type::NAME => Self::Text(text::read(<&str>::from_sql(of, raw)?)),
            Type::INT8 => Self::Integer(i64::from_sql(of, raw)?),
            Type::FLOAT8 => Self::Real(f64::from_sql(of, raw)?),
            Type::BYTEA => Self::Bytes(raw.to_vec()),
            // SQLite has no booleans, so a parameter has none either.
            Type::BOOL => Self::Integer(bool::from_sql(of, raw)?.into()),
            Type::INT4 => Self::Integer(i32::from_sql(of, raw)?.into()),
            _ => return Err(format!("a column is of the type {of}").into()),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Failed> {
        Ok(Self::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}
