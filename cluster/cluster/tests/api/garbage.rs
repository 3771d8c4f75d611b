//! Garbage collection, on paused time: everything is over when nothing moves any more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::StatusCode;
use lariat_cluster::Cluster;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::bench::{Bench, CONFIG_MAPS, text};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// Waits until nothing moves: paused time goes on only when every task waits.
async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

fn reference(name: &str, uid: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid})
}

async fn owned(bench: &Bench, name: &str, owners: &[Value]) -> String {
    let object = json!({"metadata": {"name": name, "ownerReferences": owners}});
    let answer = bench.post(CONFIG_MAPS, &object).await;
    assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
    text(&answer.json(), "/metadata/uid").to_owned()
}

async fn delete(bench: &Bench, name: &str, policy: &str) {
    let path = format!("{CONFIG_MAPS}/{name}?propagationPolicy={policy}");
    assert_eq!(bench.delete(&path).await.code, StatusCode::OK);
}

async fn exists(bench: &Bench, name: &str) -> bool {
    bench.get(&format!("{CONFIG_MAPS}/{name}")).await.code == StatusCode::OK
}

#[tokio::test(start_paused = true)]
async fn dependents_go_after_their_owner() {
    let bench = Bench::new().await;
    let top = owned(&bench, "top", &[]).await;
    let middle = owned(&bench, "middle", &[reference("top", &top)]).await;
    owned(&bench, "bottom", &[reference("middle", &middle)]).await;
    owned(&bench, "free", &[]).await;
    let mut watch = bench.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    watch.shorts(4).await;
    delete(&bench, "top", "Background").await;
    let gone = ["DELETED top", "DELETED middle", "DELETED bottom"];
    assert_eq!(watch.shorts(3).await, gone);
    assert!(exists(&bench, "free").await);
}

#[tokio::test(start_paused = true)]
async fn an_owner_in_the_foreground_waits_for_those_that_block_it() {
    let bench = Bench::new().await;
    let top = owned(&bench, "top", &[]).await;
    let mut blocking = reference("top", &top);
    blocking["blockOwnerDeletion"] = true.into();
    let middle = owned(&bench, "middle", &[blocking]).await;
    let mut below = reference("middle", &middle);
    below["blockOwnerDeletion"] = true.into();
    let object = json!({"metadata": {"name": "bottom", "finalizers": ["demo.dev/x"], "ownerReferences": [below]}});
    bench.post(CONFIG_MAPS, &object).await;
    delete(&bench, "top", "Foreground").await;
    settle().await;
    for (name, finalizer) in [
        ("top", "foregroundDeletion"),
        ("middle", "foregroundDeletion"),
        ("bottom", "demo.dev/x"),
    ] {
        let object = bench.get(&format!("{CONFIG_MAPS}/{name}")).await.json();
        assert_eq!(
            object["metadata"]["finalizers"],
            json!([finalizer]),
            "{name}"
        );
        assert!(
            object["metadata"]["deletionTimestamp"].is_string(),
            "{name}"
        );
    }
    let mut watch = bench.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    watch.shorts(3).await;
    let patch = json!({"metadata": {"finalizers": null}});
    bench.merge(&format!("{CONFIG_MAPS}/bottom"), patch).await;
    let gone = ["DELETED bottom", "DELETED middle", "DELETED top"];
    assert_eq!(watch.shorts(3).await, gone);
}

#[tokio::test(start_paused = true)]
async fn a_circle_in_the_foreground_goes_all_the_same() {
    let bench = Bench::new().await;
    let a = owned(&bench, "a", &[]).await;
    let block = |name: &str, uid: &str| {
        let mut reference = reference(name, uid);
        reference["blockOwnerDeletion"] = true.into();
        reference
    };
    let b = owned(&bench, "b", &[block("a", &a)]).await;
    let patch = json!({"metadata": {"ownerReferences": [block("b", &b)]}});
    bench.merge(&format!("{CONFIG_MAPS}/a"), patch).await;
    delete(&bench, "a", "Foreground").await;
    settle().await;
    assert!(!exists(&bench, "a").await && !exists(&bench, "b").await);
}

