//! Lanes at their limit, closed lanes, and keys that wait for caches alone.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::bench::{Bench, SECOND, lane, now_add};
use crate::*;

type Held = Item<char, Vec<u32>>;

impl Bench {
    pub(super) fn limited(most: usize) -> Self {
        let mut bench = Self::new();
        bench.queue.limit(lane(1), most);
        bench
    }

    /// Gets the next key and asks for a call of lane 1.
    fn come(&mut self) -> (char, Held, Option<WaitsFor>) {
        let item = self.get().expect("a key is ready");
        let why = self.admit(&item, 1);
        (item.key, item, why)
    }

    fn admit(&mut self, item: &Held, number: u32) -> Option<WaitsFor> {
        let later = || (item.priority, item.payload.clone());
        self.queue.admit(item.slot, lane(number), later, self.now)
    }

    /// Gets a key that has to wait; returns it.
    pub(super) fn wait(&mut self) -> char {
        let (key, item, why) = self.come();
        assert!(why.is_some(), "{key} waits");
        self.done_with(&item, &[]);
        key
    }

    fn wait_each(&mut self, keys: usize) {
        for _ in 0..keys {
            self.wait();
        }
    }

    /// Gets a key that may be called, which goes on.
    pub(super) fn enter(&mut self) -> (char, Held) {
        let (key, item, why) = self.come();
        assert_eq!(why, None, "{key} enters");
        (key, item)
    }

    pub(super) fn leave(&mut self, item: &Held) {
        self.queue.leave(lane(1), self.now);
        self.done(item);
    }

    /// Leaves with a key and enters with the next one, which it adds to the order.
    fn follow(&mut self, before: &mut Held, order: &mut String) {
        self.leave(before);
        let (key, item) = self.enter();
        order.push(key);
        *before = item;
    }

    fn open(&mut self, why: WaitsFor) -> Option<usize> {
        self.queue.open(lane(1), why, self.now)
    }

    fn state(&self, key: char) -> (KeyState, Option<WaitsFor>) {
        let queued = self.queue.queued(&key, self.now).expect("it is queued");
        let waits_for = queued.lanes.iter().find_map(|lane| lane.waits_for);
        (queued.state, waits_for)
    }
}

#[test]
fn waiting_key_comes_before_a_key_that_is_dequeued_later() {
    let mut bench = Bench::limited(1);
    bench.add("abc");
    let (_, a) = bench.enter();
    assert_eq!((bench.wait(), bench.wait()), ('b', 'c'));
    assert_eq!(bench.state('b'), (KeyState::Waiting, Some(WaitsFor::Limit)));
    bench.add("d");
    bench.leave(&a);
    assert_eq!(bench.state('b').0, KeyState::Ready);
    assert_eq!(bench.wait(), 'd', "the place is kept for b");
    let (key, b) = bench.enter();
    assert_eq!(key, 'b');
    bench.leave(&b);
    let (key, c) = bench.enter();
    assert_eq!(key, 'c');
    bench.leave(&c);
    let (key, d) = bench.enter();
    bench.leave(&d);
    assert_eq!((key, bench.queue.entries.len()), ('d', 0));
}

#[test]
fn urgent_key_waits_only_for_older_keys_of_its_priority() {
    let mut bench = Bench::limited(1);
    bench.add("x");
    let (_, x) = bench.enter();
    for key in 'a'..='f' {
        bench.add_with(key, now_add().priority(Priority::Low));
        assert_eq!(bench.wait(), key);
    }
    bench.add("y");
    bench.add("f");
    bench.add_with('h', now_add().priority(Priority::High));
    assert_eq!((bench.wait(), bench.wait(), bench.wait()), ('h', 'y', 'f'));
    assert_eq!(bench.queue.waits(lane(1)).keys, 8);
    let (mut order, mut before) = (String::new(), x);
    for _ in 0..8 {
        bench.follow(&mut before, &mut order);
    }
    assert_eq!(order, "hyfabcde");
}

