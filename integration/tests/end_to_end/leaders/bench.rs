//! Replicas as processes, and what they write.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use lariat::kube::api::{Api, ListParams, PostParams, WatchEvent, WatchParams};
use lariat::kube::config::Kubeconfig;
use lariat_integration::{Env, signal};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// How long something may take that must happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// How many objects the leader writes to.
const COUNTERS: usize = 5;

/// Objects to write to, and every state they had.
pub(super) struct Bench<'a> {
    env: &'a Env,
    /// Who wrote, in the order of the resource versions.
    writers: watch::Receiver<Vec<String>>,
    _watch: JoinSet<()>,
    folder: Folder,
}

/// A process that takes part in the election; it is killed when it is dropped.
pub(super) struct Replica {
    pub(super) name: &'static str,
    child: Child,
    said: watch::Receiver<Vec<String>>,
    _read: JoinSet<()>,
}

/// A folder of the test's own, which goes with it.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that is left behind does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl<'a> Bench<'a> {
    pub(super) async fn new(env: &'a Env) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("lariat-leaders-{}", fastrand::u64(..)));
        std::fs::create_dir(&folder)?;
        let counters: Api<ConfigMap> = env.api();
        for number in 0..COUNTERS {
            let name = format!("counter-{number}");
            let counter = json!({"metadata": {"name": name}, "data": {"count": "0"}});
            let counter = serde_json::from_value(counter)?;
            counters.create(&PostParams::default(), &counter).await?;
        }
        let list = counters.list(&ListParams::default()).await?;
        let version = list.metadata.resource_version.context("a list has one")?;
        let (sender, writers) = watch::channel(Vec::new());
        let mut tasks = JoinSet::new();
        tasks.spawn(record(counters, version, sender));
        Ok(Self {
            env,
            writers,
            _watch: tasks,
            folder: Folder(folder),
        })
    }

    /// Starts a replica, and waits until it stands by.
    pub(super) async fn replica(&self, name: &'static str, lease: &str) -> Result<Replica> {
        self.replica_with(name, lease, &self.env.kubeconfig()?)
            .await
    }

    /// Starts a replica with a kubeconfig of its own, and waits until it stands by.
    pub(super) async fn replica_with(
        &self,
        name: &'static str,
        lease: &str,
        kubeconfig: &Kubeconfig,
    ) -> Result<Replica> {
        let path = self.folder.0.join(name);
        std::fs::write(&path, serde_json::to_string(kubeconfig)?)?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_leader"));
        command
            .args([name, &self.env.namespace, lease])
            .env("KUBECONFIG", &path)
            .kill_on_drop(true)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().context("it is piped")?;
        let (sender, said) = watch::channel(Vec::new());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut lines = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                sender.send_modify(|said| said.push(line));
            }
        });
        let mut replica = Replica {
            name,
            child,
            said,
            _read: tasks,
        };
        replica.said("stands by").await;
        Ok(replica)
    }

    /// Waits until a replica has written so many times, all in all.
    pub(super) async fn writes(&self, replica: &Replica, times: usize) {
        let mut writers = self.writers.clone();
        let of = |writers: &Vec<String>| writers.iter().filter(|by| *by == replica.name).count();
        let enough = writers.wait_for(|writers| of(writers) >= times);
        let enough = timeout(PATIENCE, enough).await;
        let enough = enough.unwrap_or_else(|_| panic!("{} does not write", replica.name));
        enough.expect("the watch of the test goes on");
    }

    /// Waits until a replica has written, and says how long that took since another got a signal, or was cut off.
    pub(super) async fn take_over(&self, next: &Replica, (what, since): (&str, Instant)) {
        self.writes(next, 1).await;
        println!("take-over after {what}: {:.2?}", since.elapsed());
    }

    /// Returns how many times a replica has written by now.
    pub(super) fn count(&self, replica: &Replica) -> usize {
        let writers = self.writers.borrow();
        writers.iter().filter(|by| *by == replica.name).count()
    }

    /// Checks that a former leader has written nothing since the first write of the next.
    pub(super) async fn assert_apart(&self, former: &Replica, next: &Replica) {
        // What was on its way has come by then.
        self.writes(next, self.count(next) + 20).await;
        let writers = self.writers.borrow();
        let first = writers.iter().position(|by| by == next.name);
        let since = &writers[first.expect("it has written")..];
        let late = since.iter().filter(|by| *by == former.name).count();
        assert!(writers.iter().any(|by| by == former.name));
        assert_eq!(late, 0, "{} writes, {} after", writers.len(), since.len());
    }

    /// Returns how often the lease has passed from one holder to another.
    pub(super) async fn transitions(&self) -> Result<i32> {
        let lease = self.env.api::<Lease>().get("counter").await?;
        let spec = lease.spec.context("it has one")?;
        Ok(spec.lease_transitions.unwrap_or_default())
    }
}

/// Notes who wrote each state of the counters from a version on.
async fn record(api: Api<ConfigMap>, mut version: String, writers: watch::Sender<Vec<String>>) {
    loop {
        let opened = api.watch(&WatchParams::default(), &version).await;
        let mut events = opened.expect("the watch opens").boxed();
        while let Some(event) = events.try_next().await.expect("the watch goes on") {
            let counter = match event {
                WatchEvent::Added(it) | WatchEvent::Modified(it) | WatchEvent::Deleted(it) => it,
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(status) => panic!("states were missed: {status:?}"),
            };
            version = counter.metadata.resource_version.expect("it has one");
            if let Some(by) = counter.data.and_then(|mut data| data.remove("by")) {
                writers.send_modify(|writers| writers.push(by));
            }
        }
    }
}

impl Replica {
    /// Waits until it has printed a line.
    async fn said(&mut self, line: &str) {
        let said = self.said.wait_for(|said| said.iter().any(|it| it == line));
        let said = timeout(PATIENCE, said).await;
        let said = said.unwrap_or_else(|_| panic!("{} does not say {line:?}", self.name));
        said.expect("it has not ended");
    }

    /// Sends it a signal; returns when that was.
    pub(super) async fn signal(&self, name: &str) -> Instant {
        let began = Instant::now();
        signal(self.child.id().expect("it has not ended"), name).await;
        began
    }

    /// Waits until it ends; returns its exit code and what it printed to stderr.
    pub(super) async fn ended(&mut self) -> Result<(Option<i32>, String)> {
        let mut stderr = String::new();
        let mut pipe = self.child.stderr.take().context("it ends once")?;
        let read = tokio::io::AsyncReadExt::read_to_string(&mut pipe, &mut stderr);
        timeout(PATIENCE, read).await.context("it does not end")??;
        Ok((self.child.wait().await?.code(), stderr))
    }
}
