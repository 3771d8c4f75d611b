//! ServiceAccounts of Pods: the account they run as, and its token.
//!
//! Source: `k8s.io/kubernetes/plugin/pkg/admission/serviceaccount`.

use lariat_apimachinery::object::{Object, metadata_text};
use lariat_core::ObjectKey;
use serde_json::{Value, json};

use crate::server::Server;

const ACCOUNTS: &str = "serviceaccounts";
const DEFAULT: &str = "default";
/// The annotation of Pods that a kubelet runs from a file.
const MIRROR: &str = "kubernetes.io/config.mirror";
const VOLUME_PREFIX: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Sets the service account of a new Pod, and adds the volume with its token.
///
/// # Errors
///
/// The account is not there. That of a namespace is made by a controller, for which no Pod waits.
pub(super) fn admit(server: &Server, pod: &mut Object) -> Result<(), String> {
    let annotations = pod
        .get("metadata")
        .and_then(|metadata| metadata.get("annotations"));
    let is_mirror = annotations.is_some_and(|annotations| annotations.get(MIRROR).is_some());
    if !server.switches.admits_accounts() || is_mirror {
        return Ok(());
    }
    let namespace = metadata_text(pod, "namespace").to_owned();
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    let given = spec.get("serviceAccountName").and_then(Value::as_str);
    let name = given
        .filter(|name| !name.is_empty())
        .unwrap_or(DEFAULT)
        .to_owned();
    let key = ObjectKey::namespaced(&namespace, &name);
    let stored = server.store.get(server.store.table(ACCOUNTS), &key);
    // As getServiceAccount, except that Go asks ten times for the default account of a new namespace.
    if stored.is_none() && name != DEFAULT {
        return Err(format!(
            "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
        ));
    }
    let account = stored.map(|stored| stored.object()).unwrap_or_default();
    // The second is the deprecated name of the first, which Go's conversion writes too.
    for member in ["serviceAccountName", "serviceAccount"] {
        spec.insert(member.into(), name.clone().into());
    }
    let mounts = |holder: &Object| {
        holder
            .get("automountServiceAccountToken")
            .and_then(Value::as_bool)
    };
    // What the Pod says itself counts before what its account says.
    if mounts(spec).or_else(|| mounts(&account)).unwrap_or(true) {
        mount_token(server, spec);
    }
    let secrets = spec.get("imagePullSecrets").and_then(Value::as_array);
    if secrets.is_none_or(Vec::is_empty)
        && let Some(secrets) = account.get("imagePullSecrets")
    {
        spec.insert("imagePullSecrets".into(), secrets.clone());
    }
    Ok(())
}

/// Mounts the token into each container that has nothing in its place.
fn mount_token(server: &Server, spec: &mut Object) {
    let volumes = spec.get("volumes").and_then(Value::as_array);
    let mut names = volumes
        .into_iter()
        .flatten()
        .filter_map(|volume| volume["name"].as_str());
    let known = names
        .find(|name| name.starts_with(VOLUME_PREFIX))
        .map(str::to_owned);
    let has_volume = known.is_some();
    let volume = known.unwrap_or_else(|| server.random.generate(VOLUME_PREFIX));
    let mount = json!({"name": volume, "readOnly": true, "mountPath": MOUNT_PATH});
    let mut is_needed = false;
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
        {
            let mounts = container.entry("volumeMounts").or_insert_with(|| json!([]));
            let Some(mounts) = mounts.as_array_mut() else {
                continue;
            };
            if !mounts.iter().any(|each| each["mountPath"] == MOUNT_PATH) {
                mounts.push(mount.clone());
                is_needed = true;
            }
        }
    }
    if has_volume || !is_needed {
        return;
    }
    let volumes = spec.entry("volumes").or_insert_with(|| json!([]));
    if let Some(volumes) = volumes.as_array_mut() {
        // 420 is 0644. 3607 is WarnOnlyBoundTokenExpirationSeconds, by which Go knows a token that no client asked for.
        volumes.push(json!({"name": volume, "projected": {"defaultMode": 420, "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace",
                "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
        ]}}));
    }
}
