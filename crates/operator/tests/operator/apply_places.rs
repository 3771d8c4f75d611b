//! Tests of the namespaces and kinds in which sets search for objects to prune.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use lariat_cache::{KindOptions, Selection};
use lariat_cluster::faults::{Action as Fault, Refusal, Rule, StatusCode};
use lariat_controller::{ControllerOptions, Outcome, SharedControllerFactory};
use lariat_core::Gvk;
use lariat_operator::{Apply, Desired, Finalizer, Operator, Reconcile};
use lariat_testing::Logs;
use serde_json::{Value, json};
use tokio::time;

use crate::apply_rig::{Rig, config, in_default};
use crate::bench::{Bench, SECOND, Widget, settle};

fn outside(name: &str) -> Value {
    let mut object = config(name, "1");
    object["metadata"]["namespace"] = json!("kube-system");
    object
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_set_that_becomes_owned_are_found_in_other_namespaces() {
    for watches in [true, false] {
        let rig = if watches {
            Rig::watching().await
        } else {
            Rig::blind().await
        };
        rig.setup(Apply::without_owner);
        rig.want([outside("web"), config("here", "1")]);
        rig.bench.create("a", 1).await;
        settle().await;
        assert_eq!(rig.noted().await[0].1, "v1/ConfigMap;default,kube-system");
        rig.setup(|set| set);
        rig.apply([config("web", "1")]).await;
        rig.kick().await;
        let there: Api<ConfigMap> = Api::namespaced(rig.cluster().client(), "kube-system");
        assert!(there.get_opt("web").await.unwrap().is_none(), "{watches}");
        assert!(rig.config_map("here").await.is_none(), "{watches}");
        assert_eq!(rig.noted().await[0].1, "v1/ConfigMap");
        let mark = rig.cluster().journal().mark();
        rig.kick().await;
        let journal = rig.cluster().journal();
        let lists = journal
            .select()
            .since(mark)
            .verb("list")
            .namespace("kube-system");
        assert_eq!(lists.count(), 0, "it is not searched any more");
    }
}

/// Starts an operator that caches ConfigMaps of `default` only, and has a set with an object elsewhere.
async fn start_restricted(bench: &Bench, annotates: bool) -> Operator {
    let selection = Selection::all().in_namespaces(["default"]);
    let options = ControllerOptions::default().cache(KindOptions::default().selection(selection));
    let factory = SharedControllerFactory::builder(bench.cluster.client())
        .kind_options(Gvk::new("", "v1", "ConfigMap"), options)
        .build();
    let operator = Operator::new("widgeteer", &factory);
    let set_of = move |cx: &Reconcile<Widget>| {
        let set = cx.apply_set("things").without_owner();
        if annotates {
            set
        } else {
            set.without_annotation()
                .prunes_kind("v1/ConfigMap".parse::<Gvk>().expect("a kind"))
                .prunes_in("kube-system")
        }
    };
    let cleanup = move |cx: Reconcile<Widget>| async move {
        let applied = set_of(&cx).apply(Desired::new()).await?;
        Ok(if applied.is_gone() {
            Outcome::done()
        } else {
            Outcome::requeue_after(SECOND)
        })
    };
    operator
        .reconciler("applies", &factory.for_object::<Widget>())
        .owns(&factory.for_object::<ConfigMap>())
        .finalizer(Finalizer::new("demo.dev/set"), cleanup)
        .register(move |cx: Reconcile<Widget>| async move {
            set_of(&cx)
                .apply(Desired::new().with_value(outside("web")))
                .await?;
            Ok(Outcome::done())
        })
        .expect("registered");
    operator.start(2).await.expect("started");
    operator
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_does_not_come_off_before_objects_outside_of_the_cache_are_gone() {
    for annotates in [true, false] {
        let bench = Bench::new().await;
        let operator = start_restricted(&bench, annotates).await;
        bench.create("a", 1).await;
        settle().await;
        let there: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "kube-system");
        assert!(there.get_opt("web").await.unwrap().is_some());
        let hold = Rule::new(Fault::Refuse(Refusal::new(StatusCode::SERVICE_UNAVAILABLE)));
        bench
            .cluster
            .faults()
            .add(hold.verb("delete").resource("configmaps").times(3));
        bench.delete("a").await;
        settle().await;
        assert!(bench.get("a").await.is_some(), "{annotates}");
        time::sleep(60 * SECOND).await;
        assert!(bench.get("a").await.is_none(), "{annotates}");
        assert!(there.get_opt("web").await.unwrap().is_none(), "{annotates}");
        operator.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_managed_fields_were_taken_off_is_named_and_not_gone() {
    let logs = Logs::begin();
    for rig in [Rig::watching().await, Rig::blind().await] {
        rig.want([config("web", "1")]);
        rig.bench.create("a", 1).await;
        settle().await;
        let api = rig.config_maps();
        let mut web = rig.config_map("web").await.unwrap();
        let copied = (
            web.metadata.labels.clone(),
            web.metadata.owner_references.clone(),
        );
        // A copy, which others are known to have created.
        let mut copy = in_default(config("copy", "1"));
        copy["metadata"]["labels"] = json!(copied.0);
        copy["metadata"]["ownerReferences"] = json!(copied.1);
        rig.create(copy).await;
        settle().await;
        rig.want([]);
        web.metadata.managed_fields = Some(vec![Default::default()]);
        api.replace("web", &PostParams::default(), &web)
            .await
            .unwrap();
        rig.kick().await;
        let last = rig.last().unwrap();
        let left: Vec<_> = last
            .skipped()
            .iter()
            .map(|each| (each.key.name(), each.is_of_others))
            .collect();
        assert_eq!(left, [("copy", true), ("web", false)]);
        assert!(!last.is_gone());
        assert_eq!(last.to_string(), "2 left alone");
        assert_eq!(
            rig.noted().await[0].1,
            "v1/ConfigMap",
            "it is looked for again"
        );
        rig.kick().await;
        rig.kick().await;
        api.delete("web", &Default::default()).await.unwrap();
        rig.kick().await;
        assert!(rig.last().unwrap().is_gone(), "the copy is not the set's");
        assert_eq!(rig.noted().await.len(), 0);
    }
    let text = logs.text();
    let said = text.lines().filter(|line| line.contains("not deleted"));
    let (warned, noted): (Vec<_>, Vec<_>) = said.partition(|line| line.starts_with("WARN"));
    assert_eq!(warned.len(), 2, "once for each object: {warned:?}");
    assert!(noted.len() >= 4, "{noted:?}");
}

#[tokio::test(start_paused = true)]
async fn a_group_that_does_not_answer_is_not_taken_for_one_that_is_not_served() {
    let mut rig = Rig::blind().await;
    let definition = lariat_cluster::testing::crd("gadgets.dev", "v1", "Gadget");
    rig.create(definition.value().clone()).await;
    time::sleep(5 * SECOND).await;
    let gadget =
        json!({"apiVersion": "gadgets.dev/v1", "kind": "Gadget", "metadata": {"name": "g"}});
    rig.want([gadget]);
    rig.bench.create("a", 1).await;
    settle().await;
    assert_eq!(rig.calls()[0], "1 created");
    rig.bench.operator.stop().await.unwrap();
    // Discovery by group, which first lacks the version, and then fails.
    let faults = rig.cluster().faults();
    faults.add(Rule::new(Fault::LegacyDiscovery));
    let asks = |request: &lariat_cluster::RecordedRequest| request.path == "/apis/gadgets.dev/v1";
    let missing = Fault::Refuse(Refusal::new(StatusCode::NOT_FOUND));
    faults.add(Rule::new(missing).when(asks).times(1));
    let away = Fault::Refuse(Refusal::new(StatusCode::SERVICE_UNAVAILABLE));
    faults.add(Rule::new(away).when(asks));
    rig.want([]);
    rig.restart(false).await;
    time::sleep(10 * SECOND).await;
    let calls = rig.calls();
    assert!(
        calls[0].contains("its API group does not answer"),
        "{calls:?}"
    );
    assert!(
        calls.iter().all(|call| call.contains("cannot apply")),
        "{calls:?}"
    );
    rig.cluster().faults().clear();
    time::sleep(60 * SECOND).await;
    assert_eq!(rig.calls().pop().unwrap(), "1 pruned");
    rig.kick().await;
    assert!(rig.last().unwrap().is_gone());
    assert_eq!(rig.noted().await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn two_sets_of_one_name_in_one_call_are_refused_before_they_delete_each_other() {
    let bench = Bench::new().await;
    let failures = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let noted = std::sync::Arc::clone(&failures);
    let config_maps = bench.factory.for_object::<ConfigMap>();
    let reconciler = bench.operator.reconciler("applies", &bench.widgets);
    let registered = reconciler
        .owns(&config_maps)
        .register(move |cx: Reconcile<Widget>| {
            let noted = std::sync::Arc::clone(&noted);
            async move {
                let one = || Desired::new().with_value(config("one", "1"));
                let two = || Desired::new().with_value(config("two", "1"));
                cx.apply(one()).await?;
                // The same set again, and another set, are no conflict.
                cx.apply(one()).await?;
                cx.apply_set("other").apply(Desired::new()).await?;
                let error = cx.apply(two()).await.expect_err("it contradicts");
                noted.lock().push((error.to_string(), error.is_terminal()));
                Ok(Outcome::done())
            }
        });
    registered.unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    let failures = failures.lock().clone();
    assert!(!failures.is_empty());
    for (text, is_terminal) in failures {
        assert!(text.contains("was applied before in this call"), "{text}");
        assert!(text.contains("apply_set"), "{text}");
        assert!(is_terminal);
    }
    let api: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
    assert!(api.get_opt("one").await.unwrap().is_some());
    assert_eq!(bench.cluster.journal().count("delete", "configmaps"), 0);
    assert_eq!(bench.cluster.journal().count("patch", "configmaps"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_note_on_the_owner_is_no_change_to_a_status_that_is_for_this_state_only() {
    let bench = Bench::new().await;
    let config_maps = bench.factory.for_object::<ConfigMap>();
    let results = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let noted = std::sync::Arc::clone(&results);
    let reconciler = bench.operator.reconciler("applies", &bench.widgets);
    let registered = reconciler
        .owns(&config_maps)
        .register(move |cx: Reconcile<Widget>| {
            let noted = std::sync::Arc::clone(&noted);
            async move {
                cx.apply(Desired::new().with_value(config("web", "1")))
                    .await?;
                let status = crate::bench::WidgetStatus {
                    size: Some(cx.object().spec.size),
                    ..Default::default()
                };
                let written = cx.status().unchanged_only().set(&status).await;
                noted
                    .lock()
                    .push(written.map_err(|error| error.to_string()));
                Ok(Outcome::done())
            }
        });
    registered.unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    assert_eq!(results.lock()[0], Ok(true));
    assert_eq!(bench.get("a").await.unwrap().status.unwrap().size, Some(1));
}
