//! Policies that the API server evaluates.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use lariat::webhook::{Endpoint, Hook, Policy, Webhooks};
use lariat_integration::{Env, in_namespace};
use serde_json::json;

use super::{config, create, delete, dry_run, made, refused};

/// Returns a policy for the namespace of the test alone.
fn small(env: &Env) -> Result<Policy> {
    let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": env.namespace}});
    let hook =
        Hook::<ConfigMap>::new("small").namespace_selector(serde_json::from_value(selector)?);
    let named = "object.metadata.name != 'no'";
    Ok(Policy::of(hook)
        .variable("entries", "has(object.data) ? size(object.data) : 0")
        .rule("variables.entries <= 1", "at most one entry")
        .rule_with(named, "'not ' + object.metadata.name"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_evaluates_policies_by_itself() {
    in_namespace("policies", async |env| {
        let factory = env.factory().build();
        let policy = small(env)?;
        let server = Webhooks::new(&env.group(), &factory)
            .policy(policy)
            .endpoint(Endpoint::local())
            .serve("127.0.0.1:0", made(env))
            .await?;
        ensure!(server.applied().await, "the server has stopped");
        // Also while the program is down.
        server.shutdown().await;
        let evaluated = async {
            lariat_integration::eventually(async || {
                let status = refused(
                    env.api::<ConfigMap>()
                        .create(&dry_run(), &config("no", "a"))
                        .await,
                )?;
                ensure!(
                    status.message.ends_with("denied request: not no"),
                    "{status:?}"
                );
                ensure!(status.code == 422, "{status:?}");
                Ok(())
            })
            .await;
            create(env, "one", "entry").await?;
            let mut two = config("two", "entries");
            two.data
                .get_or_insert_default()
                .insert("more".to_owned(), "b".to_owned());
            let status = refused(env.api::<ConfigMap>().create(&dry_run(), &two).await)?;
            ensure!(
                status
                    .message
                    .ends_with("denied request: at most one entry"),
                "{status:?}"
            );
            Ok(())
        };
        let outcome = evaluated.await;
        let name = format!("small.{}", env.group());
        for plural in [
            "validatingadmissionpolicybindings",
            "validatingadmissionpolicies",
        ] {
            delete(env, plural, &name).await?;
        }
        outcome
    })
    .await;
}
