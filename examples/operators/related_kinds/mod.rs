//! Restarts Deployments when a ConfigMap they use changes.
//!
//! A reconciler of Deployments that is also called for changes of another kind: a relation maps a ConfigMap to the
//! Deployments that use it. Pods read some of their configuration only at their start. So a Deployment with the
//! annotation `lariat.dev/reload: "true"` gets new pods when the content of one of its ConfigMaps differs from the
//! recorded one, however long ago that was recorded.
//!
//! Not covered: a template starts to use a ConfigMap, whose content changes after the pods of that template have
//! started, both while the operator is down. Nothing has recorded the content they started with, so they keep it until
//! the next change.

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

use crate::{Paint, paint, print_action};
use mentions::{Note, config_maps_of};

/// The annotation of Deployments to manage.
pub const RELOAD: &str = "lariat.dev/reload";
/// The annotation with the used ConfigMaps and the checksums of their contents: on the Deployment the last ones, on its
/// pods those they started with.
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
    // Called for the old and the new state, so ConfigMaps that are created or deleted are covered too.
    let users = Relation::map(move |config_map: &Metadata| {
        let found = mentioning.by_index(BY_CONFIG_MAP, config_map.key().as_str());
        let deployments = found.into_iter().flatten().flatten();
        deployments.map(|deployment| key(&deployment)).collect()
    });
    let reload = Reload {
        deployments: operator.api(),
        // Each kind has its own watch: a ConfigMap created before its Deployment may be seen after it, which would look
        // like a change.
        config_maps: operator.api().with_fallback(),
    };
    operator
        .reconciler("reload", &deployments)
        .watches(&config_maps, users)
        // For `operator.cluster_role()`; watching both kinds is known.
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
            // Its pods have just started with this configuration, or the one they started with is unknown.
            None => silently("is managed"),
            // Its template has changed, so it gets new pods anyway, which start with the new configuration.
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
            // It was deleted in the meantime.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
            Ok(_) => print_why(cx, &what),
        }
        Ok(Outcome::done())
    }

    /// Returns the present record.
    async fn look(&self, deployment: &Deployment) -> Result<Note, HandlerError> {
        let mut note = Note::default();
        for key in config_maps_of(deployment) {
            let config_map = self.config_maps.get_opt(&key).await?;
            note.add(&key, config_map.as_deref());
        }
        Ok(note)
    }
}

fn print_why(cx: &Reconcile<Deployment>, what: &str) {
    // Prints the changes of ConfigMaps. The Deployment's own addition is printed only if it is the only cause: such a
    // call may be the first to see another content.
    let causes = cx.causes().iter().filter_map(|cause| match cause {
        Cause::Related { of, .. } => Some(of.to_string()),
        Cause::Added { .. } => Some(cause.to_string()),
        _ => None,
    });
    // The namespace is the same for all.
    let namespace = format!("{}/", cx.key().namespace().unwrap_or_default());
    let reason = causes.collect::<Vec<_>>().join(", ");
    let reason = if reason.is_empty() {
        cx.causes().to_string()
    } else {
        reason
    };
    let reason = reason.replace(&namespace, "");
    print_action(
        "Deployment",
        cx.key().name(),
        Paint::Dim,
        format_args!("{what}: {reason}"),
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