#[test]
fn key_of_low_priority_ages_in_line() {
    let mut bench = Bench::limited(1);
    bench.add("x");
    let (_, mut before) = bench.enter();
    bench.add_with('Z', now_add().priority(Priority::Low));
    bench.wait();
    let mut order = String::new();
    // Every fourth turn is of an older key.
    for key in 'a'..='f' {
        bench.advance(SECOND);
        bench.add(&key.to_string());
        bench.wait();
        bench.follow(&mut before, &mut order);
    }
    assert_eq!(order.find('Z'), Some(3), "{order}");
}

#[test]
fn groups_take_turns_in_line() {
    let mut bench = Bench::new();
    bench.queue = QueueCore::fair(Ageing::default(), |key: &char| key.is_uppercase().into());
    bench.queue.limit(lane(1), 1);
    bench.add("x");
    let (_, mut before) = bench.enter();
    bench.add("abcd");
    bench.wait_each(4);
    bench.add("AB");
    bench.wait_each(2);
    let mut order = String::new();
    for _ in 0..6 {
        bench.follow(&mut before, &mut order);
    }
    assert_eq!(order, "aAbBcd");
}

#[test]
fn unused_place_goes_to_the_next_key() {
    let mut bench = Bench::limited(1);
    bench.add("abc");
    let (_, a) = bench.enter();
    bench.wait();
    bench.wait();
    bench.leave(&a);
    // The worker does not ask for the lane.
    let b = bench.get().unwrap();
    bench.done(&b);
    assert_eq!(bench.enter().0, 'c');
}

#[test]
fn key_that_is_given_back_keeps_its_place() {
    let mut bench = Bench::limited(1);
    bench.add("abc");
    let (_, a) = bench.enter();
    bench.wait();
    bench.wait();
    bench.leave(&a);
    let b = bench.get().unwrap();
    bench.queue.give_back(b, bench.now);
    assert_eq!(bench.enter().0, 'b');
    assert_eq!(bench.state('c').0, KeyState::Waiting);
}

#[test]
fn key_in_line_merges_what_is_added_meanwhile() {
    let mut bench = Bench::limited(1);
    bench.add("a");
    let (_, a) = bench.enter();
    for number in 1..=3 {
        bench.add_with('b', now_add().payload(vec![number]));
        bench.wait();
    }
    bench.leave(&a);
    let (_, b) = bench.enter();
    assert_eq!(b.payload, [1, 2, 3]);
    assert!(b.lanes.contains(lane(1)) && !b.lanes.contains(lane(2)));
}

#[test]
fn failures_stay_while_a_key_waits() {
    let mut bench = Bench::limited(1);
    bench.add("ab");
    let (_, a) = bench.enter();
    let b = bench.get().unwrap();
    let failed = Verdict::Failed {
        after: SECOND,
        payload: vec![],
        priority: None,
    };
    bench.done_with(&b, &[(lane(1), failed)]);
    bench.advance(SECOND);
    bench.wait();
    assert_eq!(bench.queue.failures(&'b', lane(1)), 1);
    bench.leave(&a);
    assert_eq!(&*bench.enter().1.failures, [(lane(1), 1)]);
}

#[test]
fn drain_dequeues_keys_that_wait_at_a_limit() {
    let mut bench = Bench::limited(1);
    bench.add("abc");
    let (_, a) = bench.enter();
    bench.wait();
    bench.queue.drain(bench.now);
    assert_eq!(bench.wait(), 'c', "it was due before the drain");
    // Another lane of a waiting key becomes due in the drain, and is deferred until the lane in line has its turn.
    bench.add_with('b', now_add().lanes(lane(2)));
    assert_eq!(bench.state('b').0, KeyState::Deferred);
    bench.add("d");
    for key in "bc".chars() {
        bench.queue.leave(lane(1), bench.now);
        assert!(!bench.queue.is_finished());
        let (next, item) = bench.enter();
        assert_eq!(next, key);
        bench.done(&item);
    }
    bench.leave(&a);
    assert!(bench.queue.is_finished() && bench.get().is_none());
    bench.queue.resume(bench.now);
    assert_eq!(bench.drain(), "d");
}

