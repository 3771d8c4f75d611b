//! Tests of storage migrations, and of their interruptions.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, CustomResourceExt};
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_cluster::testing::{TestCluster, namespace};
use lariat_operator::{CrdOptions, ensure_crds};
use lariat_webhook::{MigrationError, StorageMigration};
use serde_json::json;

use crate::support::{Widget, WidgetSpec};

const NAME: &str = "widgets.demo.dev";

/// Returns a cluster with some widgets, whose status says that they may be stored in an old version.
async fn stored_in_an_old_version(widgets: usize) -> (TestCluster, Client) {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    namespace("demo").create(&client).await.unwrap();
    let mut definition = Widget::crd();
    let mut old = definition.spec.versions[0].clone();
    old.name = "v0".to_owned();
    old.storage = false;
    definition.spec.versions.push(old);
    ensure_crds(&client, &[definition], &CrdOptions::default())
        .await
        .unwrap();
    let api: Api<Widget> = Api::namespaced(client.clone(), "demo");
    for number in 0..widgets {
        let spec = WidgetSpec {
            size: 1,
            color: None,
        };
        let widget = Widget::new(&format!("w{number}"), spec);
        api.create(&PostParams::default(), &widget).await.unwrap();
    }
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let patch = json!({"status": {"storedVersions": ["v0", "v1"]}});
    api.patch_status(NAME, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    (cluster, client)
}

async fn stored_versions(client: &Client) -> Vec<String> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let status = api.get(NAME).await.unwrap().status.unwrap();
    status.stored_versions.unwrap()
}

#[tokio::test]
async fn every_object_is_written_once_and_old_versions_are_dropped() {
    let (cluster, client) = stored_in_an_old_version(7).await;
    let migration = StorageMigration::new(&client, NAME).page(3).rate(10_000);
    let report = migration.clone().run().await.unwrap();
    assert_eq!((report.rewritten, report.skipped), (7, 0));
    assert_eq!(
        (&*report.version, report.dropped),
        ("v1", vec!["v0".to_owned()])
    );
    assert_eq!(stored_versions(&client).await, ["v1"]);
    let patches = cluster.journal().count("patch", "widgets");
    assert_eq!(patches, 7);
    // Nothing is left to do, so no object is read.
    let before = cluster.journal().requests().len();
    let report = migration.run().await.unwrap();
    assert_eq!((report.rewritten, report.dropped.len()), (0, 0));
    assert_eq!(cluster.journal().requests().len(), before + 1);
}

#[tokio::test]
async fn an_interrupted_migration_goes_on_where_it_was() {
    let (cluster, client) = stored_in_an_old_version(7).await;
    let forbidden = Refusal::new(StatusCode::FORBIDDEN);
    let rule = Rule::new(Action::Refuse(forbidden))
        .verb("patch")
        .resource("widgets");
    cluster.faults().add(rule.nth(5));
    let migration = StorageMigration::new(&client, NAME).page(3).rate(10_000);
    let error = migration.clone().run().await.unwrap_err();
    let MigrationError::Interrupted {
        rewritten: 4,
        continue_token: Some(token),
        ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(stored_versions(&client).await, ["v0", "v1"]);
    // The page in which it was interrupted is written again.
    let report = migration.resume(token).run().await.unwrap();
    assert_eq!(report.rewritten, 4);
    assert_eq!(stored_versions(&client).await, ["v1"]);
}

#[tokio::test]
async fn a_token_of_another_storage_version_begins_the_migration_again() {
    let (cluster, client) = stored_in_an_old_version(7).await;
    let forbidden = Refusal::new(StatusCode::FORBIDDEN);
    let rule = Rule::new(Action::Refuse(forbidden))
        .verb("patch")
        .resource("widgets");
    cluster.faults().add(rule.nth(5));
    let migration = StorageMigration::new(&client, NAME).page(3).rate(10_000);
    let error = migration.clone().run().await.unwrap_err();
    let MigrationError::Interrupted {
        continue_token: Some(token),
        ..
    } = error
    else {
        panic!("{error}");
    };
    // The storage version changes.
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut definition = api.get(NAME).await.unwrap();
    for version in &mut definition.spec.versions {
        version.storage = version.name == "v0";
    }
    api.replace(NAME, &PostParams::default(), &definition)
        .await
        .unwrap();
    // All objects are written, those before the token too.
    let report = migration.clone().resume(token).run().await.unwrap();
    assert_eq!((&*report.version, report.rewritten), ("v0", 7));
    assert_eq!(stored_versions(&client).await, ["v0"]);
}

#[tokio::test]
async fn a_text_that_is_no_token_begins_the_migration_again() {
    let (_cluster, client) = stored_in_an_old_version(2).await;
    let migration = StorageMigration::new(&client, NAME).rate(10_000);
    let report = migration.resume("none").run().await.unwrap();
    assert_eq!(report.rewritten, 2);
}

#[tokio::test]
async fn objects_that_others_write_are_skipped_and_answers_that_are_missing_waited_for() {
    let (cluster, client) = stored_in_an_old_version(4).await;
    let faults = cluster.faults();
    let patches = |action| Rule::new(action).verb("patch").resource("widgets");
    let refused = |code| Action::Refuse(Refusal::new(code));
    faults.add(patches(refused(StatusCode::CONFLICT)).nth(1));
    faults.add(patches(refused(StatusCode::SERVICE_UNAVAILABLE)).nth(2));
    let report = StorageMigration::new(&client, NAME)
        .rate(10_000)
        .run()
        .await
        .unwrap();
    assert_eq!((report.rewritten, report.skipped), (3, 1));
    assert_eq!(stored_versions(&client).await, ["v1"]);
}

#[tokio::test]
async fn a_token_that_has_expired_begins_the_list_again() {
    let (cluster, client) = stored_in_an_old_version(5).await;
    let rule = Rule::new(Action::Refuse(Refusal::new(StatusCode::GONE)));
    cluster
        .faults()
        .add(rule.verb("list").resource("widgets").nth(2));
    let migration = StorageMigration::new(&client, NAME).page(2).rate(10_000);
    let report = migration.run().await.unwrap();
    assert_eq!(report.rewritten, 7);
    assert_eq!(stored_versions(&client).await, ["v1"]);
}

#[tokio::test]
async fn a_definition_that_is_missing_is_an_error_with_its_name() {
    let cluster = Cluster::for_test().await;
    let error = StorageMigration::new(&cluster.client(), NAME)
        .run()
        .await
        .unwrap_err();
    assert!(
        matches!(error, MigrationError::Definition { .. }),
        "{error}"
    );
    assert!(error.to_string().contains(NAME), "{error}");
}
