//! A session: a connection to the server.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures::{SinkExt, TryStreamExt};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time;
use tokio_postgres::types::ToSql;
use tokio_postgres::{CancelToken, Client, Error, NoTls, SimpleQueryMessage};
use tokio_util::sync::CancellationToken;

use super::copy;
use super::error::{describe, is_of_value};
use super::tls::Tls;
use super::values::Bound;
use crate::param::{Arg, Param};
use crate::sql::{Columns, Connection, Dialect, Statement, StorageError, Transaction};

/// How many statements a session keeps prepared; there are few forms of queries.
const PREPARED: usize = 256;

/// The timeout of a request to cancel a statement.
const CANCEL: Duration = Duration::from_secs(2);

/// A connection to the server, used by threads for blocking work.
pub(crate) struct Session {
    client: Client,
    canceler: Canceler,
    /// Cancels the statements of the session.
    interrupt: CancellationToken,
    runtime: Handle,
    prepared: HashMap<String, tokio_postgres::Statement>,
    /// Reads and writes the socket; it ends with the session.
    _driver: JoinSet<()>,
    /// The name of the server in errors.
    server: String,
    /// The number that processes have in common if they share tables.
    edition: i64,
    /// The lock of the session that writes; `None` if it only reads.
    lock: Option<i64>,
    /// The epoch in which it writes; `None` before its own claim.
    ///
    /// Each claim increments the epoch.
    epoch: Option<i64>,
    /// Whether another session writes now.
    is_superseded: bool,
}

/// Requests the server to cancel the statement of a session.
pub(super) struct Canceler {
    token: CancelToken,
    tls: Option<Tls>,
}

impl Canceler {
    pub(super) fn new(client: &Client, tls: Option<Tls>) -> Self {
        let token = client.cancel_token();
        Self { token, tls }
    }

    /// Sends the request over its own connection, as the protocol requires.
    async fn cancel(&self) {
        let cancelled = async {
            match &self.tls {
                Some(tls) => self.token.cancel_query(tls.clone()).await,
                None => self.token.cancel_query(NoTls).await,
            }
        };
        match time::timeout(CANCEL, cancelled).await {
            Ok(Ok(())) => {}
            // The server ends the statement after its `statement_timeout`.
            Ok(Err(error)) => {
                tracing::debug!(
                    error = describe(&error),
                    "a query could not be cancelled on the server"
                );
            }
            Err(_) => tracing::debug!("a query cannot be cancelled on the server in time"),
        }
    }
}

impl Session {
    pub(super) fn new(
        client: Client,
        driver: JoinSet<()>,
        canceler: Canceler,
        runtime: Handle,
        server: String,
        edition: i64,
    ) -> Self {
        Self {
            client,
            canceler,
            interrupt: CancellationToken::new(),
            runtime,
            prepared: HashMap::new(),
            _driver: driver,
            server,
            edition,
            lock: None,
            epoch: None,
            is_superseded: false,
        }
    }

    /// Sets the lock with which it claims the right to write.
    pub(super) fn lock_by(&mut self, lock: i64) {
        self.lock = Some(lock);
    }

    /// Waits for the lock, after making the server end the session that has it.
    fn take_over(&mut self, lock: i64) -> Result<(), StorageError> {
        // A lock of 64 bits is listed as two halves.
        let sql = Statement::new(
            Dialect::Postgres,
            "SELECT pg_terminate_backend(pid) FROM pg_locks
             WHERE locktype = 'advisory' AND objsubid = 1 AND granted
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
             AND (classid::bigint << 32 | objid::bigint) = ",
        );
        self.execute(&sql.with("", Param::Integer(lock)))?;
        let sql = Statement::new(Dialect::Postgres, "SELECT pg_advisory_lock(")
            .with("", Param::Integer(lock))
            .with_end(")");
        self.execute(&sql).map(drop)
    }

    fn failed(&self, error: &Error) -> StorageError {
        if is_of_value(error) {
            let reason = format!("PostgreSQL: {}", describe(error));
            return StorageError::Value { reason };
        }
        StorageError::Postgres {
            server: self.server.clone(),
            reason: describe(error),
        }
    }

    /// Waits for the server, unless it is interrupted.
    fn wait<T>(&self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, StorageError> {
        self.runtime.block_on(async {
            match self.interrupt.run_until_cancelled(answer).await {
                Some(answer) => answer.map_err(|error| self.failed(&error)),
                // The server would go on with the statement, so it is asked to stop.
                None => {
                    self.canceler.cancel().await;
                    Err(StorageError::Interrupted)
                }
            }
        })
    }

    fn prepare(&mut self, sql: &str) -> Result<tokio_postgres::Statement, StorageError> {
        if let Some(prepared) = self.prepared.get(sql) {
            return Ok(prepared.clone());
        }
        let prepared = self.wait(self.client.prepare(sql))?;
        // Rare, and simpler than removing the oldest one.
        if self.prepared.len() >= PREPARED {
            self.prepared.clear();
        }
        self.prepared.insert(sql.to_owned(), prepared.clone());
        Ok(prepared)
    }

    /// Begins a write transaction, if the epoch is still current.
    ///
    /// No other session can claim the right to write before the transaction ends.
    fn begin_to_write(&mut self, epoch: i64) -> Result<(), StorageError> {
        // The row lock keeps a claim, which updates the row, waiting until the transaction ends.
        let edition = self.edition;
        let begin = format!("BEGIN; SELECT epoch FROM writer4 WHERE edition = {edition} FOR SHARE");
        let said = self.wait(self.client.simple_query(&begin));
        if said.is_err() {
            // The transaction may have begun, and would refuse all further statements.
            self.roll_back();
        }
        let said = said?;
        let mut rows = said.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        // The simple protocol returns numbers as texts.
        if rows.next() == Some(epoch.to_string().as_str()) {
            return Ok(());
        }
        self.is_superseded = true;
        self.roll_back();
        Err(StorageError::Superseded)
    }
}

impl Connection for Session {
    fn begin(&mut self, transaction: Transaction) -> Result<(), StorageError> {
        match (transaction, self.epoch) {
            (Transaction::Reads, _) => self.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
            (Transaction::Writes, Some(epoch)) => self.begin_to_write(epoch),
            (Transaction::Writes, None) => self.run("BEGIN"),
        }
    }

