//! How many calls of a handler may be under way at a time.

use std::collections::HashSet;

use lariat_core::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::waiting::{Waiting, WaitingLine};

/// Lets some number of calls in; keys that come when as many are under way wait in line, without a worker.
pub(crate) struct Limit {
    most: usize,
    state: Mutex<State>,
    /// Told when a call has ended.
    left: Notify,
}

/// While somebody waits, `inside + called` is `most`. During a drain nobody is called or in line.
#[derive(Default)]
struct State {
    /// Calls under way.
    inside: usize,
    /// Keys that have been sent back to the queue, and whose place is kept.
    called: HashSet<ObjectKey>,
    waiting: WaitingLine,
    /// A drain is under way: no place is kept for anybody.
    is_draining: bool,
}

/// Whether a call may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    Entered,
    /// The key is in line, and will be queued when its turn comes.
    InLine,
    /// A drain is under way: whoever goes back to the queue would not come again before the next start, so
    /// the call waits on the spot.
    Wait,
}

impl Limit {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            state: Mutex::default(),
            left: Notify::new(),
        }
    }

    /// Lets a call for a key in, or puts it in line.
    pub(crate) fn admit(&self, key: &ObjectKey, waiting: impl FnOnce() -> Waiting) -> Admission {
        let mut state = self.state.lock();
        if state.enter(key, self.most) {
            return Admission::Entered;
        }
        if state.is_draining {
            return Admission::Wait;
        }
        state.waiting.join(waiting());
        Admission::InLine
    }

    /// Lets a call for a key in, as soon as there is room.
    pub(crate) async fn enter(&self, key: &ObjectKey) {
        loop {
            let left = self.left.notified();
            if self.state.lock().enter(key, self.most) {
                return;
            }
            left.await;
        }
    }

    /// Notes that a call has ended; returns the key whose turn it is, which is to be queued again.
    pub(crate) fn leave(&self) -> Option<Waiting> {
        let mut state = self.state.lock();
        state.inside -= 1;
        self.left.notify_waiters();
        state.call_next(self.most)
    }

    /// Gives up the place that is kept for a key, if one is; returns whose turn it is then.
    pub(crate) fn pass(&self, key: &ObjectKey) -> Option<Waiting> {
        let mut state = self.state.lock();
        if !state.called.remove(key) {
            return None;
        }
        self.left.notify_waiters();
        state.call_next(self.most)
    }

    /// Takes everybody out of the line, and keeps no place for anybody until [`open`](Self::open).
    pub(crate) fn drain(&self) -> Vec<Waiting> {
        let mut state = self.state.lock();
        state.is_draining = true;
        state.called.clear();
        self.left.notify_waiters();
        state.waiting.take_all()
    }

    /// Returns how many keys are in line, and how many may be: none, while a call may begin.
    pub(super) fn in_line(&self) -> (usize, usize) {
        let state = self.state.lock();
        let waiting = state.waiting.len();
        let is_full = state.inside + state.called.len() >= self.most;
        (waiting, if is_full { waiting } else { 0 })
    }

    /// Returns for how many keys a place is kept, and for how many at most.
    pub(super) fn kept(&self) -> (usize, usize) {
        (self.state.lock().called.len(), self.most)
    }

    /// Returns how many keys are in line.
    pub(super) fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// Ends a drain.
    pub(crate) fn open(&self) {
        self.state.lock().is_draining = false;
    }
}

impl State {
    fn enter(&mut self, key: &ObjectKey, most: usize) -> bool {
        if !self.called.remove(key) && self.inside + self.called.len() >= most {
            return false;
        }
        self.inside += 1;
        true
    }

    fn call_next(&mut self, most: usize) -> Option<Waiting> {
        if self.is_draining || self.inside + self.called.len() >= most {
            return None;
        }
        let next = self.waiting.next()?;
        self.called.insert(next.key.clone());
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use lariat_queue::Priority;

    use super::*;
    use crate::payload::Payload;

    fn comes(limit: &Limit, name: &str) -> bool {
        comes_with(limit, name, Priority::Normal)
    }

    fn comes_with(limit: &Limit, name: &str, priority: Priority) -> bool {
        let key = ObjectKey::cluster(name);
        let waiting = || Waiting {
            key: ObjectKey::cluster(name),
            payload: Payload::default(),
            priority,
            failures: 0,
        };
        limit.admit(&key, waiting) == Admission::Entered
    }

    fn name(waiting: Option<Waiting>) -> Option<String> {
        waiting.map(|waiting| waiting.key.to_string())
    }

    #[test]
    fn those_who_wait_come_before_those_who_arrive() {
        let limit = Limit::new(1);
        assert!(comes(&limit, "a"));
        assert!(!comes(&limit, "b"));
        assert!(!comes(&limit, "c"));
        assert!(!comes(&limit, "b"), "once in line is enough");
        assert_eq!(name(limit.leave()).as_deref(), Some("b"));
        assert!(!comes(&limit, "d"), "the place is kept for b");
        assert!(comes(&limit, "b"));
        assert_eq!(name(limit.leave()).as_deref(), Some("c"));
        assert!(comes(&limit, "c"));
        assert_eq!(name(limit.leave()).as_deref(), Some("d"));
        assert!(comes(&limit, "d"));
        assert!(name(limit.leave()).is_none());
        assert!(comes(&limit, "e"), "there is room again");
    }

    #[test]
    fn what_is_urgent_comes_before_the_initial_list() {
        let limit = Limit::new(1);
        assert!(comes(&limit, "first"));
        for number in 0..1000 {
            assert!(!comes_with(
                &limit,
                &format!("listed-{number}"),
                Priority::Low
            ));
        }
        assert!(!comes_with(&limit, "fresh", Priority::High));
        assert!(!comes_with(&limit, "listed-999", Priority::Normal));
        let next = limit.leave().expect("keys wait");
        assert_eq!((next.key.name(), next.priority), ("fresh", Priority::High));
        assert!(comes(&limit, "fresh"));
        let next = limit.leave().expect("keys wait");
        assert_eq!(next.key.name(), "listed-999");
        assert_eq!(limit.waiting(), 999);
    }

    #[test]
    fn a_drain_keeps_no_places() {
        let limit = Limit::new(1);
        assert!(comes(&limit, "a"));
        assert!(!comes(&limit, "b"));
        assert!(!comes(&limit, "c"));
        assert_eq!(name(limit.leave()).as_deref(), Some("b"));
        assert_eq!(limit.drain().len(), 1, "c");
        assert!(comes(&limit, "d"), "b may be behind it in the queue");
        assert!(!comes(&limit, "b"));
        assert!(name(limit.leave()).is_none(), "it waits on the spot");
        limit.open();
        assert!(comes(&limit, "e"));
        assert!(!comes(&limit, "f"));
        assert_eq!(name(limit.leave()).as_deref(), Some("f"));
    }

    #[test]
    fn a_place_can_be_given_up() {
        let limit = Limit::new(1);
        assert!(comes(&limit, "a"));
        assert!(!comes(&limit, "b"));
        assert!(!comes(&limit, "c"));
        assert_eq!(name(limit.leave()).as_deref(), Some("b"));
        assert_eq!(
            name(limit.pass(&ObjectKey::cluster("b"))).as_deref(),
            Some("c")
        );
        assert!(name(limit.pass(&ObjectKey::cluster("x"))).is_none());
        assert!(comes(&limit, "c"));
    }
}
