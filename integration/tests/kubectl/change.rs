//! Patches, edits, labels, annotations and scales.

use anyhow::ensure;
use lariat_integration::in_namespace;

use crate::apply::DEPLOYMENT;
use crate::objects::SETTINGS;

#[tokio::test]
async fn patches_of_three_types_are_merged() {
    in_namespace("kubectl-patch", async |env| {
        let kubectl = env.kubectl()?;
        kubectl.run_with("create -f -", DEPLOYMENT).await?;
        for (patch, outcome) in [
            (r#"--type=merge -p {"metadata":{"labels":{"a":"1"}}}"#, "patched"),
            (r#"--type=merge -p {"metadata":{"labels":{"a":"1"}}}"#, "patched (no change)"),
            (r#"--type=json -p [{"op":"test","path":"/spec/replicas","value":7}]"#, ""),
            (r#"--type=json -p [{"op":"add","path":"/spec/paused","value":true}]"#, "patched"),
            (
                r#"--type=strategic -p {"spec":{"template":{"spec":{"containers":[{"name":"log","image":"log:v2"}]}}}}"#,
                "patched",
            ),
        ] {
            let command = format!("patch deployment web {patch}");
            if outcome.is_empty() {
                let refused = kubectl.refused(&command, "").await?;
                ensure!(refused.contains("the server rejected our request"), "{refused}");
            } else {
                assert_eq!(kubectl.run(&command).await?, format!("deployment.apps/web {outcome}\n"));
            }
        }
        let images = kubectl.run("get deployment web -o jsonpath={..image}").await?;
        assert_eq!(images, "registry.example.com/app:v1 log:v2");
        let status = r#"patch deployment web --subresource=status --type=merge -p {"status":{"replicas":0}}"#;
        ensure!(kubectl.run(status).await?.starts_with("deployment.apps/web patched"));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_edit_sends_what_the_editor_changed() {
    in_namespace("kubectl-edit", async |env| {
        let kubectl = env.kubectl()?;
        kubectl.run_with("create -f -", SETTINGS).await?;
        let editor = kubectl.folder().join("editor");
        for (script, stdout, stderr) in [
            (
                "sed -i 's/a: \"1\"/a: \"2\"/' \"$1\"",
                "configmap/settings edited\n",
                "",
            ),
            ("true", "", "Edit cancelled, no changes made.\n"),
        ] {
            std::fs::write(&editor, script)?;
            let edited = kubectl
                .ended(&["edit", "configmap", "settings"], "")
                .await?;
            assert_eq!((&*edited.stdout, &*edited.stderr), (stdout, stderr));
        }
        let data = kubectl
            .run("get configmap settings -o jsonpath={.data.a}")
            .await?;
        assert_eq!(data, "2");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn labels_and_annotations_are_set_and_taken_away() {
    in_namespace("kubectl-label", async |env| {
        let kubectl = env.kubectl()?;
        kubectl.run_with("create -f -", SETTINGS).await?;
        for (command, expected) in [
            (
                "label configmap settings tier=one",
                "configmap/settings labeled\n",
            ),
            (
                "label configmap settings tier=one",
                "configmap/settings not labeled\n",
            ),
            (
                "label configmap settings tier=two --overwrite",
                "configmap/settings labeled\n",
            ),
            ("get configmap -l tier=two -o name", "configmap/settings\n"),
            (
                "label configmap settings tier-",
                "configmap/settings unlabeled\n",
            ),
            (
                "annotate configmap settings note=one",
                "configmap/settings annotated\n",
            ),
            (
                "get configmap settings -o jsonpath={.metadata.annotations.note}",
                "one",
            ),
            (
                "annotate configmap settings note-",
                "configmap/settings annotated\n",
            ),
        ] {
            assert_eq!(kubectl.run(command).await?, expected, "{command}");
        }
        kubectl.run("label configmap settings tier=one").await?;
        let refused = kubectl
            .refused("label configmap settings tier=two", "")
            .await?;
        assert_eq!(
            refused,
            "error: 'tier' already has a value (one), and --overwrite is false\n"
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn workloads_are_scaled() {
    in_namespace("kubectl-scale", async |env| {
        let kubectl = env.kubectl()?;
        kubectl.run_with("create -f -", DEPLOYMENT).await?;
        let scaled = kubectl.run("scale deployment web --replicas=3").await?;
        assert_eq!(scaled, "deployment.apps/web scaled\n");
        let replicas = kubectl
            .run("get deployment web -o jsonpath={.spec.replicas}")
            .await?;
        assert_eq!(replicas, "3");
        let refused = kubectl
            .refused("scale deployment web --replicas=1 --current-replicas=7", "")
            .await?;
        ensure!(
            refused.contains("Expected replicas to be 7, was 3"),
            "{refused}"
        );
        kubectl.run("scale deployment web --replicas=0").await?;
        Ok(())
    })
    .await;
}
