//! Reviews the body of a request: parse, call the handler, encode the answer.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use lariat_controller::SharedControllerFactory;
use lariat_core::{Operation, without_credentials};
use tokio::time::timeout_at;
use tracing::Instrument;

use super::failure::{Failure, message};
use super::handler::Handler;
use crate::deadline::Deadline;
use crate::wire::{AdmissionRequest, AdmissionResponse, Answer};

/// Reviews a body with the handler of a webhook, within the deadline.
///
/// A request that cannot be parsed and a call that fails are answers too, with an HTTP error, to which the API server
/// applies the failure policy.
pub(crate) async fn review(
    name: &str,
    handler: &Handler,
    factory: &SharedControllerFactory,
    body: &[u8],
    deadline: Deadline,
) -> Answer {
    let request = match AdmissionRequest::read(body) {
        Ok(request) => request,
        Err(refused) => return refused,
    };
    let Some(operation) = Operation::named(&request.operation) else {
        let message = format!("unknown operation {:?}", request.operation);
        return Answer::bad_request(message);
    };
    // The response must repeat the uid, or the API server rejects it.
    let uid = request.uid.clone();
    let kind = &request.kind;
    let span = tracing::debug_span!("review", webhook = name, %operation, kind = kind.kind, uid);
    let call = call(handler, request, operation, factory, deadline).instrument(span);
    match call.await {
        Ok(response) => AdmissionResponse { uid, ..response }.into_answer(),
        Err(failure) => {
            let what = failure.word();
            tracing::warn!(webhook = name, uid, what, %failure, "the call of an admission webhook failed");
            Answer::failed(format!("the webhook {name} failed: {failure}"))
        }
    }
}

/// Calls the handler; a panic and a timeout are failures.
async fn call(
    handler: &Handler,
    request: AdmissionRequest,
    operation: Operation,
    factory: &SharedControllerFactory,
    deadline: Deadline,
) -> Result<AdmissionResponse, Failure> {
    let factory = factory.clone();
    // The function runs inside the future, so that a panic before its first await is caught too.
    let call = async move { handler(request, operation, factory, deadline.at).await };
    // At the deadline the future is dropped: the API server has stopped waiting, and the work would be lost.
    match timeout_at(deadline.at, AssertUnwindSafe(call).catch_unwind()).await {
        Ok(Ok(answered)) => answered,
        Ok(Err(panic)) => {
            // The message is logged but not sent: a client has no use for it.
            let text = without_credentials(message(&*panic));
            tracing::error!("a webhook handler panicked: {text}");
            Err(Failure::Panicked)
        }
        Err(_) => Err(Failure::TimedOut(deadline.limit)),
    }
}
