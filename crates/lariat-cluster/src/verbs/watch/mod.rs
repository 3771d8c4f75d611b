//! Watches: a cursor into the history of a resource.

mod frame;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use tokio::sync::watch::Receiver;
use tokio::time::{self, Instant};

use super::Call;
use super::fields::Filter;
use super::list;
use crate::api::body::ResponseBody;
use crate::api::query::ListQuery;
use crate::api::reply::Reply;
use crate::api::status::ApiError;
use crate::server::Server;
use crate::store::{Ending, Event, EventType, Range, Signal, Stored};
use frame::Framer;

/// How many events a watcher reads at a time.
const BATCH: usize = 256;

/// When the first bookmark comes after the initial state, and how often later ones.
const FIRST_BOOKMARK: Duration = Duration::from_secs(1);
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
/// How long before the deadline the last bookmark comes.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// A watch without `timeoutSeconds` lasts between this and twice as long.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);

pub(super) async fn watch(call: Call) -> Result<Reply, ApiError> {
    let query = call.query.list()?;
    let filter = Filter::new(&call.resource, call.namespace(), &query)?;
    let version = query.version.as_deref().map(parse_version).transpose()?;
    let mut watcher = Watcher::new(&call, &query, filter);
    // Without a version, or at any with initial events, a watch begins with the present state.
    let begins_with_state = query
        .initial_events
        .unwrap_or(matches!(version, None | Some(0)));
    if begins_with_state {
        let not_older_than = version.filter(|version| *version > 0);
        match list::wait_for(&call, not_older_than).await {
            Ok(()) => watcher.begin_with_state(&call, query.bookmarks),
            Err(error) => watcher.fail(&error),
        }
    } else {
        let now = call.server.store.revision();
        watcher.begin_at(version.filter(|version| *version > 0).unwrap_or(now));
    }
    let lines = stream::unfold(watcher, Watcher::next);
    Ok(Reply::pieces(ResponseBody::stream(lines)))
}

fn parse_version(text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|_| {
        ApiError::internal(format!(
            "strconv.ParseUint: parsing {text:?}: invalid syntax"
        ))
    })
}

/// One open watch. It owns nothing of the history: it reads on when there is something new.
struct Watcher {
    server: Arc<Server>,
    framer: Framer,
    filter: Filter,
    table: crate::store::TableId,
    /// Everything up to here has been read.
    cursor: u64,
    /// The present state that is still to be sent before any event.
    state: VecDeque<Arc<Stored>>,
    /// Frames that are ready to be sent.
    ready: VecDeque<Bytes>,
    signals: Receiver<Signal>,
    /// How often watches of the table had been ended when this one began.
    endings_before: u64,
    bookmark_at: Option<Instant>,
    deadline: Instant,
    /// Nothing follows what is ready.
    finished: bool,
    /// The connection breaks off after what is ready.
    broken: bool,
}

/// What a watcher waits for.
enum Woken {
    Signal,
    Bookmark,
    Deadline,
    Stopped,
}

impl Watcher {
    fn new(call: &Call, query: &ListQuery, filter: Filter) -> Self {
        let signals = call.server.store.subscribe(call.resource.table);
        let timeout = query.timeout.unwrap_or_else(|| {
            DEFAULT_TIMEOUT.mul_f64(1.0 + f64::from(call.server.names.fraction()))
        });
        let now = Instant::now();
        let endings_before = signals.borrow().ended;
        Self {
            server: Arc::clone(&call.server),
            framer: Framer::new(&call.resource, call.shape),
            filter,
            table: call.resource.table,
            cursor: 0,
            state: VecDeque::new(),
            ready: VecDeque::new(),
            endings_before,
            signals,
            bookmark_at: query.bookmarks.then(|| now + FIRST_BOOKMARK),
            deadline: now + timeout,
            finished: false,
            broken: false,
        }
    }

    /// Sends the present state first, and a bookmark that marks its end if bookmarks are wanted.
    fn begin_with_state(&mut self, call: &Call, marks_end: bool) {
        let range = Range {
            namespace: call.namespace(),
            ..Range::default()
        };
        let Ok(page) = self.server.store.range(self.table, &range) else {
            return self.finish();
        };
        self.cursor = page.revision;
        self.state = page.objects.into();
        self.state.retain(|stored| self.filter.matches(stored));
        if self.state.is_empty() && marks_end {
            self.ready.push_back(self.framer.initial_end(self.cursor));
        }
        self.framer.mark_end = marks_end;
    }