#[test]
fn pause_and_wait_for_caches_end_separately() {
    let mut bench = Bench::new();
    assert!(bench.queue.close(lane(1), WaitsFor::Caches));
    assert!(bench.queue.close(lane(1), WaitsFor::Resume));
    assert!(!bench.queue.close(lane(1), WaitsFor::Resume));
    bench.add("ab");
    bench.wait();
    assert_eq!(
        bench.state('a'),
        (KeyState::Waiting, Some(WaitsFor::Resume))
    );
    assert_eq!(bench.open(WaitsFor::Resume), Some(1));
    assert_eq!(bench.open(WaitsFor::Resume), None);
    assert_eq!(bench.state('a').1, Some(WaitsFor::Caches));
    bench.wait();
    assert!(bench.queue.close(lane(1), WaitsFor::Resume));
    assert_eq!(bench.open(WaitsFor::Caches), Some(2));
    assert!(bench.get().is_none(), "it is paused");
    assert_eq!(bench.open(WaitsFor::Resume), Some(2));
    assert_eq!(bench.drain(), "ab");
}

#[test]
fn admitted_call_may_close_its_lane_and_wait() {
    let mut bench = Bench::limited(2);
    bench.add("ab");
    let (_, a) = bench.enter();
    assert!(bench.queue.close(lane(1), WaitsFor::Caches));
    let later = (a.priority, vec![7]);
    bench.queue.wait(a.slot, lane(1), later, bench.now);
    bench.leave(&a);
    assert_eq!(bench.wait(), 'b');
    assert_eq!(
        bench.state('a'),
        (KeyState::Waiting, Some(WaitsFor::Caches))
    );
    assert_eq!(bench.open(WaitsFor::Caches), Some(2));
    assert_eq!(bench.enter().1.payload, [7]);
    assert_eq!(bench.enter().0, 'b');
}

#[test]
fn place_of_a_key_that_a_drain_defers_is_given_on() {
    let mut bench = Bench::limited(1);
    bench.add("abc");
    let (_, a) = bench.enter();
    bench.wait();
    bench.wait();
    bench.leave(&a);
    let b = bench.get().unwrap();
    bench.queue.drain(bench.now);
    bench.add("b");
    // The run has not used the place of b, which is due again after the drain.
    bench.done(&b);
    assert_eq!(bench.state('b').0, KeyState::Deferred);
    let (key, c) = bench.enter();
    bench.leave(&c);
    assert_eq!(key, 'c');
    assert!(bench.queue.is_finished());
}

#[test]
fn opened_lane_releases_as_many_keys_as_its_limit_admits() {
    let mut bench = Bench::limited(2);
    bench.queue.close(lane(1), WaitsFor::Resume);
    bench.add("abcd");
    bench.wait_each(4);
    assert_eq!(bench.queue.snapshot(3, bench.now).keys.len(), 3);
    bench.open(WaitsFor::Resume);
    assert_eq!((bench.queue.len(), bench.queue.waits(lane(1)).keys), (2, 2));
    let memory = bench.queue.memory().map(|of| (of.entries, of.bound));
    assert_eq!((memory[0].0, memory[2]), (4, (2, 2)));
}

#[test]
fn keys_that_wait_for_a_forgotten_lane_become_due() {
    let mut bench = Bench::limited(1);
    bench.add("abc");
    let (_, a) = bench.enter();
    bench.wait();
    bench.wait();
    bench.add_with('b', Add::after(SECOND).lanes(lane(2)));
    bench.queue.forget_lane(lane(1), bench.now);
    bench.queue.leave(lane(1), bench.now);
    bench.done(&a);
    assert_eq!(bench.queue.stats(bench.now).waiting, 0);
    assert_eq!(bench.drain(), "bc");
    assert_eq!(bench.state('b').0, KeyState::Delayed);
}

#[test]
fn shutdown_drops_keys_that_wait_and_their_places() {
    for now in [false, true] {
        let mut bench = Bench::limited(1);
        bench.add("abc");
        let (_, a) = bench.enter();
        bench.wait();
        bench.wait();
        bench.leave(&a);
        if now {
            bench.queue.shut_down_now();
        } else {
            bench.queue.shut_down();
            assert_eq!(bench.drain(), "b");
        }
        bench.queue.reopen();
        assert_eq!(bench.queue.entries.len(), 0);
        bench.add("de");
        let (_, d) = bench.enter();
        assert_eq!(bench.wait(), 'e');
        bench.leave(&d);
        assert_eq!(bench.enter().0, 'e');
    }
}

