//! A store beside the server of the model, and the checks after each step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU8, Ordering};

use lariat_core::{LabelSelector, Uid};

use super::super::*;
use super::server::{Answer, Event, Op, Outcome, Server};
use super::{Act, ModelStep, Moment};
use crate::content_filter::ContentFilter;

pub(super) const KEYS: u8 = 4;

/// The state an object was made from.
fn state_of(object: &CachedObject) -> TestState {
    let uid = object.uid().to_string()[1..].parse().unwrap();
    let version = object.version().to_string().parse().unwrap();
    TestState { uid, version }
}

fn key_of(key: u8) -> ObjectKey {
    let any = TestState { uid: 0, version: 0 };
    object(key, any).key().clone()
}

/// A filter that keeps the content of some keys, and of the others in some of their states.
fn filter(kept: &Arc<AtomicU8>) -> ContentFilter {
    let (_, never) = tokio::sync::watch::channel(0);
    let kept = Arc::clone(kept);
    ContentFilter::new(never, move |_, object| {
        let number: u8 = object.key().name()[1..].parse().unwrap();
        let is_kept = kept.load(Ordering::Relaxed) & 1 << number != 0;
        is_kept != (object.labels().get("tier") == Some("t2"))
    })
}

pub(super) struct Bench {
    server: Server,
    backup: Option<Server>,
    store: Store,
    /// The state of a subscriber that sees only changes.
    follower: BTreeMap<ObjectKey, TestState>,
    /// The version at which the server was as the store shows a key, at least.
    shown_at: BTreeMap<u8, u64>,
    /// Every object that the store has had, or an answer was about.
    known: BTreeSet<u8>,
    /// How many writes were sent.
    sent: u64,
    /// Answers that are under way.
    answers: Vec<Answer>,
    /// Which keys the filter keeps the content of, a bit for each.
    kept: Arc<AtomicU8>,
    /// Whether the filter has changed since the last list began.
    is_refiltered: bool,
    /// How much of each object is requested, and how much the watch reads.
    content: Content,
    reading: Content,
    is_filled: bool,
    is_watching: bool,
    /// Whether the watch has left something out since the last list.
    is_lossy: bool,
    /// Whether the cache may go back: the server was set back, or is stale, and the watch has not caught up yet.
    goes_back: bool,
}

impl Bench {
    pub(super) fn new() -> Self {
        let kept = Arc::new(AtomicU8::new(u8::MAX));
        let store = Store::filtered(Some(filter(&kept).of_kind(&gvk())));
        let by_version = |object: &Arc<CachedObject>| vec![format!("v{}", object.version())];
        store
            .add_index(&gvk(), "version", Arc::new(by_version))
            .unwrap();
        let by_content = |object: &Arc<CachedObject>| {
            let version = format!("v{}", object.version());
            object
                .has_content()
                .then_some(version)
                .into_iter()
                .collect()
        };
        store
            .add_index(&gvk(), "content", Arc::new(by_content))
            .unwrap();
        // Indexes are made for larger stores; here they are kept up to date from the start.
        Query::owned_by(&Uid::new("owner1")).make_index(&store.kept);
        Query::all()
            .labels("tier=t0".parse().unwrap())
            .make_index(&store.kept);
        Self {
            server: Server::default(),
            backup: None,
            store,
            follower: BTreeMap::new(),
            shown_at: BTreeMap::new(),
            known: BTreeSet::new(),
            sent: 0,
            answers: Vec::new(),
            kept,
            is_refiltered: false,
            content: Content::Whole,
            reading: Content::Whole,
            is_filled: false,
            is_watching: false,
            is_lossy: false,
            goes_back: false,
        }
    }

