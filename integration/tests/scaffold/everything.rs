//! A project with webhooks, to which everything is added that can be.

use std::fs;

use lariat_integration::Kubectl;

use super::{Folder, cargo, lariat, share};

#[tokio::test(flavor = "multi_thread")]
async fn a_project_with_webhooks_and_additions_compiles_and_its_tests_pass() {
    let folder = Folder::new();
    let project = folder.0.join("fox");
    let path = project.to_str().expect("a path");
    let (ok, text) = lariat(&["new", "fox", "--webhook", "--path", path]).await;
    assert!(ok, "{text}");
    share(&project);
    // As it is written, all tests pass, also that of the permissions.
    let (ok, text) = cargo(&project, &["test", "--quiet"]).await;
    assert!(ok, "{text}");
    let webhooks = cargo(&project, &["test", "--test", "webhooks", "--", "--list"]).await;
    let tested = "a_cluster_asks_them_before_it_stores_an_object";
    assert!(webhooks.1.contains(tested), "{}", webhooks.1);

    for added in [
        &["add", "kind", "BigDen"][..],
        &["add", "webhook", "BigDen"],
        &["add", "reconciler", "big-den"],
        &["add", "reconciler", "watcher", "--kind", "Fox"],
    ] {
        let (ok, text) = lariat(&[added, &["--path", path]].concat()).await;
        assert!(ok, "{added:?}: {text}");
    }
    let formatted = cargo(&project, &["fmt", "--check"]).await;
    assert!(formatted.0, "{}", formatted.1);
    // The manifests are out of date, and a test says so.
    let (ok, text) = cargo(&project, &["test", "--quiet", "--test", "manifests"]).await;
    let hint = "run: cargo run -- crd > deploy/crd.yaml";
    assert!(!ok && text.contains(hint), "{text}");
    let (ok, definitions) = lariat(&["crd", "--path", path]).await;
    assert!(ok, "{definitions}");
    let (ok, permissions) = cargo(&project, &["run", "--quiet", "--", "rbac"]).await;
    assert!(ok, "{permissions}");
    for (path, text) in [
        ("deploy/crd.yaml", &definitions),
        ("deploy/rbac.yaml", &permissions),
        ("deploy/chart/files/rbac.yaml", &permissions),
    ] {
        fs::write(project.join(path), text).expect("it can be written");
    }
    let (ok, text) = cargo(&project, &["test", "--quiet"]).await;
    assert!(ok, "{text}");

    let kubectl = Kubectl::new(Some("{}"), "default").expect("kubectl is there");
    let deploy = project.join("deploy");
    let deploy = deploy.to_str().expect("a path");
    let built = kubectl.run(&format!("kustomize {deploy}")).await;
    let built = built.expect("the manifests are a kustomization");
    for object in [
        "bigdens.example.com",
        "fox-webhooks-tls",
        "image: fox:0.1.0",
    ] {
        assert!(built.contains(object), "{object}: {built}");
    }
}
