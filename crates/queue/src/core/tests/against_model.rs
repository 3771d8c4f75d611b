//! The core against a naive reference that keeps everything in lists.
//!
//! Invariants, after every step: one worker per key; nothing added is lost and nothing is invented (the payload of
//! every add arrives, once for each of its lanes that was delayed, the older first); no lane is dequeued before its
//! time; the earliest deadline of a lane wins, whatever runs before; keys leave by priority, first come first
//! served or, in a fair queue, group by group, with the share that ageing grants; a drain dequeues what was due before
//! it and nothing else; a shutdown empties the queue; failures count up and are forgotten; the counts agree and are
//! never negative; what is remembered keeps to its bounds.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::model::{Lane, Model, PATIENCE, SHARE, group};
use crate::*;

#[derive(Debug, Clone)]
enum ModelStep {
    Add {
        key: u8,
        lanes: BTreeSet<u32>,
        after: u64,
        priority: Priority,
    },
    Get,
    Done {
        which: usize,
        verdicts: Vec<(u32, u8, u64)>,
    },
    GiveBack {
        which: usize,
    },
    Advance(u64),
    Drain,
    Resume,
    ShutDown {
        now: bool,
    },
}

fn lane_id(lane: Lane) -> LaneId {
    lane.map_or(LaneId::WHOLE, LaneId::new)
}

/// The set of lanes a step means; none of them means the whole key.
fn lanes_of(numbers: &BTreeSet<u32>) -> BTreeSet<Lane> {
    if numbers.is_empty() {
        [None].into()
    } else {
        numbers.iter().map(|number| Some(*number)).collect()
    }
}

struct Pair {
    model: Model,
    queue: QueueCore<u8, Vec<u32>>,
    origin: Instant,
    holding: Vec<Item<u8, Vec<u32>>>,
    tokens: u32,
}

