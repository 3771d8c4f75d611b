//! Checks by SelfSubjectAccessReviews whether this program has the permissions that it needs.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::{StreamExt, stream};
use kube::Client;
use kube::api::PostParams;
use kube::core::Request;
use lariat_core::describe;
use serde_json::{Value, json};

use super::error::AccessError;
use super::permission::Permission;
use crate::wire::Sender;

/// The API path of the reviews.
const PATH: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// The number of concurrent requests.
const AT_A_TIME: usize = 8;

/// The time limit of one request; it is tried three times, with a pause.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);

/// A review: one verb of one of the permissions.
struct Question {
    number: usize,
    verb: String,
    attributes: Value,
}

/// Returns an error if permissions are missing.
///
/// A permission whose review gets no answer does not count as missing.
pub(crate) async fn check(
    client: &Client,
    permissions: Vec<Permission>,
) -> Result<(), AccessError> {
    let sender = &Sender::new(client.clone())
        .within(ANSWER_TIMEOUT)
        .trying(TRIES, PAUSE);
    // An administrator, as in tests and on development clusters, needs one request instead of one for each verb.
    match may(sender, &json!({"group": "*", "resource": "*", "verb": "*"})).await {
        Ok(true) => return Ok(()),
        Ok(false) => {}
        Err(error) => {
            tracing::warn!(error, "permissions cannot be checked");
            return Ok(());
        }
    }
    let questions: Vec<Question> = permissions
        .iter()
        .enumerate()
        .flat_map(|(n, each)| questions_of(n, each))
        .collect();
    let mut answers = stream::iter(questions)
        .map(|question| async move {
            let answer = may(sender, &question.attributes).await;
            (question, answer)
        })
        .buffer_unordered(AT_A_TIME);
    let mut missing = BTreeSet::new();
    while let Some((question, answer)) = answers.next().await {
        match answer {
            Ok(true) => {}
            Ok(false) => {
                missing.insert((question.number, question.verb));
            }
            Err(error) => tracing::warn!(error, "a permission cannot be checked"),
        }
    }
    drop(answers);
    let missing: Vec<Permission> = permissions
        .iter()
        .enumerate()
        .filter_map(|(n, each)| each.with_verbs(|verb| missing.contains(&(n, verb.to_owned()))))
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(AccessError::new(missing))
    }
}

/// Returns a review for each verb, name and namespace of a permission.
fn questions_of(number: usize, permission: &Permission) -> Vec<Question> {
    let all = [String::new()];
    let or_all = |list: &[String]| -> Vec<String> {
        let list = if list.is_empty() { &all[..] } else { list };
        list.to_vec()
    };
    let mut questions = Vec::new();
    for verb in permission.verbs.keys() {
        // An empty string means all namespaces and all names in a review.
        for namespace in or_all(&permission.namespaces) {
            for name in or_all(&permission.names) {
                let attributes = json!({
                    "verb": verb, "group": permission.group, "resource": permission.resource,
                    "subresource": permission.subresource, "namespace": namespace, "name": name,
                });
                questions.push(Question {
                    number,
                    verb: verb.clone(),
                    attributes,
                });
            }
        }
    }
    questions
}

/// Returns whether this program may do something.
async fn may(sender: &Sender, attributes: &Value) -> Result<bool, String> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    });
    let body = review.to_string().into_bytes();
    let request = Request::new(PATH).create(&PostParams::default(), body);
    let review = sender
        .json::<Value>(request)
        .await
        .map_err(|error| describe(&error))?;
    Ok(review["status"]["allowed"] == Value::Bool(true))
}
