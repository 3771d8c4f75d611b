//! One open watch.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use lariat_apimachinery::kinds::{Resource, TableId};
use tokio::sync::watch::Receiver;
use tokio::time::{self, Instant};

use super::client::Client;
use super::condense::condensed;
use super::event::WatchEvent;
use super::planned_break::{Break, PlannedBreak};
use crate::conversion;
use crate::fault::Action;
use crate::open_watches::{OpenWatch, WatchEntry};
use crate::server::Server;
use crate::status::ApiError;
use crate::store::{Ending, Event, EventType, Range, ReadLimit, Signal, Stored};
use crate::verbs::call::Call;
use crate::verbs::fields::Filter;
use crate::wire::query::ListQuery;

/// The events that a watcher reads at a time and buffers for a slow client.
const BATCH: ReadLimit = ReadLimit {
    changes: 256,
    bytes: 1 << 20,
};

/// One open watch: a cursor into the history, which it does not own.
#[derive(Debug)]
pub(crate) struct Watcher {
    server: Arc<Server>,
    filter: Filter,
    table: TableId,
    resource: Arc<Resource>,
    /// Everything up to here has been read.
    cursor: u64,
    /// The initial state, as far as it is still to be sent before any other event.
    state: VecDeque<Arc<Stored>>,
    /// Whether a bookmark marks the end of the initial state.
    marks_end: bool,
    /// Events that are ready to be sent.
    ready: VecDeque<WatchEvent>,
    signals: Receiver<Signal>,
    /// The number of times that watches of the table had been ended when this one began.
    endings_before: u64,
    bookmark_at: Option<Instant>,
    deadline: Instant,
    /// The planned break of the watch, if any.
    planned: Option<PlannedBreak>,
    /// The revision behind which nothing is shown on purpose.
    frozen: Option<u64>,
    /// Every event is sent twice on purpose.
    doubles: bool,
    client: Client,
    /// Its entry among the open watches.
    entry: WatchEntry,
    /// Nothing follows what is ready.
    finished: bool,
    /// The connection breaks off after what is ready.
    broken: bool,
}

/// The event that wakes a watcher.
enum Wakeup {
    Signal,
    Bookmark,
    Deadline,
    Break,
    Stopped,
}

impl Watcher {
    pub(super) fn new(call: &Call, query: &ListQuery, filter: Filter) -> Self {
        let signals = call.server.store.subscribe(call.resource.table);
        let timeout = query.timeout.unwrap_or_else(|| {
            // As handleWatch in endpoints/handlers/get.go: between once and twice the shortest time, so that watches
            // which began together do not all end together.
            let shortest = call.server.time.watch_timeout;
            shortest.mul_f64(1.0 + f64::from(call.server.random.fraction()))
        });
        let now = Instant::now();
        let endings_before = signals.borrow().ended;
        Self {
            server: Arc::clone(&call.server),
            filter,
            table: call.resource.table,
            resource: Arc::clone(&call.resource),
            cursor: 0,
            state: VecDeque::new(),
            marks_end: false,
            ready: VecDeque::new(),
            endings_before,
            signals,
            bookmark_at: query
                .bookmarks
                .then(|| now + call.server.time.first_bookmark),
            deadline: now + timeout,
            planned: call
                .fault()
                .and_then(|action| PlannedBreak::of(action, now)),
            frozen: call.frozen(),
            doubles: call.fault() == Some(&Action::DuplicateEvents),
            client: Client::of(call),
            entry: call
                .server
                .watches
                .enter(call.resource.table, described(call)),
            finished: false,
            broken: false,
        }
    }

    /// Sends the present state first.
    ///
    /// `marks_end` asks for a bookmark that marks its end.
    pub(super) fn begin_with_state(&mut self, call: &Call, marks_end: bool) {
        let range = Range {
            namespace: call.namespace(),
            at: call.stale(),
            or_oldest: call.stale().is_some(),
            ..Range::default()
        };
        // Neither the present nor the oldest state can have expired.
        let Ok(page) = self.server.store.range(self.table, &range) else {
            return self.finish();
        };
        self.move_to(page.revision);
        self.state = page.objects.into();
        self.state.retain(|stored| self.filter.matches(stored));
        if self.state.is_empty() && marks_end {
            self.push_bookmark(true);
        }
        self.marks_end = marks_end;
    }

    /// Sends the events after a revision, if they are still known.
    pub(super) fn begin_at(&mut self, revision: u64) {
        self.move_to(revision);
        if !self.server.store.reaches(self.table, revision) {
            self.expire(revision);
        }
    }

    /// Sends only the net changes after a revision.
    pub(super) fn begin_condensed(&mut self, revision: u64) {
        self.begin_at(revision);
        if self.finished {
            return;
        }
        let events = self
            .server
            .store
            .events(self.table, revision, ReadLimit::ALL);
        // The history was dropped since the check. The first read finds that out, and ends the watch.
        let Ok((events, complete_to)) = events else {
            return;
        };
        for event in condensed(&events) {
            self.ready.extend(self.seen(&event));
        }
        self.move_to(complete_to);
    }