impl Pair {
    #[allow(
        clippy::disallowed_methods,
        reason = "an arbitrary origin of virtual time"
    )]
    fn new(is_fair: bool) -> Self {
        let ageing = Ageing::new(Duration::from_secs(PATIENCE), SHARE);
        Self {
            model: Model {
                turns: is_fair.then(Vec::new),
                ..Model::default()
            },
            queue: if is_fair {
                QueueCore::fair(ageing, |key| group(*key).into())
            } else {
                QueueCore::new(ageing)
            },
            origin: Instant::now(),
            holding: Vec::new(),
            tokens: 0,
        }
    }

    fn now(&self) -> Instant {
        self.origin + Duration::from_secs(self.model.now)
    }

    fn token(&mut self) -> u32 {
        self.tokens += 1;
        self.tokens
    }

    fn step(&mut self, step: &ModelStep) {
        let now = self.now();
        match step {
            ModelStep::Add {
                key,
                lanes,
                after,
                priority,
            } => {
                let token = self.token();
                let lanes = lanes_of(lanes);
                let priority = match self.model.turns {
                    Some(_) => &Priority::Normal,
                    None => priority,
                };
                self.model
                    .add(*key, &lanes, *after, (*priority, vec![token]));
                let add = Add::after(Duration::from_secs(*after))
                    .lanes(lanes.iter().copied().map(lane_id).collect::<Lanes>())
                    .priority(*priority)
                    .payload(vec![token]);
                self.queue.add(*key, add, now);
            }
            ModelStep::Get => self.get(),
            ModelStep::Done { which, verdicts } => self.done(*which, verdicts),
            ModelStep::GiveBack { which } => {
                if self.holding.is_empty() {
                    return;
                }
                let item = self.holding.remove(which % self.holding.len());
                let parcel = (item.priority, item.payload.clone());
                self.model.give_back(item.key, ids(&item.lanes), parcel);
                self.queue.give_back(item, now);
            }
            ModelStep::Advance(seconds) => self.model.now += seconds,
            ModelStep::Drain => {
                self.model.drain();
                self.queue.drain(now);
            }
            ModelStep::Resume => {
                self.model.resume();
                self.queue.resume(now);
            }
            ModelStep::ShutDown { now: false } => {
                self.model.shut_down(false);
                self.queue.shut_down();
            }
            ModelStep::ShutDown { now: true } => {
                self.model.shut_down(true);
                self.queue.shut_down_now();
            }
        }
    }

    fn get(&mut self) {
        self.model.expire();
        let next = self.model.next();
        let item = self.queue.get(self.now());
        assert_eq!(next, item.as_ref().map(|item| item.key));
        let (Some(key), Some(item)) = (next, item) else {
            return;
        };
        let due = self.model.dirty.remove(&key).unwrap();
        self.model.in_drain.remove(&key);
        let before = self.model.processing.insert(key, self.model.now);
        assert_eq!(before, None, "one worker per key");
        assert_eq!(item.waited, Duration::from_secs(self.model.now - due.since));
        assert_eq!(item.priority, due.priority);
        assert_eq!(item.payload, due.payload);
        let all = due.lanes.contains(&None);
        assert_eq!(item.lanes.is_all(), all);
        assert!(all || ids(&item.lanes) == due.lanes);
        for (lane, count) in &item.failures {
            let known = self
                .model
                .failures
                .get(&(key, ids(&Lanes::from(*lane)).pop_first().unwrap()));
            assert_eq!(known, Some(count));
        }
        self.holding.push(item);
    }

    fn done(&mut self, which: usize, verdicts: &[(u32, u8, u64)]) {
        if self.holding.is_empty() {
            return;
        }
        let item = self.holding.remove(which % self.holding.len());
        let (key, now) = (item.key, self.now());
        self.model.end_delays_of(key);
        self.model.processing.remove(&key);
        let due = self.model.dirty.get_mut(&key);
        let meanwhile = due.map(|due| std::mem::take(&mut due.payload));
        let mut given = Vec::new();
        for (lane, kind, after) in verdicts {
            let payload = vec![self.token()];
            let delay = Duration::from_secs(*after);
            // Turns are modelled for one priority.
            let asked = (after % 3 == 1 && self.model.turns.is_none()).then_some(Priority::High);
            let priority = asked.unwrap_or(item.priority);
            let verdict = match kind {
                0 => Verdict::Done,
                1 => Verdict::Again {
                    after: delay,
                    payload: payload.clone(),
                    priority: asked,
                },
                2 => Verdict::Failed {
                    after: delay,
                    payload: payload.clone(),
                    priority: asked,
                },
                _ => Verdict::Postponed {
                    after: delay,
                    payload: payload.clone(),
                    priority: asked,
                },
            };
            given.push((LaneId::new(*lane), verdict));
            let lane = Some(*lane);
            match kind {
                2 => *self.model.failures.entry((key, lane)).or_default() += 1,
                3 => {}
                _ => drop(self.model.failures.remove(&(key, lane))),
            }
            if *kind != 0 && !self.model.shutting_down {
                if *after == 0 {
                    self.model
                        .mark_dirty(key, &[lane].into(), (priority, payload));
                } else {
                    let at = self.model.now + after;
                    let parcel = (priority, payload);
                    self.model.delay((key, lane), at, parcel);
                }
            }
        }
        if let Some(due) = self.model.dirty.get_mut(&key) {
            due.payload.extend(meanwhile.unwrap_or_default());
        }
        self.model.settle(key);
        self.queue.done(item.slot, item.priority, given, now);
    }

    fn check_counts(&mut self) {
        self.model.expire();
        let now = self.now();
        assert_eq!(self.queue.has_ready(now), !self.model.line.is_empty());
        let stats = self.queue.stats(now);
        assert_eq!(self.queue.len(), self.model.line.len());
        let model = &self.model;
        let dirty = model
            .processing
            .keys()
            .filter(|key| model.dirty.contains_key(key))
            .count();
        assert_eq!(stats.depth(), model.line.len() + dirty);
        assert_eq!(
            (stats.processing, stats.adds),
            (self.holding.len(), model.adds)
        );
        let ages = || model.processing.values().map(|since| model.now - since);
        assert_eq!(stats.unfinished, Duration::from_secs(ages().sum()));
        assert_eq!(
            stats.longest,
            Duration::from_secs(ages().max().unwrap_or(0))
        );
        let ready_or_processing = |key: &u8| {
            model.processing.contains_key(key) || model.line.iter().any(|(k, _)| k == key)
        };
        let mut delayed: BTreeSet<u8> = model.delayed.keys().map(|(key, _)| *key).collect();
        delayed.extend(&model.deferred);
        delayed.retain(|key| !ready_or_processing(key));
        assert_eq!(stats.delayed, delayed.len());
        assert_eq!(self.queue.deadlines.len(), model.delayed.len());
        for memory in self.queue.memory() {
            assert!(memory.entries <= memory.bound, "{memory:?}");
        }
        let ends = model.draining || model.shutting_down;
        let finished = ends && model.line.is_empty() && model.processing.is_empty();
        assert_eq!(self.queue.is_finished(), finished);
        if let Some((at, _)) = self.model.next_deadline() {
            let at = self.origin + Duration::from_secs(at);
            assert_eq!(self.queue.next_deadline(), Some(at));
        }
    }

    /// A snapshot shows every key, and a limited one the first of them.
    fn check_snapshot(&mut self) {
        let now = self.now();
        let all = self.queue.snapshot(usize::MAX, now);
        let model = &self.model;
        assert_eq!(all.keys.len(), all.total);
        for seen in &all.keys {
            let in_line = model.line.iter().any(|(key, _)| *key == seen.key);
            let state = if in_line {
                KeyState::Ready
            } else if model.processing.contains_key(&seen.key) {
                KeyState::Processing
            } else if model.deferred.contains(&seen.key) || model.is_overdue(seen.key) {
                KeyState::Deferred
            } else {
                KeyState::Delayed
            };
            assert_eq!(seen.state, state, "{}", seen.key);
            let due = seen.lanes.iter().filter(|lane| lane.due_in.is_zero());
            let due: BTreeSet<Lane> = due.flat_map(|lane| ids(&lane.lane.into())).collect();
            let dirty = model.dirty.get(&seen.key).map(|due| &due.lanes);
            if let Some(dirty) = dirty.filter(|dirty| !dirty.contains(&None)) {
                assert!(due.is_superset(dirty), "{due:?} {dirty:?}");
            }
            for (lane, count) in &seen.failures {
                let lane = ids(&(*lane).into()).pop_first().unwrap();
                assert_eq!(model.failures.get(&(seen.key, lane)), Some(count));
            }
        }
        let ready = all
            .keys
            .iter()
            .take_while(|seen| seen.state == KeyState::Ready);
        let ready: Vec<u8> = ready.map(|seen| seen.key).collect();
        assert_eq!(ready.len(), model.line.len());
        match &model.turns {
            // Sorting is stable: within a priority they keep the order of their arrival.
            None => {
                let mut line = model.line.clone();
                line.sort_by_key(|(_, priority)| std::cmp::Reverse(*priority));
                assert!(line.iter().map(|(key, _)| key).eq(&ready));
            }
            Some(turns) => {
                let next: Vec<u8> = ready
                    .iter()
                    .take(turns.len())
                    .map(|key| group(*key))
                    .collect();
                assert_eq!(&next, turns);
            }
        }
        for seen in all.keys {
            let one = self.queue.queued(&seen.key, now).unwrap();
            assert_eq!((one.state, one.lanes), (seen.state, seen.lanes));
        }
        let first = self.queue.snapshot(2, now);
        assert_eq!(first.keys.len(), first.total.min(2));
    }

    /// Lets everything run to its end; nothing may be left.
    fn drain(&mut self) {
        while let Some(item) = self.holding.pop() {
            self.holding.push(item);
            self.done(0, &[]);
        }
        self.step(&ModelStep::Resume);
        self.model.now += 1_000;
        loop {
            self.get();
            if self.holding.is_empty() {
                break;
            }
            self.done(0, &[]);
        }
        assert!(self.model.dirty.is_empty() && self.model.delayed.is_empty());
        assert_eq!(self.queue.entries.len(), 0);
    }
}

