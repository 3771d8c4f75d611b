//! Tracks which handler calls are running, for the log of a stop, status pages and the watchdog.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};
use parking_lot::Mutex;
use tokio::time::Instant;

/// The keys and handlers that the workers of a kind are processing.
pub(crate) struct Activity {
    gvk: Gvk,
    workers: Mutex<Vec<Arc<Entry>>>,
    /// How many calls block their threads, as the watchdog has found.
    blocked: AtomicUsize,
}

/// What one worker is doing.
#[derive(Default)]
struct Entry {
    doing: Mutex<Option<Doing>>,
    /// How often the worker's run was polled or returned from a poll: odd while it is polled.
    ///
    /// Only the worker writes it. Nothing is ordered by it: a reader compares values that it has read at different times.
    polls: AtomicU64,
    /// Its state as of the watchdog's last look.
    seen: Mutex<Seen>,
}

/// A key that a worker is processing, or was when it was aborted.
#[derive(Debug, Clone)]
pub(crate) struct Doing {
    pub(crate) key: ObjectKey,
    /// The handler of the running call, or of the next one; none before the first.
    pub(crate) handler: Option<Arc<str>>,
    /// Whether the call has a time limit of its own.
    is_limited: bool,
    began: Instant,
}

impl Doing {
    /// Returns how long the handler has been running.
    pub(crate) fn lasts(&self) -> Duration {
        self.began.elapsed()
    }
}

/// After how many looks of the watchdog a worker is reported.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Looks {
    /// The looks within one poll, after which the call blocks its thread.
    pub(crate) blocked: u64,
    /// The looks within one call without a time limit, after which it hangs.
    pub(crate) hung: u64,
}

/// A worker as the watchdog saw it at its last looks.
///
/// Time is counted in looks, not read from a clock: a process that is suspended is not looked at either.
#[derive(Debug, Default)]
struct Seen {
    polls: u64,
    /// For how many looks the present poll has lasted; zero between polls.
    in_poll: u64,
    /// When the present call began, and for how many looks it has lasted.
    began: Option<Instant>,
    in_call: u64,
    /// The blocked call, until its poll has ended.
    blocked: Option<Doing>,
}

/// What the watchdog finds out about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    /// It has not returned from a poll for so many looks.
    Blocks(u64),
    /// It has returned from a poll that lasted for so many looks.
    Returned(u64),
    /// It has been waiting for so many looks.
    Hangs(u64),
}

/// A call, and what the watchdog finds out about it.
pub(crate) struct Found<'a> {
    pub(crate) gvk: &'a Gvk,
    pub(crate) doing: Doing,
    pub(crate) finding: Finding,
    /// Whether it is to be logged now, rather than known only.
    pub(crate) is_news: bool,
}

/// The entry of one worker.
///
/// Dropping it removes the entry, unless the worker was aborted while it processed a key.
pub(crate) struct WorkerActivity<'a> {
    activity: &'a Activity,
    entry: Arc<Entry>,
}

impl Activity {
    pub(crate) fn new(gvk: Gvk) -> Self {
        Self {
            gvk,
            workers: Mutex::default(),
            blocked: AtomicUsize::new(0),
        }
    }