    /// Sends also the last so many events up to a revision, which the client has seen.
    pub(super) fn begin_before(&mut self, revision: u64, events: usize) {
        self.begin_at(revision);
        self.move_to(self.server.store.rewind(self.table, revision, events));
    }

    /// Moves the cursor to a revision, up to which everything has been read.
    fn move_to(&mut self, revision: u64) {
        self.cursor = revision;
        self.entry.read_up_to(revision);
    }

    /// Ends the watch because the events after a revision are no longer known.
    pub(super) fn expire(&mut self, revision: u64) {
        self.fail(&self.expired(revision));
    }

    /// Returns the error for a revision after which not everything is known.
    pub(super) fn expired(&self, revision: u64) -> ApiError {
        let oldest = self.server.store.oldest(self.table);
        // A fault may expire a revision that is still known. The message has to name a later one all the same.
        ApiError::watch_expired(revision, oldest.max(revision.saturating_add(1)))
    }

    /// Ends the watch with an error event.
    pub(super) fn fail(&mut self, error: &ApiError) {
        self.ready.push_back(WatchEvent::Error(error.clone()));
        self.finish();
    }

    fn finish(&mut self) {
        self.finished = true;
    }

    /// Waits for the next event; an error is a connection that breaks.
    pub(crate) async fn next(mut self: Box<Self>) -> Option<(io::Result<WatchEvent>, Box<Self>)> {
        loop {
            // A break comes before what is ready, which it drops.
            if let Some(planned) = self.planned.take_if(|planned| planned.is_due()) {
                self.break_off(planned.breaks).await;
            }
            if let Some(breaks) = self.client.cut_off() {
                self.break_off(breaks).await;
            }
            if let Some(event) = self.ready.pop_front() {
                let event = self.in_version(event).await;
                if let Some(planned) = &mut self.planned {
                    planned.count();
                }
                if matches!(event, WatchEvent::Object { .. }) {
                    self.entry.count();
                }
                return Some((Ok(event), self));
            }
            if std::mem::take(&mut self.broken) {
                let broken = io::Error::new(io::ErrorKind::ConnectionReset, "the watch is cut");
                return Some((Err(broken), self));
            }
            if self.finished {
                return None;
            }
            // The first state is sent whole, even past the deadline: a client cut off in it would begin again each
            // time.
            if let Some(stored) = self.state.pop_front() {
                self.send_state(stored);
                continue;
            }
            // A watch with much to send ends in time all the same.
            if self.server.stopped.is_cancelled() || self.deadline <= Instant::now() {
                self.finish();
                continue;
            }
            // Seen before reading, so that what is committed after the read wakes this watcher.
            let signal = *self.signals.borrow_and_update();
            if signal.ended != self.endings_before {
                while signal.ending == Ending::Drained && !self.finished && self.read_events() {}
                self.end(signal.ending);
                continue;
            }
            if self.read_events() {
                continue;
            }
            match self.wait().await {
                Wakeup::Signal | Wakeup::Break => {}
                Wakeup::Bookmark => self.send_bookmark(),
                Wakeup::Deadline | Wakeup::Stopped => self.finish(),
            }
        }
    }

    /// Converts the state of an event through a webhook, if the kind has one.
    ///
    /// If the webhook fails, the watch ends with its error.
    async fn in_version(&mut self, event: WatchEvent) -> WatchEvent {
        let (event, stored) = match event {
            WatchEvent::Object { event, stored } if self.resource.conversion.is_some() => {
                (event, stored)
            }
            other => return other,
        };
        let shown = conversion::all_shown(&self.server, &self.resource, vec![stored]).await;
        match shown.map(|mut shown| shown.pop()) {
            Ok(Some(stored)) => WatchEvent::Object { event, stored },
            // Does not happen: `all_shown` answers as many states as it was given.
            Ok(None) => WatchEvent::HalfLine,
            Err(error) => {
                self.ready.clear();
                self.finish();
                WatchEvent::Error(error)
            }
        }
    }

    /// Converts the initial state in one piece.
    pub(super) async fn convert_state(&mut self) {
        if self.resource.conversion.is_none() {
            return;
        }
        let state = std::mem::take(&mut self.state).into();
        match conversion::all_shown(&self.server, &self.resource, state).await {
            Ok(state) => self.state = state.into(),
            Err(error) => self.fail(&error),
        }
    }

    /// Breaks the watch on purpose, and drops all that is ready.
    async fn break_off(&mut self, breaks: Break) {
        self.ready.clear();
        match breaks {
            Break::End(ending) => self.end(ending),
            Break::Hang => self.hang().await,
        }
    }

    /// Sends nothing, until all watches are ended.
    async fn hang(&mut self) {
        // Its deadline does not end it: the client has to notice the silence, as behind a router that drops packets.
        loop {
            let signal = *self.signals.borrow_and_update();
            if signal.ended != self.endings_before {
                return self.end(signal.ending);
            }
            tokio::select! {
                changed = self.signals.changed() => match changed {
                    Ok(()) => {}
                    Err(_) => return self.finish(),
                },
                () = self.server.stopped.cancelled() => return self.finish(),
            }
        }
    }

