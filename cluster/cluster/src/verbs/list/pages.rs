//! Lists, in pages.

use std::time::Duration;

use lariat_apimachinery::go_text::quoted;
use lariat_apimachinery::names::{self, NameRule};
use tokio::time;

use super::page::ListPage;
use crate::fault::Action;
use crate::status::ApiError;
use crate::store::{Page, Range};
use crate::verbs::answer::Answer;
use crate::verbs::call::Call;
use crate::verbs::continuation::Continuation;
use crate::verbs::fields::Filter;
use crate::wire::number;
use crate::wire::query::{ListQuery, VersionMatch};

/// The longest time a read waits for a revision the server has not reached.
// As blockTimeout in storage/cacher/watch_cache.go.
pub(crate) const FUTURE_WAIT: Duration = Duration::from_secs(3);

pub(crate) async fn list(call: &Call) -> Result<Answer, ApiError> {
    let query = call.query.list()?;
    let filter = Filter::new(&call.resource, call.namespace(), &query)?;
    let scope = Scope::of(call, &query);
    let plan = Plan::new(call, &query, query.limit.is_some() && !scope.is_one())?;
    if matches!(call.fault(), Some(Action::Expire | Action::Gone)) {
        return Err(plan.expired());
    }
    wait_for(call, plan.not_older_than).await?;
    select(call, &plan, &scope, &filter).map(Answer::List)
}

/// Reads the objects that the deletion of a collection selects.
// `Store.DeleteCollection`: it lists in pages, whether or not that is asked for.
pub(crate) async fn to_delete(call: &Call) -> Result<ListPage, ApiError> {
    let query = call.query.list()?;
    let filter = Filter::new(&call.resource, call.namespace(), &query)?;
    let scope = Scope::of(call, &query);
    let plan = Plan::new(call, &query, !scope.is_one())?;
    wait_for(call, plan.not_older_than).await?;
    select(call, &plan, &scope, &filter)
}

/// The namespace and the name that a list is restricted to.
///
/// Source: `Store.ListPredicate` in `k8s.io/apiserver/pkg/registry/generic/registry`.
#[derive(Debug)]
struct Scope<'a> {
    namespace: Option<&'a str>,
    /// The only object that is looked at.
    name: Option<&'a str>,
}

impl<'a> Scope<'a> {
    fn of(call: &'a Call, query: &'a ListQuery) -> Self {
        let namespace = call.namespace();
        // A continued list goes on where the token says, whatever is selected.
        if query.continue_token.is_some() {
            return Self {
                namespace,
                name: None,
            };
        }
        let is_namespaced = call.resource.namespaced;
        let selected = query.fields.required("metadata.namespace");
        let selected =
            selected.filter(|name| is_namespaced && names::check(name, NameRule::Label).is_ok());
        let namespace = namespace.or(selected);
        let name = query.fields.required("metadata.name");
        // What cannot be a key is looked for in all objects.
        let has_key = namespace.is_some() || !is_namespaced;
        let is_key = |name: &&str| {
            has_key && !matches!(*name, "" | "." | "..") && !name.contains(['/', '%'])
        };
        Self {
            namespace,
            name: name.filter(is_key),
        }
    }

    /// Returns whether a list reads one key, which has no pages.
    fn is_one(&self) -> bool {
        self.name.is_some()
    }
}

/// The read of a list, by the table of resource version semantics.
#[derive(Debug, Default)]
struct Plan {
    /// The revision of the state; `None` for the present.
    exactly: Option<u64>,
    not_older_than: Option<u64>,
    /// The oldest state may be read where the wanted one is no longer known.
    or_oldest: bool,
    limit: Option<usize>,
    continuation: Option<Continuation>,
}

impl Plan {
    /// `pages` says whether a version without `resourceVersionMatch` is exactly that one.
    fn new(call: &Call, query: &ListQuery, pages: bool) -> Result<Self, ApiError> {
        let limit = query.limit;
        if let Some(token) = &query.continue_token {
            // As in ValidateListOptions of Go's storages, the token is read first.
            let continuation = Continuation::parse(token)?;
            let version = query.version.as_deref();
            if version.is_some_and(|version| version != "0") {
                let message = "specifying resource version is not allowed when using continue";
                return Err(ApiError::bad_request(message));
            }
            return Ok(Self {
                exactly: continuation.revision(),
                // A watch cache, which version 0 leads to, knows no pages.
                limit: limit.filter(|_| version.is_none()),
                continuation: Some(continuation),
                ..Self::default()
            });
        }
        let version = query.version.as_deref().map(parse_version).transpose()?;
        let plan = Self {
            limit,
            ..Self::default()
        };
        if let Some(frozen) = call.frozen() {
            return Ok(Self {
                exactly: Some(frozen),
                or_oldest: true,
                ..plan
            });
        }
        Ok(match (version, query.version_match) {
            (None, _) => plan,
            // A watch cache answers version 0 with all it has.
            (Some(0), None | Some(VersionMatch::NotOlderThan)) => Self {
                limit: None,
                exactly: call.stale(),
                or_oldest: call.stale().is_some(),
                ..plan
            },
            // A version that is not reached yet is waited for before it is read.
            (Some(version), Some(VersionMatch::Exact)) => Self {
                exactly: Some(version),
                not_older_than: Some(version),
                ..plan
            },
            // From the time before `resourceVersionMatch`: a page at a version is of exactly this version.
            (Some(version), None) if pages => Self {
                exactly: Some(version),
                not_older_than: Some(version),
                ..plan
            },
            (Some(version), _) => Self {
                not_older_than: Some(version),
                ..plan
            },
        })
    }