    pub(super) fn step(&mut self, step: &ModelStep) {
        match step {
            ModelStep::Act(act) => self.act(*act),
            ModelStep::Theirs { key, op, reported } => self.apply_theirs(*key, *op, *reported),
            ModelStep::CatchUp => self.catch_up(),
            ModelStep::CutWatch => self.is_watching = false,
            ModelStep::List { page, acts } => self.list(*page, acts, None),
            ModelStep::StaleList { age } => self.list_stale(*age),
            ModelStep::Settle => self.settle(),
            ModelStep::Content(content) => self.content = *content,
            ModelStep::Backup => self.backup = Some(self.server.clone()),
            ModelStep::Restore => self.restore(),
            ModelStep::Store(storage) => self.store.set_storage(*storage),
        }
        self.check();
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Theirs { key, op } => drop(self.server.apply(key, op)),
            Act::Ours { key, op, is_late } => {
                let shown = self.store.get(&key_of(key));
                let before = shown.as_deref().map(state_of);
                let answer = self.server.apply(key, op);
                self.sent += 1;
                let sent = self.sent;
                let answer = answer.map(|answer| Answer {
                    before,
                    sent,
                    ..answer
                });
                match answer.filter(|_| !is_late) {
                    Some(answer) => self.answered(answer, self.content),
                    None => self.answers.extend(answer),
                }
            }
            Act::Filter(kept) => {
                self.kept.store(kept, Ordering::Relaxed);
                self.is_refiltered = true;
            }
            Act::Answer { number, as_read } => {
                if !self.answers.is_empty() {
                    let number = number % self.answers.len();
                    let answer = self.answers.remove(number);
                    self.answered(answer, as_read.unwrap_or(self.content));
                }
            }
        }
    }

    /// Another client does something, and the watch reports it `reported` times.
    fn apply_theirs(&mut self, key: u8, op: Op, reported: usize) {
        self.catch_up();
        let before = self.server.log.len();
        self.server.apply(key, op);
        let Some(event) = self.server.log.get(before).copied() else {
            return;
        };
        if self.is_watching {
            self.server.log.pop();
            self.is_lossy |= reported == 0;
            (0..reported).for_each(|_| self.report(event));
        }
    }

    /// An answer comes. What is shown from then on is not older.
    fn answered(&mut self, answer: Answer, content: Content) {
        let before = answer.before.map(|state| object(answer.key, state));
        let object = object(answer.key, answer.state);
        let changes = match answer.what {
            Outcome::Selected => self.store.wrote(object, content, answer.sent),
            Outcome::NotSelected => self.store.left(&object),
            Outcome::Gone => {
                let before = before.map(CachedObject::new);
                let (key, uid) = (object.key(), object.uid());
                self.store.deleted(key, uid, before.as_ref(), answer.sent)
            }
        };
        // Of a deletion the version is not answered. If the object was never seen, an earlier one of its name may be
        // shown until the watch comes to the deletion.
        let uid = answer.state.uid;
        let is_known =
            self.known.contains(&uid) || answer.before.is_some_and(|before| before.uid == uid);
        if is_known || !matches!(answer.what, Outcome::Gone) {
            let shown_at = self.shown_at.entry(answer.key).or_default();
            *shown_at = answer.state.version.max(*shown_at);
        }
        self.known.insert(uid);
        let is_gone = !matches!(answer.what, Outcome::Selected);
        self.follow(&changes, |key| is_gone && key == answer.key);
    }

    fn catch_up(&mut self) {
        if self.is_watching {
            let log = std::mem::take(&mut self.server.log);
            log.into_iter().for_each(|event| self.report(event));
            self.goes_back = false;
        }
    }

    fn report(&mut self, event: Event) {
        let object = object(event.key, event.state);
        let delta = if event.is_gone {
            Delta::Deleted(object)
        } else {
            Delta::Present(object)
        };
        let changes = self.store.apply(vec![delta], self.reading);
        self.follow(&changes, |key| event.is_gone && key == event.key);
    }

    /// Reads everything from a server that is behind. The watch goes on from there.
    fn list_stale(&mut self, age: u8) {
        self.goes_back = true;
        self.shown_at.clear();
        self.list(2, &[], Some(age));
        self.check();
        self.catch_up();
    }

    /// Reads everything, with things that happen in between. The watch goes on from there.
    ///
    /// `stale` is how far the server is behind.
    fn list(&mut self, page: usize, acts: &[(Moment, Act)], stale: Option<u8>) {
        self.is_watching = false;
        let unchanged: BTreeSet<_> = self.follower.clone().into_iter().collect();
        let initial = !self.is_filled || self.reading != self.content;
        (self.reading, self.is_filled) = (self.content, true);
        self.is_refiltered = false;
        let listing = self.store.begin_listing(initial, self.content, None);
        self.acts_at(Moment::Requested, acts);
        let (listed, version) = match stale {
            Some(age) => self.server.stale(age),
            None => (self.server.selected(), self.server.version),
        };
        self.acts_at(Moment::Answered, acts);
        let mut reported = 0;
        for (number, objects) in listed.chunks(page).enumerate() {
            let objects = objects.iter().map(|(key, state)| object(*key, *state));
            let changes = self.store.list_page(&listing, objects.collect());
            reported += changes.len();
            self.follow(&changes, |_| false);
            if number == 0 {
                self.acts_at(Moment::FirstPage, acts);
            }
        }
        let changes = self.store.end_listing(&listing, &version.into());
        let is_listed = |key| listed.iter().any(|(listed, _)| *listed == key);
        self.follow(&changes, |key| !is_listed(key));
        self.server
            .log
            .retain(|event| event.state.version > version);
        (self.is_watching, self.is_lossy) = (true, false);
        let known = |(key, state): &&(u8, TestState)| unchanged.contains(&(key_of(*key), *state));
        let changed = listed.len() - listed.iter().filter(known).count();
        assert!(
            reported <= 2 * changed,
            "what did not change is not published"
        );
    }

    fn acts_at(&mut self, moment: Moment, acts: &[(Moment, Act)]) {
        for (_, act) in acts.iter().filter(|(at, _)| *at == moment) {
            self.act(*act);
        }
    }

    /// Everything is reported and answered: now the store equals the server.
    pub(super) fn settle(&mut self) {
        self.catch_up();
        for answer in std::mem::take(&mut self.answers) {
            self.answered(answer, self.content);
        }
        if !self.is_watching || self.is_lossy {
            return;
        }
        let listed = self.server.selected().into_iter();
        let expected: BTreeMap<_, _> = listed.map(|(key, state)| (key_of(key), state)).collect();
        assert_eq!(self.follower, expected, "a list and what follows is all");
        if self.reading == Content::Whole && !self.is_refiltered {
            let snapshot = self.store.snapshot();
            for object in snapshot.iter() {
                let is_kept = self.store.wants_content(Content::Whole, object);
                assert_eq!(object.has_content(), is_kept, "{}", object.key());
            }
        }
    }

    /// The server is set back, and listed: its versions count from there, and nothing else does.
    fn restore(&mut self) {
        let Some(backup) = &self.backup else {
            return;
        };
        self.server.restore(backup);
        self.answers.clear();
        self.shown_at.clear();
        self.goes_back = true;
        self.list(2, &[], None);
        self.settle();
    }

    /// Follows the changes; they have to fit each other.
    ///
    /// `is_over` says of which keys the server has reported, or the answer to a write has said, that there is no
    /// object.
    fn follow(&mut self, changes: &[Change], is_over: impl Fn(u8) -> bool) {
        for (number, change) in changes.iter().enumerate() {
            match change {
                Change::Added { object, .. } => {
                    let before = self.follower.insert(object.key().clone(), state_of(object));
                    assert_eq!(before, None);
                    self.known.insert(state_of(object).uid);
                }
                Change::Updated { old, new } => {
                    let before = self.follower.insert(new.key().clone(), state_of(new));
                    assert_eq!(before, Some(state_of(old)));
                    assert_eq!(old.uid(), new.uid());
                    let is_later = state_of(new).version > state_of(old).version;
                    assert!(is_later || self.goes_back, "{change:?}");
                }
                Change::Deleted { last } => {
                    let before = self.follower.remove(last.key());
                    assert_eq!(before.unwrap().uid, state_of(last).uid);
                    let next = changes.get(number + 1);
                    let is_replaced = next.is_some_and(|next| next.key() == last.key());
                    let key = last.key().name()[1..].parse().unwrap();
                    assert!(is_replaced || is_over(key), "nobody has said {change:?}");
                }
                Change::Resynced { .. } => panic!("nothing is resynced here"),
            }
        }
        self.check_freshness();
    }

    /// The store shows what was published.
    fn check(&self) {
        let snapshot = self.store.snapshot();
        let shown = snapshot.iter().map(|o| (o.key().clone(), state_of(o)));
        assert_eq!(shown.collect::<BTreeMap<_, _>>(), self.follower);
        assert!(snapshot.iter().is_sorted_by_key(|o| o.key().clone()));
        let bytes = snapshot.iter().map(|object| object.bytes()).sum::<usize>();
        assert_eq!(self.store.bytes(), bytes);
        assert_eq!(self.store.len(), self.follower.len());
        for (key, state) in &self.follower {
            let shown = self.store.get(key).unwrap();
            assert_eq!(state_of(&shown), *state);
            let decoded = shown.decode::<serde_json::Value>(&gvk());
            assert_eq!(decoded.is_ok(), shown.has_content());
        }
        self.check_queries();
    }

    /// What is shown of an object is never older than what was shown before, nor than what this process wrote.
    fn check_freshness(&mut self) {
        if self.goes_back {
            return;
        }
        for key in 0..KEYS {
            let shown = self.store.get(&key_of(key)).as_deref().map(state_of);
            let at = self.shown_at.entry(key).or_default();
            let when = self.server.when(key, *at, shown);
            *at = when.unwrap_or_else(|| panic!("{key} shows {shown:?}, which is before {at}"));
        }
    }

    /// Every query finds what a look at each object finds.
    fn check_queries(&self) {
        let selectors = [
            "",
            "tier=t1",
            "tier in (t0,t2),app",
            "!tier",
            "tier notin (t1)",
            "app=x,tier=t0",
        ];
        let snapshot = self.store.snapshot();
        for selector in selectors {
            let labels: LabelSelector = selector.parse().unwrap();
            for query in [
                Query::all().labels(labels.clone()),
                Query::in_namespace("a").labels(labels.clone()),
                Query::owned_by(&Uid::new("owner1")).labels(labels),
            ] {
                let wanted: Vec<_> = snapshot
                    .iter()
                    .filter(|object| query.matches(object))
                    .map(|object| object.key())
                    .collect();
                let selected = self.store.select(&query);
                let found: Vec<_> = selected.iter().map(|object| object.key()).collect();
                assert_eq!(found, wanted, "{query:?}");
                assert_eq!(self.store.count(&query), wanted.len());
            }
        }
        for (key, state) in &self.follower {
            let value = format!("v{}", state.version);
            let found = self.store.by_index(&gvk(), "version", &value).unwrap();
            assert!(found.iter().any(|object| object.key() == key));
            // Content that was given up is found until the object changes.
            let found = self.store.by_index(&gvk(), "content", &value).unwrap();
            assert!(
                found
                    .iter()
                    .all(|object| state_of(object).version == state.version)
            );
            if self
                .store
                .get(key)
                .is_some_and(|object| object.has_content())
            {
                assert!(found.iter().any(|object| object.key() == key));
            }
        }
        assert_eq!(self.store.count_by_index(&gvk(), "version", "v0"), Ok(0));
    }
}
