//! Restarts Deployments when a ConfigMap they use changes.
//!
//! A reconciler of Deployments that is called for changes of another kind: a relation says which Deployments a ConfigMap
//! has to do with. Pods read some of their configuration only when they start, so a Deployment that asks for it, by the
//! annotation `lariat.dev/reload: "true"`, gets new pods when the content of one of its ConfigMaps differs from what it
//! was when last looked at, however long ago that is.
//!
//! Not covered: a ConfigMap that a template begins to name, and whose content changes after the pods of that template have
//! begun, both while the operator is away. With which content they began nobody has noted, so they keep it until the next
//! change.

mod mentions;
#[cfg(test)]
mod tests;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use lariat::kube::ResourceExt;
use lariat::kube::api::{Patch, PatchParams};
use lariat::operator::Rule;
use lariat::prelude::*;
use serde_json::json;

use crate::{Paint, paint, tell};
use mentions::{Note, config_maps_of};

/// The annotation by which a Deployment asks to be looked after.
pub const RELOAD: &str = "lariat.dev/reload";
/// The annotation with the ConfigMaps that are used and a checksum of what is in each: the Deployment's last, and the one
/// its pods began with.
pub const CONFIG: &str = "lariat.dev/config";

/// The index of Deployments by the ConfigMaps they mention.
const BY_CONFIG_MAP: &str = "config-map";

/// Registers the reconciler of Deployments.
///
/// # Errors
///
/// Deployments have a handler of this name, or an index, already.
pub fn register(operator: &Operator) -> anyhow::Result<()> {
    let deployments = operator.factory().for_object::<Deployment>();
    let config_maps = operator.factory().for_object::<ConfigMap>();
    let mentioning = deployments.cache();
    mentioning.add_index(BY_CONFIG_MAP, |deployment: &Deployment| {
        if wants_reload(deployment) {
            config_maps_of(deployment)
                .iter()
                .map(ObjectKey::to_string)
                .collect()
        } else {
            Vec::new()
        }
    })?;
    // Asked for the old state and for the new one, so ConfigMaps that come and go are told like those that change.
    let users = Relation::map(move |config_map: &Metadata| {
        let found = mentioning.by_index(BY_CONFIG_MAP, config_map.key().as_str());
        let deployments = found.into_iter().flatten().flatten();
        deployments.map(|deployment| key(&deployment)).collect()
    });
    let reload = Reload {
        deployments: operator.api(),
        // Each kind has a watch of its own: one that was made before its Deployment may be seen after it, and that
        // would be a change.
        config_maps: operator.api().with_fallback(),
    };
    operator
        .reconciler("reload", &deployments)
        .watches(&config_maps, users)
        // For `operator.cluster_role()`; that it watches both kinds is known.
        .needs(Rule::of(&deployments).verbs(["patch"]))
        .needs(Rule::of(&config_maps).verbs(["get"]))
        .register(move |cx| {
            let reload = reload.clone();
            async move { reload.reconcile(&cx).await }
        })?;
    Ok(())
}

#[derive(Clone)]
struct Reload {
    deployments: CachedApi<Deployment>,
    config_maps: CachedApi<ConfigMap>,
}

impl Reload {
    async fn reconcile(&self, cx: &Reconcile<Deployment>) -> HandlerResult {
        let deployment = cx.object();
        if !wants_reload(deployment) {
            return Ok(Outcome::done());
        }
        let config = self.look(deployment).await?;
        let known = deployment.annotations().get(CONFIG);
        let known = known.map(|known| Note::parse(known));
        if known.as_ref() == Some(&config) {
            return Ok(Outcome::done());
        }
        let note = json!({"annotations": {CONFIG: config.to_string()}});
        let silently = |what| (paint(Paint::Dim, what, 0), json!({"metadata": note}));
        let changed = known.as_ref().map(|known| config.changed_since(known));
        let (what, patch) = match changed.as_deref() {
            // Its pods have just begun with this configuration, or nobody knows with which.
            None => silently("is looked after"),
            // Its template has changed, so it gets new pods anyway, which begin with what is new to it.
            Some([]) => silently("uses other ConfigMaps"),
            Some(changed) => (
                paint(
                    Paint::Green,
                    format_args!("restarts for {}", changed.join(", ")),
                    0,
                ),
                json!({"metadata": note, "spec": {"template": {"metadata": note}}}),
            ),
        };
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        match self.deployments.patch(cx.key(), &params, &patch).await {
            // It was deleted meanwhile.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
            Ok(_) => tell_why(cx, &what),
        }
        Ok(Outcome::done())
    }

    /// Returns what there is to note now.
    async fn look(&self, deployment: &Deployment) -> Result<Note, HandlerError> {
        let mut note = Note::default();
        for key in config_maps_of(deployment) {
            let config_map = self.config_maps.get_opt(&key).await?;
            note.add(&key, config_map.as_deref());
        }
        Ok(note)
    }
}

fn tell_why(cx: &Reconcile<Deployment>, what: &str) {
    // What happened to ConfigMaps is told in words; of the Deployment itself only that it came into sight is worth telling,
    // unless it is all there is: a call for its own sake may be the first to see another content.
    let causes = cx.causes().iter().filter_map(|cause| match cause {
        Cause::Related { what, .. } => Some(what.to_string()),
        Cause::Added { .. } => Some(cause.to_string()),
        _ => None,
    });
    // Everybody here knows the namespace.
    let namespace = format!("{}/", cx.key().namespace().unwrap_or_default());
    let why = causes.collect::<Vec<_>>().join(", ");
    let why = if why.is_empty() {
        cx.causes().to_string()
    } else {
        why
    };
    let why = why.replace(&namespace, "");
    tell(
        "Deployment",
        cx.key().name(),
        Paint::Dim,
        format_args!("{what}: {why}"),
    );
}

fn wants_reload(deployment: &Deployment) -> bool {
    let wish = deployment.annotations().get(RELOAD);
    wish.is_some_and(|wish| wish == "true")
}

fn key(deployment: &Deployment) -> ObjectKey {
    let namespace = deployment.namespace().unwrap_or_default();
    ObjectKey::namespaced(&namespace, &deployment.name_any())
}
