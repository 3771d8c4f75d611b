//! Handlers of a kind of which only some objects are cached with content.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::ContentFilter;
use lariat_cluster::faults::{Action, Rule};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time;

use crate::bench::{Bench, Calls, SECOND, key};

/// A cluster with `kept` and `other`, and a cache with the content of the objects that the set names.
struct Filtered {
    bench: Bench,
    calls: [Calls; 2],
    names: Arc<Mutex<BTreeSet<&'static str>>>,
    changed: watch::Sender<u64>,
}

impl Filtered {
    async fn begin() -> Self {
        let names = Arc::new(Mutex::new(BTreeSet::from(["kept"])));
        let (changed, changes) = watch::channel(0);
        let kept = Arc::clone(&names);
        let filter = ContentFilter::new(changes, move |_, object| {
            kept.lock().contains(object.key().name())
        });
        let bench =
            Bench::with(|builder| builder.caches(|caches| caches.content_filter(filter))).await;
        let calls = ["first", "second"].map(|name| bench.record(name));
        for name in ["kept", "other"] {
            bench.create(name).await;
            bench.change(name, &format!("value of {name}")).await;
        }
        bench.start().await;
        time::sleep(SECOND).await;
        Self {
            bench,
            calls,
            names,
            changed,
        }
    }

    fn keep(&self, names: &[&'static str]) {
        *self.names.lock() = names.iter().copied().collect();
        self.changed.send_modify(|number| *number += 1);
    }

    fn gets(&self) -> usize {
        self.bench.cluster.journal().count("get", "configmaps")
    }

    /// Returns name and value of each call since the last look, by name, which are the same for both handlers.
    fn taken(&self) -> Vec<(String, Option<String>)> {
        let [first, second] = self.calls.each_ref().map(|calls| {
            let all = calls.all();
            calls.clear();
            let mut seen: Vec<_> = all
                .into_iter()
                .map(|call| (call.name, call.value))
                .collect();
            seen.sort();
            seen
        });
        assert_eq!(first, second);
        first
    }
}

fn call(name: &str, value: &str) -> (String, Option<String>) {
    (name.to_owned(), Some(value.to_owned()))
}

#[tokio::test(start_paused = true)]
async fn handlers_get_the_content_of_kept_and_of_other_objects() {
    let test = Filtered::begin().await;
    let both = [
        call("kept", "value of kept"),
        call("other", "value of other"),
    ];
    assert_eq!(test.taken(), both);
    assert_eq!(test.gets(), 1, "once for all handlers of a run");
    test.bench.change("kept", "new").await;
    test.bench.change("other", "new").await;
    time::sleep(SECOND).await;
    assert_eq!(test.taken(), [call("kept", "new"), call("other", "new")]);
    assert_eq!(test.gets(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_filter_calls_no_handler_and_later_calls_find_the_content() {
    let test = Filtered::begin().await;
    test.taken();
    test.keep(&["other"]);
    time::sleep(SECOND).await;
    assert_eq!(test.taken(), []);
    for name in ["kept", "other"] {
        test.bench.config_maps.enqueue(&key(name));
    }
    time::sleep(SECOND).await;
    let both = [
        call("kept", "value of kept"),
        call("other", "value of other"),
    ];
    assert_eq!(test.taken(), both);
    assert_eq!(
        test.gets(),
        2,
        "one for what was gained, before it was, and one for what was lost"
    );
}

/// The list with the content is slow, and handlers are called meanwhile.
#[tokio::test(start_paused = true)]
async fn gained_objects_are_handled_before_their_content_is_cached() {
    let test = Filtered::begin().await;
    test.taken();
    let late = Action::DelayReply(Duration::from_secs(30));
    test.bench
        .cluster
        .faults()
        .add(Rule::new(late).verb("watch").times(1));
    test.keep(&["kept", "other"]);
    time::sleep(SECOND).await;
    test.bench.config_maps.enqueue(&key("other"));
    time::sleep(SECOND).await;
    assert_eq!(test.taken(), [call("other", "value of other")]);
    assert_eq!(test.gets(), 2);
    time::sleep(Duration::from_secs(60)).await;
    test.bench.config_maps.enqueue(&key("other"));
    time::sleep(SECOND).await;
    assert_eq!(test.taken(), [call("other", "value of other")]);
    assert_eq!(test.gets(), 2);
}