#[tokio::test(start_paused = true)]
async fn orphans_stay_without_the_reference() {
    let bench = Bench::new().await;
    let own = owned(&bench, "own", &[]).await;
    let other = owned(&bench, "other", &[]).await;
    owned(&bench, "a", &[reference("own", &own)]).await;
    owned(
        &bench,
        "b",
        &[reference("other", &other), reference("own", &own)],
    )
    .await;
    delete(&bench, "own", "Orphan").await;
    settle().await;
    assert!(!exists(&bench, "own").await);
    let a = bench.get(&format!("{CONFIG_MAPS}/a")).await.json();
    assert!(a["metadata"]["ownerReferences"].is_null(), "{a:#}");
    let b = bench.get(&format!("{CONFIG_MAPS}/b")).await.json();
    assert_eq!(
        b["metadata"]["ownerReferences"],
        json!([reference("other", &other)])
    );
}

#[tokio::test(start_paused = true)]
async fn only_the_dangling_reference_is_dropped_while_one_owner_lives() {
    let bench = Bench::new().await;
    let live = owned(&bench, "live", &[]).await;
    let ghost = reference("ghost", "u-1");
    owned(&bench, "two", &[ghost.clone(), reference("live", &live)]).await;
    owned(&bench, "none", &[ghost]).await;
    owned(&bench, "wrong", &[reference("live", "u-2")]).await;
    settle().await;
    let two = bench.get(&format!("{CONFIG_MAPS}/two")).await.json();
    assert_eq!(
        two["metadata"]["ownerReferences"],
        json!([reference("live", &live)])
    );
    assert!(!exists(&bench, "none").await && !exists(&bench, "wrong").await);
    // An object that takes an absent owner later is garbage from then on.
    let patch = json!({"metadata": {"ownerReferences": [reference("ghost", "u-1")]}});
    bench.merge(&format!("{CONFIG_MAPS}/live"), patch).await;
    settle().await;
    assert!(!exists(&bench, "live").await && !exists(&bench, "two").await);
}

#[tokio::test(start_paused = true)]
async fn an_owner_in_another_namespace_does_not_count_and_an_event_says_so() {
    let bench = Bench::new().await;
    let own = owned(&bench, "own", &[]).await;
    let object = json!({"metadata": {"name": "far", "ownerReferences": [reference("own", &own)]}});
    let far = "/api/v1/namespaces/kube-public/secrets";
    assert_eq!(bench.post(far, &object).await.code, StatusCode::CREATED);
    settle().await;
    bench
        .get(&format!("{far}/far"))
        .await
        .fails(404, "NotFound");
    assert!(exists(&bench, "own").await);
    let events = bench
        .get("/api/v1/namespaces/kube-public/events")
        .await
        .json();
    let event = &events["items"][0];
    assert_eq!(event["reason"], "OwnerRefInvalidNamespace");
    assert_eq!(event["type"], "Warning");
    let message = format!(
        "ownerRef [v1/ConfigMap, namespace: kube-public, name: own, uid: {own}] does not exist in \
         namespace \"kube-public\""
    );
    assert_eq!(event["message"], message);
}

#[tokio::test(start_paused = true)]
async fn owners_of_an_unknown_kind_keep_their_dependents() {
    let bench = Bench::new().await;
    let unknown = json!({"apiVersion": "demo.dev/v1", "kind": "Widget", "name": "w", "uid": "u"});
    owned(&bench, "a", &[unknown]).await;
    settle().await;
    assert!(exists(&bench, "a").await);
}

