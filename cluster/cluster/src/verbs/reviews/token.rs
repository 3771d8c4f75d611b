//! Tokens of service accounts: TokenRequest and TokenReview.
//!
//! Source: `k8s.io/kubernetes/pkg/registry/core/serviceaccount/storage` and
//! `pkg/registry/authentication/tokenreview`.

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::object::{Object, metadata_mut, metadata_text};
use lariat_apimachinery::schema;
use lariat_core::ObjectKey;
use serde_json::{Value, json};

use super::review::{created, read};
use crate::access::{AUDIENCE, Bound, Issue, Reference};
use crate::server::Server;
use crate::status::ApiError;
use crate::store::Stored;
use crate::verbs::answer::Answer;
use crate::verbs::call::Call;
use crate::verbs::decode::Expected;
use crate::verbs::ownership::Writer;
use crate::verbs::subresources::read_body;
use crate::wire::write_options::WriteOptions;

const KIND: &str = "TokenRequest";
const GROUP: &str = "authentication.k8s.io";
const VERSION: &str = "authentication.k8s.io/v1";

/// The default, the least and the largest lifetime of a token, in seconds.
const DEFAULT_SECONDS: i64 = 60 * 60;
const LEAST_SECONDS: i64 = 10 * 60;
const MOST_SECONDS: i64 = 1 << 32;

/// Issues a token for a service account.
pub(super) async fn request(call: &Call) -> Result<Answer, ApiError> {
    let dry_run = call.query.check_write(WriteOptions::Create)?;
    let object = read_request(call)?;
    call.check_same_namespace(&object)?;
    let mut object = call.admit_as((VERSION, KIND), dry_run, object).await?;
    check_name(call, &object)?;
    let key = call.resource.key(call.namespace(), call.name());
    let found = call.server.store.get(call.resource.table, &key);
    let account = found.ok_or_else(|| call.not_found())?;
    check_uid(call, metadata_text(&object, "uid"), account.uid())?;
    let spec = object.get("spec").cloned().unwrap_or_default();
    let seconds = match &spec["expirationSeconds"] {
        Value::Null => DEFAULT_SECONDS,
        seconds => seconds.as_i64().unwrap_or_default(),
    };
    check_seconds(seconds)?;
    let bound = bound(call, &spec["boundObjectRef"])?;
    let audiences = texts(&spec["audiences"]).unwrap_or_else(|| vec![AUDIENCE.to_owned()]);
    let issue = Issue {
        namespace: call.namespace().unwrap_or_default(),
        account: Reference {
            name: call.name().to_owned(),
            uid: account.uid().to_owned(),
        },
        audiences: audiences.clone(),
        bound,
        seconds,
    };
    let Server { clock, random, .. } = &*call.server;
    let issued = call.server.access.tokens.issue(clock, random, issue);
    let token = issued.map_err(|error| ApiError::internal(error.to_string()))?;
    let metadata = metadata_mut(&mut object);
    for (member, value) in [
        ("name", call.name().into()),
        ("namespace", call.namespace().into()),
        ("uid", account.uid().into()),
        ("creationTimestamp", call.server.clock.now().into()),
    ] {
        metadata.insert(member.into(), value);
    }
    object.insert(
        "spec".into(),
        json!({
            "audiences": audiences, "expirationSeconds": seconds,
            "boundObjectRef": spec["boundObjectRef"],
        }),
    );
    let expires = call.server.clock.later(seconds.unsigned_abs());
    let status = json!({"token": token, "expirationTimestamp": expires});
    Ok(created(object, status))
}

/// Checks that a request names the account that it is sent to, if it names one.
fn check_name(call: &Call, object: &Object) -> Result<(), ApiError> {
    let name = metadata_text(object, "name");
    if name.is_empty() || name == call.name() {
        return Ok(());
    }
    let detail = "must match the service account name if specified";
    let cause = StatusCause::invalid("metadata.name", &name.into(), detail);
    Err(ApiError::invalid_as(KIND, GROUP, call.name(), &[cause]))
}

// As with the feature gate `TokenRequestServiceAccountUIDValidation`.
fn check_uid(call: &Call, sent: &str, uid: &str) -> Result<(), ApiError> {
    if sent.is_empty() || sent == uid {
        return Ok(());
    }
    let reason = format!(
        "the UID in the token request ({sent}) does not match the UID of the service account ({uid})"
    );
    Err(ApiError::conflict_of(KIND, GROUP, call.name(), &reason))
}

