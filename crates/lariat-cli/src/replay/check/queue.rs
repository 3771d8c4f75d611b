//! The steps of a recorded queue, repeated by today's queue.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use lariat_flight::{LaneVerdict, Queued, Urgency, VerdictType};
use lariat_queue::{Add, Ageing, Item, LaneId, Lanes, Priority, QueueCore, Verdict};
use parking_lot::Mutex;

use super::outcome::Outcome;

type Key = Arc<str>;

/// Today's queue; `None` until the state of the recorded one is known.
#[derive(Default)]
pub(super) struct Queue {
    known: Option<Known>,
}

struct Known {
    core: QueueCore<Key, ()>,
    held: HashMap<Key, Item<Key, ()>>,
    /// The groups of the keys that were added, as they were recorded.
    groups: Arc<Mutex<HashMap<Key, u64>>>,
}

impl Known {
    fn new(ageing: Ageing, fair: bool) -> Self {
        let groups: Arc<Mutex<HashMap<Key, u64>>> = Arc::default();
        let known = Arc::clone(&groups);
        // The function that chose the groups is code of the program, so the recorded choices are used.
        let group = move |key: &Key| known.lock().get(key).copied().unwrap_or(0);
        let core = if fair {
            QueueCore::fair(ageing, group)
        } else {
            QueueCore::new(ageing)
        };
        Self {
            core,
            held: HashMap::new(),
            groups,
        }
    }
}

impl Queue {
    /// Takes a step; dequeues are compared.
    pub(super) fn take(&mut self, step: &Queued<'_>, at: Instant) -> Outcome {
        if let Queued::Opened {
            threshold,
            share,
            fair,
        }
        | Queued::Emptied {
            threshold,
            share,
            fair,
        } = step
        {
            self.known = Some(Known::new(Ageing::new(*threshold, *share), *fair));
            return Outcome::Taken;
        }
        match &mut self.known {
            Some(known) => known.take(step, at),
            None if matches!(step, Queued::Dequeued { .. }) => Outcome::Unknown,
            None => Outcome::Taken,
        }
    }
}

impl Known {
    fn take(&mut self, step: &Queued<'_>, at: Instant) -> Outcome {
        let core = &mut self.core;
        match step {
            Queued::Opened { .. } | Queued::Emptied { .. } => {}
            Queued::Added { .. } => self.add(step, at),
            Queued::Dequeued {
                key,
                lanes,
                priority,
                ..
            } => return self.dequeue(key, lanes, *priority, at),
            Queued::Finished { key, verdicts } => match self.held.remove(*key) {
                Some(taken) => {
                    let verdicts = verdicts.iter().map(verdict);
                    core.done(taken.slot, taken.priority, verdicts, at);
                }
                None => return not_held(key),
            },
            Queued::GivenBack { key } => match self.held.remove(*key) {
                Some(taken) => core.give_back(taken, at),
                None => return not_held(key),
            },
            // Reading figures lets delays end.
            Queued::Released {} => drop(core.stats(at)),
            Queued::DrainBegan {} => core.drain(at),
            Queued::DrainEnded {} => core.resume(),
            Queued::ShutDown { now: true } => core.shut_down_now(),
            Queued::ShutDown { now: false } => core.shut_down(),
            Queued::Reopened {} => core.reopen(),
            Queued::Forgot { key, lane } => core.forget(&Key::from(*key), lane_id(*lane)),
        }
        Outcome::Taken
    }

    fn add(&mut self, step: &Queued<'_>, at: Instant) {
        let Queued::Added {
            key,
            lanes,
            after,
            kept,
            priority,
            failures,
            limited,
            group,
            ..
        } = step
        else {
            return;
        };
        let key = Key::from(*key);
        if let Some(group) = group {
            self.groups.lock().insert(Arc::clone(&key), *group);
        }
        let lanes: Lanes = lanes.iter().map(|lane| lane_id(*lane)).collect();
        let mut add = Add::after(*after)
            .lanes(lanes)
            .failures(*failures)
            .priority(level(*priority));
        if *kept {
            add = add.kept();
        }
        match limited {
            // The limiter has a state, and may be the program's own; its recorded delay stands for it.
            Some(limited) => self.core.add_failed(key, add, |_| *limited, at),
            None => self.core.add(key, add, at),
        }
    }

    fn dequeue(&mut self, key: &str, lanes: &[u32], priority: Urgency, at: Instant) -> Outcome {
        let recorded = described(key, lanes, level(priority));
        // The recorded time makes the same delays end as then.
        let Some(taken) = self.core.get(at) else {
            return Outcome::Differs(recorded, "nothing is dequeued".to_owned());
        };
        let due: Vec<u32> = taken.lanes.ids().map(LaneId::number).collect();
        let is_same = *taken.key == *key && due == lanes && taken.priority == level(priority);
        if !is_same {
            let today = described(&taken.key, &due, taken.priority);
            return Outcome::Differs(recorded, today);
        }
        self.held.insert(Arc::clone(&taken.key), taken);
        Outcome::Same
    }
}

fn not_held(key: &str) -> Outcome {
    let recorded = format!("{key} came back from a worker");
    Outcome::Differs(recorded, "no worker has the key".to_owned())
}

fn described(key: &str, lanes: &[u32], priority: Priority) -> String {
    let mut text = format!("{key} is dequeued, {}, for ", priority.as_str());
    match lanes {
        // The number under which a recording writes `LaneId::WHOLE`.
        [u32::MAX] => text.push_str("all handlers"),
        lanes => {
            let _ = write!(text, "lanes {lanes:?}");
        }
    }
    text
}

fn lane_id(lane: u32) -> LaneId {
    match lane {
        u32::MAX => LaneId::WHOLE,
        lane => LaneId::new(lane),
    }
}

fn level(urgency: Urgency) -> Priority {
    match urgency {
        Urgency::Low => Priority::Low,
        Urgency::Normal => Priority::Normal,
        Urgency::High => Priority::High,
    }
}

fn verdict(verdict: &LaneVerdict) -> (LaneId, Verdict<()>) {
    let LaneVerdict {
        lane,
        what,
        after,
        priority,
    } = *verdict;
    let (payload, priority) = ((), priority.map(level));
    let verdict = match what {
        VerdictType::Done => Verdict::Done,
        VerdictType::Again => Verdict::Again {
            after,
            payload,
            priority,
        },
        VerdictType::Failed => Verdict::Failed {
            after,
            payload,
            priority,
        },
        VerdictType::Held => Verdict::Postponed {
            after,
            payload,
            priority,
        },
    };
    (lane_id(lane), verdict)
}
