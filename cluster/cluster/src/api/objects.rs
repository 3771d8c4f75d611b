//! Requests about objects.

use super::render::{self, Renderer};
use crate::faults;
use crate::status::ApiError;
use crate::verbs::Call;
use crate::wire::negotiate::ResponseFormat;
use crate::wire::reply::Reply;
use crate::wire::verb::Verb;

/// Carries a call out and answers it, with the warnings it gave.
pub(super) async fn answer(call: Call, verb: Verb, format: ResponseFormat) -> Reply {
    // Custom resources have one handler for all paths and verbs, which warns first.
    if call.resource.rules.custom {
        warn(&call);
    }
    let reply = carry_out(&call, verb, format).await;
    reply
        .unwrap_or_else(Reply::from)
        .warnings(&call.warnings.take())
}

async fn carry_out(call: &Call, verb: Verb, format: ResponseFormat) -> Result<Reply, ApiError> {
    // A review has one form, and faults of objects do not apply to it.
    if !call.is_review() {
        call.check_subresource(verb)?;
        if !call.resource.rules.custom && (verb != Verb::Patch || call.has_route_of_patches()) {
            warn(call);
        }
        render::check(format, call, verb)?;
        faults::before_verb(call)?;
    }
    let answer = call.run(verb).await?;
    render::check_shape(format, call, &answer)?;
    Ok(Renderer::new(call, format).reply(answer))
}

/// Warns of a deprecated resource.
///
/// For built-in kinds it warns only if there is a route.
fn warn(call: &Call) {
    if let Some(deprecation) = &call.resource.deprecation {
        call.warnings.add(deprecation.clone());
    }
}
