//! Rest: when faults have ended and nothing happens, nothing waits, and what nobody uses is gone.

use std::collections::{BTreeMap, BTreeSet};

use lariat_cache::Phase;
use lariat_controller::{ControllerStatus, Ended, HandlerStatus};
use lariat_core::{Gvk, ObjectKey};

use super::lives::Lives;
use super::{Check, Findings, Rest};
use crate::activity::{Act, Activity};
use crate::event::{Event, HandlerId, Moment, Next, Subscriber};
use crate::oracle::Oracle;

/// At rest no key is in line, with a worker, delayed, held, or waiting for a handler, no handler waits for caches, and
/// no key counts as one in a hot loop (the sentinel forgets it after ten minutes).
///
/// Keys come again for ever where a handler asks at the end of each call to be called again (`Outcome::requeue_after`),
/// or fails each time: of such a kind no more keys are in the queue than keys had calls that ended so. Some of them may
/// be due at the moment of the look. They are in line only while each worker has a key.
#[derive(Default)]
pub(super) struct EmptyQueues {
    /// The kinds of which a handler was to be called again after the last call for some key.
    again: BTreeMap<(HandlerId, ObjectKey), Gvk>,
}

impl Check for EmptyQueues {
    fn name(&self) -> &'static str {
        "queues are empty at rest"
    }

    fn saw(&mut self, _: &Oracle, _: &Moment, event: &Event) -> Findings {
        match event {
            Event::Ended {
                handler, key, next, ..
            } => {
                let call = (handler.clone(), key.clone());
                if matches!(next, Next::Again(_) | Next::Retry(_)) {
                    self.again.insert(call, handler.kind.clone());
                } else {
                    self.again.remove(&call);
                }
            }
            Event::Acted(activity) => {
                if let Some(handler) = activity.deregistered() {
                    self.again.retain(|(of, _), _| *of != handler);
                }
            }
            Event::Life { process, life, .. } => self
                .again
                .retain(|(of, _), _| of.process != *process || of.life != *life),
            _ => {}
        }
        Vec::new()
    }

    fn at_rest(&mut self, oracle: &Oracle, rest: &Rest<'_>) -> Findings {
        let controllers = rest.controllers.iter();
        let found = controllers.flat_map(|controller| {
            let kind = &controller.cache.gvk;
            let asked = self.again.iter().filter(|((of, _), again)| {
                of.process == *rest.process && of.life == rest.life && *again == kind
            });
            let keys: BTreeSet<&ObjectKey> = asked.map(|((_, key), _)| key).collect();
            let most = keys.len().min(oracle.all(kind).count());
            left(controller, most)
        });
        found.collect()
    }
}

/// Says what is left of a controller, of whose keys so many come again for ever.
fn left(controller: &ControllerStatus, again: usize) -> Findings {
    let kind = controller.cache.gvk.kind();
    let mut counts = Keys::of(controller).left(again);
    counts.push((controller.circles.len(), "in hot loops"));
    let keys = counts.iter().filter(|(count, _)| *count > 0);
    let mut found: Findings = keys
        .map(|(count, what)| format!("{count} keys of {kind} are {what}"))
        .collect();
    for handler in &controller.handlers {
        if handler.waiting > 0 || handler.is_held {
            found.push(format!(
                "{} keys of {kind} wait for {}, which is held: {}",
                handler.waiting, handler.name, handler.is_held
            ));
        }
    }
    found
}

/// The keys of a queue; each is in one place.
#[derive(Debug, Clone, Copy)]
struct Keys {
    in_line: usize,
    held: usize,
    delayed: usize,
    workers: usize,
}

impl Keys {
    fn of(controller: &ControllerStatus) -> Self {
        let queue = &controller.queue;
        Self {
            in_line: queue.depth().saturating_sub(queue.due_again),
            held: queue.held,
            delayed: queue.delayed,
            workers: controller.workers.unwrap_or(0),
        }
    }

    /// Returns how many keys are where they should not be, if so many come again for ever.
    fn left(self, again: usize) -> Vec<(usize, &'static str)> {
        if self.in_line + self.held + self.delayed > again {
            return vec![
                (self.in_line, "in line"),
                (self.held, "with workers"),
                (self.delayed, "delayed"),
            ];
        }
        if self.held < self.workers {
            return vec![(self.in_line, "in line, while a worker has none")];
        }
        Vec::new()
    }
}

