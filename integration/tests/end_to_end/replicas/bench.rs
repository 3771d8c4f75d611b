//! Replicas as processes, and what they write.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
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
const TIMEOUT: Duration = Duration::from_secs(120);

/// A lease duration in seconds, which the server counts whole: the renew deadline is 2 seconds then, the retry period 0.4.
pub(super) const SHORT: &str = "3";

/// Longer than a test waits for anything.
pub(super) const LONG: &str = "1200";

/// What replicas do.
#[derive(Clone, Copy)]
pub(super) struct Program {
    /// Arguments that all have, after the name, the namespace and the lease duration.
    pub(super) arguments: &'static [&'static str],
    /// How many objects there are to write to.
    pub(super) counters: usize,
}

/// A write, as the watch showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) object: String,
    pub(super) by: String,
}

/// Objects to write to, and every state they had.
pub(super) struct Bench<'a> {
    env: &'a Env,
    program: Program,
    /// Every state that the objects had, in the order of the resource versions.
    pub(super) writes: watch::Receiver<Vec<Write>>,
    _watch: JoinSet<()>,
    folder: Folder,
}

/// A process that takes part in the election, or in the ring; it is killed when it is dropped.
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
    pub(super) async fn new(env: &'a Env, program: Program) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("lariat-replicas-{}", fastrand::u64(..)));
        std::fs::create_dir(&folder)?;
        let counters: Api<ConfigMap> = env.api();
        for number in 0..program.counters {
            create(&counters, &format!("counter-{number}"), "count", "0").await?;
        }
        let list = counters.list(&ListParams::default()).await?;
        let version = list.metadata.resource_version.context("a list has one")?;
        let (sender, writes) = watch::channel(Vec::new());
        let mut tasks = JoinSet::new();
        tasks.spawn(record(counters, version, sender));
        Ok(Self {
            env,
            program,
            writes,
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
            .args(self.program.arguments)
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

    /// Waits until the writes are as wanted.
    pub(super) async fn wait_for(&self, what: &str, wanted: impl Fn(&[Write]) -> bool) {
        let mut writes = self.writes.clone();
        let enough = writes.wait_for(|writes| wanted(writes));
        let enough = timeout(TIMEOUT, enough).await;
        let enough = enough.unwrap_or_else(|_| panic!("after {TIMEOUT:?} not yet: {what}"));
        enough.expect("the watch of the test goes on");
    }

    /// Waits until a replica has written so many times, all in all.
    pub(super) async fn writes(&self, replica: &Replica, times: usize) {
        let by = |write: &&Write| write.by == replica.name;
        let what = format!("{} writes {times} times", replica.name);
        self.wait_for(&what, |writes| writes.iter().filter(by).count() >= times)
            .await;
    }

    /// Returns how many writes there are after all that replicas have been answered by now.
    pub(super) async fn mark(&self) -> Result<usize> {
        create(&self.env.api(), "mark", "by", "the test").await?;
        let is_mark = |write: &Write| write.object == "mark";
        self.wait_for("the mark is seen", |writes| writes.iter().any(is_mark))
            .await;
        let place = self.writes.borrow().iter().position(is_mark);
        Ok(place.context("it was seen")? + 1)
    }

    /// Waits until a replica has written, and says how long that took since another got a signal, or was cut off.
    pub(super) async fn take_over(&self, next: &Replica, what: &str, since: Instant) {
        self.writes(next, 1).await;
        println!("take-over after {what}: {:.2?}", since.elapsed());
    }

    /// Returns how many times a replica has written by now.
    pub(super) fn count(&self, replica: &Replica) -> usize {
        let writes = self.writes.borrow();
        writes.iter().filter(|it| it.by == replica.name).count()
    }

    /// Checks that a former leader has written nothing since the first write of the next.
    pub(super) async fn assert_apart(&self, former: &Replica, next: &Replica) {
        // What was on its way has come by then.
        self.writes(next, self.count(next) + 20).await;
        let writes = self.writes.borrow();
        let first = writes.iter().position(|it| it.by == next.name);
        let since = &writes[first.expect("it has written")..];
        let late = since.iter().filter(|it| it.by == former.name).count();
        assert!(writes.iter().any(|it| it.by == former.name));
        assert_eq!(late, 0, "{} writes, {} after", writes.len(), since.len());
    }

    /// Returns how often the lease has passed from one holder to another.
    pub(super) async fn transitions(&self) -> Result<i32> {
        Ok(self.lease().await?.lease_transitions.unwrap_or_default())
    }

    /// Returns who holds the lease.
    pub(super) async fn holder(&self) -> Result<Option<String>> {
        Ok(self.lease().await?.holder_identity)
    }

    async fn lease(&self) -> Result<LeaseSpec> {
        let lease = self.env.api::<Lease>().get("counter").await?;
        lease.spec.context("it has one")
    }
}

async fn create(api: &Api<ConfigMap>, name: &str, key: &str, value: &str) -> Result<()> {
    let object = json!({"metadata": {"name": name}, "data": {key: value}});
    let object = serde_json::from_value(object)?;
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}

/// Notes who wrote each state of the counters from a version on.
async fn record(api: Api<ConfigMap>, mut version: String, writes: watch::Sender<Vec<Write>>) {
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
                let object = counter.metadata.name.expect("it has one");
                writes.send_modify(|writes| writes.push(Write { object, by }));
            }
        }
    }
}

impl Replica {
    /// Waits until it has printed a line.
    pub(super) async fn said(&mut self, line: &str) {
        let said = self.said.wait_for(|said| said.iter().any(|it| it == line));
        let said = timeout(TIMEOUT, said).await;
        let said = said.unwrap_or_else(|_| panic!("{} does not say {line:?}", self.name));
        said.expect("it has not ended");
    }

    /// Waits until a line that it has printed has all these words.
    pub(super) async fn logged(&mut self, words: &[&str]) {
        let has_all = |line: &String| words.iter().all(|word| line.contains(word));
        let logged = self.said.wait_for(|said| said.iter().any(has_all));
        let logged = timeout(TIMEOUT, logged).await;
        let logged = logged.unwrap_or_else(|_| panic!("{} does not log {words:?}", self.name));
        logged.expect("it has not ended");
    }

    /// Returns what it has printed to stdout by now.
    pub(super) fn log(&self) -> Vec<String> {
        self.said.borrow().clone()
    }

    /// Returns everything that it has printed to stdout, once it has ended.
    pub(super) async fn whole_log(&mut self) -> Vec<String> {
        // The sender goes with the end of its stdout.
        while self.said.changed().await.is_ok() {}
        self.log()
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
        timeout(TIMEOUT, read).await.context("it does not end")??;
        Ok((self.child.wait().await?.code(), stderr))
    }
}
