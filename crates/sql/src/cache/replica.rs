//! A replica of a shared cache: it reads, and writes while it is elected.

use std::sync::Arc;
use std::time::Duration;

use lariat_cache::SharedCacheFactory;
use lariat_lease::{Leadership, LeadershipState};
use lariat_seal::Keyring;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::SqlCache;
use super::blocking::{LOOK, blocking};
use super::error::SqlError;
use super::feed::Feed;
use super::keys::SharedKeys;
use super::kind::SqlKind;
use super::renewal::Renewal;
use crate::postgres::FORM;
use crate::store::{Database, Stored, Writer};

/// How often a replica reads the stored progress, and tries to become the writer.
///
/// While a query waits, the progress is read more often.
const IDLE: Duration = Duration::from_secs(1);

/// How often the writing replica checks whether it may still write.
const BEAT: Duration = Duration::from_secs(3);

/// After how many checks it drops unused tables, beginning with the first check.
const BEATS_TO_DROP: u64 = 20;

/// The shortest and the longest pause after an error of the server.
const RESTS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// A replica; of all replicas one writes at a time.
pub(super) struct Replica {
    pub(super) database: Database,
    pub(super) factory: SharedCacheFactory,
    pub(super) kinds: Vec<SqlKind>,
    pub(super) keys: Option<SharedKeys>,
    pub(super) leadership: Option<Leadership>,
    /// Notified when a query begins to wait.
    pub(super) wanted: Arc<Notify>,
}

/// A running replica.
struct RunningReplica {
    replica: Replica,
    writes: watch::Sender<bool>,
    stopping: CancellationToken,
    /// The time of the next attempt to become the writer.
    next_try: Instant,
    has_failed: bool,
}

