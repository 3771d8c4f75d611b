//! The operator: a Secret for each ConfigMap.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use lariat::kube::api::{Api, DeleteParams, Patch, PatchParams};
use lariat::{Context, HandlerResult, Outcome, SharedControllerFactory};
use serde_json::json;

/// What deletes the Secret of a deleted ConfigMap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleanup {
    /// The handler, when it is called for the deletion. If the operator is down at that moment, it never is: its cache
    /// starts without the ConfigMap, and the Secret stays.
    ByHandler,
    /// The garbage collector: the Secret has an owner reference.
    ByOwner,
}

/// Keeps a Secret for each ConfigMap.
///
/// # Errors
///
/// A handler of that name is registered already.
pub fn register(
    factory: &SharedControllerFactory,
    cleanup: Cleanup,
) -> Result<(), lariat::controller::RegisterError> {
    let config_maps = factory.for_object::<ConfigMap>();
    config_maps.register_handler("mirror", move |cx| mirror(cx, cleanup))?;
    Ok(())
}

async fn mirror(cx: Context<ConfigMap>, cleanup: Cleanup) -> HandlerResult {
    let namespace = cx.key().namespace().unwrap_or("default");
    let secrets: Api<Secret> = Api::namespaced(cx.client(), namespace);
    let name = cx.key().name();
    let Some(config_map) = cx.object()? else {
        return match secrets.delete(name, &DeleteParams::default()).await {
            Err(lariat::kube::Error::Api(status)) if status.code == 404 => Ok(Outcome::done()),
            result => Ok(result.map(|_| Outcome::done())?),
        };
    };
    let owners = match cleanup {
        Cleanup::ByHandler => json!([]),
        Cleanup::ByOwner => json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": config_map.metadata.uid,
        }]),
    };
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "ownerReferences": owners},
        "stringData": config_map.data,
    });
    let params = PatchParams::apply("mirror").force();
    secrets.patch(name, &params, &Patch::Apply(secret)).await?;
    Ok(Outcome::done())
}
