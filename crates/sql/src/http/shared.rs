//! The state that all requests share.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::request::Parts;
use bytes::Bytes;
use lariat_core::Gvk;
use lariat_http::{Hosts, LONGEST_URL};
use tokio_util::sync::CancellationToken;

use super::auth::Auth;
use super::authorize::of_namespaces;
use super::bytes::ByteRoom;
use super::error::VisibleError;
use super::revisions::Revisions;
use super::room::Room;
use super::status::Refusal;
use super::target::{CORE, Pages};
use super::turns::Turns;
use super::visible::{Sight, View};
use crate::access::{Access, User};
use crate::cache::SqlKind;
use crate::query::Query;

/// The state that all requests share.
pub(super) struct ServiceState {
    /// The kinds, by their paths below `/v1`.
    pub(super) kinds: BTreeMap<String, SqlKind>,
    pub(super) auth: Auth,
    pub(super) sight: Option<Sight>,
    pub(super) pages: Pages,
    pub(super) requests: Room,
    pub(super) bytes: ByteRoom,
    pub(super) revisions: Revisions,
    pub(super) turns: Turns,
    pub(super) watches: Room,
    pub(super) heartbeat: Duration,
    pub(super) longest_watch: Option<Duration>,
    pub(super) stopping: CancellationToken,
    /// The names of the service, if requests need no authentication.
    pub(super) hosts: Option<Hosts>,
    pub(super) openapi: Bytes,
}

impl ServiceState {
    /// Checks a request before it is processed, and returns its user.
    pub(super) async fn enter(&self, request: &Parts) -> Result<User, Refusal> {
        self.check(request)?;
        Ok(self.auth.user(&request.headers).await?)
    }

    /// Checks the length of the URL and the `Host`.
    pub(super) fn check(&self, request: &Parts) -> Result<(), Refusal> {
        let uri = &request.uri;
        let length = uri.path().len() + uri.query().map_or(0, |query| 1 + query.len());
        if length > LONGEST_URL {
            return Err(Refusal::long_url(LONGEST_URL));
        }
        if self
            .hosts
            .as_ref()
            .is_some_and(|hosts| !hosts.allow(&request.headers))
        {
            return Err(Refusal::host());
        }
        Ok(())
    }

    /// Returns a kind by its path as a user may see it; fails if nothing may be seen.
    ///
    /// It may be less than the user sees, if the query names namespaces.
    pub(super) async fn view(
        &self,
        user: &User,
        path: &str,
        query: &Query,
    ) -> Result<View, Refusal> {
        let kind = self.kinds.get(path).ok_or_else(|| {
            let known: Vec<&str> = self.kinds.keys().map(String::as_str).collect();
            Refusal::not_found(format!(
                "the SQL cache has no {path}; it has {}",
                known.join(", ")
            ))
        })?;
        let access = self.access(user, kind, query).await?;
        let gvk = kind.schema().gvk();
        // Not an empty list, which would look as if there were no objects.
        if access.is_nothing() {
            let name = user.name();
            return Err(Refusal::forbidden(format!(
                "user {name:?} may not see any {gvk}"
            )));
        }
        Ok(View::new(kind, access))
    }

    /// Returns a kind as a user may see it, with the associated kinds of a query.
    pub(super) async fn view_for(
        &self,
        user: &User,
        path: &str,
        query: &Query,
    ) -> Result<View, Refusal> {
        let mut view = self.view(user, path, query).await?;
        let namespaces = query.namespaces.as_ref();
        let labelled = namespaces.and_then(|namespaces| namespaces.label.as_ref());
        let others = view.others(query).into_iter();
        for other in others.chain(labelled.map(|_| of_namespaces())) {
            // All that the user may see of it: it may be cluster-scoped although the query names namespaces.
            let access = match self.kinds.get(&path_of(&other)) {
                Some(kind) => self.access(user, kind, &Query::new()).await?,
                // A kind that the service does not have shows nothing.
                None => Access::nothing(),
            };
            view = view.with_other(&other, access);
        }
        Ok(view)
    }

    /// Returns whether a user may see all objects of a kind; `false` if unknown.
    pub(super) async fn sees_all(&self, user: &User, kind: &SqlKind) -> bool {
        match &self.sight {
            Some(sight) => sight.sees_all(user, kind).await.unwrap_or_default(),
            None => self.auth.is_open(),
        }
    }

    /// Returns what a user may see of a kind, at least in the namespaces of a query.
    pub(super) async fn access(
        &self,
        user: &User,
        kind: &SqlKind,
        query: &Query,
    ) -> Result<Access, VisibleError> {
        match &self.sight {
            Some(sight) => sight.look(user, kind, query).await,
            None if self.auth.is_open() => Ok(Access::everything()),
            None => Ok(Access::nothing()),
        }
    }
}

/// Returns the path of a kind.
pub(super) fn path_of(kind: &Gvk) -> String {
    let group = match kind.group() {
        "" => CORE,
        group => group,
    };
    format!("{group}/{}/{}", kind.version(), kind.kind())
}
