//! The kinds in a database.

use lariat_seal::Keyring;

use super::database::Database;
use super::reader::Tables;
use crate::param::{List, Param};
#[cfg(feature = "postgres")]
use crate::postgres::FORM;
use crate::schema::Schema;
use crate::sealed::{Keys, LONGEST, Sealed};
use crate::sql::{Connection, Dialect, Layout, Statement, StorageError, Transaction, number_of};

/// Marks an encrypted kind whose former plain text may still be in the database.
///
/// It may be in free pages or the log. If this process is killed before they are cleaned, the next one cleans them.
const UNCLEAN: &str = "unclean";

/// Returns a number that depends on the kinds of a cache and the layout of tables.
///
/// It also depends on their fields, and on whether they are encrypted. Processes that share a database and have the
/// same number use the same tables and the same keys of encrypted kinds, and one of them writes. Others have none of
/// these in common.
#[cfg(feature = "postgres")]
pub(crate) fn edition<'a>(kinds: impl Iterator<Item = (&'a Schema, bool)>) -> i64 {
    let kinds = kinds.map(|(schema, is_sealed)| {
        let signature = signature(schema, is_sealed);
        format!("{} {signature}", schema.gvk())
    });
    let mut kinds: Vec<String> = kinds.collect();
    // A program may add them in any order.
    kinds.sort();
    number_of(&format!("{FORM}\n{}", kinds.join("\n")))
}

/// Returns the tables of a kind, which is encrypted if there are keys.
///
/// Their number is derived from the kind, its fields, whether it is encrypted, and the edition: processes that share a
/// database use the same tables, or have none in common.
pub(crate) fn tables(
    database: &Database,
    schema: &Schema,
    keys: Option<&Keys>,
) -> (Layout, Option<Sealed>) {
    let dialect = database.dialect();
    let number = number_of(&format!(
        "{}\n{}\n{}",
        database.edition(),
        schema.gvk(),
        signature(schema, keys.is_some())
    ));
    let sealed = keys.map(|keys| Sealed {
        table: format!("sealed{number}"),
        kind: schema.gvk().clone(),
        keys: keys.clone(),
        dialect,
        longest: LONGEST,
    });
    (Layout::new(number, schema, dialect), sealed)
}

/// Returns a text that differs between kinds with different tables.
fn signature(schema: &Schema, is_sealed: bool) -> String {
    // The first words name the form of the table too.
    let form = if is_sealed {
        "sealed by namespace"
    } else {
        "plain"
    };
    format!("{form} {}", schema.signature())
}

/// Finds the tables of a kind, or creates them.
///
/// In a database that is not shared, tables of this kind with other fields are replaced. With keys the kind is
/// encrypted.
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
    let kinds = dialect.kinds();
    let select = format!("SELECT number, signature FROM {kinds} WHERE kind = ");
    let select = Statement::new(dialect, &select).with("", Param::Text(kind.clone()));
    let is_unclean = connection.within(Transaction::Writes, |connection| {
        for mut known in connection.rows(&select)? {
            let (number, known) = (known.integer()?, known.text()?);
            let is_own = number == layout.number();
            if is_own && (known == signature || known == unclean) {
                return Ok::<_, StorageError>(known == unclean);
            }
            // The fields have changed, so all rows are written again in new tables. In a shared database other
            // processes may use theirs.
            if is_own || dialect == Dialect::Sqlite {
                drop_tables(connection, number)?;
            }
        }
        let columns = "number, kind, signature, version, history, change, synced, identity";
        let into = format!("INSERT INTO {kinds} ({columns}) VALUES (");
        let mut sql = Statement::new(dialect, &into);
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
        clean(connection, layout.number())?;
    }
    Ok(())
}

/// Removes deleted rows from all files, and then the mark that they may be there.
fn clean(connection: &mut dyn Connection, number: i64) -> Result<(), StorageError> {
    // Outside a transaction: the plain text must not remain in free pages of the file.
    connection.scrub()?;
    let dialect = connection.dialect();
    let (kinds, after) = (dialect.kinds(), UNCLEAN.len() + 2);
    let update = format!(
        "UPDATE {kinds} SET signature = substr(signature, {after}) WHERE signature LIKE '{UNCLEAN} %'"
    );
    let sql = Statement::new(dialect, &update);
    let sql = match dialect {
        // The file is clean for all kinds. A rotation marks all that are encrypted, and leads to one scrub.
        Dialect::Sqlite => sql,
        Dialect::Postgres => sql.with(" AND number = ", Param::Integer(number)),
    };
    connection.within(Transaction::Writes, |connection| connection.execute(&sql))?;
    Ok(())
}

