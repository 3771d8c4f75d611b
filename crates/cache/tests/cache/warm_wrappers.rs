//! Warm restarts with a key management service that is slow, down, or fails at the wrong moment.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lariat_seal::{
    KeyId, KeyWrapper, LocalKeys, Sealing, WrapError, WrappedKey, Wrapping, Zeroizing,
};
use lariat_testing::Logs;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::bench::MINUTE;
use crate::warm::Folder;
use crate::warm_sealed::{Run, files, key, run, with_canary};

#[derive(Clone, Copy)]
enum Mood {
    Answers,
    Refuses,
    Hangs,
}

/// A key management service; a clone is the same.
#[derive(Clone)]
struct Service {
    keys: Arc<LocalKeys>,
    mood: Arc<Mutex<Mood>>,
    wraps: Arc<AtomicUsize>,
    unwraps: Arc<AtomicUsize>,
}

impl Service {
    fn new() -> Self {
        Self {
            keys: Arc::new(key(1)),
            mood: Arc::new(Mutex::new(Mood::Answers)),
            wraps: Arc::default(),
            unwraps: Arc::default(),
        }
    }

    fn sealing(&self) -> Option<Sealing> {
        Some(Sealing::of_everything(self.clone()))
    }

    /// Returns how often it was asked to wrap and to unwrap since the last call.
    fn asked(&self) -> (usize, usize) {
        let take = |count: &AtomicUsize| count.swap(0, Ordering::Relaxed);
        (take(&self.wraps), take(&self.unwraps))
    }

    async fn answer(&self) -> Result<(), WrapError> {
        let mood = *self.mood.lock();
        match mood {
            Mood::Answers => Ok(()),
            Mood::Refuses => Err(WrapError::Failed {
                key: self.current(),
                source: "the service is down".into(),
            }),
            Mood::Hangs => pending().await,
        }
    }
}

impl KeyWrapper for Service {
    fn current(&self) -> KeyId {
        self.keys.current()
    }

    fn wrap<'a>(&'a self, key: &'a [u8; 32]) -> Wrapping<'a, WrappedKey> {
        Box::pin(async move {
            self.wraps.fetch_add(1, Ordering::Relaxed);
            self.answer().await?;
            self.keys.wrap(key).await
        })
    }

    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> Wrapping<'a, Zeroizing<[u8; 32]>> {
        Box::pin(async move {
            self.unwraps.fetch_add(1, Ordering::Relaxed);
            self.answer().await?;
            self.keys.unwrap(wrapped).await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn the_service_is_asked_once_a_run_for_all_kinds() {
    let (cluster, folder) = (with_canary().await, Folder::new("wrapper-once"));
    let service = Service::new();
    run(&cluster, &folder, service.sealing()).await;
    assert_eq!(service.asked(), (1, 0));
    assert!(run(&cluster, &folder, service.sealing()).await.is_empty());
    assert_eq!(service.asked(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn files_are_left_although_the_service_is_down_at_the_end() {
    let (cluster, folder) = (with_canary().await, Folder::new("wrapper-end"));
    let service = Service::new();
    let first = Run::start(&cluster, &folder, service.sealing()).await;
    *service.mood.lock() = Mood::Refuses;
    first.factory.stop().await;
    *service.mood.lock() = Mood::Answers;
    assert!(run(&cluster, &folder, service.sealing()).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_down_at_the_start_costs_a_list_and_the_end_asks_again() {
    let (cluster, folder) = (with_canary().await, Folder::new("wrapper-start"));
    let service = Service::new();
    run(&cluster, &folder, service.sealing()).await;
    service.asked();
    let log = Logs::warnings();
    *service.mood.lock() = Mood::Refuses;
    let second = Run::start(&cluster, &folder, service.sealing()).await;
    assert_eq!(service.asked(), (1, 0), "once for both kinds");
    let warnings = log.lines();
    let named = |line: &String| line.contains(".sealed") && line.contains("the service is down");
    assert!(
        warnings.len() == 2 && warnings.iter().all(named),
        "{warnings:?}"
    );
    drop(log);
    tokio::time::sleep(MINUTE).await;
    *service.mood.lock() = Mood::Answers;
    second.factory.stop().await;
    assert_eq!(service.asked(), (1, 0));
    assert!(run(&cluster, &folder, service.sealing()).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_service_that_hangs_holds_a_start_up_for_ten_seconds_in_all() {
    let (cluster, folder) = (with_canary().await, Folder::new("wrapper-hangs"));
    let service = Service::new();
    run(&cluster, &folder, service.sealing()).await;
    *service.mood.lock() = Mood::Hangs;
    let began = Instant::now();
    let second = Run::start(&cluster, &folder, service.sealing()).await;
    let took = began.elapsed().as_secs();
    assert!((10..15).contains(&took), "{took} s");
    tokio::time::sleep(MINUTE).await;
    let log = Logs::warnings();
    second.factory.stop().await;
    let warnings = log.lines();
    let reason = |line: &String| line.contains("no answer within ten seconds");
    assert!(
        warnings.len() == 2 && warnings.iter().all(reason),
        "{warnings:?}"
    );
    // What was there is there still.
    assert_eq!(files(&folder).len(), 2);
}