impl Replica {
    /// Starts the replica.
    pub(super) fn start(self, writer: Writer) -> SqlCache {
        let stopping = CancellationToken::new();
        let (kinds, keys) = (self.kinds.iter(), self.keys.clone());
        let kinds = kinds
            .map(|kind| (kind.schema().gvk().clone(), kind.clone()))
            .collect();
        let (writes, of_writes) = watch::channel(false);
        let running = RunningReplica {
            replica: self,
            writes,
            stopping: stopping.clone(),
            next_try: Instant::now(),
            has_failed: false,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(running.run(writer));
        SqlCache {
            writer: None,
            keys,
            writes: of_writes,
            kinds,
            tasks: Mutex::new(tasks),
            stopping,
        }
    }

    /// Returns whether this process may try to write, and if so, whether by force.
    fn may_write(&self) -> Option<bool> {
        match &self.leadership {
            None => Some(false),
            Some(leadership) => leadership.leads().then_some(true),
        }
    }

    /// Returns the numbers of the tables that this process uses, in ascending order.
    fn numbers(&self) -> Vec<i64> {
        let kinds = self.kinds.iter();
        let kinds = kinds.map(|kind| kind.inner().tables.layout.number());
        let common = [FORM, self.database.edition()];
        let mut numbers: Vec<i64> = common.into_iter().chain(kinds).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Returns the numbers of the only kinds that are written, if a leader writes.
    ///
    /// Without a leadership, one of the replicas with other kinds or fields writes, too.
    fn sole(&self) -> Option<Vec<i64>> {
        let kinds = self.kinds.iter();
        let own = kinds.map(|kind| kind.inner().tables.layout.number());
        self.leadership.as_ref().map(|_| own.collect())
    }

    /// Uses the stored keys from now on, unless others than `before` are used by now.
    async fn use_keys(
        &self,
        before: Option<Arc<Keyring>>,
        stored: Option<Vec<u8>>,
    ) -> Result<(), SqlError> {
        if let Some((keys, before)) = self.keys.as_ref().zip(before) {
            keys.replace(&before, stored).await?;
        }
        Ok(())
    }

    fn is_waited_for(&self) -> bool {
        let mut kinds = self.kinds.iter();
        kinds.any(|kind| *kind.inner().waiting.borrow() > 0)
    }

    /// Updates the progress of the kinds from the database.
    fn follow(&self, stored: &[Stored]) {
        for kind in &self.kinds {
            let number = kind.inner().tables.layout.number();
            let name = kind.schema().gvk().to_string();
            let found = stored.iter().find(|stored| stored.number == number);
            let phase = match found {
                Some(stored) if stored.is_synced => "in another process",
                Some(_) => {
                    "in another process, which is filling it, or leads and keeps other kinds or fields"
                }
                None if self.leadership.is_some() && stored.iter().any(|it| it.kind == name) => {
                    "in another process, which leads and keeps other kinds or fields"
                }
                None => "in another process, which has not written it yet",
            };
            let is_synced = found.is_some_and(|stored| stored.is_synced);
            let reached = found.map(|stored| stored.reached).unwrap_or_default();
            kind.inner().progress.send_if_modified(|progress| {
                // Only these wake waiting queries; a new text of the phase does not.
                let is_news = progress.is_synced != is_synced || progress.reached != reached;
                progress.is_synced = is_synced;
                progress.reached = reached;
                progress.last_error = None;
                phase.clone_into(&mut progress.phase);
                is_news
            });
        }
    }

    /// Writes the kinds until this process may not write any more, or is stopped.
    async fn write(
        &self,
        mut writer: Writer,
        stopping: &CancellationToken,
    ) -> Result<(), SqlError> {
        let (kinds, own) = (self.kinds.clone(), self.sole());
        let keys = self.keys.as_ref().map(|keys| keys.keys.current());
        let opened = blocking(move || {
            for kind in &kinds {
                writer.open_kind(&kind.inner().tables)?;
            }
            if let Some(keys) = keys {
                // If no process had a connection for long, another one has dropped them with the tables.
                writer.replace_keyring(None, keys.stored())?;
            }
            if let Some(own) = own {
                writer.disown(own)?;
            }
            Ok(Arc::new(Mutex::new(writer)))
        });
        let writer = opened.await?;
        if let Some(keys) = &self.keys {
            // The last writer may have dropped the data key that this process has used until now.
            while keys.refresh().await? {}
        }
        // Cancelled when this turn of writing ends; the cache itself continues as a reader.
        let ended = stopping.child_token();
        let mut feeds = JoinSet::new();
        for kind in &self.kinds {
            let informer = self.factory.for_kind(kind.schema().gvk().clone());
            let feed = Feed::new(kind, informer, &writer, &ended).shared(stopping);
            feeds.spawn(feed.run());
        }
        if let Some(keys) = &self.keys {
            let renewal = Renewal {
                keys: keys.clone(),
                kinds: self.kinds.clone(),
                writer: Arc::clone(&writer),
                stopping: ended.clone(),
            };
            feeds.spawn(renewal.run());
        }
        let lost = async {
            match &self.leadership {
                Some(leadership) => leadership.lost().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = ended.cancelled() => {}
            () = lost => {}
            // A task that is not stopped ends only if it panics.
            Some(_) = feeds.join_next() => {}
            () = self.beat(&writer) => {}
        }
        ended.cancel();
        // A write in progress is finished before another process may claim the right to write.
        while feeds.join_next().await.is_some() {}
        Ok(())
    }

    /// Checks at intervals whether this process still writes; returns once it does not.
    ///
    /// It also loads keys that another process has stored, and drops tables that no process uses.
    async fn beat(&self, writer: &Arc<Mutex<Writer>>) {
        for beats in 0_u64.. {
            time::sleep(BEAT).await;
            let before = self.keys.as_ref().map(|keys| keys.keys.current());
            let (writer, numbers, own) = (Arc::clone(writer), self.numbers(), self.sole());
            let beat = blocking(move || {
                let mut writer = writer.lock();
                writer.beat()?;
                writer.touch(&numbers)?;
                if let Some(own) = own {
                    writer.disown(own)?;
                }
                if beats % BEATS_TO_DROP == 0
                    && let Err(error) = writer.drop_unused()
                {
                    tracing::debug!(%error, "unused tables of the SQL cache cannot be dropped now");
                }
                Ok(writer.keyring()?)
            });
            let stored = match beat.await {
                Ok(stored) => stored,
                Err(error) => {
                    // After any error, a new session determines which process writes, and creates dropped tables.
                    tracing::warn!(%error, "this process does not write the SQL cache any more");
                    return;
                }
            };
            if let Err(error) = self.use_keys(before, stored).await {
                tracing::warn!(%error, "the keys of the SQL cache cannot be read again");
            }
        }
    }
}

impl RunningReplica {
    async fn run(mut self, writer: Writer) {
        let mut session = Some(writer);
        let (mut rest, longest) = RESTS;
        while !self.stopping.is_cancelled() {
            match self.turn(session.take()).await {
                Ok(next) => {
                    session = next;
                    rest = RESTS.0;
                }
                Err(error) => {
                    self.failed(&error);
                    let rests = time::sleep(rest);
                    self.stopping.run_until_cancelled(rests).await;
                    rest = (2 * rest).min(longest);
                }
            }
        }
    }

    /// Reads the stored progress, then writes if this process is elected, or waits.
    ///
    /// After waiting it returns the session for the next turn; after writing there is none.
    async fn turn(&mut self, session: Option<Writer>) -> Result<Option<Writer>, SqlError> {
        let database = self.replica.database.clone();
        let is_due = Instant::now() >= self.next_try;
        // A leader takes the right from a predecessor, which may be suspended; without leadership the lock decides.
        let by_force = self.replica.may_write().filter(|_| is_due);
        let numbers = self.replica.numbers();
        let keys = self.replica.keys.as_ref();
        let before = keys.map(|keys| keys.keys.current());
        let has_keys = before.is_some();
        let looked = blocking(move || {
            let mut writer = match session {
                Some(writer) => writer,
                None => Writer::open(&database)?,
            };
            writer.touch(&numbers)?;
            let stored = writer.stored()?;
            // After the progress, which includes only rows of keys that were stored before.
            let keyring = if has_keys { writer.keyring()? } else { None };
            let claimed = by_force.map_or(Ok(false), |by_force| writer.claim(by_force));
            Ok((writer, stored, keyring, claimed))
        });
        if is_due {
            self.next_try = Instant::now() + IDLE;
        }
        let (writer, stored, keyring, claimed) = looked.await?;
        // Before the progress: with other keys than those of the rows, a query by namespace finds nothing.
        let replaced = self.replica.use_keys(before, keyring).await;
        // Also if the claim failed: readers need the progress in any case.
        self.replica.follow(&stored);
        let is_claimed = claimed?;
        replaced?;
        if std::mem::take(&mut self.has_failed) {
            tracing::info!("the SQL cache can be read again");
        }
        if !is_claimed {
            self.rest().await;
            return Ok(Some(writer));
        }
        tracing::info!("this process writes the SQL cache now");
        self.writes.send_replace(true);
        let written = self.replica.write(writer, &self.stopping).await;
        self.writes.send_replace(false);
        written?;
        Ok(None)
    }

    /// Waits until the next turn.
    async fn rest(&mut self) {
        let replica = &self.replica;
        let is_waited_for = replica.is_waited_for();
        let leads = async {
            match &replica.leadership {
                // A new leader claims at once, and does not wait for the next attempt.
                Some(leadership)
                    if matches!(leadership.state(), LeadershipState::Standby { .. }) =>
                {
                    leadership.acquired().await
                }
                _ => std::future::pending().await,
            }
        };
        let has_acquired = tokio::select! {
            biased;
            () = self.stopping.cancelled() => false,
            leads = leads => leads,
            () = time::sleep(LOOK), if is_waited_for => false,
            () = replica.wanted.notified(), if !is_waited_for => false,
            () = time::sleep(IDLE) => false,
        };
        if has_acquired {
            self.next_try = Instant::now();
        }
    }

    /// Records an error of the server, and logs it once.
    fn failed(&mut self, error: &SqlError) {
        let error = error.to_string();
        // Logged once, not with every attempt.
        if !std::mem::replace(&mut self.has_failed, true) {
            tracing::warn!(error, "the SQL cache cannot be read or written, retrying");
        }
        for kind in &self.replica.kinds {
            kind.inner().progress.send_modify(|progress| {
                progress.phase = format!("in another process, and {error}");
                progress.last_error = Some(error.clone());
            });
        }
    }
}