#[tokio::test(start_paused = true)]
async fn a_paused_collector_does_its_work_later() {
    let bench = Bench::new().await;
    let control = bench.cluster.control();
    control.pause_garbage_collection();
    let own = owned(&bench, "own", &[]).await;
    owned(&bench, "a", &[reference("own", &own)]).await;
    delete(&bench, "own", "Background").await;
    settle().await;
    assert!(exists(&bench, "a").await);
    control.resume_garbage_collection();
    settle().await;
    assert!(!exists(&bench, "a").await);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_collector_leaves_dependents_and_finalizers() {
    let cluster = Cluster::builder()
        .garbage_collection(false)
        .start()
        .await
        .unwrap();
    let bench = Bench { cluster };
    let own = owned(&bench, "own", &[]).await;
    owned(&bench, "a", &[reference("own", &own)]).await;
    delete(&bench, "own", "Foreground").await;
    settle().await;
    assert!(exists(&bench, "own").await && exists(&bench, "a").await);
}

#[tokio::test(start_paused = true)]
async fn many_dependents_of_other_kinds_go_too() {
    let bench = Bench::new().await;
    let own = owned(&bench, "own", &[]).await;
    for number in 0..600 {
        let owners = json!([reference("own", &own)]);
        let object = json!({"metadata": {"name": format!("s{number}"), "ownerReferences": owners}});
        bench.post(SECRETS, &object).await;
    }
    delete(&bench, "own", "Foreground").await;
    settle().await;
    assert!(bench.names(SECRETS).await.is_empty());
    assert!(!exists(&bench, "own").await);
}

/// One thing that happens to objects `o0` to `o7`.
#[derive(Debug, Clone)]
enum Step {
    /// Creates an object that is owned by others, which may not exist any more.
    Create(usize, Vec<(usize, bool)>),
    Delete(usize, &'static str),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let owners = prop::collection::vec((0..8_usize, any::<bool>()), 0..3);
    let policy = prop::sample::select(vec!["Background", "Foreground", "Orphan"]);
    let step = prop_oneof![
        3 => (0..8_usize, owners).prop_map(|(name, owners)| Step::Create(name, owners)),
        1 => (0..8_usize, policy).prop_map(|(name, policy)| Step::Delete(name, policy)),
    ];
    prop::collection::vec(step, 1..30)
}

/// What there should be when nothing moves any more: name to uid, and the uids of the owners.
#[derive(Debug, Default)]
struct Model {
    objects: BTreeMap<usize, (String, Vec<String>)>,
}

impl Model {
    fn is_live(&self, uid: &str) -> bool {
        self.objects.values().any(|(each, _)| each == uid)
    }

    fn delete(&mut self, name: usize, policy: &str) {
        let Some((uid, _)) = self.objects.remove(&name) else {
            return;
        };
        if policy == "Orphan" {
            for (_, owners) in self.objects.values_mut() {
                owners.retain(|owner| *owner != uid);
            }
        }
        self.collect();
    }

    /// Removes what has only absent owners, until nothing has.
    fn collect(&mut self) {
        loop {
            let is_garbage = |owners: &[String]| {
                !owners.is_empty() && owners.iter().all(|owner| !self.is_live(owner))
            };
            let found = self
                .objects
                .iter()
                .find(|(_, (_, owners))| is_garbage(owners));
            let Some(name) = found.map(|(name, _)| *name) else {
                break;
            };
            self.objects.remove(&name);
        }
        let live: BTreeSet<String> = self.objects.values().map(|(uid, _)| uid.clone()).collect();
        for (_, owners) in self.objects.values_mut() {
            owners.retain(|owner| live.contains(owner));
        }
    }
}

async fn run(steps: Vec<Step>) {
    let bench = Bench::new().await;
    let mut model = Model::default();
    let mut last_uids = vec!["never".to_owned(); 8];
    for step in steps {
        match step {
            Step::Create(name, owners) if !model.objects.contains_key(&name) => {
                let mut references: BTreeMap<usize, bool> = owners.into_iter().collect();
                references.remove(&name);
                let uids: Vec<String> = references
                    .keys()
                    .map(|owner| last_uids[*owner].clone())
                    .collect();
                let references: Vec<Value> = references
                    .iter()
                    .map(|(owner, blocks)| {
                        let mut each = reference(&format!("o{owner}"), &last_uids[*owner]);
                        each["blockOwnerDeletion"] = (*blocks).into();
                        each
                    })
                    .collect();
                let uid = owned(&bench, &format!("o{name}"), &references).await;
                last_uids[name].clone_from(&uid);
                model.objects.insert(name, (uid, uids));
                model.collect();
            }
            Step::Create(..) => {}
            Step::Delete(name, policy) => {
                let path = format!("{CONFIG_MAPS}/o{name}?propagationPolicy={policy}");
                bench.delete(&path).await;
                model.delete(name, policy);
            }
        }
        settle().await;
        let list = bench.get(CONFIG_MAPS).await.json();
        let actual: BTreeMap<String, BTreeSet<String>> = list["items"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|item| {
                let owners = item["metadata"]["ownerReferences"]
                    .as_array()
                    .into_iter()
                    .flatten();
                let owners = owners.map(|each| text(each, "/uid").to_owned()).collect();
                (text(item, "/metadata/uid").to_owned(), owners)
            })
            .collect();
        let expected: BTreeMap<String, BTreeSet<String>> = model
            .objects
            .values()
            .map(|(uid, owners)| (uid.clone(), owners.iter().cloned().collect()))
            .collect();
        assert_eq!(actual, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is created and deleted, the rest has a live owner or none.
    #[test]
    fn what_is_left_is_what_a_live_owner_holds(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime starts");
        runtime.block_on(run(steps));
    }
}
