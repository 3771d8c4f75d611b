//! kube-runtime's queue: its scheduler as a stream, and the applier that runs reconcilers from it.
//!
//! A scheduler has one consumer and is fed by a channel; in the cases with several workers the one
//! consumer does all the work, as in kube-runtime's own `Controller`.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::channel::mpsc;
use futures::future::ready;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::controller::{Action, Config, applier as run_applier};
use kube::runtime::reflector::{ObjectRef, store};
use kube::runtime::scheduler::{ScheduleRequest, Scheduler, scheduler};
use kube::runtime::watcher::Event;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::load::{Delayed, Key, TASKS, one_thread as one_thread_runtime, share, two_threads};

/// The delay of the key that ends a run; timers have a granularity of 1 ms.
const LAST: Duration = Duration::from_millis(5);

/// The name of that key.
const LAST_NAME: &str = "the last one";

type Requests = mpsc::UnboundedReceiver<ScheduleRequest<Key>>;

fn request(message: Key, after: Duration) -> ScheduleRequest<Key> {
    let run_at = Instant::now() + after;
    ScheduleRequest { message, run_at }
}

fn queue() -> (
    mpsc::UnboundedSender<ScheduleRequest<Key>>,
    Scheduler<Key, Requests>,
) {
    let (sender, receiver) = mpsc::unbounded();
    (sender, scheduler(receiver))
}

/// Sends all keys, then takes them out of the scheduler.
pub(super) fn one_thread(keys: Vec<Key>) -> impl FnOnce() {
    let runtime = one_thread_runtime();
    move || {
        runtime.block_on(async {
            let (sender, queue) = queue();
            for key in &keys {
                let sent = sender.unbounded_send(request(Key::clone(key), Duration::ZERO));
                sent.expect("the receiver lives");
            }
            let count = keys.len();
            assert_eq!(queue.take(count).count().await, count);
            // The scheduler ends, and forgets what waits, when its last sender goes.
            drop(sender);
        });
    }
}

/// Producers send while the one consumer takes.
pub(super) fn many(keys: Vec<Key>, n: usize) -> impl FnOnce() {
    let runtime = two_threads();
    let keys = Arc::new(keys);
    move || {
        runtime.block_on(async {
            let (sender, queue) = queue();
            let mut worker = JoinSet::new();
            let last: Key = LAST_NAME.into();
            let before = Key::clone(&last);
            worker.spawn(queue.take_while(move |key| ready(*key != before)).count());
            let mut producers = JoinSet::new();
            for producer in 0..TASKS {
                let (sender, adds) = (sender.clone(), share(&keys, n, producer));
                producers.spawn(async move {
                    for (at, key) in adds.enumerate() {
                        let sent = sender.unbounded_send(request(key, Duration::ZERO));
                        sent.expect("the receiver lives");
                        if at % 1024 == 0 {
                            tokio::task::yield_now().await;
                        }
                    }
                });
            }
            producers.join_all().await;
            // What is due first comes first, so this comes after all others.
            let sent = sender.unbounded_send(request(last, LAST));
            sent.expect("the receiver lives");
            let taken = worker.join_all().await.remove(0);
            assert!(taken >= keys.len().min(n));
        });
    }
}

/// Sends all keys delayed, and notes when each came.
pub(super) fn delayed(delayed: &Arc<Delayed>) {
    let runtime = two_threads();
    runtime.block_on(async {
        let (sender, queue) = queue();
        let mut worker = JoinSet::new();
        let noted = Arc::clone(delayed);
        worker.spawn(async move {
            let mut taken = queue.take(noted.adds.len());
            while let Some(key) = taken.next().await {
                noted.came(&key);
            }
        });
        let add = |key, delay| {
            let sent = sender.unbounded_send(request(key, delay));
            sent.expect("the receiver lives");
        };
        delayed.feed(add).await;
        worker.join_all().await;
    });
}

/// Lets keys wait in the scheduler.
pub(super) fn wait(keys: Vec<Key>) -> Scheduler<Key, Requests> {
    let runtime = one_thread_runtime();
    runtime.block_on(async {
        let (sender, mut queue) = queue();
        let count = keys.len();
        for key in keys {
            // An hour from now, so that what was sent stays in the scheduler when it is polled.
            let sent = sender.unbounded_send(request(key, Duration::from_secs(3600)));
            sent.expect("the receiver lives");
        }
        // With its last sender the scheduler would end when it is polled next.
        std::mem::forget(sender);
        let held = tokio::time::timeout(Duration::from_millis(10), pin!(&mut queue).next()).await;
        assert!(held.is_err(), "{count} keys wait");
        queue
    })
}

/// Reconciles each key with the applier, whose store has every object.
pub(super) fn applier(keys: &[Key], n: usize) -> impl FnOnce() + use<> {
    let runtime = one_thread_runtime();
    let (reader, mut writer) = store::store::<ConfigMap>();
    // The applier skips keys whose object its store does not have.
    let names: Vec<(String, String)> = keys
        .iter()
        .filter_map(|key| key.split_once('/'))
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .collect();
    writer.apply_watcher_event(&Event::Init);
    for (namespace, name) in &names {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.clone());
        object.metadata.namespace = Some(namespace.clone());
        writer.apply_watcher_event(&Event::InitApply(object));
    }
    let mut last = ConfigMap::default();
    last.metadata.name = Some(LAST_NAME.to_owned());
    writer.apply_watcher_event(&Event::InitApply(last));
    writer.apply_watcher_event(&Event::InitDone);
    let queue: Vec<ObjectRef<ConfigMap>> = (0..n)
        .map(|at| {
            let (namespace, name) = &names[at % names.len()];
            ObjectRef::new(name).within(namespace)
        })
        .collect();
    move || {
        // The applier ends, and forgets what waits, when its queue does.
        let last = futures::stream::once(async {
            // It runs what waits in an order of its own.
            // The wait is part of the wall time, but small beside the run.
            tokio::time::sleep(20 * LAST).await;
            ObjectRef::new(LAST_NAME)
        });
        let queue = futures::stream::iter(queue)
            .chain(last)
            .chain(futures::stream::pending())
            .map(Ok::<_, std::convert::Infallible>);
        let reconcile = |_: Arc<ConfigMap>, _: Arc<()>| {
            futures::future::ok::<Action, std::convert::Infallible>(Action::await_change())
        };
        let policy =
            |_: Arc<ConfigMap>, _: &std::convert::Infallible, _: Arc<()>| Action::await_change();
        runtime.block_on(async {
            let done = run_applier(
                reconcile,
                policy,
                Arc::new(()),
                reader,
                queue,
                Config::default(),
            );
            let wanted = names.len().min(n);
            let (mut others, mut last_is_done) = (0, false);
            let all = done.take_while(|done| {
                match done {
                    Ok((object, _)) if object.name == LAST_NAME => last_is_done = true,
                    _ => others += 1,
                }
                ready(!last_is_done || others < wanted)
            });
            all.for_each(|_| ready(())).await;
        });
        drop(writer);
    }
}