    fn commit(&mut self) -> Result<(), StorageError> {
        // After an error in the transaction, this rolls back without an error.
        self.run("COMMIT")
    }

    fn roll_back(&mut self) {
        // A session that was interrupted is not used again.
        if !self.interrupt.is_cancelled()
            && let Err(error) = self.run("ROLLBACK")
        {
            tracing::debug!(%error, "a transaction of the SQL cache ended with its connection");
        }
    }

    fn run(&mut self, sql: &str) -> Result<(), StorageError> {
        self.wait(self.client.batch_execute(sql))
    }

    fn execute(&mut self, sql: &Statement) -> Result<u64, StorageError> {
        let prepared = self.prepare(&sql.text)?;
        let params = bound(&sql.params);
        self.wait(self.client.execute_raw(&prepared, refs(&params)))
    }

    fn query(
        &mut self,
        sql: &Statement,
        look: &mut dyn FnMut(Columns) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let prepared = self.prepare(&sql.text)?;
        let params = bound(&sql.params);
        let mut looked = Ok(());
        let query = async {
            let rows = self.client.query_raw(&prepared, refs(&params)).await?;
            let mut rows = pin!(rows);
            while let Some(row) = rows.try_next().await? {
                let columns = (0..row.len()).map(|column| row.try_get::<_, Param>(column));
                looked = look(Columns::new(columns.collect::<Result<_, _>>()?));
                // Ends the query early; the error is returned after the connection is in order.
                if looked.is_err() {
                    break;
                }
            }
            Ok(())
        };
        self.wait(query)?;
        looked
    }

    fn insert(&mut self, into: &str, rows: &[Vec<Arg<'_>>]) -> Result<(), StorageError> {
        if rows.is_empty() {
            return Ok(());
        }
        let prepared = self.prepare(&format!("COPY {into} FROM STDIN (FORMAT binary)"))?;
        self.wait(async {
            let mut copy = pin!(self.client.copy_in(&prepared).await?);
            for part in copy::parts(rows) {
                copy.send(part).await?;
            }
            copy.finish().await.map(drop)
        })
    }

    fn interrupt_by(&mut self, token: &CancellationToken) -> Result<(), StorageError> {
        self.interrupt = token.clone();
        Ok(())
    }

    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn edition(&self) -> i64 {
        self.edition
    }

    fn scrub(&mut self) -> Result<(), StorageError> {
        // The files of a dropped table are deleted; archives of the server are out of reach.
        Ok(())
    }

    fn claim(&mut self, by_force: bool) -> Result<bool, StorageError> {
        let Some(lock) = self.lock else {
            return Ok(false);
        };
        let sql = Statement::new(Dialect::Postgres, "SELECT pg_try_advisory_lock(")
            .with("", Param::Integer(lock))
            .with_end(")");
        let connection: &mut dyn Connection = self;
        let taken = connection.first(&sql)?;
        if taken.map_or(Ok(0), |mut taken| taken.integer())? == 0 {
            if !by_force {
                return Ok(false);
            }
            // Ends a session that may be suspended and would keep the lock for long.
            self.take_over(lock)?;
        }
        // From now on transactions of the previous writer fail, even if it still has a session.
        let sql = Statement::new(Dialect::Postgres, "INSERT INTO writer4 VALUES (")
            .with("", Param::Integer(self.edition))
            .with_end(", 1) ON CONFLICT (edition) DO UPDATE SET epoch = writer4.epoch + 1 RETURNING epoch");
        let connection: &mut dyn Connection = self;
        let epoch = connection.first(&sql)?;
        self.epoch = epoch.map(|mut epoch| epoch.integer()).transpose()?;
        if by_force {
            // A former leader of another edition, which was suspended, must not disown the tables of this one.
            let others = "UPDATE writer4 SET epoch = epoch + 1 WHERE edition <> ";
            let sql = Statement::new(Dialect::Postgres, others);
            self.execute(&sql.with("", Param::Integer(self.edition)))?;
        }
        Ok(self.epoch.is_some())
    }

    fn is_lost(&self) -> bool {
        self.client.is_closed() || self.is_superseded || self.interrupt.is_cancelled()
    }
}

fn bound(params: &[Param]) -> Vec<Bound<'_>> {
    params.iter().map(Bound).collect()
}

fn refs<'a>(
    params: &'a [Bound<'a>],
) -> impl ExactSizeIterator<Item = &'a (dyn ToSql + Sync)> + use<'a> {
    params.iter().map(|param| param as &(dyn ToSql + Sync))
}