#[test]
fn run_that_a_shutdown_dropped_does_not_wait_after_the_reopening() {
    let mut bench = Bench::limited(1);
    bench.add("ab");
    let (_, a) = bench.enter();
    let b = bench.get().unwrap();
    bench.queue.shut_down_now();
    bench.queue.reopen();
    assert_eq!(bench.admit(&b, 1), Some(WaitsFor::Limit));
    bench.done_with(&b, &[]);
    bench.leave(&a);
    assert_eq!(bench.queue.entries.len(), 0);
}

#[derive(Debug, Clone)]
enum GateStep {
    Add(char, BTreeSet<u32>, Priority),
    Get,
    /// Asks for a call of a lane of a key in processing, or lets it wait for caches.
    Call(usize, u32, bool),
    EndCall(usize),
    Done(usize),
    GiveBack(usize),
    Close(u32, bool),
    Open(u32, bool),
    Drain,
    Resume,
}

/// Lanes with their limits.
const LIMITS: [Option<usize>; 3] = [Some(1), Some(2), None];

struct Gated {
    bench: Bench,
    tokens: u32,
    /// What each lane of a key has to be called with.
    owed: BTreeSet<(char, u32, u32)>,
    /// Keys in processing, with the lanes that were not asked for.
    held: Vec<(Held, BTreeSet<u32>)>,
    /// The lane and the key of each running call.
    calls: Vec<(u32, char)>,
    closed: BTreeMap<u32, BTreeSet<bool>>,
}

impl Gated {
    fn new() -> Self {
        let mut bench = Bench::new();
        for (number, most) in (0..).zip(LIMITS) {
            most.into_iter()
                .for_each(|most| bench.queue.limit(lane(number), most));
        }
        Self {
            bench,
            tokens: 0,
            owed: BTreeSet::new(),
            held: Vec::new(),
            calls: Vec::new(),
            closed: BTreeMap::new(),
        }
    }

    fn step(&mut self, step: &GateStep) {
        let now = self.bench.now;
        let why = |caches| {
            if caches {
                WaitsFor::Caches
            } else {
                WaitsFor::Resume
            }
        };
        match step {
            GateStep::Add(key, numbers, priority) => self.add(*key, numbers, *priority),
            GateStep::Get => {
                if let Some(item) = self.bench.get() {
                    let due = (0..3).filter(|number| item.lanes.contains(lane(*number)));
                    let due = due.collect();
                    self.held.push((item, due));
                }
            }
            GateStep::Call(which, number, aside) => self.call(*which, *number, *aside),
            GateStep::EndCall(which) if !self.calls.is_empty() => {
                let (number, _) = self.calls.remove(which % self.calls.len());
                if LIMITS[number as usize].is_some() {
                    self.bench.queue.leave(lane(number), now);
                }
            }
            GateStep::Done(which) if !self.held.is_empty() => {
                let (item, unasked) = self.held.remove(which % self.held.len());
                self.bench.done_with(&item, &[]);
                // A worker that does not ask for a lane has decided that it need not be called.
                self.handled(&item, |number| unasked.contains(&number));
            }
            GateStep::GiveBack(which) if !self.held.is_empty() => {
                let (item, _) = self.held.remove(which % self.held.len());
                let lanes = (0..3).filter(|number| item.lanes.contains(lane(*number)));
                let payload = item.payload.iter();
                for number in lanes {
                    let again = payload.clone().map(|token| (item.key, number, *token));
                    self.owed.extend(again);
                }
                self.bench.queue.give_back(item, now);
            }
            GateStep::Close(number, caches) => {
                self.bench.queue.close(lane(*number), why(*caches));
                self.closed.entry(*number).or_default().insert(*caches);
            }
            GateStep::Open(number, caches) => {
                self.bench.queue.open(lane(*number), why(*caches), now);
                self.closed.entry(*number).or_default().remove(caches);
            }
            GateStep::Drain => self.bench.queue.drain(now),
            GateStep::Resume => self.bench.queue.resume(now),
            _ => {}
        }
    }

