//! The kinds in a database.

use super::reader::Tables;
use crate::param::Param;
use crate::schema::Schema;
use crate::sealed::{Keys, Sealed};
use crate::sql::{Connection, Dialect, Layout, Statement, StorageError, Transaction, number_of};

/// Marks an encrypted kind whose former plain text may still be in the database.
///
/// It may be in free pages or the log. If this process is killed before they are cleaned, the next one cleans them.
const UNCLEAN: &str = "unclean";

/// Returns the tables of a kind, which is encrypted if there are keys.
///
/// Their number is derived from the kind, its fields and whether it is encrypted: processes that share a database use
/// the same tables, or have none in common.
pub(crate) fn tables(
    dialect: Dialect,
    schema: &Schema,
    keys: Option<&Keys>,
) -> (Layout, Option<Sealed>) {
    let number = number_of(&format!(
        "{}\n{}",
        schema.gvk(),
        signature(schema, keys.is_some())
    ));
    let sealed = keys.map(|keys| Sealed {
        table: format!("sealed{number}"),
        kind: schema.gvk().clone(),
        keys: keys.clone(),
        dialect,
    });
    (Layout::new(number, schema, dialect), sealed)
}

/// Returns a text that differs between kinds with different tables.
fn signature(schema: &Schema, is_sealed: bool) -> String {
    let is_sealed = if is_sealed { "sealed" } else { "plain" };
    format!("{is_sealed} {}", schema.signature())
}

/// Finds the tables of a kind, or creates them.
///
/// Tables of this kind with other fields are replaced. With keys the kind is encrypted.
pub(super) fn open(connection: &mut dyn Connection, tables: &Tables) -> Result<(), StorageError> {
    let Tables {
        layout,
        schema,
        sealed,
        ..
    } = tables;
    let kind = schema.gvk().to_string();
    let signature = signature(schema, sealed.is_some());
    let unclean = format!("{UNCLEAN} {signature}");
    let written = match sealed {
        Some(_) => &unclean,
        None => &signature,
    };
    let dialect = connection.dialect();
    let select = Statement::new(dialect, "SELECT number, signature FROM kinds WHERE kind = ")
        .with("", Param::Text(kind.clone()));
    let is_unclean = connection.within(Transaction::Writes, |connection| {
        let known = match connection.first(&select)? {
            None => None,
            Some(mut known) => Some((known.integer()?, known.text()?)),
        };
        if let Some((number, known)) = &known
            && *number == layout.number()
            && (*known == signature || known == &unclean)
        {
            return Ok::<_, StorageError>(known == &unclean);
        }
        if let Some((number, _)) = &known {
            // The fields have changed, so all rows are written again in new tables.
            drop_tables(connection, *number)?;
        }
        let into = "kinds (number, kind, signature, version, history, change, synced, identity)";
        let mut sql = Statement::new(dialect, &format!("INSERT INTO {into} VALUES ("));
        let number = layout.number();
        let numbers = [0; 4].map(Param::Integer);
        let texts = [kind, written.clone()].map(Param::Text);
        let values = [Param::Integer(number)]
            .into_iter()
            .chain(texts)
            .chain(numbers)
            .chain([Param::Null]);
        sql.join(values, ", ", Statement::bind);
        sql.push(")");
        connection.execute(&sql)?;
        connection.run(
            &sealed
                .as_ref()
                .map_or_else(|| layout.create(), Sealed::create),
        )?;
        Ok(sealed.is_some())
    })?;
    if is_unclean {
        // Outside the transaction: the plain text must not remain in free pages of the file.
        connection.scrub()?;
        let clean = Statement::new(dialect, "UPDATE kinds SET signature = ")
            .with("", Param::Text(signature))
            .with(" WHERE number = ", Param::Integer(layout.number()));
        connection.within(Transaction::Writes, |connection| connection.execute(&clean))?;
    }
    Ok(())
}

/// Drops the tables of all other kinds, in a database that is not shared.
pub(super) fn keep_only(
    connection: &mut dyn Connection,
    kinds: &[String],
) -> Result<(), StorageError> {
    connection.within(Transaction::Writes, |connection| {
        let all = Statement::new(connection.dialect(), "SELECT number, kind FROM kinds");
        for mut known in connection.rows(&all)? {
            let (number, kind) = (known.integer()?, known.text()?);
            if !kinds.contains(&kind) {
                drop_tables(connection, number)?;
            }
        }
        Ok(())
    })
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
        // Their number depends on the former schema, which is not known any more.
        if own.contains(&name) || name.starts_with(&many) {
            connection.run(&format!("DROP TABLE \"{name}\""))?;
        }
    }
    let sql = Statement::new(dialect, "DELETE FROM kinds WHERE number = ");
    connection.execute(&sql.with("", Param::Integer(number)))?;
    Ok(())
}

/// Returns the keys of encrypted kinds in their stored form.
pub(super) fn keyring(connection: &mut dyn Connection) -> Result<Option<Vec<u8>>, StorageError> {
    let sql = Statement::new(connection.dialect(), "SELECT stored FROM keyring");
    let stored = connection.first(&sql)?;
    stored.map(|mut stored| stored.bytes()).transpose()
}

/// Replaces the stored keys `before` of encrypted kinds.
///
/// It writes nothing and returns `false` if other keys are stored by now.
pub(super) fn replace_keyring(
    connection: &mut dyn Connection,
    before: Option<&[u8]>,
    stored: &[u8],
) -> Result<bool, StorageError> {
    let bytes = |bytes: &[u8]| Param::Bytes(bytes.to_vec());
    let dialect = connection.dialect();
    let sql = match before {
        None => {
            let sql =
                Statement::new(dialect, "INSERT INTO keyring VALUES (1, ").with("", bytes(stored));
            // Another process may have stored its keys in between; then no row changes.
            sql.with_end(") ON CONFLICT DO NOTHING")
        }
        Some(before) => Statement::new(dialect, "UPDATE keyring SET stored = ")
            .with("", bytes(stored))
            .with(" WHERE stored = ", bytes(before)),
    };
    Ok(connection.execute(&sql)? == 1)
}
