//! Clients of other languages against a cluster: what their users do most.
//!
//! The programs beside this file also pass on a genuine server, where `KUBECONFIG` names one. `scripts/clients.sh`
//! installs the clients.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use lariat::kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use lariat::kube::core::{ApiResource, GroupVersionKind};
use lariat_integration::{Env, eventually, in_namespace};
use serde_json::json;
use tokio::process::Command;
use tokio::time::timeout;

/// How long a program may take.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The folder that `scripts/clients.sh` installs into; its name has the versions.
const INSTALLED: &str = "clients-37.0.2-1.45.2-1.4.0";

#[tokio::test]
async fn the_client_of_python_works() {
    in_namespace("python", async |env| {
        let python = installed("python/bin/python")?;
        let mut command = Command::new(python);
        command.arg("-W").arg("ignore").arg(source("client.py"));
        passes(env, command, None, 6).await
    })
    .await;
}

#[tokio::test]
async fn the_client_of_javascript_works() {
    in_namespace("javascript", async |env| {
        let mut command = Command::new("node");
        command.arg(source("client.mjs"));
        let modules = installed("javascript/node_modules")?;
        passes(env, command, Some(modules), 4).await
    })
    .await;
}

#[tokio::test]
async fn an_operator_of_kopf_works() {
    in_namespace("kopf", async |env| {
        let kind = env.define("Kopf").await?;
        let kubeconfig = Kubeconfig::write(env)?;
        let mut operator = Command::new(installed("python/bin/kopf")?);
        operator
            .args(["run", "--namespace", &env.namespace])
            .arg(source("said.py"))
            .env("KUBECONFIG", &kubeconfig.path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let _operator = operator.spawn().context("kopf runs")?;

        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(
            kind.group(),
            kind.version(),
            kind.kind(),
        ));
        let kopfs: Api<DynamicObject> =
            Api::namespaced_with(env.client.clone(), &env.namespace, &resource);
        let object = DynamicObject::new("k", &resource).data(json!({"spec": {"say": "hello"}}));
        kopfs.create(&PostParams::default(), &object).await?;
        eventually(async || said(env, &kopfs, "hello").await).await;
        let patch = Patch::Merge(json!({"spec": {"say": "goodbye"}}));
        kopfs.patch("k", &PatchParams::default(), &patch).await?;
        eventually(async || said(env, &kopfs, "goodbye").await).await;
        kopfs.delete("k", &DeleteParams::default()).await?;
        // It has a finalizer, which the operator removes after this.
        eventually(async || Ok(env.api::<ConfigMap>().get("k-gone").await?)).await;
        eventually(async || match kopfs.get_opt("k").await? {
            Some(_) => bail!("it is still there"),
            None => Ok(()),
        })
        .await;
        Ok(())
    })
    .await;
}

/// Checks that the operator has written what an object says.
async fn said(env: &Env, kopfs: &Api<DynamicObject>, text: &str) -> Result<()> {
    let map = env.api::<ConfigMap>().get("k").await?;
    ensure!(
        map.data.is_some_and(|data| data["say"] == text),
        "the ConfigMap says something else"
    );
    let object = kopfs.get("k").await?;
    let annotations = object.metadata.annotations.unwrap_or_default();
    ensure!(
        annotations.get("said").is_some_and(|said| said == text),
        "{annotations:?}"
    );
    ensure!(
        object
            .metadata
            .finalizers
            .is_some_and(|list| list == ["kopf.example.com/hold"]),
        "it is not held"
    );
    Ok(())
}

/// Runs a program that prints a line for each thing that works.
async fn passes(
    env: &Env,
    mut command: Command,
    last: Option<PathBuf>,
    lines: usize,
) -> Result<()> {
    let kubeconfig = Kubeconfig::write(env)?;
    command
        .arg(&kubeconfig.path)
        .arg(&env.namespace)
        .args(last)
        .kill_on_drop(true);
    let output = timeout(TIMEOUT, command.output())
        .await
        .context("it ends by itself")??;
    let (printed, errors) = (
        String::from_utf8(output.stdout)?,
        String::from_utf8(output.stderr)?,
    );
    ensure!(output.status.success(), "{printed}{errors}");
    ensure!(
        printed
            .lines()
            .filter(|line| line.starts_with("passed "))
            .count()
            == lines,
        "{printed}"
    );
    Ok(())
}

/// The kubeconfig of a cluster in a file, which is removed with this.
struct Kubeconfig {
    path: PathBuf,
}

impl Kubeconfig {
    fn write(env: &Env) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("lariat-clients-{}", fastrand::u64(..)));
        let mut config = env.kubeconfig()?;
        for cluster in config
            .clusters
            .iter_mut()
            .filter_map(|named| named.cluster.as_mut())
        {
            // The client of JavaScript takes plain HTTP with it alone.
            let is_plain = cluster
                .server
                .as_ref()
                .is_some_and(|server| server.starts_with("http:"));
            cluster.insecure_skip_tls_verify = is_plain
                .then_some(true)
                .or(cluster.insecure_skip_tls_verify);
        }
        std::fs::write(&path, serde_json::to_string(&config)?)?;
        Ok(Self { path })
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // A file that is left behind does no harm.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/clients")
        .join(name)
}

fn installed(name: &str) -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let mut found = this
        .ancestors()
        .map(|folder| folder.join(INSTALLED).join(name));
    found
        .find(|path| path.exists())
        .with_context(|| format!("no {INSTALLED} in the target folder: run scripts/clients.sh"))
}
