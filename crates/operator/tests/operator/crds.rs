//! Tests of CRDs: created, patched, kept and waited for.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, CustomResourceExt};
use lariat_cluster::testing::{TestCluster, wait_for_condition, wait_until_gone};
use lariat_cluster::{Cluster, Time, User};
use lariat_controller::{Outcome, SharedControllerFactory};
use lariat_operator::{
    CrdChange, CrdError, CrdMismatch, CrdOptions, CrdReport, Install, InstallError, Operator,
    OperatorError, ensure_crds, with_crd_version,
};
use serde_json::{Value, json};
use tokio::time;

use crate::bench::{SECOND, Widget, WidgetSpec};

pub(crate) const NAME: &str = "widgets.demo.dev";
const PLURAL: &str = "customresourcedefinitions";

pub(crate) fn definitions(cluster: &TestCluster) -> Api<CustomResourceDefinition> {
    Api::all(cluster.client())
}

/// Returns the CRD of Widgets with a merge patch.
pub(crate) fn widgets(patch: &Value) -> CustomResourceDefinition {
    fn merge(into: &mut Value, patch: &Value) {
        match patch.as_object() {
            Some(members) if into.is_object() => {
                for (name, value) in members {
                    merge(&mut into[name], value);
                }
            }
            _ => *into = patch.clone(),
        }
    }
    let mut definition = serde_json::to_value(Widget::crd()).expect("JSON");
    merge(&mut definition, patch);
    serde_json::from_value(definition).expect("a CRD")
}

/// Returns versions of Widgets with these names; the last one is stored.
fn versions(names: &[&str]) -> Value {
    let v1 = serde_json::to_value(&Widget::crd().spec.versions[0]).expect("JSON");
    let last = names.len() - 1;
    let version = |(n, name): (usize, &&str)| {
        let mut version = v1.clone();
        version["name"] = (*name).into();
        version["storage"] = (n == last).into();
        version
    };
    names.iter().enumerate().map(version).collect()
}

pub(crate) async fn ensure(
    client: &Client,
    definition: &CustomResourceDefinition,
) -> Result<CrdReport, InstallError> {
    ensure_with(client, definition, &CrdOptions::default()).await
}

pub(crate) async fn ensure_with(
    client: &Client,
    definition: &CustomResourceDefinition,
    options: &CrdOptions,
) -> Result<CrdReport, InstallError> {
    let definitions = std::slice::from_ref(definition);
    let mut reports = ensure_crds(client, definitions, options).await?;
    assert_eq!(reports.len(), 1);
    Ok(reports.remove(0))
}

/// Returns the number of writes of CRDs, including failed ones.
pub(crate) fn writes(cluster: &TestCluster) -> usize {
    let verbs = ["create", "update", "patch", "delete"];
    verbs
        .iter()
        .map(|verb| cluster.journal().count(verb, PLURAL))
        .sum()
}

