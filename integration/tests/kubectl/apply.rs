//! `kubectl apply`.

use anyhow::ensure;
use lariat_integration::in_namespace;

use crate::objects::SETTINGS;

pub(crate) const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 0\n  \
    selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers:\n      \
    - {name: app, image: 'registry.example.com/app:v1'}\n      - {name: log, image: 'registry.example.com/log:v1'}\n";

#[tokio::test]
async fn what_is_applied_twice_is_unchanged() {
    in_namespace("kubectl-apply", async |env| {
        let kubectl = env.kubectl()?;
        for (name, manifest, changed) in [
            (
                "configmap/settings",
                SETTINGS,
                SETTINGS.replace("a: '1'", "b: '2'"),
            ),
            (
                "deployment.apps/web",
                DEPLOYMENT,
                DEPLOYMENT.replace("app:v1", "app:v2"),
            ),
        ] {
            for (manifest, outcome) in [
                (manifest, "created"),
                (manifest, "unchanged"),
                (&changed, "configured"),
                (&changed, "unchanged"),
            ] {
                let applied = kubectl.run_with("apply -f -", manifest).await?;
                assert_eq!(applied, format!("{name} {outcome}\n"));
            }
        }
        let data = kubectl
            .run("get configmap settings -o jsonpath={.data}")
            .await?;
        assert_eq!(
            data, r#"{"b":"2"}"#,
            "what is not applied any more is taken away"
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn applying_merges_containers_by_name() {
    in_namespace("kubectl-merge", async |env| {
        let kubectl = env.kubectl()?;
        kubectl.run_with("apply -f -", DEPLOYMENT).await?;
        kubectl
            .run("set image deployment/web log=registry.example.com/log:v9")
            .await?;
        let without_log = DEPLOYMENT.lines().filter(|line| !line.contains("log:v1"));
        let without_log = without_log
            .collect::<Vec<_>>()
            .join("\n")
            .replace("app:v1", "app:v2");
        kubectl.run_with("apply -f -", &without_log).await?;
        let images = kubectl
            .run("get deployment web -o jsonpath={..image}")
            .await?;
        assert_eq!(images, "registry.example.com/app:v2");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_list_is_checked_by_kubectl_and_sent() {
    in_namespace("kubectl-list", async |env| {
        let kubectl = env.kubectl()?;
        env.define("Widget").await?;
        let widget = format!(
            "apiVersion: {}/v1\nkind: Widget\nmetadata: {{name: red}}\nspec: {{size: 1}}\n",
            env.group()
        );
        let items = [SETTINGS, DEPLOYMENT, &widget].map(|item| {
            let indented = item.trim_end().replace('\n', "\n  ");
            format!("- {indented}\n")
        });
        let list = format!("apiVersion: v1\nkind: List\nitems:\n{}", items.concat());
        let names = [
            "configmap/settings".to_owned(),
            "deployment.apps/web".to_owned(),
            format!("widget.{}/red", env.group()),
        ];
        for (command, outcome) in [
            ("create --save-config", "created"),
            ("apply", "unchanged"),
            ("replace", "replaced"),
        ] {
            let done = kubectl.run_with(&format!("{command} -f -"), &list).await?;
            let expected = names.each_ref().map(|name| format!("{name} {outcome}\n"));
            assert_eq!(done, expected.concat(), "{command}");
        }
        let misspelt = list.replace("containers:", "contaners:");
        let refused = kubectl.refused("apply -f -", &misspelt).await?;
        let expected = "unknown field \"contaners\" in io.k8s.api.core.v1.PodSpec";
        ensure!(refused.contains(expected), "{refused}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_kind_that_is_not_installed_has_a_message_of_its_own() {
    in_namespace("kubectl-missing", async |env| {
        let missing = "apiVersion: missing.example.com/v1\nkind: Missing\nmetadata: {name: a}\n";
        let refused = env.kubectl()?.refused("apply -f -", missing).await?;
        ensure!(
            refused.ends_with("\nensure CRDs are installed first\n"),
            "{refused}"
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn server_side_apply_reports_conflicts() {
    in_namespace("kubectl-server-side", async |env| {
        let kubectl = env.kubectl()?;
        for _ in 0..2 {
            let applied = kubectl
                .run_with("apply --server-side -f -", SETTINGS)
                .await?;
            assert_eq!(applied, "configmap/settings serverside-applied\n");
        }
        let changed = SETTINGS.replace("'1'", "'2'");
        let theirs = "apply --server-side --field-manager=theirs -f -";
        let refused = kubectl.refused(theirs, &changed).await?;
        let expected = "error: Apply failed with 1 conflict: conflict with \"kubectl\": .data.a\n";
        ensure!(refused.starts_with(expected), "{refused}");
        kubectl
            .run_with(&format!("{theirs} --force-conflicts"), &changed)
            .await?;
        let data = kubectl
            .run("get configmap settings -o jsonpath={.data.a}")
            .await?;
        assert_eq!(data, "2");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn apply_moves_from_the_client_to_the_server() {
    in_namespace("kubectl-migrate", async |env| {
        let kubectl = env.kubectl()?;
        kubectl.run_with("apply -f -", SETTINGS).await?;
        let changed = SETTINGS.replace("a: '1'", "b: '2'");
        let applied = kubectl
            .run_with("apply --server-side -f -", &changed)
            .await?;
        assert_eq!(applied, "configmap/settings serverside-applied\n");
        let data = kubectl
            .run("get configmap settings -o jsonpath={.data}")
            .await?;
        assert_eq!(
            data, r#"{"b":"2"}"#,
            "what was applied by the client is the server's to take away"
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    in_namespace("kubectl-dry-run", async |env| {
        let kubectl = env.kubectl()?;
        let tried = kubectl
            .run_with("apply --dry-run=server -f -", SETTINGS)
            .await?;
        assert_eq!(tried, "configmap/settings created (server dry run)\n");
        kubectl.refused("get configmap settings", "").await?;
        kubectl.run_with("apply -f -", SETTINGS).await?;
        let changed = SETTINGS.replace("'1'", "'2'");
        let differs = kubectl.ended(&["diff", "-f", "-"], &changed).await?;
        assert_eq!(differs.code, Some(1), "{}", differs.stderr);
        ensure!(
            differs.stdout.contains("-  a: \"1\"\n+  a: \"2\"\n"),
            "{}",
            differs.stdout
        );
        Ok(())
    })
    .await;
}
