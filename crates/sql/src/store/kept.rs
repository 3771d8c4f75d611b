//! The objects of an earlier run, from which an informer resumes.

use ring::digest::{SHA256, digest};

use super::reader::Tables;
use crate::param::Param;
use crate::read::Page;
use crate::sealed;
use crate::sql::{Connection, Statement, StorageError};

/// How many objects are read at a time.
const PAGE: u64 = 500;

/// Returns the version of all objects of a kind.
///
/// `None` if they are not complete, or were read under another identity.
pub(super) fn version(
    connection: &mut dyn Connection,
    of: &Tables,
    identity: &str,
) -> Result<Option<u64>, StorageError> {
    let dialect = connection.dialect();
    let kinds = dialect.kinds();
    let select =
        format!("SELECT version FROM {kinds} WHERE synced <> 0 AND version > 0 AND number = ");
    let sql = Statement::new(dialect, &select)
        .with("", Param::Integer(of.layout.number()))
        .with(" AND identity = ", hash(identity));
    let found = connection.first(&sql)?;
    let version = found.map(|mut found| found.integer()).transpose()?;
    Ok(version.map(i64::unsigned_abs))
}

/// Reads the objects whose rows follow another one.
pub(super) fn page(
    connection: &mut dyn Connection,
    of: &Tables,
    after: i64,
) -> Result<Page, StorageError> {
    if let Some(sealed) = &of.sealed {
        return sealed::page(connection, sealed, after, PAGE);
    }
    let select = format!("SELECT id, json FROM {} WHERE id > ", of.layout.json());
    let sql = Statement::new(connection.dialect(), &select)
        .with("", Param::Integer(after))
        .with_end(&format!(" ORDER BY id LIMIT {PAGE}"));
    let mut page = Page {
        objects: Vec::new(),
        last: None,
    };
    connection.query(&sql, &mut |mut columns| {
        page.last = Some(columns.integer()?);
        page.objects.push(columns.bytes()?.into());
        Ok(())
    })?;
    Ok(page)
}

/// Returns the stored form of an identity: a hash, which does not reveal the selection.
pub(super) fn hash(identity: &str) -> Param {
    Param::Bytes(digest(&SHA256, identity.as_bytes()).as_ref().to_vec())
}
