//! Authentication: finding out who sends a request.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

use super::incoming::IncomingRequest;
use super::web_pages;
use crate::access::{AUDIENCE, Attributes, Mode, Subject, TokenError, User};
use crate::server::Server;
use crate::status::ApiError;
use crate::wire::query::Query;
use crate::wire::route::{Route, Target};
use crate::wire::verb::Verb;

/// The group of impersonated attributes beside the name.
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Authenticates and authorizes a request, and returns its user.
///
/// `known` is called with the user as soon as that is known, whether they may or not.
pub(crate) fn admit(
    server: &Server,
    incoming: &IncomingRequest,
    known: impl FnOnce(&User),
) -> Result<User, ApiError> {
    web_pages::refuse(server, incoming)?;
    let sender = authenticate(server, incoming)?;
    let user = impersonated(server, incoming, sender)?;
    known(&user);
    server.check(&user, &attributes_of(incoming))?;
    Ok(user)
}

/// The warning about a token behind two blanks, which is none.
pub(crate) const STRAY_SPACE: &str = "the provided Authorization header contains extra space before the bearer token, and is ignored";

/// Returns whether a token comes behind two blanks.
pub(crate) fn has_stray_space(authorization: &str) -> bool {
    let mut words = authorization.trim().split(' ');
    let is_bearer = words
        .next()
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer"));
    is_bearer && words.next() == Some("")
}

fn authenticate(server: &Server, incoming: &IncomingRequest) -> Result<User, ApiError> {
    let access = &server.access;
    let authorization = incoming.authorization();
    // A client in this process has the cluster itself, and needs no token.
    let is_open = access.mode == Mode::Open;
    if !incoming.has_header("authorization") && (incoming.in_process || is_open) {
        return Ok(User::admin().authenticated());
    }
    let mut words = authorization.trim().split(' ');
    let (scheme, token) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    // As in Go, where each authenticator leaves what it does not know to the next: another scheme is as good as none.
    // A token behind two blanks is none either.
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return Ok(if is_open {
            User::admin().authenticated()
        } else {
            User::anonymous()
        });
    }
    let (store, clock) = (&server.store, &server.clock);
    let known = access.tokens.look_up(store, clock, token, &[AUDIENCE]);
    match known {
        Ok(token) => Ok(token.user),
        Err(TokenError::Audience(_)) => Err(ApiError::unauthorized()),
        // A cluster that knows no tokens takes any.
        Err(_) if is_open && !access.tokens.has_fixed() => Ok(User::admin().authenticated()),
        Err(_) => Err(ApiError::unauthorized()),
    }
}

/// Returns the user a request impersonates, if its sender may do so.
fn impersonated(server: &Server, incoming: &IncomingRequest, user: User) -> Result<User, ApiError> {
    // Few requests impersonate anyone.
    if !incoming.has_header_below("impersonate-") {
        return Ok(user);
    }
    let name = incoming.header_text("impersonate-user");
    if name.is_empty() {
        return refuse_anonymous(incoming).map(|()| user);
    }
    let groups: Vec<&str> = incoming.header_texts("impersonate-group").collect();
    let account = name
        .strip_prefix("system:serviceaccount:")
        .and_then(|rest| rest.split_once(':'));
    let target = match account {
        Some((namespace, name)) => Target {
            namespace: Some(namespace.to_owned()),
            ..named("", "serviceaccounts", name)
        },
        None => named("", "users", name),
    };
    server.check(&user, &impersonate(target))?;
    for group in &groups {
        server.check(&user, &impersonate(named("", "groups", group)))?;
    }
    let mut other = match account {
        // Groups that are given replace those of the account.
        Some((namespace, name)) if groups.is_empty() => User::service_account(namespace, name),
        _ => User::new(name),
    };
    for group in groups {
        other = other.group(group);
    }
    other = match name {
        "system:anonymous" => other.group("system:unauthenticated"),
        _ => other.authenticated(),
    };
    with_rest(server, incoming, &user, other)
}