    /// Adds a worker.
    pub(crate) fn add_worker(&self) -> WorkerActivity<'_> {
        let entry = Arc::default();
        // The entries of aborted workers stay: the error of the stop names their calls, and its lease expires.
        self.workers.lock().push(Arc::clone(&entry));
        WorkerActivity {
            activity: self,
            entry,
        }
    }

    /// Returns the calls that are running, and those that were aborted.
    pub(crate) fn in_progress(&self) -> Vec<Doing> {
        let workers = self.workers.lock();
        workers
            .iter()
            .filter_map(|worker| worker.doing.lock().clone())
            .collect()
    }

    /// Returns the calls that are running, without those that were aborted.
    pub(super) fn running(&self) -> Vec<Doing> {
        let workers = self.workers.lock();
        let live = workers
            .iter()
            .filter(|worker| Arc::strong_count(worker) > 1);
        live.filter_map(|worker| worker.doing.lock().clone())
            .collect()
    }

    /// Removes the entries of aborted workers.
    pub(crate) fn clear(&self) {
        self.workers
            .lock()
            .retain(|worker| Arc::strong_count(worker) > 1);
    }

    /// Returns how many calls block their threads, as of the watchdog's last look.
    pub(crate) fn blocked(&self) -> usize {
        self.blocked.load(Ordering::Relaxed)
    }

    /// Forgets which calls block their threads, when nothing looks any more.
    pub(crate) fn forget_blocked(&self) {
        self.blocked.store(0, Ordering::Relaxed);
    }

    /// Looks at every worker; call it at regular intervals, from one thread.
    pub(crate) fn look(&self, looks: Looks) -> Vec<Found<'_>> {
        let workers = self.workers.lock();
        // An aborted worker is not polled any more.
        let live = workers
            .iter()
            .filter(|worker| Arc::strong_count(worker) > 1);
        let found: Vec<_> = live
            .filter_map(|worker| {
                let (doing, finding, is_news) = worker.look(looks)?;
                Some(Found {
                    gvk: &self.gvk,
                    doing,
                    finding,
                    is_news,
                })
            })
            .collect();
        drop(workers);
        let is_blocked = |found: &&Found<'_>| matches!(found.finding, Finding::Blocks(_));
        let blocked = found.iter().filter(is_blocked).count();
        self.blocked.store(blocked, Ordering::Relaxed);
        found
    }
}

impl Entry {
    fn look(&self, looks: Looks) -> Option<(Doing, Finding, bool)> {
        let polls = self.polls.load(Ordering::Relaxed);
        let doing = self.doing.lock().clone();
        self.seen.lock().look(polls, doing, looks)
    }
}

impl Seen {
    fn look(
        &mut self,
        polls: u64,
        doing: Option<Doing>,
        looks: Looks,
    ) -> Option<(Doing, Finding, bool)> {
        let lasted = self.in_poll;
        let is_in_poll = polls % 2 == 1 && polls == self.polls;
        self.in_poll = if is_in_poll { self.in_poll + 1 } else { 0 };
        self.polls = polls;
        let began = doing.as_ref().map(|doing| doing.began);
        self.in_call = if began == self.began {
            self.in_call + 1
        } else {
            0
        };
        self.began = began;
        if !is_in_poll && let Some(doing) = self.blocked.take() {
            return Some((doing, Finding::Returned(lasted), true));
        }
        let doing = doing?;
        if self.in_poll >= looks.blocked {
            self.blocked.get_or_insert_with(|| doing.clone());
            let is_news = is_report(self.in_poll, looks.blocked);
            return Some((doing, Finding::Blocks(self.in_poll), is_news));
        }
        let hangs = !doing.is_limited && self.in_call == looks.hung;
        hangs.then_some((doing, Finding::Hangs(self.in_call), true))
    }
}

/// Returns whether a state that has lasted for `count` looks is logged: at the limit, twice, four times, and so on.
pub(crate) fn is_report(count: u64, limit: u64) -> bool {
    count >= limit && count.is_multiple_of(limit) && (count / limit).is_power_of_two()
}

impl WorkerActivity<'_> {
    /// Records that the worker starts to process a key.
    pub(crate) fn begin(&self, key: &ObjectKey) {
        *self.entry.doing.lock() = Some(Doing {
            key: key.clone(),
            handler: None,
            is_limited: false,
            began: Instant::now(),
        });
    }

    /// Records that a handler is called next, and whether its time is limited.
    pub(super) fn calls(&self, handler: &Arc<str>, is_limited: bool) {
        if let Some(doing) = &mut *self.entry.doing.lock() {
            doing.handler = Some(Arc::clone(handler));
            doing.is_limited = is_limited;
            doing.began = Instant::now();
        }
    }

    /// Records that the worker has finished the key.
    pub(crate) fn end(&self) {
        *self.entry.doing.lock() = None;
    }

    /// Records when the run is polled. It costs two relaxed stores for each poll.
    pub(crate) async fn polling<T>(&self, run: impl Future<Output = T>) -> T {
        let (mut run, polls) = (pin!(run), &self.entry.polls);
        poll_fn(|cx| {
            let before = polls.load(Ordering::Relaxed) & !1;
            polls.store(before + 1, Ordering::Relaxed);
            // After a panic the count stays odd until the worker's end, which follows.
            let polled = run.as_mut().poll(cx);
            polls.store(before + 2, Ordering::Relaxed);
            polled
        })
        .await
    }
}

