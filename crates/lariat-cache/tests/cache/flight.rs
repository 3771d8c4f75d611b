//! What a flight recorder writes down of caches alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lariat_cache::{FlightRecorder, SharedCacheFactory};
use lariat_cluster::Cluster;
use lariat_flight::{End, EntryBody, NextStep, Record, Recording, Reflected, Stage};
use tokio::time;

use crate::bench::config_maps;

/// A folder of the test's own, which is removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("flight-{}", fastrand::u64(..));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir(&path).expect("the folder is new");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that is left behind does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test(start_paused = true)]
async fn why_a_watch_ended_and_what_followed_is_recorded() {
    let folder = Folder::new();
    let file = folder.0.join("cache.flight");
    let cluster = Cluster::builder().start().await.unwrap();
    let factory = SharedCacheFactory::builder(cluster.client())
        .flight_recorder(FlightRecorder::file(&file))
        .build();
    let informer = factory.for_kind(config_maps());
    factory.start();
    assert!(informer.synced().await);
    time::sleep(Duration::from_secs(90)).await;
    // What expires while there is no watch makes the next watch end with 410.
    cluster.cut_watches();
    cluster.compact();
    time::sleep(Duration::from_secs(10)).await;
    factory.stop().await;

    let recording = Recording::read(&file).unwrap();
    let reflected = recording.entries().filter_map(|entry| match entry.body {
        EntryBody::Record(Record::Reflector { kind, what, .. }) => {
            assert_eq!(kind, "v1 ConfigMap");
            Some(what)
        }
        _ => None,
    });
    let steps: Vec<Reflected<'_>> = reflected.collect();
    assert!(matches!(steps[0], Reflected::Began { .. }), "{steps:?}");
    assert!(
        matches!(steps[steps.len() - 1], Reflected::Stopped {}),
        "{steps:?}"
    );
    let loads = steps
        .iter()
        .filter(|step| matches!(step, Reflected::Loaded { .. }));
    assert!(loads.count() >= 1, "{steps:?}");
    let mut pairs = steps.windows(2).filter_map(|pair| match pair {
        [
            Reflected::Ended { stage, end, .. },
            Reflected::Decided { next, delay, .. },
        ] => Some((*stage, *end, *next, *delay)),
        _ => None,
    });
    let cut = (Stage::Watch, End::Cut, NextStep::Watch, Duration::ZERO);
    assert_eq!(pairs.next(), Some(cut), "{steps:?}");
}