#[tokio::test(start_paused = true)]
async fn a_definition_may_be_needed_by_several_modules() {
    let cluster = Cluster::for_test().await;
    let factory = SharedControllerFactory::builder(cluster.client()).build();
    let operator = Operator::new("widgeteer", &factory);
    operator.installs(Widget::crd());
    operator.installs(Widget::crd());
    operator.start(1).await.unwrap();
    assert_eq!(
        cluster
            .journal()
            .count("create", "customresourcedefinitions"),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn kinds_are_served_before_the_factory_starts() {
    let cluster = Cluster::builder().time(Time::real()).for_test().await;
    let factory = SharedControllerFactory::builder(cluster.client()).build();
    let operator = Operator::new("widgeteer", &factory);
    let gadgets = json!({
        "metadata": {"name": "gadgets.demo.dev"},
        "spec": {"names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget"}},
    });
    operator.installs(Widget::crd());
    operator.installs(widgets(&gadgets));
    operator
        .reconciler("sizes", &factory.for_object::<Widget>())
        .register(|_| async { Ok(Outcome::done()) })
        .unwrap();
    // Discovery finds the kind, which it did not have before.
    let gadgets = factory.for_kind("demo.dev/v1/Gadget".parse::<lariat_core::Gvk>().unwrap());
    assert!(gadgets.client().resource().await.is_err());
    gadgets
        .register_handler("look", |_| async { Ok(Outcome::done()) })
        .unwrap();
    operator.start(1).await.unwrap();
    assert_eq!(cluster.journal().count("create", PLURAL), 2);
    let installed = definitions(&cluster).get(NAME).await.unwrap();
    let managers = installed.metadata.managed_fields.unwrap();
    assert!(
        managers
            .iter()
            .any(|entry| entry.manager.as_deref() == Some("widgeteer"))
    );
    operator.stop().await.unwrap();
    operator.start(1).await.unwrap();
    assert_eq!(writes(&cluster), 2, "a second start writes nothing");
}

#[tokio::test(start_paused = true)]
async fn replicas_that_start_at_once_do_not_fight() {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    let definition = Widget::crd();
    let (one, two, three) = tokio::join!(
        ensure(&client, &definition),
        ensure(&client, &definition),
        ensure(&client, &definition),
    );
    let changes = [one, two, three].map(|report| report.unwrap().change);
    let created = changes
        .iter()
        .filter(|change| **change == CrdChange::Created);
    assert_eq!(created.count(), 1);
    assert_eq!(cluster.journal().count("patch", PLURAL), 0);
}

#[tokio::test(start_paused = true)]
async fn what_differs_is_changed_and_what_others_said_stays() {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    let conversion = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://convert.example.com/", "caBundle": "eA=="},
    }});
    let theirs = widgets(&json!({
        "metadata": {"labels": {"theirs": "a", "ours": "old"}, "annotations": {"cert-manager.io/inject-ca-from": "x"}},
        "spec": {"names": {"shortNames": ["w"]}, "conversion": conversion, "versions": versions(&["v1beta1", "v1"])},
    }));
    ensure(&client, &theirs).await.unwrap();
    let mut version = versions(&["v1"]);
    version[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]["maximum"] =
        json!(9.0);
    let ours =
        widgets(&json!({"metadata": {"labels": {"ours": "new"}}, "spec": {"versions": version}}));
    let report = ensure(&client, &ours).await.unwrap();
    let paths = [
        "metadata.labels.ours",
        "spec.names.shortNames",
        "spec.versions[v1].schema.openAPIV3Schema.properties.spec.properties.size.maximum",
    ];
    assert_eq!(
        report.change,
        CrdChange::Updated(paths.map(str::to_owned).to_vec())
    );
    let unknown = CrdMismatch::UnknownVersion {
        version: "v1beta1".to_owned(),
        served: true,
    };
    assert_eq!(report.mismatches, [unknown]);
    let installed = serde_json::to_value(definitions(&cluster).get(NAME).await.unwrap()).unwrap();
    assert_eq!(
        installed["metadata"]["labels"],
        json!({"theirs": "a", "ours": "new"})
    );
    assert!(installed["metadata"]["annotations"].is_object());
    assert_eq!(installed["spec"]["conversion"], conversion);
    assert_eq!(installed["spec"]["versions"][0]["name"], "v1beta1");
    assert!(installed["spec"]["names"].get("shortNames").is_none());
    assert_eq!(
        ensure(&client, &ours).await.unwrap().change,
        CrdChange::Unchanged
    );
    assert_eq!(writes(&cluster), 2);
}