/// At rest the counters of a handler are the calls that were seen: successes, panics, and as many failures at least
/// (a handler also fails unseen, where the content it needs cannot be fetched).
#[derive(Default)]
pub(super) struct Counters {
    seen: BTreeMap<HandlerId, Seen>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Seen {
    succeeded: u64,
    failed: u64,
    panicked: u64,
}

impl Check for Counters {
    fn name(&self) -> &'static str {
        "counters are the calls that were seen"
    }

    fn saw(&mut self, _: &Oracle, _: &Moment, event: &Event) -> Findings {
        match event {
            Event::Ended {
                handler,
                result,
                next,
                ..
            } => {
                let seen = self.seen.entry(handler.clone()).or_default();
                match (result, next) {
                    (Some(Ok(())), _) => seen.succeeded += 1,
                    (Some(Err(_)), _) => seen.failed += 1,
                    (None, Next::Panicked) => seen.panicked += 1,
                    (None, _) => {}
                }
            }
            Event::Acted(activity) => {
                if let Some(handler) = activity.registered() {
                    self.seen.insert(handler, Seen::default());
                } else if let Some(handler) = activity.deregistered() {
                    self.seen.remove(&handler);
                }
            }
            Event::Life { process, life, .. } => self
                .seen
                .retain(|of, _| of.process != *process || of.life != *life),
            _ => {}
        }
        Vec::new()
    }

    fn at_rest(&mut self, _: &Oracle, rest: &Rest<'_>) -> Findings {
        let mut found = Vec::new();
        for controller in rest.controllers {
            let kind = &controller.cache.gvk;
            for handler in &controller.handlers {
                let id = rest.handler(kind, &handler.name);
                let seen = self.seen.get(&id).copied().unwrap_or_default();
                if let Some(counted) = differs(seen, handler) {
                    found.push(format!(
                        "{} of {}: {seen:?}, but counted are {counted:?}",
                        handler.name,
                        kind.kind()
                    ));
                }
            }
        }
        found
    }
}

/// Returns what a handler's status counts, if that is not what was seen.
fn differs(seen: Seen, status: &HandlerStatus) -> Option<Seen> {
    let counted = Seen {
        succeeded: status.ended(Ended::Done) + status.ended(Ended::Requeued),
        failed: status.failures - status.panics + status.ended(Ended::Ignored),
        panicked: status.panics,
    };
    let is_same = counted.succeeded == seen.succeeded
        && counted.panicked == seen.panicked
        && counted.failed >= seen.failed;
    (!is_same).then_some(counted)
}

/// At rest every kind in use is filled and watched, and a kind nobody uses is gone with its memory: there is no cache
/// without a handler or a subscription, and no controller without a handler.
///
/// The bounds, all far shorter than the rest: a kind that is served is found within 2 s, a watch is opened again within
/// 30 s and its jitter, a controller without handlers ends after a minute, and a cache without users after the factory's
/// `idle_grace` (a minute at most in the trial). Which kinds are used is known of programs that report their handlers.
#[derive(Default)]
pub(super) struct KindsInUse {
    lives: Lives,
    subscribed: BTreeSet<Subscriber>,
}

