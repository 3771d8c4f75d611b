use kube::core::Status;
use kube::core::response::StatusDetails;
use serde_json::json;

use super::*;
use crate::{Ignore, RetryAfter, Terminal};

fn fails() -> Result<(), HandlerError> {
    Err(std::io::Error::other("no"))?;
    Ok(())
}

#[derive(Debug, thiserror::Error)]
#[error("cannot write")]
struct Outer(#[source] Box<dyn Error + Send + Sync>);

#[derive(Debug, thiserror::Error)]
enum Transparent {
    #[error(transparent)]
    Terminal(#[from] Terminal),
    #[error(transparent)]
    Later(#[from] RetryAfter),
    #[error(transparent)]
    Ignore(#[from] Ignore),
    #[error(transparent)]
    Kube(#[from] kube::Error),
    #[error(transparent)]
    Boxed(#[from] Box<kube::Error>),
}

/// Returns an error as it is, and in the ways in which programs wrap errors.
fn wrapped<E>(make: impl Fn() -> E) -> Vec<(&'static str, HandlerError)>
where
    E: Error + Send + Sync + 'static,
    Transparent: From<E>,
{
    let any = || anyhow::Error::from(make());
    vec![
        ("plain", make().into()),
        ("box", Outer(Box::new(make())).into()),
        ("two boxes", Outer(Box::new(Box::new(make()))).into()),
        ("arc", Outer(Box::new(Arc::new(make()))).into()),
        ("transparent", Transparent::from(make()).into()),
        ("anyhow", any().into()),
        ("anyhow and context", any().context("c").into()),
        ("anyhow as a cause", Outer(any().into()).into()),
        (
            "all of them",
            Outer(
                anyhow::Error::from(Transparent::from(make()))
                    .context("c")
                    .into(),
            )
            .into(),
        ),
    ]
}

fn refusal(code: u16, reason: &str) -> Status {
    Status::failure("no", reason).with_code(code)
}

fn details(details: serde_json::Value) -> StatusDetails {
    serde_json::from_value(details).expect("they are details")
}

fn with_cause(code: u16, message: &str, cause: &str) -> HandlerError {
    let mut status = Status::failure(message, "Invalid").with_code(code);
    let field = message.split(": ").next();
    let cause = json!({"reason": cause, "field": field});
    status.details = Some(details(json!({"causes": [cause]})));
    anyhow::Error::from(kube::Error::Api(status.boxed())).into()
}

#[test]
fn what_an_error_says_is_found_behind_every_wrapper() {
    for (how, error) in wrapped(|| Terminal::because("never")) {
        assert!(!error.is_retryable() && !error.is_ignored(), "{how}");
        assert!(error.to_string().ends_with("never"), "{how}: {error}");
    }
    for (how, error) in wrapped(|| Ignore::because("not mine")) {
        assert!(error.is_ignored(), "{how}");
        assert!(error.to_string().ends_with("not mine"), "{how}: {error}");
    }
    let delay = Duration::from_secs(60);
    for (how, error) in wrapped(|| RetryAfter::new(delay)) {
        assert!(error.is_retryable(), "{how}");
        assert_eq!(error.delay(), Some(delay), "{how}");
    }
    for (how, error) in wrapped(|| kube::Error::Api(refusal(409, "Conflict").boxed())) {
        assert!(error.is_conflict() && error.is_retryable(), "{how}");
    }
    for (how, error) in wrapped(|| Box::new(kube::Error::Api(refusal(409, "Conflict").boxed()))) {
        assert!(error.is_conflict(), "{how}");
    }
    for (how, error) in wrapped(|| kube::Error::Api(refusal(413, "RequestEntityTooLarge").boxed()))
    {
        assert!(error.is_slow(), "{how}");
    }
}

#[test]
fn a_conflict_is_distinguished_from_other_refusals_with_its_code() {
    let error = HandlerError::from(kube::Error::Api(refusal(409, "AlreadyExists").boxed()));
    assert!(!error.is_conflict());
}

#[test]
fn object_that_is_invalid_in_any_state_is_retried_slowly() {
    // No call is known here, so it may be any object.
    let is_slow = |error: HandlerError| error.is_retryable() && error.is_slow();
    let unsupported = "spec.type: Unsupported value";
    assert!(is_slow(with_cause(
        422,
        unsupported,
        "FieldValueNotSupported"
    )));
    let required = "spec.ports: Required value";
    assert!(is_slow(with_cause(422, required, "FieldValueRequired")));
    let name = "metadata.name: Invalid value: \"A\"";
    assert!(is_slow(with_cause(422, name, "FieldValueInvalid")));
}

#[test]
fn object_that_may_become_valid_is_retried_with_backoff() {
    let is_usual = |error: HandlerError| error.is_retryable() && !error.is_slow();
    for message in [
        "spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated",
        "spec.selector: Invalid value: field is immutable",
    ] {
        assert!(is_usual(with_cause(422, message, "FieldValueInvalid")));
    }
    let denied = "admission webhook \"a.example.com\" denied the request: size is required";
    assert!(is_usual(with_cause(422, denied, "FieldValueRequired")));
    let test_of_a_patch = kube::Error::Api(refusal(422, "Invalid").boxed());
    assert!(is_usual(test_of_a_patch.into()));
    assert!(is_usual(with_cause(403, "quota", "FieldValueRequired")));
}

#[test]
fn a_delay_of_the_api_server_is_the_least_and_not_the_exact_one() {
    let mut status = refusal(429, "TooManyRequests");
    status.details = Some(details(json!({"retryAfterSeconds": 7})));
    let error: HandlerError = anyhow::Error::from(kube::Error::Api(status.boxed())).into();
    assert_eq!(error.not_before(), Some(Duration::from_secs(7)));
    assert_eq!(error.delay(), None);
}

#[test]
fn any_error_converts_and_is_tried_again() {
    let error = fails().unwrap_err();
    assert!(error.is_retryable());
    assert_eq!(error.to_string(), "no");
    assert!(!HandlerError::terminal("never").is_retryable());
    assert_eq!(HandlerError::from("text").to_string(), "text");
    let said = HandlerError::from(RetryAfter::new(Duration::from_secs(3)));
    assert_eq!(said.to_string(), "not ready yet: retry after 3s");
}
