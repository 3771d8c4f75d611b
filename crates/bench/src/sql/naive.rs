//! What a program does without the SQL cache.

use std::hint::black_box;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use lariat_cache::{Cache, Informer, SharedCacheFactory};
use tokio::time;

use super::questions::Question;
use crate::subjects::{Variant, kube_api, kube_client, lariat_pods};
use crate::target::Target;

/// How often it looks whether the informer is where it is to be.
const LOOK: Duration = Duration::from_millis(2);

/// How long the first sync may take.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The store of an informer, of which every question decodes all pods.
pub(super) struct Store {
    informer: Informer,
    pods: Cache<Pod>,
    factory: SharedCacheFactory,
}

impl Store {
    pub(super) async fn start(target: &Target) -> Result<Self> {
        let factory = Variant::of("lariat")?.caches(target).await?;
        let informer = lariat_pods(&factory);
        let pods = informer.cache();
        factory.start();
        Ok(Self {
            informer,
            pods,
            factory,
        })
    }

    pub(super) async fn reach(&self, version: Option<u64>) -> Result<()> {
        let Some(wanted) = version else {
            return Ok(self.factory.wait_for_sync(TIMEOUT).await?);
        };
        while self.at() < wanted {
            time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Returns the version it is at.
    fn at(&self) -> u64 {
        let version = self.informer.status().version;
        version
            .and_then(|version| version.number().ok())
            .unwrap_or(0)
    }

    pub(super) fn ask(&self, question: &Question, turn: usize) -> Result<usize> {
        let mut failed = None;
        let pods = self.pods.list().map_while(|pod| {
            let pod = pod.map_err(|error| failed = Some(error));
            pod.ok()
        });
        let answer = question.answer(pods, turn);
        // An error ends the iterator early, so the answer is not of all pods.
        failed.map_or(Ok(black_box(answer)), |error| Err(error.into()))
    }
}

/// Lists of the API server: every question reads all pods.
pub(super) struct Lists(Api<Pod>);

impl Lists {
    pub(super) async fn new(target: &Target) -> Result<Self> {
        Ok(Self(kube_api(&kube_client(target).await?, target)))
    }

    pub(super) async fn ask(&self, question: &Question, turn: usize) -> Result<usize> {
        let all = self.0.list(&ListParams::default()).await?;
        Ok(black_box(question.answer(all.items.iter(), turn)))
    }
}
