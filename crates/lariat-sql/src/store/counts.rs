//! Counting objects by a value.

use std::cmp::Reverse;

use super::reader::ReadError;
use crate::field::{FieldType, Quantity, Value, natural_key};
use crate::query::{QueryError, Summary};
use crate::sql::{Connection, Param, Select};

/// How many objects have a value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) value: String,
    pub(crate) namespace: Option<String>,
    pub(crate) objects: u64,
}

impl Count {
    /// Sorts counts: most objects first, then by value and namespace.
    ///
    /// The order is the same for all databases.
    pub(crate) fn sorted(
        counts: impl IntoIterator<Item = (Value, Option<String>, u64)>,
    ) -> Vec<Self> {
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_cached_key(|(value, namespace, objects)| {
            // The key of a natural text is computed once.
            let (natural, other) = match value {
                Value::Natural(text) => (Some(natural_key(text)), None),
                value => (None, Some(value.clone())),
            };
            (Reverse(*objects), natural, other, namespace.clone())
        });
        let counts = counts.into_iter();
        let counts = counts.map(|(value, namespace, objects)| Self {
            value: value.to_string(),
            namespace,
            objects,
        });
        counts.collect()
    }
}

/// Counts objects by the values of a summary.
pub(super) fn summary(
    connection: &mut dyn Connection,
    select: &Select<'_>,
    by: &Summary,
) -> Result<Vec<Count>, ReadError> {
    let most = select.plan.most_counts.unwrap_or(usize::MAX);
    let mut counts = Vec::new();
    connection.query(&select.summary(&by.target), &mut |mut columns| {
        let (shown, objects) = (columns.param(), columns.integer()?);
        let namespace = columns.optional_text()?;
        let value = value(by.of, &shown);
        counts.extend(value.map(|value| (value, namespace, objects.unsigned_abs())));
        Ok(())
    })?;
    by.check(counts.len(), most)?;
    Ok(Count::sorted(counts))
}

impl Summary {
    /// Returns an error if there are more counts than the query allows.
    pub(crate) fn check(&self, counts: usize, most: usize) -> Result<(), QueryError> {
        if counts <= most {
            return Ok(());
        }
        let subject = self.subject.clone();
        Err(QueryError::ManyCounts { subject, most })
    }
}

/// Parses a stored value; none if it is not of its type.
fn value(of: FieldType, shown: &Param) -> Option<Value> {
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