/// Drops the tables of all other kinds, in a database that is not shared.
pub(super) fn keep_only(
    connection: &mut dyn Connection,
    kinds: &[String],
) -> Result<(), StorageError> {
    connection.within(Transaction::Writes, |connection| {
        let dialect = connection.dialect();
        let all = format!("SELECT number, kind FROM {}", dialect.kinds());
        let all = Statement::new(dialect, &all);
        for mut known in connection.rows(&all)? {
            let (number, kind) = (known.integer()?, known.text()?);
            if !kinds.contains(&kind) {
                drop_tables(connection, number)?;
            }
        }
        Ok(())
    })
}

/// Drops the tables with a number, whatever the fields of their kind were.
pub(super) fn drop_tables(
    connection: &mut dyn Connection,
    number: i64,
) -> Result<(), StorageError> {
    let dialect = connection.dialect();
    for mut table in connection.rows(&Statement::new(dialect, dialect.tables()))? {
        let name = table.text()?;
        // Their names depend on the former schema, which is not known any more.
        if is_of(&name, number) {
            connection.run(&format!("DROP TABLE \"{name}\""))?;
        }
    }
    let sql = format!("DELETE FROM {} WHERE number = ", dialect.kinds());
    let sql = Statement::new(dialect, &sql);
    connection.execute(&sql.with("", Param::Integer(number)))?;
    Ok(())
}

/// Returns whether a table has a number, as `row7` and `many7_5` have 7.
fn is_of(table: &str, number: i64) -> bool {
    let after = table.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let Some(rest) = after.strip_prefix(&number.to_string()) else {
        return false;
    };
    // Tables such as `word7_data` belong to SQLite's index `word7`, and are dropped with it.
    rest.is_empty() || (rest.starts_with('_') && !table.starts_with("word"))
}

/// Returns the keys of encrypted kinds in their stored form.
pub(super) fn keyring(connection: &mut dyn Connection) -> Result<Option<Vec<u8>>, StorageError> {
    let dialect = connection.dialect();
    let sql = format!("SELECT stored FROM {} WHERE id = ", dialect.keyring());
    let sql = Statement::new(dialect, &sql).with("", Param::Integer(connection.edition()));
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
    let (keyring, id) = (dialect.keyring(), Param::Integer(connection.edition()));
    let sql = match before {
        None => Statement::new(dialect, &format!("INSERT INTO {keyring} VALUES ("))
            .with("", id)
            .with(", ", bytes(stored))
            // Another process may have stored its keys in between; then no row changes.
            .with_end(") ON CONFLICT DO NOTHING"),
        Some(before) => Statement::new(dialect, &format!("UPDATE {keyring} SET stored = "))
            .with("", bytes(stored))
            .with(" WHERE id = ", id)
            .with(" AND stored = ", bytes(before)),
    };
    Ok(connection.execute(&sql)? == 1)
}

/// Replaces the stored keys `before` by those `after`, which have no old data keys.
///
/// It writes nothing and returns `false` if other keys are stored by now. The numbers are those of all encrypted kinds
/// that share the keys. Their rows are sealed with the current data key.
pub(super) fn retire(
    connection: &mut dyn Connection,
    numbers: Vec<i64>,
    before: &Keyring,
    after: &Keyring,
) -> Result<bool, StorageError> {
    connection.within(Transaction::Writes, |connection| {
        if !replace_keyring(connection, Some(before.stored()), after.stored())? {
            return Ok(false);
        }
        // Free pages may contain rows of the old data keys until the next start cleans them.
        let dialect = connection.dialect();
        let update = format!(
            "UPDATE {} SET signature = '{UNCLEAN} ' || signature WHERE signature NOT LIKE '{UNCLEAN} %' AND number",
            dialect.kinds()
        );
        let mut sql = Statement::new(dialect, &update);
        sql.among(List::Integers(numbers));
        connection.execute(&sql)?;
        Ok(true)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_belong_to_their_number_alone() {
        for table in ["row7", "json7", "word7", "many7_5", "sealed7"] {
            assert!(is_of(table, 7), "{table}");
        }
        for table in [
            "row77",
            "row17",
            "many77_7",
            "many1_7",
            "word7_data",
            "lariat_tables",
            "kinds",
        ] {
            assert!(!is_of(table, 7), "{table}");
        }
    }
}
