//! Tables of a shared database that no process uses any more.
//!
//! An update of the program, or of a CRD, leads to other tables; the earlier ones may still be read for a while.

use super::kinds::drop_tables;
use super::writer::Writer;
use crate::param::{List, Param};
use crate::sql::{Statement, StorageError, Transaction};

/// The time without use after which tables are dropped.
const UNUSED: &str = "interval '1 hour'";

/// The time after which a use of tables is noted again.
const FRESH: &str = "interval '1 minute'";

impl Writer {
    /// Notes that tables with these numbers, in ascending order, are in use.
    ///
    /// It writes about once a minute, however many processes use them.
    pub(crate) fn touch(&mut self, numbers: &[i64]) -> Result<(), StorageError> {
        let connection = &mut *self.connection;
        let dialect = connection.dialect();
        let select =
            format!("SELECT count(*) FROM lariat_tables WHERE used > now() - {FRESH} AND number");
        let mut sql = Statement::new(dialect, &select);
        sql.among(List::Integers(numbers.to_vec()));
        let fresh = connection.first(&sql)?.map(|mut count| count.integer());
        if fresh.transpose()? == i64::try_from(numbers.len()).ok() {
            return Ok(());
        }
        // Rows are locked in the order of their numbers, so that no two processes wait for each other.
        let insert = "INSERT INTO lariat_tables SELECT number, now() FROM unnest(";
        let sql = Statement::new(dialect, insert)
            .with("", Param::List(List::Integers(numbers.to_vec())))
            .with_end("::bigint[]) AS number ON CONFLICT (number) DO UPDATE SET used = now()");
        connection
            .within(Transaction::Writes, |connection| connection.execute(&sql))
            .map(drop)
    }

    /// Drops the tables that no process has used for an hour, one number at a time.
    ///
    /// It fails after a second if a reader still has them.
    pub(crate) fn drop_unused(&mut self) -> Result<(), StorageError> {
        while self.drop_one()? {}
        Ok(())
    }

    /// Drops the tables of one unused number; returns whether there were any.
    fn drop_one(&mut self) -> Result<bool, StorageError> {
        self.connection.within(Transaction::Writes, |connection| {
            connection.run("SET LOCAL lock_timeout = '1s'")?;
            let dialect = connection.dialect();
            // A process that begins to use them meanwhile waits, and then finds that they are gone.
            let delete = format!(
                "DELETE FROM lariat_tables WHERE used < now() - {UNUSED} AND number = (
                    SELECT number FROM lariat_tables WHERE used < now() - {UNUSED} ORDER BY used LIMIT 1
                    FOR UPDATE SKIP LOCKED) RETURNING number"
            );
            let Some(mut unused) = connection.first(&Statement::new(dialect, &delete))? else {
                return Ok(false);
            };
            let number = unused.integer()?;
            drop_tables(connection, number)?;
            let delete = format!("DELETE FROM {} WHERE id = ", dialect.keyring());
            let sql = Statement::new(dialect, &delete).with("", Param::Integer(number));
            connection.execute(&sql)?;
            tracing::info!(number, "tables of the SQL cache that no process has used for an hour were dropped");
            Ok(true)
        })
    }
}
