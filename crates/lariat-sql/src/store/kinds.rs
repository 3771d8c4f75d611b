//! Which kinds a database has.

use crate::schema::Schema;
use crate::sealed::{Keys, Sealed};
use crate::sql::{Connection, Layout, Param, Statement, StorageError, Transaction};

/// Returns the tables of a kind, which is encrypted if there are keys.
///
/// Their number follows from the kind, its fields and whether it is encrypted: all who share a database name the same tables,
/// or have none in common.
pub(super) fn tables(
    connection: &dyn Connection,
    schema: &Schema,
    keys: Option<&Keys>,
) -> (Layout, Option<Sealed>) {
    let number = number(schema.gvk().to_string(), &signature(schema, keys));
    let dialect = connection.dialect();
    let sealed = keys.map(|keys| Sealed {
        table: format!("sealed{number}"),
        kind: schema.gvk().clone(),
        keys: keys.clone(),
        dialect,
    });
    (Layout::new(number, schema, dialect), sealed)
}

/// Returns a text that differs between kinds whose tables do.
fn signature(schema: &Schema, keys: Option<&Keys>) -> String {
    let is_sealed = if keys.is_some() { "sealed" } else { "plain" };
    format!("{is_sealed} {}", schema.signature())
}

/// Returns a number that two kinds do not share but by a chance of one in 2⁶²; FNV-1a does not change between versions.
fn number(kind: String, signature: &str) -> i64 {
    let text = kind + "\n" + signature;
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 1).cast_signed()
}

/// Finds the tables of a kind, or makes them.
///
/// Changes are counted from zero again, in a new history. Tables of other fields are made new, those of this kind only; with
/// keys the kind is encrypted.
pub(super) fn open(
    connection: &mut dyn Connection,
    schema: &Schema,
    keys: Option<&Keys>,
    history: u32,
) -> Result<(Layout, Option<Sealed>), StorageError> {
    let (layout, sealed) = tables(connection, schema, keys);
    let (kind, signature) = (schema.gvk().to_string(), signature(schema, keys));
    let dialect = connection.dialect();
    let select = "SELECT number, signature FROM kinds WHERE kind = ";
    let select = Statement::new(dialect, select).with("", Param::Text(kind.clone()));
    let known = connection.within(Transaction::Writes, |connection| {
        let known = match connection.first(&select)? {
            None => None,
            Some(mut known) => Some((known.integer()?, known.text()?)),
        };
        if known.as_ref() == Some(&(layout.number(), signature.clone())) {
            let sql = Statement::new(dialect, "UPDATE kinds SET change = 0, ")
                .with("history = ", Param::Integer(history.into()))
                .with(" WHERE number = ", Param::Integer(layout.number()));
            connection.execute(&sql)?;
            return Ok::<_, StorageError>(known);
        }
        if let Some((number, _)) = &known {
            drop_tables(connection, *number)?;
        }
        let into = "kinds (number, kind, signature, version, history, change, synced)";
        let mut sql = Statement::new(dialect, &format!("INSERT INTO {into} VALUES ("));
        let (number, history) = (layout.number(), history.into());
        let numbers = [0, history, 0, 0].map(Param::Integer);
        let texts = [Param::Text(kind), Param::Text(signature)];
        let values = [Param::Integer(number)]
            .into_iter()
            .chain(texts)
            .chain(numbers);
        sql.join(values, ", ", Statement::bind);
        sql.push(")");
        connection.execute(&sql)?;
        connection.run(
            &sealed
                .as_ref()
                .map_or_else(|| layout.create(), Sealed::create),
        )?;
        Ok(known)
    })?;
    if sealed.is_some() && known.is_some_and(|(_, known)| known.starts_with("plain")) {
        connection.scrub()?;
    }
    Ok((layout, sealed))
}

/// Drops the tables of a kind, whatever its fields were.
fn drop_tables(connection: &mut dyn Connection, number: i64) -> Result<(), StorageError> {
    let dialect = connection.dialect();
    let all = connection.rows(&Statement::new(dialect, dialect.tables()))?;
    let own =
        ["row", "json", "label", "owner", "word", "sealed"].map(|name| format!("{name}{number}"));
    let many = format!("many{number}_");
    for mut table in all {
        let name = table.text()?;
        if own.contains(&name) || name.starts_with(&many) {
            connection.run(&format!("DROP TABLE \"{name}\""))?;
        }
    }
    let sql = Statement::new(dialect, "DELETE FROM kinds WHERE number = ");
    connection.execute(&sql.with("", Param::Integer(number)))?;
    Ok(())
}

/// Returns the keys of encrypted kinds, as they are stored.
pub(super) fn keyring(connection: &mut dyn Connection) -> Result<Option<Vec<u8>>, StorageError> {
    let sql = Statement::new(connection.dialect(), "SELECT stored FROM keyring");
    let stored = connection.first(&sql)?;
    stored.map(|mut stored| stored.bytes()).transpose()
}

/// Stores the keys of encrypted kinds in the place of those that were there; returns whether those were still there.
pub(super) fn replace_keyring(
    connection: &mut dyn Connection,
    before: Option<&[u8]>,
    stored: &[u8],
) -> Result<bool, StorageError> {
    let bytes = |bytes: &[u8]| Param::Bytes(bytes.to_vec());
    let dialect = connection.dialect();
    let sql = match before {
        None => {
            let sql = Statement::new(dialect, "INSERT INTO keyring VALUES (1, ");
            let mut sql = sql.with("", bytes(stored));
            sql.push(") ON CONFLICT DO NOTHING");
            sql
        }
        Some(before) => Statement::new(dialect, "UPDATE keyring SET stored = ")
            .with("", bytes(stored))
            .with(" WHERE stored = ", bytes(before)),
    };
    Ok(connection.execute(&sql)? == 1)
}
