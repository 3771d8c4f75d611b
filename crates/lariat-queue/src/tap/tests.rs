//! A core that is given the steps of a queue does what the queue did.

use std::sync::Arc;

use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::time;

use super::*;
use crate::{Ageing, QueueBuilder, QueueCore, WorkQueue};

type Key = u8;

/// A step that was seen, to be taken again.
#[derive(Debug, Clone)]
enum Seen {
    Add(Key, Add, Option<Duration>),
    Release,
    Take(Key, Lanes, Priority, Duration),
    Finish(Key, Vec<(LaneId, Verdict<()>)>),
    Emptied,
    GiveBack(Key),
    Drain,
    Resume,
    ShutDown(bool),
    Reopen,
    Forget(Key, LaneId),
}

#[derive(Clone, Default)]
struct Seer(Arc<Mutex<Vec<(Instant, Seen)>>>);

impl Tap<Key, ()> for Seer {
    fn step(&self, at: Instant, step: &QueueStep<'_, Key, ()>) {
        let seen = match step {
            QueueStep::Add {
                key,
                request,
                limited,
                group,
            } => {
                assert!(group.is_none_or(|group| group == u64::from(**key % 3)));
                let add = Add {
                    lanes: request.lanes.clone(),
                    after: request.after,
                    kept: request.kept,
                    priority: request.priority,
                    failures: request.failures,
                    payload: (),
                };
                Seen::Add(**key, add, *limited)
            }
            QueueStep::Release => Seen::Release,
            QueueStep::Get(item) => {
                Seen::Take(item.key, item.lanes.clone(), item.priority, item.waited)
            }
            QueueStep::Done { key, verdicts } => Seen::Finish(**key, verdicts.to_vec()),
            QueueStep::Emptied => Seen::Emptied,
            QueueStep::GiveBack { key } => Seen::GiveBack(**key),
            QueueStep::Drain => Seen::Drain,
            QueueStep::Resume => Seen::Resume,
            QueueStep::ShutDown { now } => Seen::ShutDown(*now),
            QueueStep::Reopen => Seen::Reopen,
            QueueStep::Forget { key, lane } => Seen::Forget(**key, *lane),
        };
        self.0.lock().push((at, seen));
    }
}

/// What a program does with a queue.
#[derive(Debug, Clone)]
enum Action {
    Add(Key, Add),
    AddAll(Vec<(Key, Add)>),
    AddLimited(Key, Add),
    Take,
    /// Gives back one of the keys that are with workers.
    Finish(prop::sample::Index, Vec<(LaneId, Verdict<()>)>),
    GiveBack(prop::sample::Index),
    Stats,
    Drain,
    Resume,
    ShutDown(bool),
    Reopen,
    Forget(Key, LaneId),
    Wait(u64),
}

fn lane() -> impl Strategy<Value = LaneId> {
    prop_oneof![
        Just(LaneId::WHOLE),
        (0..3_u32).prop_map(LaneId::new),
        (0..3_u32).prop_map(LaneId::new)
    ]
}

fn priority() -> impl Strategy<Value = Priority> {
    prop::sample::select(Priority::ALL.to_vec())
}

fn delay() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(0), 1..3000_u64].prop_map(Duration::from_millis)
}

fn add() -> impl Strategy<Value = Add> {
    let lanes = prop::collection::vec(lane(), 0..3);
    let failures = prop_oneof![9 => Just(0), 1 => 1..4_u32];
    (lanes, delay(), any::<bool>(), priority(), failures).prop_map(
        |(lanes, after, kept, priority, failures)| Add {
            lanes: Lanes::from_iter(lanes),
            after,
            kept,
            priority,
            failures,
            payload: (),
        },
    )
}

fn verdict() -> impl Strategy<Value = Verdict<()>> {
    let again =
        (delay(), prop::option::of(priority()), 0..3).prop_map(|(after, priority, which)| {
            let payload = ();
            match which {
                0 => Verdict::Again {
                    after,
                    payload,
                    priority,
                },
                1 => Verdict::Failed {
                    after,
                    payload,
                    priority,
                },
                _ => Verdict::Postponed {
                    after,
                    payload,
                    priority,
                },
            }
        });
    prop_oneof![Just(Verdict::Done), again]
}

fn action() -> impl Strategy<Value = Action> {
    let key = || 0..8_u8;
    let verdicts = || prop::collection::vec((lane(), verdict()), 0..3);
    let index = any::<prop::sample::Index>;
    prop_oneof![
        8 => (key(), add()).prop_map(|(key, add)| Action::Add(key, add)),
        2 => prop::collection::vec((key(), add()), 0..4).prop_map(Action::AddAll),
        2 => (key(), add()).prop_map(|(key, add)| Action::AddLimited(key, add)),
        8 => Just(Action::Take),
        7 => (index(), verdicts()).prop_map(|(at, verdicts)| Action::Finish(at, verdicts)),
        1 => index().prop_map(Action::GiveBack),
        1 => Just(Action::Stats),
        1 => Just(Action::Drain),
        1 => Just(Action::Resume),
        1 => any::<bool>().prop_map(Action::ShutDown),
        2 => Just(Action::Reopen),
        1 => (key(), lane()).prop_map(|(key, lane)| Action::Forget(key, lane)),
        5 => (0..1500_u64).prop_map(Action::Wait),
    ]
}

