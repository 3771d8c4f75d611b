//! Both servers, on which sequences are tried.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::future::join;
use futures::stream::{self, StreamExt};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{Instant, sleep};

use crate::answer::{Answer, Names};
use crate::compare::{Comparison, compare};
use crate::kinds::{Kind, installed, kinds};
use crate::leftovers::sweep;
use crate::recording::Recording;
use crate::side::{Side, install};
use crate::step::Sequence;

/// Both servers, on which sequences are tried.
#[derive(Debug)]
pub struct Bench {
    genuine: Side,
    lariat: Side,
    /// In the names of everything that is made, so that runs do not meet.
    nonce: String,
    count: AtomicUsize,
    /// Held by sequences whose objects have the same name in each.
    same_names: AsyncMutex<()>,
    /// Namespaces that are empty.
    free: Mutex<Vec<String>>,
    /// All namespaces that were made.
    made: Mutex<Vec<String>>,
}

impl Bench {
    /// Installs the CRDs of the sequences on both servers.
    ///
    /// # Errors
    ///
    /// A server does not answer or does not take them.
    pub async fn new(genuine: Side, lariat: Side) -> Result<Self> {
        let bench = Self {
            genuine,
            lariat,
            // Five hex digits: objects of earlier runs on a server are still there, and names stay short.
            nonce: format!("{:05x}", fastrand::u32(..0x10_0000)),
            count: AtomicUsize::new(0),
            same_names: AsyncMutex::default(),
            free: Mutex::default(),
            made: Mutex::default(),
        };
        for definition in installed()? {
            install(&bench.genuine, &definition)
                .await
                .context("the genuine server")?;
            install(&bench.lariat, &definition)
                .await
                .context("the embedded cluster")?;
        }
        Ok(bench)
    }

    /// Refuses a server whose controllers work on what the sequences make.
    ///
    /// # Errors
    ///
    /// They do, or the server does not answer.
    pub async fn check_controllers(&self) -> Result<()> {
        let namespace = self.namespace().await?;
        let path = format!("/apis/apps/v1/namespaces/{namespace}/replicasets");
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let spec =
            json!({"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template});
        let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "probe"}, "spec": spec});
        self.genuine.ask("POST", &path, Some(&set)).await?;
        // A controller would have observed the ReplicaSet long before.
        let end = Instant::now() + Duration::from_secs(2);
        let probe = format!("{path}/probe");
        while Instant::now() < end {
            let seen = self.genuine.get(&probe).await?;
            if seen.pointer("/status/observedGeneration").is_some() {
                bail!(
                    "the controllers of the genuine server change what is compared; start its controller manager with \
                     --controllers=garbage-collector-controller,namespace-controller, or without one"
                );
            }
            sleep(Duration::from_millis(200)).await;
        }
        // Only the genuine server got it, so both namespaces are empty again.
        self.genuine.ask("DELETE", &probe, None).await?;
        self.free.lock().push(namespace);
        Ok(())
    }

    /// Returns the kinds that the genuine server serves and sequences know.
    ///
    /// # Errors
    ///
    /// It does not answer.
    pub async fn kinds(&self) -> Result<Vec<Kind>> {
        let mut lists = vec![self.genuine.get("/api/v1").await?];
        let groups = self.genuine.get("/apis").await?;
        for group in groups["groups"].as_array().into_iter().flatten() {
            for version in group["versions"].as_array().into_iter().flatten() {
                let name = version["groupVersion"].as_str().unwrap_or_default();
                lists.push(self.genuine.get(&format!("/apis/{name}")).await?);
            }
        }
        kinds(&lists)
    }

    /// Removes what interrupted runs left on the genuine server.
    ///
    /// Returns the objects of others that a new server does not have, as `Kind name`.
    ///
    /// # Errors
    ///
    /// A server does not answer.
    pub async fn sweep(&self, kinds: &[Kind]) -> Result<Vec<String>> {
        sweep(&self.genuine, &self.lariat, kinds).await
    }

    /// Makes the requests of a sequence, and records what the genuine server answers.
    ///
    /// # Errors
    ///
    /// There is no namespace for it.
    pub async fn record(&self, sequence: &Sequence) -> Result<Recording> {
        let (names, genuine, _) = self.answers(sequence).await?;
        Ok(Recording::new(sequence, &names, &genuine))
    }

    /// Makes the requests of a sequence on both servers, and compares the answers.
    ///
    /// # Errors
    ///
    /// There is no namespace for it.
    pub async fn run(&self, sequence: &Sequence) -> Result<Comparison> {
        let (names, genuine, lariat) = self.answers(sequence).await?;
        Ok(compare(sequence, &names, &genuine, &lariat))
    }

    async fn answers(&self, sequence: &Sequence) -> Result<(Names, Vec<Answer>, Vec<Answer>)> {
        // The name of an IPAddress is the address.
        let is_shared = sequence.steps.iter().any(|step| step.kind == "IPAddress");
        let _alone = if is_shared {
            Some(self.same_names.lock().await)
        } else {
            None
        };
        let names = Names {
            namespace: self.namespace().await?,
            id: format!(
                "d{}x{:05}",
                self.nonce,
                self.count.fetch_add(1, Ordering::Relaxed)
            ),
        };
        // At the same time, so that ages and times differ little.
        let (genuine, lariat) = join(
            self.genuine.run(sequence, &names),
            self.lariat.run(sequence, &names),
        )
        .await;
        let clean = join(
            self.genuine.clean(sequence, &names),
            self.lariat.clean(sequence, &names),
        )
        .await;
        // Leftovers, also on one server only, would be seen by the next sequence.
        if clean == (true, true) && sequence.reusable {
            self.free.lock().push(names.namespace.clone());
        }
        Ok((names, genuine, lariat))
    }

    /// Returns an empty namespace.
    async fn namespace(&self) -> Result<String> {
        if let Some(name) = self.free.lock().pop() {
            return Ok(name);
        }
        let name = format!(
            "n{}x{:05}",
            self.nonce,
            self.count.fetch_add(1, Ordering::Relaxed)
        );
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        for side in [&self.genuine, &self.lariat] {
            let answer = side.ask("POST", "/api/v1/namespaces", Some(&body)).await?;
            if answer.status != 201 {
                bail!("the namespace {name} is not made: {answer:?}");
            }
        }
        self.made.lock().push(name.clone());
        Ok(name)
    }

    /// Deletes what was made on the genuine server; it takes its time with it.
    pub async fn end(&self) {
        let made = std::mem::take(&mut *self.made.lock());
        // Each deletion is work for the namespace controller, so only a few are asked for at a time.
        let deletions = made.iter().map(async |name| {
            drop(
                self.genuine
                    .ask("DELETE", &format!("/api/v1/namespaces/{name}"), None)
                    .await,
            );
        });
        stream::iter(deletions)
            .buffer_unordered(4)
            .collect::<Vec<()>>()
            .await;
    }
}
