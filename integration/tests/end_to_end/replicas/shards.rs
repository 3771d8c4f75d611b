//! Replicas of a sharded program that are killed, paused, stopped and cut off.

use std::collections::BTreeMap;

use anyhow::Result;
use lariat::kube::config::Kubeconfig;
use lariat_integration::{Env, Proxy, in_namespace};
use tokio::time::Instant;

use super::bench::{Bench, LONG, Program, Replica, SHORT, Write};

/// So many that each replica has some: none of 30 is one run in 60,000.
const COUNTERS: usize = 30;

const EACH_HAS_A_SHARE: Program = Program {
    arguments: &["--sharded"],
    counters: COUNTERS,
};

/// Three replicas, each of which has written to all objects of its share.
struct Ring<'a> {
    bench: Bench<'a>,
    red: Replica,
    green: Replica,
    blue: Replica,
    /// Which writes are those of these three alone.
    since: usize,
    /// Which replica has each object.
    holders: BTreeMap<String, String>,
}

impl<'a> Ring<'a> {
    /// Starts the replicas: red with a kubeconfig of its own, the others with that of the cluster.
    async fn start(env: &'a Env, lease: &str, of_red: &Kubeconfig) -> Result<Self> {
        let bench = Bench::new(env, EACH_HAS_A_SHARE).await?;
        let mut red = bench.replica_with("red", lease, of_red).await?;
        let mut green = bench.replica("green", lease).await?;
        let mut blue = bench.replica("blue", lease).await?;
        for replica in [&mut red, &mut green, &mut blue] {
            replica.said("is one of 3").await;
        }
        // The last to join has been given its share by the others, whose calls had ended.
        let since = bench.mark().await?;
        let all = |writes: &[Write]| holders(&writes[since..]).len() == COUNTERS;
        bench.wait_for("all objects are written to", all).await;
        let holders = holders(&bench.writes.borrow()[since..]);
        Ok(Self {
            bench,
            red,
            green,
            blue,
            since,
            holders,
        })
    }

    /// Waits until others write to all of red's objects, and says how long that took since red got a signal.
    async fn take_over(&self, what: &str, began: Instant) {
        let had = self.holders.values().filter(|by| *by == "red").count();
        let has_moved = |writes: &[Write]| {
            let now = holders(&writes[self.since..]);
            now.len() == COUNTERS && now.values().all(|by| by != "red")
        };
        let moved = format!("the {had} objects of red are written to by others");
        self.bench.wait_for(&moved, has_moved).await;
        let took = began.elapsed();
        println!("take-over of {had} of {COUNTERS} objects after {what}: {took:.2?}");
    }

    /// Checks that each object had one writer after the other, that those of red moved, and no others.
    async fn assert_moved_once(&self) {
        // What was on its way has come by then.
        for replica in [&self.green, &self.blue] {
            let count = self.bench.count(replica) + 5 * COUNTERS;
            self.bench.writes(replica, count).await;
        }
        let writes = self.bench.writes.borrow();
        for (object, holder) in &self.holders {
            let all = writers(&writes, object);
            let mut once = all.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), all.len(), "{object} moved back: {all:?}");
            let since = writers(&writes[self.since..], object);
            let moved = usize::from(holder == "red");
            assert_eq!((since[0], since.len()), (&**holder, 1 + moved), "{object}");
        }
        assert_eq!(self.holders.len(), COUNTERS);
        assert!(self.holders.values().any(|by| by == "red"));
    }
}

/// Returns who wrote last to each object.
fn holders(writes: &[Write]) -> BTreeMap<String, String> {
    let last = writes.iter().map(|it| (it.object.clone(), it.by.clone()));
    last.collect()
}

/// Returns who wrote to an object, each as often as it was another than before.
fn writers<'a>(writes: &'a [Write], object: &str) -> Vec<&'a str> {
    let of_it = writes.iter().filter(|it| it.object == object);
    let mut writers: Vec<&str> = of_it.map(|it| &*it.by).collect();
    writers.dedup();
    writers
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_a_replica_that_is_killed_move_once() {
    in_namespace("shards-killed", async |env| {
        let mut ring = Ring::start(env, SHORT, &env.kubeconfig()?).await?;
        let began = ring.red.signal("KILL").await;
        ring.take_over("kill -9", began).await;
        ring.assert_moved_once().await;
        assert_eq!(ring.red.ended().await?, (None, String::new()));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_paused_past_its_lease_writes_nothing_when_it_goes_on() {
    in_namespace("shards-paused", async |env| {
        let mut ring = Ring::start(env, SHORT, &env.kubeconfig()?).await?;
        let began = ring.red.signal("STOP").await;
        ring.take_over("SIGSTOP", began).await;
        let written = ring.bench.count(&ring.red);
        ring.red.signal("CONT").await;
        let (code, stderr) = ring.red.ended().await?;
        let lost = format!("error: lost the lease {}/counter: ", env.namespace);
        let says = stderr.lines().any(|line| line.starts_with(&lost));
        assert!(code == Some(1) && says, "{code:?} {stderr}");
        ring.assert_moved_once().await;
        assert_eq!(ring.bench.count(&ring.red), written);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_a_replica_that_is_stopped_move_before_its_lease_expires() {
    in_namespace("shards-stopped", async |env| {
        let mut ring = Ring::start(env, LONG, &env.kubeconfig()?).await?;
        let began = ring.red.signal("TERM").await;
        ring.take_over("SIGTERM", began).await;
        ring.assert_moved_once().await;
        assert_eq!(ring.red.ended().await?, (Some(0), String::new()));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_cut_off_ends_before_another_writes_to_its_objects() {
    in_namespace("shards-cut-off", async |env| {
        let proxy = Proxy::start(env.kubeconfig()?).await?;
        let behind = proxy.kubeconfig(env.kubeconfig()?)?;
        let mut ring = Ring::start(env, SHORT, &behind).await?;
        let began = Instant::now();
        proxy.fall_silent();
        ring.take_over("a network partition", began).await;
        let (code, stderr) = ring.red.ended().await?;
        let lost = format!("error: lost the lease {}/counter: ", env.namespace);
        let says = stderr.lines().any(|line| line.starts_with(&lost));
        assert!(code == Some(1) && says, "{code:?} {stderr}");
        ring.assert_moved_once().await;
        Ok(())
    })
    .await;
}
