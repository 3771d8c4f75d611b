//! The cluster, and what goes wrong with it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::{Api, DeleteParams};
use lariat_cluster::faults::{Action, Refusal, Rule, RuleId, StatusCode};
use lariat_cluster::{Cluster, Commits, Load, Snapshot};
use tokio::time;

use super::actions::{action, is_about_watches};
use super::foreign::Foreign;
use crate::event::{Event, LEASES};
use crate::machine::Machine;
use crate::objects::Objects;
use crate::plan::{Change, Fault, FaultKind, Write};
use crate::record::Recorder;

/// The cluster and its foreign clients, on one machine.
pub(crate) struct World {
    pub(crate) machine: Machine,
    cluster: Arc<Cluster>,
    client: Client,
    commits: Commits,
    recorder: Recorder,
    kinds: Arc<[Objects]>,
    backup: Option<Snapshot>,
    rules: Vec<Active>,
    /// The foreign writes that have not ended.
    writes: tokio_util::task::TaskTracker,
}

/// A rule of a fault, and how often it has matched a request.
struct Active {
    kind: FaultKind,
    process: usize,
    rule: RuleId,
    hits: u64,
    /// The time the machine had run when it ends.
    ends: Duration,
}

impl World {
    /// Starts a cluster on a machine.
    ///
    /// # Errors
    ///
    /// The cluster does not start.
    pub(crate) fn start(
        mut machine: Machine,
        seed: u64,
        recorder: &Recorder,
        kinds: &Arc<[Objects]>,
    ) -> io::Result<Self> {
        // The owners that contents name need not exist, and the collector would delete what they own.
        let collects = !kinds.iter().any(Objects::has_owners);
        // A short history makes versions expire, as they do on a busy server.
        let builder = Cluster::builder()
            .seed(seed)
            .history(200)
            .journal(0)
            .garbage_collection(collects);
        let (cluster, client) = machine.run(async {
            let cluster = builder.start().await?;
            let client = cluster.client();
            io::Result::Ok((cluster, client))
        })?;
        let commits = cluster.commits();
        Ok(Self {
            machine,
            cluster: Arc::new(cluster),
            client,
            commits,
            recorder: recorder.clone(),
            kinds: Arc::clone(kinds),
            backup: None,
            rules: Vec::new(),
            writes: tokio_util::task::TaskTracker::new(),
        })
    }

    pub(crate) fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    /// Runs the world up to a time, and records the commits.
    pub(crate) fn turn(&mut self, until: Duration) {
        self.machine.turn(until);
        // After the turn, not while it runs: a commit is known to the oracle before a process can have seen it.
        self.note_commits();
    }

    fn note_commits(&mut self) {
        let commits = self.commits.take();
        if commits.is_empty() {
            return;
        }
        let recorder = self.recorder.clone();
        self.machine.run(async move {
            for commit in commits {
                recorder.note(Event::Committed(commit));
            }
        });
    }

    /// Starts a write of a foreign client; it ends some time later.
    pub(crate) fn write(&mut self, write: &Write) {
        let Some(kind) = self.kinds.get(write.kind).cloned() else {
            return;
        };
        let foreign = self.foreign(kind, write.name);
        let (what, writes) = (write.what, self.writes.clone());
        self.machine.run(async {
            writes.spawn(async move { foreign.change(what).await });
        });
    }

    fn foreign(&self, kind: Objects, name: u16) -> Foreign {
        Foreign {
            cluster: Arc::clone(&self.cluster),
            client: self.client.clone(),
            kind,
            name: format!("o{name}"),
        }
    }

    /// Makes something go wrong; `agents` are how the clients of processes begin.
    pub(crate) fn fault(&mut self, fault: &Fault, agents: &[String]) {
        match fault.kind {
            FaultKind::CutWatches => self.cluster.cut_watches(),
            FaultKind::EndWatches => self.cluster.end_watches(),
            FaultKind::Compact => self.cluster.compact(),
            FaultKind::Backup => self.back_up(),
            FaultKind::Restore => self.restore(fault.lasts, agents),
            FaultKind::DeleteLease(place) => self.delete_lease(place),
            FaultKind::Away => self.isolate(fault, agents, false),
            FaultKind::Blackhole => self.isolate(fault, agents, true),
            FaultKind::Streams(_) | FaultKind::Latency(_) => {}
            FaultKind::NotServed => self.hide(fault, agents),
            kind => {
                if let Some(action) = action(kind) {
                    self.rule(fault, &action, agents);
                }
            }
        }
    }

