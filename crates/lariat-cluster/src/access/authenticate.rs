//! Finding out who asks.

use std::collections::BTreeMap;

use super::policy::{Decision, decide};
use super::tokens::{AUDIENCE, look_up};
use super::{Attributes, Mode, Subject, User, pages};
use crate::api::arrival::Arrival;
use crate::api::route::Target;
use crate::api::status::ApiError;
use crate::server::Server;
use crate::verbs::{Call, Verb};

/// Returns who sends a request, if they may.
pub(crate) fn admit(server: &Server, arrival: &Arrival) -> Result<User, ApiError> {
    pages::refuse(server, arrival)?;
    let user = authenticate(server, arrival)?;
    let user = impersonated(server, arrival, user)?;
    check(server, &user, &Attributes::of(arrival))?;
    Ok(user)
}

fn authenticate(server: &Server, arrival: &Arrival) -> Result<User, ApiError> {
    let access = &server.access;
    let authorization = arrival.authorization();
    // Whoever has the cluster itself in hand needs no token.
    let is_open = access.mode == Mode::Open;
    if authorization.is_empty() && (arrival.in_process || is_open) {
        return Ok(User::admin().authenticated());
    }
    let (scheme, token) = authorization.split_once(' ').unwrap_or_default();
    if !scheme.eq_ignore_ascii_case("bearer") || token.trim().is_empty() {
        return Ok(match is_open {
            true => User::admin().authenticated(),
            false => User::anonymous(),
        });
    }
    match look_up(server, token.trim()) {
        Some(token) if token.audiences.iter().any(|each| each == AUDIENCE) => Ok(token.user),
        // It is meant for somebody else.
        Some(_) => Err(ApiError::unauthorized()),
        // A cluster that knows no tokens takes any.
        None if is_open && !access.tokens.has_fixed() => Ok(User::admin().authenticated()),
        None => Err(ApiError::unauthorized()),
    }
}

/// Returns the user a request is to be carried out as, if it names another and its sender may do so.
fn impersonated(server: &Server, arrival: &Arrival, user: User) -> Result<User, ApiError> {
    let name = arrival.header_text("impersonate-user");
    if name.is_empty() {
        return nobody(arrival).map(|()| user);
    }
    let groups: Vec<&str> = arrival.header_texts("impersonate-group").collect();
    let account = name
        .strip_prefix("system:serviceaccount:")
        .and_then(|rest| rest.split_once(':'));
    let (resource, namespace, resource_name) = match account {
        Some((namespace, name)) => ("serviceaccounts", Some(namespace), name),
        None => ("users", None, name),
    };
    check(
        server,
        &user,
        &impersonate(resource, namespace, resource_name),
    )?;
    for group in &groups {
        check(server, &user, &impersonate("groups", None, group))?;
    }
    let mut other = match account {
        Some((namespace, name)) if groups.is_empty() => User::service_account(namespace, name),
        _ => User::new(name),
    };
    for group in groups {
        other = other.group(group);
    }
    Ok(match name {
        "system:anonymous" => other.group("system:unauthenticated"),
        _ => other.authenticated(),
    })
}

/// Refuses parts of a user without the user.
///
/// Source: `k8s.io/apiserver/pkg/endpoints/filters/impersonation`, which writes them as Go does.
fn nobody(arrival: &Arrival) -> Result<(), ApiError> {
    let uid = arrival.header_text("impersonate-uid");
    let groups: Vec<&str> = arrival.header_texts("impersonate-group").collect();
    let mut extra: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (key, value) in arrival.headers_below("impersonate-extra-") {
        extra.entry(key).or_default().push(value);
    }
    if uid.is_empty() && groups.is_empty() && extra.is_empty() {
        return Ok(());
    }
    let list = |texts: &[&str]| match texts {
        [] => "[]string(nil)".to_owned(),
        texts => {
            let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
            format!("[]string{{{}}}", texts.join(", "))
        }
    };
    let extra: Vec<String> = extra
        .iter()
        .map(|(key, values)| format!("{key:?}:{}", list(values)))
        .collect();
    let extra = match &extra[..] {
        [] => "map[string][]string(nil)".to_owned(),
        entries => format!("map[string][]string{{{}}}", entries.join(", ")),
    };
    let groups = list(&groups);
    let wanted =
        format!("&user.DefaultInfo{{Name:\"\", UID:{uid:?}, Groups:{groups}, Extra:{extra}}}");
    Err(ApiError::bad_request(format!(
        "requested {wanted} without impersonating a user name"
    )))
}

fn impersonate(resource: &str, namespace: Option<&str>, name: &str) -> Attributes {
    Attributes {
        verb: "impersonate".to_owned(),
        subject: Subject::Resource(Target {
            plural: resource.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: Some(name.to_owned()),
            ..Target::default()
        }),
    }
}

/// Checks that the sender of a request may also do something else with what it is about.
///
/// Source: `createAuthorizerAttributes` in `k8s.io/apiserver/pkg/endpoints/handlers/patch.go`.
pub(crate) fn check_also(call: &Call, verb: Verb) -> Result<(), ApiError> {
    let attributes = Attributes {
        verb: verb.as_str().to_owned(),
        subject: Subject::Resource(call.target.clone()),
    };
    check(&call.server, &call.user, &attributes)
}

fn check(server: &Server, user: &User, attributes: &Attributes) -> Result<(), ApiError> {
    match decide(server, user, attributes) {
        Decision::Allowed(_) => Ok(()),
        Decision::NoOpinion => Err(ApiError::denied(attributes, user.name())),
    }
}
