//! Reads: one thread reads typed pods from a full cache, as fast as it can.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use futures::future::ready;
use k8s_openapi::api::core::v1::Pod;
use kube::core::{Expression, Selector};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{WatchStreamExt, reflector};
use lariat_cache::{Cache, Metadata, Query};
use lariat_core::ObjectKey;
use tokio::task::JoinSet;
use tokio::time;

use super::job::{PODS, SETTLING};
use crate::bench::Run;
use crate::meter::{self, Meter};
use crate::options::Options;
use crate::pods;
use crate::report::Row;
use crate::subjects::{Variant, kube_api, kube_client, lariat_pods};
use crate::target::Target;

/// Reads by key, with values decoded or not, and by label, indexed or not.
pub(crate) const CASES: [&str; 4] = ["hot", "cold", "select-index", "select-scan"];

pub(crate) const SUBJECTS: [&str; 6] = [
    "lariat",
    "lariat-plain",
    "lariat-compressed",
    "lariat-decoded",
    "lariat-metadata",
    "kube-rs",
];

/// How long is read.
const READING: Duration = Duration::from_secs(3);

/// The reads by key timed together; reading the clock costs as much as one.
const BATCH: usize = 64;

/// Returns the runs that were asked for.
pub(crate) fn plan(options: &Options) -> Vec<Run> {
    let n = if options.n.is_empty() {
        vec![PODS]
    } else {
        options.n.clone()
    };
    let subjects = if options.subjects.is_empty() {
        SUBJECTS.map(str::to_owned).to_vec()
    } else {
        options.subjects.clone()
    };
    let mut runs = Vec::new();
    for &n in &n {
        for case in options.chosen_cases() {
            for subject in &subjects {
                runs.push(Run {
                    bench: options.bench.name.to_owned(),
                    case: case.to_owned(),
                    subject: subject.clone(),
                    n: Some(n),
                    handlers: None,
                    pods: Some(n),
                    rate: None,
                });
            }
        }
    }
    runs
}

pub(super) async fn measure(run: &Run, target: &Target) -> Result<Row> {
    let mut row = run.row();
    match run.subject.as_str() {
        "kube-rs" => kube_rs(&mut row, run, target).await?,
        _ => lariat(&mut row, run, target).await?,
    }
    Ok(row)
}

async fn lariat(row: &mut Row, run: &Run, target: &Target) -> Result<()> {
    let factory = Variant::of(&run.subject)?.caches(target).await?;
    let cache = lariat_pods(&factory).cache::<Pod>();
    factory.start();
    factory.wait_for_sync(Duration::from_secs(100)).await?;
    let keys: Vec<ObjectKey> = cache
        .snapshot()
        .iter()
        .map(|pod| pod.key().clone())
        .collect();
    // While a caller holds the decoded value, a read gets the same one instead of decoding again.
    let held: Vec<Arc<Pod>> = match run.case.as_str() {
        "hot" => cache.list().collect::<Result<_, _>>()?,
        _ => Vec::new(),
    };
    time::sleep(SETTLING).await;
    row.steady_rss_mb = Some(meter::resident_mb());
    row.bytes_per_object = Some(cache.store().bytes() as f64 / row.n as f64);
    match (run.case.as_str(), run.subject.as_str()) {
        ("hot" | "cold", "lariat-metadata") => by_key(row, &keys, get(&cache.view::<Metadata>())),
        ("hot" | "cold", _) => by_key(row, &keys, get(&cache)),
        (case, "lariat-metadata") => select(row, case, &cache.view::<Metadata>()),
        (case, _) => select(row, case, &cache),
    }
    // Named here to show that the values must live until the reads have ended.
    drop(held);
    Ok(())
}

fn get<K: lariat_cache::View>(cache: &Cache<K>) -> impl Fn(&ObjectKey) + '_ {
    // `black_box` keeps the compiler from leaving out a read whose result is not used.
    |key| drop(black_box(cache.get(key).expect("it is a pod")))
}

fn select<K: lariat_cache::View>(row: &mut Row, case: &str, cache: &Cache<K>) {
    let labels = selector(case).parse().expect("it is a selector");
    let query = Query::all().labels(labels);
    time_reads(row, 1, || {
        let found = cache.select(&query).inspect(|pod| assert!(pod.is_ok()));
        assert!(black_box(found.count()) > 0);
    });
}

/// Selects one pod in a hundred.
fn selector(case: &str) -> String {
    match case {
        "select-index" => format!("team={}", pods::team(7)),
        _ => "canary".to_owned(),
    }
}

async fn kube_rs(row: &mut Row, run: &Run, target: &Target) -> Result<()> {
    let (store, writer) = reflector::store::<Pod>();
    let events = watcher(
        kube_api(&kube_client(target).await?, target),
        watcher::Config::default(),
    );
    let mut tasks = JoinSet::new();
    // The watch goes on during the reads, as it does in a program.
    tasks.spawn(
        reflector(writer, events)
            .default_backoff()
            .for_each(|_| ready(())),
    );
    store
        .wait_until_ready()
        .await
        .context("the store is filled")?;
    time::sleep(SETTLING).await;
    row.steady_rss_mb = Some(meter::resident_mb());
    match run.case.as_str() {
        "hot" | "cold" => {
            let all = store.state();
            let refs: Vec<_> = all.iter().map(|pod| ObjectRef::from_obj(&**pod)).collect();
            by_key(row, &refs, |key| drop(black_box(store.get(key))));
        }
        case => select_state(row, case, &store),
    }
    Ok(())
}

fn select_state(row: &mut Row, case: &str, store: &Store<Pod>) {
    let labels: Selector = match case {
        "select-index" => Selector::from_iter([("team".to_owned(), pods::team(7))]),
        _ => Expression::Exists("canary".to_owned()).into(),
    };
    time_reads(row, 1, || {
        assert!(!black_box(store.state_filter_selector(&labels)).is_empty());
    });
}

/// Times reads of all keys, again and again.
fn by_key<Key>(row: &mut Row, keys: &[Key], read: impl Fn(&Key)) {
    let mut keys = keys.iter().cycle();
    time_reads(row, BATCH, || {
        keys.by_ref().take(BATCH).for_each(&read);
    });
}

/// Times something that consists of some operations, for a while.
fn time_reads(row: &mut Row, operations: usize, mut read: impl FnMut()) {
    let mut times = Vec::new();
    let meter = Meter::begin();
    let begun = meter::now();
    let mut last = begun;
    while last - begun < READING {
        read();
        let now = meter::now();
        times.push((now - last).as_secs_f64() * 1e6 / operations as f64);
        last = now;
    }
    (row.wall_s, row.cpu_s) = meter.seconds();
    row.ops_per_s = (times.len() * operations) as f64 / row.wall_s;
    row.spread(times);
}
