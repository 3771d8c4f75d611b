//! Creating, getting and deleting.

use anyhow::ensure;
use lariat_integration::{columns, in_namespace};

pub(crate) const SETTINGS: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: '1'}\n";

/// A pod that no scheduler takes.
pub(crate) const WEB: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {app: web}}\n\
    spec:\n  schedulerName: missing\n  containers:\n  - {name: app, image: 'registry.example.com/app:v1'}\n";

#[tokio::test]
async fn objects_are_created_once() {
    in_namespace("kubectl-create", async |env| {
        let kubectl = env.kubectl()?;
        let created = kubectl.run_with("create -f -", &format!("{SETTINGS}---\n{WEB}")).await?;
        assert_eq!(created, "configmap/settings created\npod/web created\n");
        let again = kubectl.refused("create -f -", WEB).await?;
        let expected = "Error from server (AlreadyExists): error when creating \"STDIN\": pods \"web\" already exists\n";
        assert_eq!(again, expected);
        let bad = kubectl.refused("create -f -", &WEB.replace("containers", "contaners")).await?;
        ensure!(bad.contains("unknown field \"spec.contaners\""), "{bad}");
        Ok(())
    })
    .await;
}

/// Commands that send typed objects, and what they say was made.
const TYPED: [(&str, &str); 9] = [
    (
        "create configmap settings --from-literal=a=1",
        "configmap/settings created\n",
    ),
    (
        "create secret generic hidden --from-literal=a=1",
        "secret/hidden created\n",
    ),
    (
        "create serviceaccount robot",
        "serviceaccount/robot created\n",
    ),
    (
        "create service clusterip web --tcp=80",
        "service/web created\n",
    ),
    (
        "create role reader --verb=get --resource=pods",
        "role.rbac.authorization.k8s.io/reader created\n",
    ),
    (
        "create deployment web --image=registry.example.com/app:v1 --replicas=0",
        "deployment.apps/web created\n",
    ),
    (
        "create job once --image=registry.example.com/app:v1",
        "job.batch/once created\n",
    ),
    (
        "run alone --image=registry.example.com/app:v1",
        "pod/alone created\n",
    ),
    (
        "expose deployment web --name=again --port=80",
        "service/again exposed\n",
    ),
];

