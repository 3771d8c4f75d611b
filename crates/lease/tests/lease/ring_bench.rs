//! Members of a ring, for tests.

use std::time::Duration;

use kube::api::ListParams;
use lariat_core::{Gvk, ObjectKey};
use lariat_lease::{Leadership, Lease, LeaseError, RingMember, ShardKey, Sharding, Shards};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, SECOND};

pub(crate) const KEYS: u32 = 300;

/// A process in a ring; dropping it kills it.
pub(crate) struct Member {
    pub(crate) name: &'static str,
    pub(crate) membership: Leadership,
    pub(crate) shards: Shards,
    pub(crate) stop: CancellationToken,
    pub(crate) run: JoinSet<Result<(), LeaseError>>,
}

impl Bench {
    pub(crate) fn member(&self, name: &'static str) -> Member {
        self.member_with(name, |ring| ring)
    }

    pub(crate) fn member_with(
        &self,
        name: &'static str,
        configure: impl FnOnce(Sharding) -> Sharding,
    ) -> Member {
        let ring = configure(Lease::new("shop").identity(name).into());
        let member = RingMember::new(self.client(name), ring).expect("it is valid");
        let (membership, shards) = (member.leadership(), member.shards());
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let mut run = JoinSet::new();
        run.spawn(async move { member.run(async {}, stopped).await });
        Member {
            name,
            membership,
            shards,
            stop,
            run,
        }
    }

    pub(crate) async fn joined<const N: usize>(&self, names: [&'static str; N]) -> [Member; N] {
        let members = names.map(|name| self.member(name));
        for member in &members {
            assert!(member.membership.acquired().await);
        }
        sleep(SECOND).await;
        members
    }

    pub(crate) async fn lease_names(&self) -> Vec<String> {
        let leases = self.leases().list(&ListParams::default()).await;
        let leases = leases.expect("they are listed").items;
        leases
            .into_iter()
            .filter_map(|it| it.metadata.name)
            .collect()
    }

    pub(crate) async fn lease_of(&self, holder: &str) -> String {
        let leases = self.leases().list(&ListParams::default()).await;
        let leases = leases.expect("they are listed").items;
        let is_its = |lease: &k8s_openapi::api::coordination::v1::Lease| {
            let spec = lease.spec.as_ref();
            spec.and_then(|spec| spec.holder_identity.as_deref()) == Some(holder)
        };
        let lease = leases.into_iter().find(is_its).expect("there is one");
        lease.metadata.name.expect("it has a name")
    }
}

impl Member {
    pub(crate) async fn stop(&mut self) -> Result<(), LeaseError> {
        self.stop.cancel();
        self.ended().await
    }

    pub(crate) async fn ended(&mut self) -> Result<(), LeaseError> {
        let ended = self.run.join_next().await.expect("it ends once");
        ended.expect("it does not panic")
    }

    pub(crate) fn may_handle(&self, key: ShardKey) -> bool {
        self.shards.enter(key).is_some()
    }
}

pub(crate) fn key(number: u32) -> ShardKey {
    let key = ObjectKey::namespaced("shop", &format!("order-{number}"));
    ShardKey::of_key(&Gvk::new("", "v1", "ConfigMap"), &key)
}

/// Returns how many keys each member may handle, after checking that no two may handle one.
pub(crate) fn shares(members: &[&Member]) -> Vec<usize> {
    let mut counts = vec![0; members.len()];
    for number in 0..KEYS {
        let mut holder = None;
        for (place, member) in members.iter().enumerate() {
            if member.may_handle(key(number)) {
                let other = holder.replace(member.name);
                assert_eq!(
                    other, None,
                    "key {number} belongs to {} as well",
                    member.name
                );
                counts[place] += 1;
            }
        }
    }
    counts
}

/// Checks while a member is one that no key has two holders.
pub(crate) async fn until_lost(member: &Member, members: &[&Member]) {
    while member.membership.leads() {
        shares(members);
        sleep(Duration::from_millis(20)).await;
    }
}

/// Checks until every key has a holder that no key has two; returns how long that took.
pub(crate) async fn settled(members: &[&Member], patience: Duration) -> Duration {
    let began = Instant::now();
    loop {
        let counts = shares(members);
        let held: usize = counts.iter().sum();
        if held == KEYS as usize {
            return began.elapsed();
        }
        let (elapsed, joined) = (
            began.elapsed(),
            members.iter().map(|it| it.membership.leads()),
        );
        assert!(
            elapsed < patience,
            "after {elapsed:?} {counts:?} of {KEYS} keys are held, {:?}",
            joined.collect::<Vec<_>>()
        );
        sleep(Duration::from_millis(20)).await;
    }
}
