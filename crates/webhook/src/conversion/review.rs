//! Reviews the body of a conversion request: parse, convert all objects, encode the answer.

use lariat_core::{describe, without_credentials};
use serde_json::Value;
use tokio::task::yield_now;
use tokio::time::Instant;

use super::error::ConversionError;
use crate::deadline::Deadline;
use crate::wire::{Answer, ConversionRequest, ConversionResponse};

/// The number of objects that are converted before other tasks may run.
const BATCH: usize = 16;

/// Converts one object to a version.
pub(crate) type Convert = dyn Fn(&Value, &str) -> Result<Value, ConversionError> + Send + Sync;

/// Converts all objects of a body, or answers why one of them cannot be converted.
pub(crate) async fn review(convert: &Convert, body: &[u8], deadline: Deadline) -> Answer {
    let request = match ConversionRequest::read(body) {
        Ok(request) => request,
        Err(refused) => return refused,
    };
    let mut converted = Vec::with_capacity(request.objects.len());
    for (index, object) in request.objects.iter().enumerate() {
        match convert(object, &request.desired) {
            Ok(object) => converted.push(object),
            Err(error) => {
                let message = describe(&error);
                let message = without_credentials(&message);
                tracing::warn!(uid = request.uid, "a conversion failed: {message}");
                return ConversionResponse::failed(&request.uid, &message).into_answer();
            }
        }
        // A conversion review may have all objects of a list. Converting them in one go would block the thread.
        if index % BATCH == BATCH - 1 {
            yield_now().await;
            if Instant::now() >= deadline.at {
                let (done, all) = (converted.len(), request.objects.len());
                let limit = deadline.limit;
                let message =
                    format!("only {done} of {all} objects were converted within {limit:?}");
                return ConversionResponse::failed(&request.uid, &message).into_answer();
            }
        }
    }
    ConversionResponse::converted(&request.uid, converted).into_answer()
}