    fn add(&mut self, key: char, numbers: &BTreeSet<u32>, priority: Priority) {
        self.tokens += 1;
        let all = numbers.is_empty();
        let lanes = (0..3).filter(|number| all || numbers.contains(number));
        self.owed
            .extend(lanes.map(|number| (key, number, self.tokens)));
        let lanes = numbers.iter().map(|number| lane(*number));
        let lanes: Lanes = if all { Lanes::ALL } else { lanes.collect() };
        let add = now_add().lanes(lanes).priority(priority);
        self.bench.add_with(key, add.payload(vec![self.tokens]));
    }

    fn call(&mut self, which: usize, number: u32, aside: bool) {
        if self.held.is_empty() {
            return;
        }
        let at = which % self.held.len();
        if !self.held[at].1.remove(&number) {
            return;
        }
        let (item, unasked) = self.held.remove(at);
        if self.bench.admit(&item, number).is_none() {
            self.calls.push((number, item.key));
            assert!(self.closed.get(&number).is_none_or(BTreeSet::is_empty));
            if aside {
                let (later, now) = ((item.priority, item.payload.clone()), self.bench.now);
                self.bench.queue.close(lane(number), WaitsFor::Caches);
                self.closed.entry(number).or_default().insert(true);
                self.bench.queue.wait(item.slot, lane(number), later, now);
            } else {
                self.handled(&item, |each| each == number);
            }
        }
        self.held.push((item, unasked));
    }

    fn handled(&mut self, item: &Held, lanes: impl Fn(u32) -> bool) {
        let is_handled = |(key, number, token): &(char, u32, u32)| {
            *key == item.key && lanes(*number) && item.payload.contains(token)
        };
        self.owed.retain(|owed| !is_handled(owed));
    }

    fn check(&mut self) {
        let now = self.bench.now;
        for (number, most) in (0..).zip(LIMITS) {
            let running = self.calls.iter().filter(|(each, _)| *each == number);
            assert!(most.is_none_or(|most| running.count() <= most));
        }
        for memory in self.bench.queue.memory() {
            assert!(memory.entries <= memory.bound, "{memory:?}");
        }
        let all = self.bench.queue.snapshot(usize::MAX, now);
        let keys: BTreeSet<char> = all.keys.iter().map(|seen| seen.key).collect();
        assert_eq!((all.keys.len(), keys.len()), (all.total, all.total));
        let waiting = all.keys.iter();
        let waiting = waiting.filter(|seen| seen.state == KeyState::Waiting);
        let stats = self.bench.queue.stats(now);
        assert_eq!(stats.waiting, waiting.count());
        for (key, number, _) in &self.owed {
            let seen = all.keys.iter().find(|seen| seen.key == *key);
            let lanes = seen.into_iter().flat_map(|seen| &seen.lanes);
            let mut ids = lanes.map(|each| each.lane);
            let is_held = self.held.iter().any(|(item, _)| item.key == *key);
            let is_queued = ids.any(|id| id == LaneId::WHOLE || id == lane(*number));
            assert!(is_queued || is_held, "lane {number} of {key} is lost");
        }
    }

    /// Lets everything run to its end; nothing may be left.
    fn finish(&mut self) {
        for number in 0..3 {
            self.step(&GateStep::Open(number, true));
            self.step(&GateStep::Open(number, false));
        }
        self.step(&GateStep::Resume);
        loop {
            self.step(&GateStep::Get);
            for number in 0..3 {
                self.step(&GateStep::Call(0, number, false));
            }
            self.step(&GateStep::Done(0));
            self.check();
            if self.held.is_empty() && self.calls.is_empty() && self.bench.queue.is_empty() {
                break;
            }
            self.step(&GateStep::EndCall(0));
        }
        assert_eq!(self.owed, BTreeSet::new());
        assert_eq!(self.bench.queue.entries.len(), 0);
    }
}