    /// The error for a state that is no longer known.
    fn expired(&self) -> ApiError {
        let continuation = self.continuation.as_ref();
        // The error has a token that goes on from the same place in the present state.
        continuation.map_or_else(ApiError::list_expired, |continuation| {
            ApiError::continue_expired(continuation.inconsistent().token())
        })
    }
}

fn parse_version(text: &str) -> Result<u64, ApiError> {
    let version = read_version(text);
    version.map_err(|error| ApiError::bad_request(format!("invalid resource version: {error}")))
}

/// Reads a version as `ParseResourceVersion` of Go's storages.
pub(crate) fn read_version(text: &str) -> Result<u64, String> {
    let version = number::unsigned(text);
    version.map_err(|error| {
        format!(
            "resourceVersion: Invalid value: {text}: {error}",
            text = quoted(text)
        )
    })
}

/// Waits until the server has reached a revision, for as long as a real one does.
pub(crate) async fn wait_for(call: &Call, revision: Option<u64>) -> Result<(), ApiError> {
    let Some(wanted) = revision else {
        return Ok(());
    };
    let reached = async {
        // Subscribed before the revision is read, so that no commit between the two is missed.
        let mut commits = call.server.store.commits();
        while call.server.store.revision() < wanted && commits.changed().await.is_ok() {}
    };
    let timed_out = time::timeout(FUTURE_WAIT, reached).await.is_err();
    let current = call.server.store.revision();
    if timed_out || current < wanted {
        return Err(ApiError::version_too_large(wanted, current));
    }
    Ok(())
}

fn select(
    call: &Call,
    plan: &Plan,
    scope: &Scope<'_>,
    filter: &Filter,
) -> Result<ListPage, ApiError> {
    // What a token of another history names is not there yet, and must not be answered as if it were.
    let is_ahead = plan.exactly > Some(call.server.store.revision());
    if plan.continuation.is_some() && is_ahead {
        return Err(plan.expired());
    }
    let namespace = scope.namespace;
    let limit = plan.limit.filter(|_| !scope.is_one());
    let start = plan
        .continuation
        .as_ref()
        .map(|continuation| match namespace {
            // As in Go, the key in a token is relative to the path of the list.
            Some(namespace) => format!("{namespace}/{}", continuation.start()),
            None => continuation.start().to_owned(),
        });
    let range = Range {
        namespace,
        start: start.as_deref(),
        at: plan.exactly,
        or_oldest: plan.or_oldest,
        // With a selector the limit counts what is selected, which the store does not know.
        limit: limit.filter(|_| filter.is_empty()),
        uncounted: false,
    };
    let page = call
        .server
        .store
        .range(call.resource.table, &range)
        .map_err(|_| plan.expired())?;
    Ok(cut(page, limit, namespace, filter))
}

fn cut(page: Page, limit: Option<usize>, namespace: Option<&str>, filter: &Filter) -> ListPage {
    let Page {
        mut objects,
        revision,
        mut remaining,
    } = page;
    if !filter.is_empty() {
        let mut rest = objects.into_iter();
        let selected = rest.by_ref().filter(|stored| filter.matches(stored));
        objects = selected.take(limit.unwrap_or(usize::MAX)).collect();
        // Objects that follow count although they may not be selected: a genuine server does not look ahead.
        remaining = rest.len();
    }
    let last = objects.last().filter(|_| remaining > 0);
    let continue_token = last.map(|stored| {
        let key = match namespace {
            Some(_) => stored.key().name(),
            None => stored.key().as_str(),
        };
        Continuation::after(key, Some(revision)).token()
    });
    ListPage {
        objects,
        revision,
        continue_token,
        remaining: (remaining > 0 && filter.is_empty()).then_some(remaining),
    }
}