/// Adds the uid, groups and extra of the user that a request impersonates.
fn with_rest(
    server: &Server,
    incoming: &IncomingRequest,
    user: &User,
    mut other: User,
) -> Result<User, ApiError> {
    for (key, value) in incoming.headers_below("impersonate-extra-") {
        // As unescapeExtraKey: the name of a header cannot have every character of a key.
        let key = percent_decode_str(key).decode_utf8_lossy();
        let target = Target {
            subresource: Some(key.clone().into_owned()),
            ..named(AUTHENTICATION, "userextras", value)
        };
        server.check(user, &impersonate(target))?;
        other = other.extra(&key, value.to_owned());
    }
    let uid = incoming.header_text("impersonate-uid");
    if !uid.is_empty() {
        server.check(user, &impersonate(named(AUTHENTICATION, "uids", uid)))?;
        other = other.uid(uid);
    }
    Ok(other)
}

/// Refuses parts of a user without the user.
///
/// Source: `k8s.io/apiserver/pkg/endpoints/filters/impersonation`, which writes them as Go does.
fn refuse_anonymous(incoming: &IncomingRequest) -> Result<(), ApiError> {
    let uid = incoming.header_text("impersonate-uid");
    let groups: Vec<&str> = incoming.header_texts("impersonate-group").collect();
    let mut extra: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (key, value) in incoming.headers_below("impersonate-extra-") {
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
    let entries: Vec<String> = extra
        .iter()
        .map(|(key, values)| format!("{key:?}:{}", list(values)))
        .collect();
    let extra = match &entries[..] {
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

fn impersonate(target: Target) -> Attributes {
    Attributes {
        verb: "impersonate".to_owned(),
        subject: Subject::Resource(target),
    }
}

fn named(group: &str, plural: &str, name: &str) -> Target {
    Target {
        group: group.to_owned(),
        plural: plural.to_owned(),
        name: Some(name.to_owned()),
        ..Target::default()
    }
}

/// Returns the attributes of a request for authorization.
fn attributes_of(incoming: &IncomingRequest) -> Attributes {
    let Route::Objects(target) = &incoming.route else {
        return Attributes {
            verb: incoming.method().as_str().to_lowercase(),
            subject: Subject::Path(incoming.path().to_owned()),
        };
    };
    let mut target = target.clone();
    // What comes behind it is a path for whoever is asked, such as that of a proxy.
    if let Some(subresource) = &mut target.subresource
        && let Some(end) = subresource.find('/')
    {
        subresource.truncate(end);
    }
    let of_objects = incoming.verb().map(Verb::as_str);
    let verb = of_objects.or_else(|| verb_of(incoming.method().as_str(), target.name.is_some()));
    let selects = matches!(verb, Some("list" | "watch" | "deletecollection"));
    if target.name.is_none() && selects {
        target.name = selected_name(&incoming.query);
    }
    // A namespace is asked for as if it lay within itself.
    if target.plural == "namespaces" && target.group.is_empty() {
        target.namespace.clone_from(&target.name);
    }
    Attributes {
        verb: verb.unwrap_or_default().to_owned(),
        subject: Subject::Resource(target),
    }
}

/// Returns the only name that a list or a watch selects.
///
/// A permission may be limited to it.
fn selected_name(query: &Query) -> Option<String> {
    if let Some(name) = query.watched_name() {
        return Some(name.to_owned());
    }
    let selector = query.text("fieldSelector")?;
    let mut names = selector
        .split(',')
        .filter_map(|term| term.trim().strip_prefix("metadata.name="))
        .map(|name| name.trim_start_matches('='));
    names.next().map(str::to_owned)
}

fn verb_of(method: &str, named: bool) -> Option<&'static str> {
    Some(match (method, named) {
        ("POST", _) => "create",
        ("GET" | "HEAD", true) => "get",
        ("GET" | "HEAD", false) => "list",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => return None,
    })
}