    /// Sends what happened after a revision, if that is still known.
    fn begin_at(&mut self, revision: u64) {
        self.cursor = revision;
        if self.server.store.events(self.table, revision, 0).is_err() {
            let oldest = self.server.store.oldest(self.table);
            self.fail(&ApiError::watch_expired(revision, oldest));
        }
    }

    /// Ends the watch with an error event.
    fn fail(&mut self, error: &ApiError) {
        self.ready.push_back(Framer::error(error));
        self.finish();
    }

    fn finish(&mut self) {
        self.finished = true;
    }

    /// Waits for the next piece of the response.
    async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some((Ok(frame), self));
            }
            if std::mem::take(&mut self.broken) {
                let broken = io::Error::new(io::ErrorKind::ConnectionReset, "the watch is cut");
                return Some((Err(broken), self));
            }
            if self.finished {
                return None;
            }
            if let Some(stored) = self.state.pop_front() {
                self.send_state(&stored);
                continue;
            }
            // Seen before reading, so that what is committed after the read wakes this watcher.
            let signal = *self.signals.borrow_and_update();
            if signal.ended != self.endings_before {
                self.end(signal.ending);
                continue;
            }
            if self.read_events() {
                continue;
            }
            match self.wait().await {
                Woken::Signal => {}
                Woken::Bookmark => self.send_bookmark(),
                Woken::Deadline | Woken::Stopped => self.finish(),
            }
        }
    }

    /// Ends the watch because the server was told to; a cut leaves half a line behind.
    fn end(&mut self, ending: Ending) {
        if ending == Ending::Cut {
            self.ready
                .push_back(Bytes::from_static(br#"{"type":"MODIFIED","obj"#));
            self.broken = true;
        }
        self.finish();
    }

    fn send_state(&mut self, stored: &Stored) {
        self.ready
            .push_back(self.framer.event(stored, EventType::Added));
        if self.state.is_empty() && self.framer.mark_end {
            self.ready.push_back(self.framer.initial_end(self.cursor));
        }
    }

    /// Reads on in the history; tells whether there may be more.
    fn read_events(&mut self) -> bool {
        match self.server.store.events(self.table, self.cursor, BATCH) {
            Ok((events, complete_to)) => {
                for event in &events {
                    self.ready.extend(self.frame_of(event));
                }
                let last = events.last().map(|event| event.revision);
                self.cursor = if events.len() < BATCH {
                    complete_to
                } else {
                    last.unwrap_or(complete_to)
                };
                !events.is_empty()
            }
            // The history has moved on past this watcher, as past a slow one on a real server: it has
            // to come again, and may learn then that its version is too old.
            Err(_) => {
                self.finish();
                true
            }
        }
    }

    /// Returns what this watcher is told of an event: it sees objects enter and leave its selection.
    fn frame_of(&self, event: &Event) -> Option<Bytes> {
        let before = event
            .previous
            .as_ref()
            .is_some_and(|previous| self.filter.matches(previous));
        let after = event.event != EventType::Deleted && self.filter.matches(&event.object);
        match (before, after) {
            (false, false) => None,
            (false, true) => Some(self.framer.event(&event.object, EventType::Added)),
            (true, true) => Some(self.framer.event(&event.object, EventType::Modified)),
            (true, false) if event.event == EventType::Deleted => {
                Some(self.framer.event(&event.object, EventType::Deleted))
            }
            (true, false) => {
                let old = event.previous.as_ref()?;
                let left = old.with_version(event.revision, EventType::Deleted);
                Some(self.framer.event(&left, EventType::Deleted))
            }
        }
    }

    /// Sends everything there is, and then a bookmark that says so.
    fn send_bookmark(&mut self) {
        while !self.finished && self.read_events() {}
        if self.finished {
            return;
        }
        self.ready.push_back(self.framer.bookmark(self.cursor));
        let now = Instant::now();
        let last = self.deadline - LAST_BOOKMARK.min(self.deadline.duration_since(now));
        self.bookmark_at = Some(match now + BOOKMARK_PERIOD {
            next if next < last => next,
            _ if now < last => last,
            _ => self.deadline + BOOKMARK_PERIOD,
        });
    }

    async fn wait(&mut self) -> Woken {
        let bookmark = async {
            match self.bookmark_at {
                Some(at) => time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = self.signals.changed() => match changed {
                Ok(()) => Woken::Signal,
                Err(_) => Woken::Stopped,
            },
            () = self.server.stopped.cancelled() => Woken::Stopped,
            () = time::sleep_until(self.deadline) => Woken::Deadline,
            () = bookmark => Woken::Bookmark,
        }
    }
}