    fn agents<'a>(fault: &Fault, agents: &'a [String]) -> &'a [String] {
        match fault.process {
            Some(process) => agents.get(process..=process).unwrap_or_default(),
            None => agents,
        }
    }

    fn rule(&mut self, fault: &Fault, action: &Action, agents: &[String]) {
        let mut rules = Vec::new();
        for agent in Self::agents(fault, agents) {
            let mut rule = Rule::new(action.clone())
                .client(agent.as_str())
                .times(fault.times)
                .for_time(fault.lasts);
            if let Some(verb) = fault.verb.filter(|_| !is_about_watches(fault.kind)) {
                rule = rule.verb(verb);
            }
            if let Some(kind) = fault.resource.and_then(|at| self.kinds.get(at)) {
                rule = rule.resource(kind.plural());
            }
            rules.push(rule);
        }
        let faults = self.cluster.faults();
        // On the machine's clock: outside of its runtime a rule would end by the real one.
        let added: Vec<RuleId> = self
            .machine
            .run(async move { rules.into_iter().map(|rule| faults.add(rule)).collect() });
        let first = fault.process.unwrap_or(0);
        let ends = self.machine.at() + fault.lasts;
        self.rules
            .extend(added.into_iter().enumerate().map(|(at, rule)| Active {
                kind: fault.kind,
                process: first + at,
                rule,
                hits: 0,
                ends,
            }));
    }

    /// Returns the faults that had an effect since the last call, and on which process.
    pub(crate) fn fired(&mut self) -> Vec<(FaultKind, usize)> {
        let (faults, now) = (self.cluster.faults(), self.machine.at());
        let mut fired = Vec::new();
        self.rules.retain_mut(|active| {
            // Before an ended rule is removed, so that its last hits count.
            let hits = faults.hits(active.rule);
            if hits > active.hits {
                active.hits = hits;
                fired.push((active.kind, active.process));
            }
            // Every request asks all rules there are.
            let is_over = now > active.ends;
            if is_over {
                faults.remove(active.rule);
            }
            !is_over
        });
        fired
    }

    /// Deletes a lease as a foreign client, by its place in the list of all.
    fn delete_lease(&mut self, place: usize) {
        let leases = self.cluster.objects(LEASES);
        let Some(at) = place.checked_rem(leases.len()) else {
            return;
        };
        let name = leases[at].key().name().to_owned();
        let (client, writes) = (self.client.clone(), self.writes.clone());
        self.machine.run(async {
            writes.spawn(async move {
                let leases: Api<Lease> = Api::namespaced(client, "default");
                // One that is gone by then is as good.
                drop(leases.delete(&name, &DeleteParams::default()).await);
            });
        });
    }

    /// Hides a resource for a time, as a starting API server hides CRDs.
    ///
    /// Its objects stay.
    fn hide(&mut self, fault: &Fault, agents: &[String]) {
        let unknown = Action::Refuse(Refusal::new(StatusCode::NOT_FOUND));
        self.rule(fault, &unknown, agents);
        // The rule is in place already, so a watch that is cut is not opened again.
        self.cluster.cut_watches();
    }

    /// Disconnects processes for a time; connections break or fall silent.
    fn isolate(&mut self, fault: &Fault, agents: &[String], silently: bool) {
        let (cluster, lasts) = (Arc::clone(&self.cluster), fault.lasts);
        let agents = Self::agents(fault, agents).to_vec();
        let writes = self.writes.clone();
        self.machine.run(async {
            writes.spawn(async move {
                let faults = cluster.faults();
                let rules: Vec<_> = agents
                    .iter()
                    .map(|agent| {
                        if silently {
                            faults.blackhole(agent)
                        } else {
                            faults.partition(agent)
                        }
                    })
                    .collect();
                time::sleep(lasts).await;
                for rule in rules {
                    faults.remove(rule);
                }
            });
        });
    }

    /// Keeps a backup.
    ///
    /// A restore is one that a cache cannot notice if no object has changed since the backup (`lariat_cache`'s
    /// reflector says so), so an object of each kind is written after it.
    fn back_up(&mut self) {
        self.backup = Some(self.cluster.snapshot());
        for kind in 0..self.kinds.len() {
            let what = Change::Put;
            self.write(&Write {
                kind,
                name: 0,
                what,
            });
        }
    }

    /// Sets the cluster back to the backup while no process can reach it.
    fn restore(&mut self, away: Duration, agents: &[String]) {
        let Some(backup) = self.backup.clone() else {
            return;
        };
        let fault = Fault {
            kind: FaultKind::Away,
            process: None,
            resource: None,
            verb: None,
            times: u64::MAX,
            lasts: away,
        };
        // Processes are away first: a request that crossed the restore would get an answer of two histories.
        self.isolate(&fault, agents, false);
        let (cluster, recorder) = (Arc::clone(&self.cluster), self.recorder.clone());
        self.machine.run(async move {
            if let Err(error) = cluster.rewind_to(&backup).await {
                recorder.say(format!("the backup is not restored: {error}"));
            }
        });
        self.note_commits();
    }

    /// Creates so many ConfigMaps.
    pub(crate) fn load(&mut self, config_maps: usize) {
        if config_maps == 0 {
            return;
        }
        let load = Load::pods(0).config_maps(config_maps);
        let cluster = Arc::clone(&self.cluster);
        self.machine.run(async move { cluster.load(load).await });
        self.note_commits();
    }

    /// Ends all faults, and defines the kinds that are not there.
    pub(crate) fn heal(&mut self) {
        self.cluster.faults().clear();
        for kind in self.kinds.iter().filter(|kind| kind.is_custom()) {
            let foreign = self.foreign(kind.clone(), 0);
            let writes = self.writes.clone();
            self.machine.run(async {
                writes.spawn(async move {
                    // Another CRD may still wait until the name is free, and be faster.
                    while foreign.define(0, true).await.is_err() {
                        time::sleep(Duration::from_millis(100)).await;
                    }
                });
            });
        }
    }

    /// Returns whether there is a backup to restore.
    pub(crate) fn has_backup(&self) -> bool {
        self.backup.is_some()
    }

    /// Creates the objects that there are before programs start.
    pub(crate) fn fill(&mut self) {
        for kind in 0..self.kinds.len() {
            for name in 0..self.kinds[kind].initial_count() {
                let what = Change::Put;
                self.write(&Write { kind, name, what });
            }
        }
    }
}