impl Drop for WorkerActivity<'_> {
    fn drop(&mut self) {
        // The entry of an aborted worker stays, because the stop reports it as unfinished.
        if self.entry.doing.lock().is_none() || std::thread::panicking() {
            let mut workers = self.activity.workers.lock();
            workers.retain(|worker| !Arc::ptr_eq(worker, &self.entry));
        }
    }
}

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, key) = (self.gvk.kind(), &self.doing.key);
        write!(f, "{kind} {key}")?;
        match &self.doing.handler {
            Some(handler) => write!(f, " ({handler})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOKS: Looks = Looks {
        blocked: 2,
        hung: 5,
    };

    fn doing(is_limited: bool) -> Doing {
        Doing {
            key: ObjectKey::namespaced("shop", "order-1"),
            handler: Some("copy".into()),
            is_limited,
            began: Instant::now(),
        }
    }

    /// Looks with each count of polls; returns the findings that are logged, with the number of the look.
    fn looks(doing: &Doing, counts: &[u64]) -> Vec<(usize, Finding)> {
        let mut seen = Seen::default();
        let found = counts.iter().enumerate().filter_map(|(number, polls)| {
            let (_, finding, is_news) = seen.look(*polls, Some(doing.clone()), LOOKS)?;
            is_news.then_some((number, finding))
        });
        found.collect()
    }

    #[test]
    fn blocked_call_is_logged_at_powers_of_two_and_when_returned() {
        let found = looks(&doing(false), &[1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2]);
        let expected = [
            (2, Finding::Blocks(2)),
            (4, Finding::Blocks(4)),
            (8, Finding::Blocks(8)),
            (9, Finding::Returned(8)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn call_with_many_short_polls_is_not_blocked() {
        assert_eq!(looks(&doing(true), &[1, 3, 5, 6, 6, 6, 6, 7, 9, 11]), []);
    }

    #[test]
    fn waiting_call_without_timeout_is_logged_once() {
        let waits = [1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2];
        let found = looks(&doing(false), &waits);
        assert_eq!(found, [(5, Finding::Hangs(5))]);
        assert_eq!(looks(&doing(true), &waits), []);
    }

    #[test]
    fn suspended_process_counts_as_one_look() {
        // Nobody looks during the suspension, however long the poll lasts on the clock.
        let (mut seen, doing) = (Seen::default(), doing(false));
        assert!(seen.look(1, Some(doing.clone()), LOOKS).is_none());
        assert!(seen.look(1, Some(doing), LOOKS).is_none());
        assert_eq!(seen.in_poll, 1);
    }

    #[tokio::test]
    async fn worker_is_seen_inside_its_poll_only() {
        let activity = Activity::new(Gvk::new("", "v1", "ConfigMap"));
        let worker = activity.add_worker();
        worker.begin(&ObjectKey::namespaced("shop", "order-1"));
        worker.calls(&"copy".into(), false);
        let looks = Looks {
            blocked: 1,
            hung: u64::MAX,
        };
        let inside = worker.polling(async {
            let first = activity.look(looks).len();
            let texts: Vec<_> = activity
                .look(looks)
                .iter()
                .map(ToString::to_string)
                .collect();
            (first, texts, activity.blocked())
        });
        let named = vec!["ConfigMap shop/order-1 (copy)".to_owned()];
        assert_eq!(inside.await, (0, named, 1));
        let after = activity.look(looks);
        assert_eq!(after[0].finding, Finding::Returned(1));
        assert_eq!(activity.blocked(), 0);
        worker.end();
    }
}
