//! Counts of objects by a value.

use crate::field::{FieldType, Quantity, Value};
use crate::param::Param;
use crate::query::Summary;
use crate::read::{Count, ReadError, Weight};
use crate::sql::{Connection, Select};

/// Counts objects by the values of a summary.
pub(super) fn summary(
    connection: &mut dyn Connection,
    select: &Select<'_>,
    by: &Summary,
    weight: &mut Weight,
) -> Result<Vec<Count>, ReadError> {
    let most = select.plan.most_counts.unwrap_or(usize::MAX);
    let mut counts = Vec::new();
    connection.query(&select.summary(&by.target), &mut |mut columns| {
        let (shown, objects) = (columns.param(), columns.integer()?);
        let namespace = columns.optional_text()?;
        let bytes = shown.bytes() + namespace.as_ref().map_or(0, String::len) + size_of::<Count>();
        if weight.add(bytes) {
            let value = value(by.of, &shown);
            counts.extend(value.map(|value| (value, namespace, objects.unsigned_abs())));
        }
        Ok(())
    })?;
    weight.check_counts()?;
    // The statement reads one value more than the limit, so too many are noticed here.
    by.check(counts.len(), most)?;
    Ok(Count::sorted(counts))
}

/// Parses a stored value; `None` if it is not of its type.
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
            // The first byte is the family, as `Arg::of` wrote it.
            (4, octets) => <[u8; 4]>::try_from(octets).ok()?.into(),
            (_, octets) => <[u8; 16]>::try_from(octets).ok()?.into(),
        }),
        _ => return None,
    })
}