#[tokio::test]
async fn typed_commands_create_objects() {
    in_namespace("kubectl-typed", async |env| {
        let kubectl = env.kubectl()?;
        for (command, expected) in TYPED {
            assert_eq!(kubectl.run(command).await?, expected, "{command}");
        }
        let taken = kubectl.refused("create configmap settings", "").await?;
        let expected =
            "error: failed to create configmap: configmaps \"settings\" already exists\n";
        assert_eq!(taken, expected);
        let data = kubectl
            .run("get configmap settings -o jsonpath={.data.a}")
            .await?;
        assert_eq!(data, "1");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn namespaces_come_and_go() {
    in_namespace("kubectl-namespace", async |env| {
        let (kubectl, name) = (env.kubectl()?, format!("{}-b", env.namespace));
        let created = kubectl.run(&format!("create namespace {name}")).await?;
        assert_eq!(created, format!("namespace/{name} created\n"));
        let deleted = kubectl.run(&format!("delete namespace {name}")).await?;
        assert_eq!(deleted, format!("namespace \"{name}\" deleted\n"));
        let gone = kubectl
            .refused(&format!("get namespace {name}"), "")
            .await?;
        assert_eq!(
            gone,
            format!("Error from server (NotFound): namespaces \"{name}\" not found\n")
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn pods_are_listed_with_the_columns_of_pods() {
    in_namespace("kubectl-get", async |env| {
        let kubectl = env.kubectl()?;
        let none = kubectl.ended(&["get", "pods"], "").await?;
        let expected = format!("No resources found in {} namespace.\n", env.namespace);
        assert_eq!(
            (none.code, none.stdout, none.stderr),
            (Some(0), String::new(), expected)
        );
        kubectl.run_with("create -f -", WEB).await?;
        let rows = columns(&kubectl.run("get pods").await?);
        let (header, row) = rows.split_once('\n').unwrap_or_default();
        assert_eq!(header, "NAME READY STATUS RESTARTS AGE");
        // A cluster with nodes may have started the pod by now.
        let expected = if env.is_embedded() {
            "web 0/1 Pending 0 "
        } else {
            "web "
        };
        ensure!(row.starts_with(expected), "{row}");
        let wide = columns(&kubectl.run("get pods -o wide --show-labels").await?);
        let (header, row) = wide.split_once('\n').unwrap_or_default();
        assert_eq!(
            header,
            "NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES LABELS"
        );
        let expected = if env.is_embedded() {
            " <none> <none> <none> <none> app=web"
        } else {
            " app=web"
        };
        ensure!(row.ends_with(expected), "{row}");
        assert_eq!(
            kubectl.run("get pods -l app=web -o name").await?,
            "pod/web\n"
        );
        let missing = kubectl.refused("get pod missing", "").await?;
        assert_eq!(
            missing,
            "Error from server (NotFound): pods \"missing\" not found\n"
        );
        let unknown = kubectl.refused("get nonsense", "").await?;
        assert_eq!(
            unknown,
            "error: the server doesn't have a resource type \"nonsense\"\n"
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn objects_are_shown_as_yaml_and_json() {
    in_namespace("kubectl-yaml", async |env| {
        let kubectl = env.kubectl()?;
        kubectl.run_with("create -f -", SETTINGS).await?;
        let yaml = kubectl.run("get configmap settings -o yaml").await?;
        ensure!(
            yaml.starts_with("apiVersion: v1\ndata:\n  a: \"1\"\nkind: ConfigMap\nmetadata:\n"),
            "{yaml}"
        );
        let json = kubectl
            .run("get configmaps --field-selector metadata.name=settings -o json")
            .await?;
        let list: serde_json::Value = serde_json::from_str(&json)?;
        assert_eq!(list["kind"], "List");
        assert_eq!(list["items"][0]["data"], serde_json::json!({"a": "1"}));
        let managers = kubectl
            .run("get configmap settings --show-managed-fields -o jsonpath={..manager}")
            .await?;
        assert_eq!(managers, "kubectl-create");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn changes_are_watched() {
    in_namespace("kubectl-watch", async |env| {
        let kubectl = env.kubectl()?;
        kubectl.run_with("create -f -", SETTINGS).await?;
        let selected = "get configmaps --field-selector metadata.name=settings";
        let mut watch = kubectl.start(&format!("{selected} --watch --output-watch-events"))?;
        assert_eq!(watch.line().await?, "EVENT NAME DATA AGE");
        let added = watch.line().await?;
        ensure!(added.starts_with("ADDED settings 1 "), "{added}");
        kubectl
            .run(r#"patch configmap settings --type=merge -p {"data":{"b":"2"}}"#)
            .await?;
        let modified = watch.line().await?;
        ensure!(modified.starts_with("MODIFIED settings 2 "), "{modified}");
        kubectl.run("delete configmap settings").await?;
        let deleted = watch.line().await?;
        ensure!(deleted.starts_with("DELETED settings 2 "), "{deleted}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn custom_kinds_are_found_and_listed() {
    in_namespace("kubectl-custom", async |env| {
        let kubectl = env.kubectl()?;
        env.define("Widget").await?;
        let widget = format!(
            "apiVersion: {}/v1\nkind: Widget\nmetadata: {{name: a}}\nspec: {{size: 1}}\n",
            env.group()
        );
        let name = format!("widget.{}/a", env.group());
        assert_eq!(
            kubectl.run_with("apply -f -", &widget).await?,
            format!("{name} created\n")
        );
        assert_eq!(
            kubectl.run_with("apply -f -", &widget).await?,
            format!("{name} unchanged\n")
        );
        let rows = columns(&kubectl.run(&format!("get widgets.{}", env.group())).await?);
        ensure!(rows.starts_with("NAME AGE\na "), "{rows}");
        let deleted = kubectl.run_with("delete -f -", &widget).await?;
        assert_eq!(
            deleted,
            format!(
                "widget.{} \"a\" deleted from {} namespace\n",
                env.group(),
                env.namespace
            )
        );
        Ok(())
    })
    .await;
}