fn ids(lanes: &Lanes) -> BTreeSet<Lane> {
    let number = |lane| (0..8).find(|number| LaneId::new(*number) == lane);
    lanes.ids().map(number).collect()
}

fn priority() -> impl Strategy<Value = Priority> {
    prop_oneof![
        Just(Priority::Low),
        Just(Priority::Normal),
        Just(Priority::High)
    ]
}

fn step() -> impl Strategy<Value = ModelStep> {
    let lanes = prop::collection::btree_set(0_u32..4, 0..3);
    let verdicts = prop::collection::btree_map(0_u32..4, (0_u8..4, 0_u64..6), 0..4);
    prop_oneof![
        8 => (0_u8..5, lanes, prop_oneof![Just(0), 1_u64..8], priority()).prop_map(
            |(key, lanes, after, priority)| ModelStep::Add { key, lanes, after, priority }
        ),
        6 => Just(ModelStep::Get),
        5 => (any::<usize>(), verdicts).prop_map(|(which, verdicts)| ModelStep::Done {
            which,
            verdicts: verdicts.into_iter().map(|(lane, (kind, after))| (lane, kind, after)).collect(),
        }),
        1 => any::<usize>().prop_map(|which| ModelStep::GiveBack { which }),
        3 => (0_u64..4).prop_map(ModelStep::Advance),
        1 => Just(ModelStep::Advance(20)),
        1 => Just(ModelStep::Drain),
        1 => Just(ModelStep::Resume),
    ]
}

fn run(mut pair: Pair, steps: &[ModelStep], shut_down: Option<(usize, bool)>) {
    for (at, step) in steps.iter().enumerate() {
        if let Some((_, now)) = shut_down.filter(|(when, _)| *when == at) {
            pair.step(&ModelStep::ShutDown { now });
        }
        pair.step(step);
        pair.check_counts();
        pair.check_snapshot();
    }
    pair.drain();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8 * ProptestConfig::default().cases, ..Default::default() })]
    #[test]
    fn the_queue_does_what_the_naive_reference_does(
        steps in prop::collection::vec(step(), 1..80),
        shut_down in prop::option::of((0_usize..80, any::<bool>())),
    ) {
        run(Pair::new(false), &steps, shut_down);
    }

    #[test]
    fn a_fair_queue_does_what_the_naive_reference_does(
        steps in prop::collection::vec(step(), 1..80),
        shut_down in prop::option::of((0_usize..80, any::<bool>())),
    ) {
        run(Pair::new(true), &steps, shut_down);
    }
}