/// Does all that with a queue; returns what its tap saw.
async fn seen(fair: bool, actions: Vec<Action>) -> Vec<(Instant, Seen)> {
    let seer = Seer::default();
    let mut builder = QueueBuilder::new().ageing(Ageing::new(Duration::from_millis(500), 3));
    if fair {
        builder = builder.fair_by(|key| u64::from(*key % 3));
    }
    let queue: WorkQueue<Key> = builder.build_tapped(seer.clone());
    let mut items = Vec::new();
    for action in actions {
        match action {
            Action::Add(key, add) => queue.add(key, add),
            Action::AddAll(adds) => queue.add_all(adds),
            Action::AddLimited(key, add) => queue.add_rate_limited(key, add),
            Action::Take => items.extend(queue.try_get()),
            Action::Finish(at, verdicts) if !items.is_empty() => {
                items.swap_remove(at.index(items.len())).done_with(verdicts);
            }
            Action::GiveBack(at) if !items.is_empty() => {
                drop(items.swap_remove(at.index(items.len())));
            }
            Action::Finish(..) | Action::GiveBack(_) => {}
            Action::Stats => drop(queue.stats()),
            Action::Drain => queue.drain(),
            Action::Resume => queue.resume(),
            Action::ShutDown(true) => queue.shut_down_now(),
            Action::ShutDown(false) => queue.shut_down(),
            Action::Reopen => queue.reopen(),
            Action::Forget(key, lane) => queue.forget(&key, lane),
            Action::Wait(millis) => time::advance(Duration::from_millis(millis)).await,
        }
    }
    let seen = seer.0.lock().clone();
    drop(items);
    seen
}

/// Takes the steps again with a new core, which is replaced whenever the queue was empty if `renews`.
fn check(fair: bool, seen: Vec<(Instant, Seen)>, renews: bool) {
    let make = || {
        let ageing = Ageing::new(Duration::from_millis(500), 3);
        if fair {
            QueueCore::<Key, ()>::fair(ageing, |key| u64::from(*key % 3))
        } else {
            QueueCore::new(ageing)
        }
    };
    let mut core = make();
    let mut items = std::collections::HashMap::new();
    for (at, step) in seen {
        match step {
            Seen::Add(key, add, None) => core.add(key, add, at),
            Seen::Add(key, add, Some(limited)) => core.add_failed(key, add, |_| limited, at),
            Seen::Release => drop(core.stats(at)),
            Seen::Take(key, lanes, priority, waited) => {
                let item = core.get(at).expect("the queue dequeued a key");
                let now = (item.key, &item.lanes, item.priority, item.waited);
                assert_eq!(now, (key, &lanes, priority, waited));
                items.insert(key, item);
            }
            Seen::Finish(key, verdicts) => {
                let item = items.remove(&key).expect("it was dequeued");
                core.done(item.slot, item.priority, verdicts, at);
            }
            Seen::GiveBack(key) => core.give_back(items.remove(&key).expect("as above"), at),
            Seen::Emptied if renews => core = make(),
            Seen::Emptied => assert!(core.is_like_new()),
            Seen::Drain => core.drain(at),
            Seen::Resume => core.resume(),
            Seen::ShutDown(true) => core.shut_down_now(),
            Seen::ShutDown(false) => core.shut_down(),
            Seen::Reopen => core.reopen(),
            Seen::Forget(key, lane) => core.forget(&key, lane),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_steps_of_a_queue_are_all_it_does(
        fair: bool,
        actions in prop::collection::vec(action(), 1..120),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let seen = runtime.unwrap().block_on(seen(fair, actions));
        check(fair, seen.clone(), false);
        check(fair, seen, true);
    }
}

/// A worker that waits is woken by a delay that ends.
///
/// What it is given is a step like any other.
#[tokio::test(start_paused = true)]
async fn dequeues_by_waiting_workers_are_seen() {
    let seer = Seer::default();
    let queue: WorkQueue<Key> = QueueBuilder::new().build_tapped(seer.clone());
    queue.add(1, Add::after(Duration::from_secs(5)));
    queue.get().await.expect("the queue is open").done();
    let seen = seer.0.lock().clone();
    assert!(
        matches!(
            &seen[..],
            [
                (_, Seen::Add(1, ..)),
                (_, Seen::Take(1, ..)),
                (_, Seen::Finish(1, _)),
                (_, Seen::Emptied)
            ]
        ),
        "{seen:?}"
    );
    check(false, seen, false);
}