    /// Ends the watch in a given way; a cut leaves half a line behind.
    fn end(&mut self, ending: Ending) {
        if ending == Ending::Cut {
            self.ready.push_back(WatchEvent::HalfLine);
            self.broken = true;
        }
        self.finish();
    }

    fn send_state(&mut self, stored: Arc<Stored>) {
        self.ready.push_back(WatchEvent::Object {
            event: EventType::Added,
            stored,
        });
        if self.state.is_empty() {
            // A watch is open for long, and its initial state may have been large.
            self.state = VecDeque::new();
            if self.marks_end {
                self.push_bookmark(true);
            }
        }
    }

    fn push_bookmark(&mut self, ends_initial: bool) {
        self.ready.push_back(WatchEvent::Bookmark {
            revision: self.cursor,
            ends_initial,
        });
    }

    /// Reads on in the history, and returns whether there may be more.
    fn read_events(&mut self) -> bool {
        match self.server.store.events(self.table, self.cursor, BATCH) {
            Ok((mut events, mut complete_to)) => {
                if let Some(frozen) = self.frozen {
                    events.retain(|event| event.revision <= frozen);
                    // A watch may begin behind the frozen revision, and its cursor does not go back.
                    complete_to = complete_to.min(frozen).max(self.cursor);
                }
                for event in &events {
                    let seen = self.seen(event);
                    self.ready.extend(seen.clone().filter(|_| self.doubles));
                    self.ready.extend(seen);
                }
                // Also past revisions of other resources: bookmarks have them, and history behind the cursor may age.
                self.move_to(complete_to);
                // Events that the filter hides count, too: more may follow them.
                !events.is_empty()
            }
            // The history has moved on past this watcher, as past a slow one on a real server: it has
            // to watch again, and may find then that its version is too old.
            Err(_) => {
                self.finish();
                true
            }
        }
    }

    /// Returns the event as the client sees it: objects enter and leave its selection.
    fn seen(&self, event: &Event) -> Option<WatchEvent> {
        let before = event
            .previous
            .as_ref()
            .is_some_and(|previous| self.filter.matches(previous));
        let after = event.event != EventType::Deleted && self.filter.matches(&event.object);
        let (event, stored) = match (before, after) {
            (false, false) => return None,
            (false, true) => (EventType::Added, Arc::clone(&event.object)),
            (true, true) => (EventType::Modified, Arc::clone(&event.object)),
            (true, false) if event.event == EventType::Deleted => {
                (EventType::Deleted, Arc::clone(&event.object))
            }
            (true, false) => {
                // As convertToWatchEvent of Go's cacheWatcher: the last state that was selected, under the revision of
                // the change that took it out.
                let old = event.previous.as_ref()?;
                let left = old.with_version(event.revision, EventType::Deleted);
                (EventType::Deleted, Arc::new(left))
            }
        };
        Some(WatchEvent::Object { event, stored })
    }

    /// Sends everything there is, and then a bookmark that says so.
    fn send_bookmark(&mut self) {
        while !self.finished && self.read_events() {}
        if self.finished {
            return;
        }
        self.push_bookmark(false);
        let now = Instant::now();
        let time = &self.server.time;
        // As nextBookmarkTime of Go's cacheWatcher: every period, and once more shortly before the deadline.
        let last = self.deadline - time.last_bookmark.min(self.deadline.duration_since(now));
        self.bookmark_at = Some(match now + time.bookmark_period {
            next if next < last => next,
            _ if now < last => last,
            // The last one was sent: the next time lies behind the deadline, and never comes.
            _ => self.deadline + time.bookmark_period,
        });
    }

    async fn wait(&mut self) -> Wakeup {
        let bookmark = async {
            match self.bookmark_at {
                Some(at) => time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let planned = async {
            match self.planned.as_ref().and_then(PlannedBreak::at) {
                Some(at) => time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // What comes at the same moment is sent in this order, whatever the runtime's dice say.
            biased;
            changed = self.signals.changed() => match changed {
                Ok(()) => Wakeup::Signal,
                Err(_) => Wakeup::Stopped,
            },
            () = self.server.stopped.cancelled() => Wakeup::Stopped,
            () = time::sleep_until(self.deadline) => Wakeup::Deadline,
            () = planned => Wakeup::Break,
            () = self.client.changed() => Wakeup::Break,
            () = bookmark => Wakeup::Bookmark,
        }
    }
}

/// Returns the description of a watch at its beginning.
fn described(call: &Call) -> OpenWatch {
    OpenWatch {
        id: 0,
        group: call.resource.group.clone(),
        kind: call.resource.kind.clone(),
        resource: call.resource.plural.clone(),
        namespace: call.target.namespace.clone(),
        client: call.user_agent.clone(),
        user: call.user.name().to_owned(),
        age: Duration::ZERO,
        sent: 0,
    }
}
