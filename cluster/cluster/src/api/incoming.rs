//! A request as it comes in, read as far as its head goes.

use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, IF_NONE_MATCH,
    USER_AGENT,
};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderValue, Method, Version};
use lariat_apimachinery::kinds::Resource;

use crate::fault::Action;
use crate::journal::{self, Mark};
use crate::rules::{AppliedFaults, RequestInfo};
use crate::server::Server;
use crate::status::ApiError;
use crate::wire::negotiate::{Offers, ResponseFormat, accepts_gzip};
use crate::wire::query::Query;
use crate::wire::route::{Route, Target};
use crate::wire::verb::Verb;

/// A request before it is handled.
#[derive(Debug)]
pub(crate) struct IncomingRequest {
    parts: Parts,
    pub(crate) route: Route,
    pub(crate) query: Query,
    /// Its place in the journal, if it has one.
    pub(crate) mark: Option<Mark>,
    /// It came by no connection, from a client in this process.
    pub(crate) in_process: bool,
    /// The encodings in which it can be answered.
    pub(crate) offers: Offers,
    /// It is answered as if it did not ask for the newer form of discovery.
    legacy: bool,
}

impl IncomingRequest {
    /// Reads the head of a request, finds the faults that apply to it, and records it.
    pub(crate) fn new(server: &Server, parts: Parts, in_process: bool) -> (Self, AppliedFaults) {
        let route = Route::parse(parts.uri.path());
        let mut incoming = Self {
            mark: None,
            offers: offers(server, &route, &parts.method),
            route,
            query: Query::parse(parts.uri.query().unwrap_or_default()),
            parts,
            in_process,
            legacy: false,
        };
        // The older path, as `/api/v1/watch/pods`, is a watch without the parameter; a name at its end selects one
        // object.
        if let Route::Objects(target) = &mut incoming.route
            && target.watches
            && target.subresource.is_none()
        {
            incoming.query.watch(target.name.take().as_deref());
        }
        let mut applied = AppliedFaults::default();
        // Faults must not keep a client from removing them.
        if matches!(incoming.route, Route::Admin(_)) {
            return (incoming, applied);
        }
        let mut request = incoming.entry();
        if !server.stopped.is_cancelled() {
            applied = server.faults.apply(&RequestInfo {
                request: &request,
                query: &incoming.query,
                kinds: &server.kinds,
            });
            request.faults.clone_from(&applied.actions);
            if !applied.actions.is_empty() {
                applied.client.clone_from(&request.user_agent);
            }
            incoming.legacy = applied.actions.contains(&Action::LegacyDiscovery);
        }
        incoming.mark = Some(server.journal.record(request));
        (incoming, applied)
    }

    /// Returns the verb, or `None` for a method without a meaning.
    pub(crate) fn verb(&self) -> Option<Verb> {
        match &self.route {
            Route::Objects(target) => Verb::of(&self.parts.method, target, self.query.watches()),
            _ => None,
        }
    }

    pub(crate) fn method(&self) -> &Method {
        &self.parts.method
    }

    /// Negotiates the format of the answer.
    ///
    /// Documents of other paths have a form of their own.
    pub(crate) fn format(&self) -> Result<ResponseFormat, ApiError> {
        match self.route {
            Route::Objects(_)
            | Route::CoreVersions
            | Route::Groups
            | Route::Group(_)
            | Route::Resources { .. }
            | Route::Admin(_) => {}
            _ => return Ok(ResponseFormat::default()),
        }
        ResponseFormat::negotiate(self.accept(), self.offers)
    }

    pub(crate) fn accept(&self) -> &str {
        if self.legacy {
            return "application/json";
        }
        self.header(&ACCEPT)
    }

    /// Returns the `Accept` header, for when the request has been consumed.
    pub(crate) fn accept_value(&self) -> HeaderValue {
        if self.legacy {
            return HeaderValue::from_static("application/json");
        }
        let value = self.parts.headers.get(&ACCEPT).cloned();
        value.unwrap_or(HeaderValue::from_static(""))
    }

    pub(crate) fn accepts_gzip(&self) -> bool {
        accepts_gzip(self.header(&ACCEPT_ENCODING))
    }

    pub(crate) fn content_type(&self) -> &str {
        self.header(&CONTENT_TYPE)
    }

    pub(crate) fn user_agent(&self) -> &str {
        self.header(&USER_AGENT)
    }

    /// Returns the credentials, which must not get into any log.
    pub(crate) fn authorization(&self) -> &str {
        self.header(&AUTHORIZATION)
    }

    pub(crate) fn header_text(&self, name: &'static str) -> &str {
        self.header(&HeaderName::from_static(name))
    }

    pub(crate) fn has_header(&self, name: &'static str) -> bool {
        self.parts.headers.contains_key(name)
    }