impl Check for KindsInUse {
    fn name(&self) -> &'static str {
        "kinds in use are watched, others are gone"
    }

    fn saw(&mut self, _: &Oracle, moment: &Moment, event: &Event) -> Findings {
        self.lives.saw(moment, event);
        match event {
            Event::Acted(Activity {
                what: Act::Subscribed(subscriber),
                ..
            }) => {
                self.subscribed.insert(subscriber.clone());
            }
            Event::Unsubscribed(subscriber) => {
                self.subscribed.remove(subscriber);
            }
            Event::Life { process, life, .. } => self
                .subscribed
                .retain(|of| of.process != *process || of.life != *life),
            _ => {}
        }
        Vec::new()
    }

    fn at_rest(&mut self, _: &Oracle, rest: &Rest<'_>) -> Findings {
        let mut found = Vec::new();
        for cache in rest
            .caches
            .iter()
            .filter(|each| rest.served.contains(&each.gvk))
        {
            let kind = cache.gvk.kind();
            if cache.phase != Phase::Synced {
                found.push(format!("{kind} is {}, but it is served", cache.phase));
            }
            if cache.is_stale() {
                found.push(format!("{kind} has no watch since {:?}", cache.interrupted));
            }
        }
        let Some(state) = self.lives.of(rest.process, rest.life) else {
            return found;
        };
        if state.runs.is_none() {
            return found;
        }
        for cache in rest.caches {
            let is_handled = state.handlers_of(&cache.gvk).next().is_some();
            let is_subscribed = self.subscribed.iter().any(|of| {
                of.process == *rest.process && of.life == rest.life && of.kind == cache.gvk
            });
            if !is_handled && !is_subscribed {
                let (kind, objects) = (cache.gvk.kind(), cache.objects);
                found.push(format!(
                    "nobody uses {kind}, and {objects} objects are kept"
                ));
            }
        }
        let unused = rest
            .controllers
            .iter()
            .filter(|each| each.handlers.is_empty());
        found.extend(unused.map(|each| format!("{} has no handler", each.cache.gvk.kind())));
        found
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use lariat_cache::Metadata;
    use lariat_cluster::Cluster;
    use lariat_controller::{Context, Outcome, SharedController, SharedControllerFactory};
    use tokio::time;

    use super::*;
    use crate::check::testing::{Story, key, kind};

    /// A factory that runs, with one handler, `h`, and what it is asked to do.
    async fn running(cluster: &Cluster) -> (SharedControllerFactory, SharedController<Metadata>) {
        let factory = SharedControllerFactory::builder(cluster.client()).build();
        let config_maps = factory.for_kind(kind()).view::<Metadata>();
        let handler = |_: Context<Metadata>| async { Ok(Outcome::done()) };
        let registered = config_maps.register_handler("h", handler);
        registered.expect("the name is free");
        factory.start(1).await.expect("the kind is served");
        (factory, config_maps)
    }

    /// What a checker finds at rest, after some story and a wish of the program.
    async fn found<C: Check>(
        mut story: Story<C>,
        wish: impl FnOnce(&SharedController<Metadata>, &ObjectKey),
    ) -> usize {
        let cluster = Cluster::builder().start().await;
        let cluster = cluster.expect("a cluster without a socket starts");
        let (factory, config_maps) = running(&cluster).await;
        wish(&config_maps, &key("a"));
        time::sleep(Duration::from_secs(1)).await;
        let rest = Rest {
            now: Duration::from_secs(1200),
            served: &[kind()],
            process: &Arc::from("p"),
            life: 0,
            factories: &[],
            remembered: &[],
            controllers: &factory.status(),
            caches: &factory.caches().status(),
        };
        let found = story.check.at_rest(&story.oracle, &rest).len();
        factory.stop().await.expect("nothing is under way");
        found
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_is_left_is_found() {
        let nothing = found(Story::of(EmptyQueues::default()), |_, _| {}).await;
        let hour = Duration::from_secs(3600);
        let delayed = found(Story::of(EmptyQueues::default()), |controller, key| {
            controller.enqueue_after(key, hour);
        });
        assert_eq!((nothing, delayed.await), (0, 1));
    }

    #[test]
    fn a_key_that_comes_again_is_in_line_only_while_no_worker_is_free() {
        let keys = Keys {
            in_line: 1,
            held: 1,
            delayed: 1,
            workers: 1,
        };
        let found = |keys: Keys, again| keys.left(again).iter().map(|(count, _)| count).sum();
        let counts: [usize; 4] = [
            found(keys, 3),
            // One more than comes again.
            found(keys, 2),
            // The second worker should have taken it.
            found(Keys { workers: 2, ..keys }, 3),
            // A controller that does not run hands nothing out.
            found(Keys { workers: 0, ..keys }, 0),
        ];
        assert_eq!(counts, [0, 3, 1, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_not_seen_or_not_counted_is_found() {
        let seen = || {
            let mut story = Story::of(Counters::default());
            story.calls(0, "h", "a", lariat_core::Cause::Resync);
            story
        };
        let enqueue = |controller: &SharedController<Metadata>, key: &ObjectKey| {
            controller.enqueue(key);
        };
        assert_eq!(found(seen(), enqueue).await, 0);
        assert_eq!(found(seen(), |_, _| {}).await, 1);
        assert_eq!(found(Story::of(Counters::default()), enqueue).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_that_nobody_uses_is_found() {
        let story = || {
            let mut story = Story::of(KindsInUse::default());
            story.starts(0);
            story
        };
        let mut used = story();
        used.registered("h", None);
        assert_eq!(found(used, |_, _| {}).await, 0);
        assert_eq!(found(story(), |_, _| {}).await, 1);
    }
}