#[tokio::test(start_paused = true)]
async fn what_a_newer_program_stores_is_left_alone() {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    let newer = widgets(&json!({"spec": {"versions": versions(&["v1", "v2"])}}));
    ensure(&client, &newer).await.unwrap();
    let report = ensure(&client, &Widget::crd()).await.unwrap();
    assert_eq!(report.change, CrdChange::Unchanged);
    let text = report.to_string();
    assert!(
        text.contains("objects are stored as v2, which is newer"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn field_of_newer_release_survives_the_start_of_an_older_one() {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    let mut version = versions(&["v1"]);
    let schema = &mut version[0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["tls"] = json!({"type": "boolean"});
    let newer = widgets(&json!({"spec": {"versions": version}}));
    ensure(&client, &newer).await.unwrap();
    let report = ensure(&client, &Widget::crd()).await.unwrap();
    assert_eq!(report.change, CrdChange::Unchanged);
    let version = "v1".to_owned();
    assert_eq!(report.mismatches, [CrdMismatch::UnknownFields { version }]);
    let report = ensure(&client, &with_crd_version(Widget::crd(), 1)).await;
    let text = report.unwrap().to_string();
    assert!(text.contains("properties.spec.properties.tls"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn what_an_older_program_stores_is_taken_over_and_reported() {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    let older = widgets(&json!({"spec": {"versions": versions(&["v1beta1"])}}));
    ensure(&client, &older).await.unwrap();
    let report = ensure(&client, &Widget::crd()).await.unwrap();
    let paths = ["spec.versions[v1beta1].storage", "spec.versions[v1]"].map(str::to_owned);
    assert_eq!(report.change, CrdChange::Updated(paths.to_vec()));
    let text = report.to_string();
    assert!(
        text.contains("remove v1beta1 from status.storedVersions"),
        "{text}"
    );
    let installed = definitions(&cluster).get(NAME).await.unwrap();
    assert_eq!(
        installed.status.unwrap().stored_versions.unwrap(),
        ["v1beta1", "v1"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_definition_with_a_smaller_number_writes_nothing() {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    let described = |text: &str| widgets(&json!({"spec": {"names": {"shortNames": [text]}}}));
    ensure(&client, &with_crd_version(described("new"), 2))
        .await
        .unwrap();
    for ours in [described("old"), with_crd_version(described("old"), 1)] {
        let report = ensure(&client, &ours).await.unwrap();
        assert_eq!(report.change, CrdChange::Unchanged);
        assert!(
            matches!(
                report.mismatches[..],
                [CrdMismatch::NewerCrd { installed: 2, .. }]
            ),
            "{report}"
        );
    }
    let report = ensure(&client, &with_crd_version(described("newer"), 3)).await;
    assert!(matches!(report.unwrap().change, CrdChange::Updated(_)));
    assert_eq!(writes(&cluster), 2);
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_cannot_be_changed_is_an_error_at_once() {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    ensure(&client, &widgets(&json!({"spec": {"scope": "Cluster"}})))
        .await
        .unwrap();
    let began = time::Instant::now();
    let error = ensure(&client, &Widget::crd()).await.unwrap_err();
    assert!(began.elapsed() < SECOND);
    let text = error.to_string();
    assert!(
        text.contains("widgets.demo.dev is installed, but its spec.scope is Cluster"),
        "{text}"
    );
    assert_eq!(writes(&cluster), 1);
}

#[tokio::test(start_paused = true)]
async fn names_that_are_taken_are_reported_in_the_words_of_the_server() {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    let gadgets = |singular: &str, kind: &str| {
        widgets(&json!({
            "metadata": {"name": "gadgets.demo.dev"},
            "spec": {"names": {"kind": kind, "plural": "gadgets", "singular": singular, "shortNames": ["g"]}},
        }))
    };
    ensure(&client, &Widget::crd()).await.unwrap();
    let taken = ensure(&client, &gadgets("gadget", "Widget"))
        .await
        .unwrap_err();
    assert!(matches!(taken.failures(), [CrdError::NotReady { .. }]));
    let text = taken.to_string();
    for expected in [
        "was not ready within 60s",
        "NamesAccepted is False",
        "is already in use",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    // A CRD that waits for its names may still be given others.
    let report = ensure(&client, &gadgets("gadget", "Gadget")).await.unwrap();
    assert!(matches!(report.change, CrdChange::Updated(_)), "{report}");
}

#[tokio::test(start_paused = true)]
async fn verifying_writes_nothing_and_says_what_is_missing() {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    let options = CrdOptions::default().install(Install::Verify);
    let verify = async |definition: &CustomResourceDefinition| {
        ensure_with(&client, definition, &options).await
    };
    let missing = verify(&Widget::crd()).await.unwrap_err();
    assert!(
        matches!(missing.failures(), [CrdError::Missing { .. }]),
        "{missing}"
    );
    assert_eq!(writes(&cluster), 0);
    ensure(&client, &Widget::crd()).await.unwrap();
    assert!(verify(&Widget::crd()).await.unwrap().mismatches.is_empty());
    let other = widgets(&json!({"spec": {"names": {"shortNames": ["w"]}}}));
    let report = verify(&other).await.unwrap();
    let paths = vec!["spec.names.shortNames".to_owned()];
    assert_eq!(report.mismatches, [CrdMismatch::Differs { paths }]);
    let newer = widgets(&json!({"spec": {"versions": versions(&["v1", "v2"])}}));
    let text = verify(&newer).await.unwrap_err().to_string();
    assert!(
        text.contains("is installed, but it does not serve v2"),
        "{text}"
    );
    let options = CrdOptions::default().install(Install::CreateOnly);
    let report = ensure_with(&client, &other, &options).await.unwrap();
    assert!(
        matches!(report.mismatches[..], [CrdMismatch::Differs { .. }]),
        "{report}"
    );
    assert_eq!(writes(&cluster), 1);
}

#[tokio::test(start_paused = true)]
async fn a_permission_that_is_missing_is_named_with_the_way_without_it() {
    let builder = Cluster::builder()
        .rbac()
        .token_of("jane", User::new("jane"));
    let cluster = builder.for_test().await;
    let client = crate::program::client_of(&cluster, "jane");
    let factory = SharedControllerFactory::builder(client).build();
    let operator = Operator::new("widgeteer", &factory);
    operator.installs(Widget::crd());
    let error = operator.start(1).await.unwrap_err();
    assert!(matches!(error, OperatorError::Install(_)));
    let text = error.to_string();
    for expected in [
        "may not get the CRD widgets.demo.dev",
        "Install::Verify",
        "apiextensions.k8s.io",
    ] {
        assert!(text.contains(expected), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_is_going_is_waited_for() {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    ensure(&client, &Widget::crd()).await.unwrap();
    let api: Api<Widget> = Api::namespaced(client.clone(), "default");
    let mut widget = Widget::new("a", WidgetSpec::default());
    widget.metadata.finalizers = Some(vec!["demo.dev/hold".to_owned()]);
    api.create(&PostParams::default(), &widget).await.unwrap();
    let all = definitions(&cluster);
    let before = all
        .delete(NAME, &DeleteParams::default())
        .await
        .unwrap()
        .left()
        .unwrap()
        .metadata
        .uid;
    let error = ensure(&client, &Widget::crd()).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("it is being deleted: Terminating is True"),
        "{text}"
    );
    let definition = Widget::crd();
    let (report, ()) = tokio::join!(ensure(&client, &definition), async {
        time::sleep(10 * SECOND).await;
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        api.patch("a", &PatchParams::default(), &patch)
            .await
            .unwrap();
        wait_until_gone(&api, "a").await.ok();
    });
    assert_eq!(report.unwrap().change, CrdChange::Created);
    assert_ne!(all.get(NAME).await.unwrap().metadata.uid, before);
}

#[tokio::test(start_paused = true)]
async fn definitions_that_make_no_sense_are_named_all() {
    let cluster = Cluster::for_test().await;
    let unnamed = widgets(&json!({"metadata": {"name": null}}));
    let bad = widgets(&json!({"metadata": {"name": "others.demo.dev"}}));
    let all = [Widget::crd(), Widget::crd(), unnamed, bad];
    let error = ensure_crds(&cluster.client(), &all, &CrdOptions::default())
        .await
        .unwrap_err();
    let names: Vec<&str> = error.failures().iter().map(CrdError::name).collect();
    assert_eq!(names, [NAME, "", "others.demo.dev"]);
    let text = error.to_string();
    assert!(
        text.contains("cannot create the CRD others.demo.dev: "),
        "{text}"
    );
    // The first is fine.
    wait_for_condition(&definitions(&cluster), NAME, "Established")
        .await
        .unwrap();
}