    /// Returns the hosts the request is addressed to: those of headers, and that of the URI.
    pub(crate) fn hosts(&self) -> (impl Iterator<Item = &HeaderValue>, Option<&Authority>) {
        let headers = self.parts.headers.get_all(HOST).into_iter();
        (headers, self.parts.uri.authority())
    }

    /// Returns the text with which Go's HTTP/1.1 server refuses a `Host`.
    ///
    /// Source: `conn.readRequest` in `net/http`.
    pub(crate) fn host_refusal(&self) -> Option<&'static str> {
        match self.parts.headers.get_all(HOST).iter().count() {
            _ if self.in_process || self.parts.version != Version::HTTP_11 => None,
            0 => Some("400 Bad Request: missing required Host header"),
            1 => None,
            _ => Some("400 Bad Request"),
        }
    }

    /// Iterates over the values of a header that may come more than once.
    pub(crate) fn header_texts(&self, name: &'static str) -> impl Iterator<Item = &str> {
        let values = self.parts.headers.get_all(name).into_iter();
        values.filter_map(|value| value.to_str().ok())
    }

    /// Returns whether the name of any header has a prefix.
    pub(crate) fn has_header_below(&self, prefix: &str) -> bool {
        let mut names = self.parts.headers.keys();
        names.any(|name| name.as_str().starts_with(prefix))
    }

    /// Iterates over headers by a prefix: the rest of the name, and the value.
    pub(crate) fn headers_below(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        let headers = self.parts.headers.iter();
        headers.filter_map(move |(name, value)| {
            Some((name.as_str().strip_prefix(prefix)?, value.to_str().ok()?))
        })
    }

    /// Returns the entity tags that the client has already.
    pub(crate) fn known_tags(&self) -> &str {
        self.header(&IF_NONE_MATCH)
    }

    /// Returns the path and the query.
    pub(crate) fn uri(&self) -> &str {
        let uri = self.parts.uri.path_and_query();
        uri.map_or(self.path(), |uri| uri.as_str())
    }

    pub(crate) fn path(&self) -> &str {
        self.parts.uri.path()
    }

    fn header(&self, name: &HeaderName) -> &str {
        let value = self.parts.headers.get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// Makes the entry of the journal.
    fn entry(&self) -> journal::RecordedRequest {
        let mut request = journal::RecordedRequest {
            verb: self.parts.method.as_str().to_lowercase(),
            path: self.path().to_owned(),
            query: self.parts.uri.query().unwrap_or_default().to_owned(),
            user_agent: self.user_agent().to_owned(),
            ..journal::RecordedRequest::default()
        };
        if let Some(verb) = self.verb() {
            request.verb = verb.as_str().to_owned();
        }
        if let Route::Objects(target) = &self.route {
            request.group = target.group.clone();
            request.resource = target.plural.clone();
            request.subresource = target.subresource.clone();
            request.namespace = target.namespace.clone();
            request.name = target.name.clone();
        }
        request
    }
}

/// Returns the forms of answers on a route: protobuf only for built-in kinds and for discovery.
fn offers(server: &Server, route: &Route, method: &Method) -> Offers {
    match route {
        Route::Objects(target) => {
            let catalog = server.kinds.catalog();
            let resource = catalog.resource(&target.group, &target.version, &target.plural);
            let tables = resource.is_none_or(|resource| has_tables(resource, target));
            let builtin = resource.is_some_and(|resource| !resource.rules.custom);
            let streams = *method == Method::GET && (target.name.is_none() || target.watches);
            Offers::of(builtin)
                .with_tables(tables)
                .with_streams(streams)
        }
        Route::CoreVersions => Offers::of(true),
        Route::Groups | Route::Group(_) => Offers::of(true).unrouted(),
        Route::Resources { group, version } => {
            let catalog = server.kinds.catalog();
            let mut resources = catalog.resources(group, version);
            let is_routed = resources.any(|resource| !resource.rules.custom);
            if is_routed {
                Offers::of(true)
            } else {
                Offers::of(true).unrouted()
            }
        }
        _ => Offers::of(false),
    }
}

/// Returns whether a resource or subresource can be answered as a table.
///
/// In Go those below have a storage of their own without `ConvertToTable`.
fn has_tables(resource: &Resource, target: &Target) -> bool {
    if resource.rules.custom {
        return true;
    }
    let (plural, subresource) = (target.plural.as_str(), target.subresource.as_deref());
    match (plural, subresource) {
        ("bindings", None)
        | ("pods", Some("binding" | "ephemeralcontainers" | "eviction" | "resize"))
        | ("namespaces", Some("finalize"))
        | ("serviceaccounts", Some("token"))
        | ("certificatesigningrequests", Some("approval"))
        | ("apiservices" | "customresourcedefinitions" | "resourceclaims", Some("status")) => false,
        _ => !resource.rules.review,
    }
}
