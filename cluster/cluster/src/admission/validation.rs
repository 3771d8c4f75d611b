//! Webhooks that allow or deny.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/webhook/validating`.

use std::sync::Arc;

use futures::future::join_all;
use lariat_apimachinery::admission::Webhook;
use lariat_apimachinery::object::Object;

use super::call::WebhookCall;
use super::request::Request;
use super::selection::Invocation;
use crate::status::ApiError;

/// Calls all webhooks at once; the first denial, in their order, is answered.
pub(super) async fn validate(
    request: &Request<'_>,
    hooks: &[Arc<Webhook>],
    old: Option<&Object>,
    object: Option<&Object>,
) -> Result<(), ApiError> {
    let mut relevant = Vec::new();
    for hook in hooks {
        if let Some(invocation) = request.select(hook, old, object).await? {
            relevant.push((&**hook, invocation));
        }
    }
    let asked = relevant
        .iter()
        .enumerate()
        .map(|(at, (hook, invocation))| ask(request, at, (*hook, invocation), (old, object)));
    // All are waited for, so that the denial that is answered does not depend on which webhook is fastest.
    join_all(asked).await.into_iter().collect()
}

async fn ask(
    request: &Request<'_>,
    at: usize,
    (hook, invocation): (&Webhook, &Invocation),
    (old, object): (Option<&Object>, Option<&Object>),
) -> Result<(), ApiError> {
    let (old, object) = request.both_seen_by(invocation, old, object).await?;
    let call = WebhookCall {
        request,
        hook,
        invocation,
        mutates: false,
        objects: (object.as_ref(), old.as_ref()),
    };
    let Err(failure) = call.send().await else {
        return Ok(());
    };
    match call.refusal(failure) {
        Some(error) => Err(error),
        None => {
            let key = format!("failed-open.validating.webhook.admission.k8s.io/round_0_index_{at}");
            request.annotate(key, hook.name.clone());
            Ok(())
        }
    }
}