fn gate_step() -> impl Strategy<Value = GateStep> {
    let key = || prop::sample::select(vec!['a', 'b', 'c', 'd', 'e']);
    let lanes = prop::collection::btree_set(0_u32..3, 0..3);
    let priority = prop::sample::select(&Priority::ALL[..]);
    prop_oneof![
        8 => (key(), lanes, priority).prop_map(|(key, lanes, priority)| GateStep::Add(key, lanes, priority)),
        8 => Just(GateStep::Get),
        12 => (any::<usize>(), 0_u32..3, prop::bool::weighted(0.1))
            .prop_map(|(which, number, aside)| GateStep::Call(which, number, aside)),
        5 => any::<usize>().prop_map(GateStep::EndCall),
        6 => any::<usize>().prop_map(GateStep::Done),
        1 => any::<usize>().prop_map(GateStep::GiveBack),
        1 => (0_u32..3, any::<bool>()).prop_map(|(number, caches)| GateStep::Close(number, caches)),
        2 => (0_u32..3, any::<bool>()).prop_map(|(number, caches)| GateStep::Open(number, caches)),
        1 => Just(GateStep::Drain),
        1 => Just(GateStep::Resume),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8 * ProptestConfig::default().cases, ..Default::default() })]
    #[test]
    fn gate_keeps_its_limit_and_loses_no_key(steps in prop::collection::vec(gate_step(), 1..120)) {
        let mut gated = Gated::new();
        for step in &steps {
            gated.step(step);
            gated.check();
        }
        gated.finish();
    }
}

/// A handler may be paused while it is deregistered, and its last call may end after that.
#[test]
fn pause_of_a_forgotten_lane_counts_none_of_its_calls() {
    for ends in ["leave", "admit", "shut down"] {
        let mut bench = Bench::limited(1);
        bench.add("ab");
        let (_, a) = bench.enter();
        bench.wait();
        bench.leave(&a);
        let b = bench.get().expect("b has the place of a");
        if ends == "leave" {
            assert_eq!(bench.admit(&b, 1), None);
        }
        bench.queue.forget_lane(lane(1), bench.now);
        bench.queue.close(lane(1), WaitsFor::Resume);
        match ends {
            "leave" => bench.leave(&b),
            "admit" => assert_eq!(bench.admit(&b, 1), Some(WaitsFor::Resume)),
            _ => bench.queue.shut_down_now(),
        }
        assert_eq!(bench.queue.gates[0].inside, 0, "{ends}");
    }
}

#[test]
fn keys_of_a_lane_that_is_forgotten_in_a_drain_become_due_after_it() {
    let mut bench = Bench::new();
    bench.queue.close(lane(1), WaitsFor::Resume);
    bench.add("ab");
    bench.wait();
    let b = bench.get().expect("b is due");
    bench.queue.drain(bench.now);
    bench.admit(&b, 1);
    bench.queue.forget_lane(lane(1), bench.now);
    bench.done_with(&b, &[]);
    assert!(bench.queue.is_finished() && bench.get().is_none());
    assert_eq!(bench.state('a').0, KeyState::Deferred);
    bench.queue.resume(bench.now);
    assert_eq!(bench.drain(), "ab");
}

#[test]
fn due_keys_are_the_ready_ones_and_those_at_a_limit() {
    let mut bench = Bench::limited(1);
    bench.add("ab");
    bench.enter();
    bench.wait();
    bench.add("c");
    bench.queue.close(lane(2), WaitsFor::Resume);
    bench.add_with('d', now_add().lanes(lane(2)));
    assert_eq!(bench.queue.due_keys(), ['c', 'd', 'b']);
    let c = bench.get().expect("c is ready");
    let d = bench.get().expect("d is ready");
    bench.admit(&d, 2);
    bench.done_with(&d, &[]);
    assert_eq!(bench.queue.due_keys(), ['b'], "d is paused");
    bench.done(&c);
}

#[test]
fn due_keys_have_a_key_at_a_limit_whatever_else_it_waits_for() {
    let mut bench = Bench::limited(1);
    bench.add("ab");
    bench.enter();
    bench.queue.close(lane(2), WaitsFor::Resume);
    let b = bench.get().expect("b is ready");
    bench.admit(&b, 2);
    bench.admit(&b, 1);
    bench.done_with(&b, &[]);
    assert_eq!(bench.queue.due_keys(), ['b']);
    bench.queue.drain(bench.now);
    bench.add_with('b', now_add().lanes(lane(3)));
    assert_eq!((bench.queue.due_keys(), bench.queue.due()), (vec!['b'], 1));
}