/// Returns the bound object of a token, which must exist.
fn bound(call: &Call, reference: &Value) -> Result<Bound, ApiError> {
    let text = |member: &str| reference[member].as_str().unwrap_or_default();
    // Of the core group any version will do.
    let is_core = !text("apiVersion").contains('/');
    let (plural, namespace) = match (text("apiVersion"), text("kind")) {
        _ if reference.is_null() => return Ok(Bound::default()),
        (_, "Pod") if is_core => ("pods", call.namespace()),
        (_, "Secret") if is_core => ("secrets", call.namespace()),
        (_, "Node") if is_core => ("nodes", None),
        (version, kind) => {
            // As GroupVersionKind.String in Go, which writes the slash for the core group too.
            let group = if version.contains('/') { "" } else { "/" };
            return Err(ApiError::bad_request(format!(
                "cannot bind token to object of type {group}{version}, Kind={kind}"
            )));
        }
    };
    let catalog = call.server.kinds.catalog();
    let resource = catalog.resource("", "v1", plural);
    let resource = resource.ok_or_else(ApiError::unknown_resource)?;
    let (name, uid) = (text("name"), text("uid"));
    let key = resource.key(namespace, name);
    let found = call.server.store.get(resource.table, &key);
    let bound = found.ok_or_else(|| ApiError::not_found(resource, name))?;
    if plural == "pods" && spec_text(&bound, "serviceAccountName") != call.name() {
        return Err(ApiError::bad_request(format!(
            "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
            call.name()
        )));
    }
    if !uid.is_empty() && uid != bound.uid() {
        let reason = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been \
             deleted and then recreated"
        );
        return Err(ApiError::conflict_about(text("kind"), name, &reason));
    }
    let mut bounds = Bound::default();
    let reference = Reference {
        name: name.to_owned(),
        uid: bound.uid().to_owned(),
    };
    match plural {
        "pods" => {
            bounds.node = node_of(call, &bound);
            bounds.pod = Some(reference);
        }
        "secrets" => bounds.secret = Some(reference),
        _ => bounds.node = Some(reference),
    }
    Ok(bounds)
}

/// Returns the node of a Pod, without a uid if it is missing.
fn node_of(call: &Call, pod: &Stored) -> Option<Reference> {
    let name = spec_text(pod, "nodeName");
    if name.is_empty() {
        return None;
    }
    let store = &call.server.store;
    let node = store.get(store.table("nodes"), &ObjectKey::cluster(&name));
    let uid = node.map_or_else(String::new, |node| node.uid().to_owned());
    Some(Reference { name, uid })
}

fn spec_text(pod: &Stored, member: &str) -> String {
    let pod = pod.object();
    let spec = pod.get("spec");
    let text = spec.and_then(|spec| spec.get(member)?.as_str());
    text.unwrap_or_default().to_owned()
}

/// Reads a `TokenRequest`, whose kind is not that of its resource.
fn read_request(call: &Call) -> Result<Object, ApiError> {
    let mut object = read_body(
        call,
        Expected {
            kind: KIND,
            api_version: VERSION,
            custom: false,
        },
    )?;
    if let Some(types) = schema::builtin(VERSION, KIND) {
        let spec = object.entry("spec").or_insert_with(|| json!({}));
        if let Some(spec) = spec.as_object_mut() {
            let seconds = spec.entry("expirationSeconds");
            seconds.or_insert_with(|| DEFAULT_SECONDS.into());
        }
        // Though it is not stored, the answer has owners.
        let writer = Writer::of(call);
        writer.write_as(&types, VERSION).update(None, &mut object);
    }
    Ok(object)
}

fn check_seconds(seconds: i64) -> Result<(), ApiError> {
    let reason = match seconds {
        ..LEAST_SECONDS => "may not specify a duration less than 10 minutes",
        LEAST_SECONDS..=MOST_SECONDS => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let cause = StatusCause::invalid("spec.expirationSeconds", &seconds.into(), reason);
    Err(ApiError::invalid_kind(KIND, GROUP, &[cause]))
}

/// Answers a TokenReview: the user of a token.
pub(super) fn review(call: &Call) -> Result<Answer, ApiError> {
    let object = read(call)?;
    let spec = object.get("spec").cloned().unwrap_or_default();
    let token = spec["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        let message = "token is required for TokenReview in authentication";
        return Err(ApiError::bad_request(message));
    }
    let Server { store, clock, .. } = &*call.server;
    let wanted = texts(&spec["audiences"]).unwrap_or_else(|| vec![AUDIENCE.to_owned()]);
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let tokens = &call.server.access.tokens;
    let status = match tokens.look_up(store, clock, token, &wanted) {
        Ok(known) => json!({
            "authenticated": true, "user": known.user.info(), "audiences": known.audiences,
        }),
        Err(refused) => json!({"user": {}, "error": refused.text()}),
    };
    Ok(created(object, status))
}

/// Returns the texts of a list that is not empty.
fn texts(list: &Value) -> Option<Vec<String>> {
    let list = list.as_array().filter(|list| !list.is_empty())?;
    let texts = list.iter().filter_map(Value::as_str);
    Some(texts.map(str::to_owned).collect())
}
