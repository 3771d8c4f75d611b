//! What kubectl asks a cluster about itself.

use anyhow::ensure;
use lariat_integration::{columns, eventually, in_namespace};

use crate::objects::{SETTINGS, WEB};

#[tokio::test]
async fn resources_are_listed_with_their_short_names() {
    in_namespace("kubectl-resources", async |env| {
        let kubectl = env.kubectl()?;
        env.define("Widget").await?;
        let all = columns(&kubectl.run("api-resources").await?);
        for row in [
            "NAME SHORTNAMES APIVERSION NAMESPACED KIND".to_owned(),
            "configmaps cm v1 true ConfigMap".to_owned(),
            "nodes no v1 false Node".to_owned(),
            "deployments deploy apps/v1 true Deployment".to_owned(),
            "customresourcedefinitions crd,crds apiextensions.k8s.io/v1 false CustomResourceDefinition".to_owned(),
            format!("widgets {}/v1 true Widget", env.group()),
        ] {
            ensure!(all.lines().any(|line| line == row), "no {row:?} in:\n{all}");
        }
        let versions = kubectl.run("api-versions").await?;
        ensure!(versions.lines().any(|line| line == "apps/v1"), "{versions}");
        let version = kubectl.run("version").await?;
        ensure!(version.contains("Server Version: v1."), "{version}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn fields_are_explained() {
    in_namespace("kubectl-explain", async |env| {
        let kubectl = env.kubectl()?;
        env.define("Widget").await?;
        // A genuine server publishes the schema of a new kind a moment after the kind is established.
        let explain = format!("explain widgets.{}", env.group());
        let widget = eventually(async || kubectl.run(&explain).await).await;
        let expected = format!("GROUP:      {}\nKIND:       Widget\nVERSION:    v1\n\n", env.group());
        ensure!(widget.starts_with(&expected), "{widget}");
        ensure!(widget.contains("\n  spec\t<Object>\n"), "{widget}");
        let replicas = kubectl.run("explain deployment.spec.replicas").await?;
        let expected = "GROUP:      apps\nKIND:       Deployment\nVERSION:    v1\n\nFIELD: replicas <integer>\n";
        ensure!(replicas.starts_with(expected), "{replicas}");
        let described = "DESCRIPTION:\n    Number of desired pods. ";
        ensure!(replicas.contains(described), "{replicas}");
        let policy = kubectl.run("explain pod.spec.containers.imagePullPolicy").await?;
        ensure!(policy.contains("ENUM:\n    Always\n    IfNotPresent\n    Never\n"), "{policy}");
        let older = kubectl
            .run("explain deployment.spec --output=plaintext-openapiv2")
            .await?;
        let expected = "KIND:     Deployment\nVERSION:  apps/v1\n\nRESOURCE: spec <Object>\n";
        ensure!(older.starts_with(expected), "{older}");
        ensure!(older.contains("replicas\t<integer>"), "{older}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn who_may_do_what_is_answered() {
    in_namespace("kubectl-auth", async |env| {
        let kubectl = env.kubectl()?;
        assert_eq!(kubectl.run("auth can-i create pods").await?, "yes\n");
        let who = columns(&kubectl.run("auth whoami").await?);
        ensure!(who.starts_with("ATTRIBUTE VALUE\nUsername "), "{who}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn objects_are_described_with_their_events() {
    in_namespace("kubectl-describe", async |env| {
        let kubectl = env.kubectl()?;
        kubectl.run_with("create -f -", &format!("{SETTINGS}---\n{WEB}")).await?;
        let settings = kubectl.run("describe configmap settings").await?;
        let head = format!("Name: settings\nNamespace: {}\n", env.namespace);
        ensure!(columns(&settings).starts_with(&head), "{settings}");
        ensure!(settings.contains("\nData\n====\na:\n----\n1\n"), "{settings}");
        let uid = kubectl.run("get pod web -o jsonpath={.metadata.uid}").await?;
        let event = format!(
            "apiVersion: v1\nkind: Event\nmetadata: {{name: web.1}}\nreason: Tested\nmessage: all is well\ntype: Normal\n\
            involvedObject: {{apiVersion: v1, kind: Pod, name: web, namespace: {}, uid: {uid}}}\n",
            env.namespace
        );
        kubectl.run_with("create -f -", &event).await?;
        let pod = kubectl.run("describe pod web").await?;
        ensure!(pod.contains("Tested") && pod.contains("all is well"), "{pod}");
        let events = kubectl.run("events --for pod/web").await?;
        ensure!(events.contains("all is well"), "{events}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn what_needs_a_node_is_refused_cleanly() {
    in_namespace("kubectl-logs", async |env| {
        let kubectl = env.kubectl()?;
        kubectl.run_with("create -f -", WEB).await?;
        let logs = kubectl.ended(&["logs", "web"], "").await?;
        let exec = kubectl.refused("exec web -- true", "").await?;
        ensure!(
            exec.contains("pod web does not have a host assigned"),
            "{exec}"
        );
        if env.is_embedded() {
            let expected = "the embedded cluster runs no containers";
            ensure!(logs.stderr.contains(expected), "{logs:?}");
        } else {
            // The logs of a pod without a node are empty or refused, depending on the version.
            ensure!(logs.stdout.is_empty(), "{logs:?}");
        }
        Ok(())
    })
    .await;
}
