//! The verbs: what happens to objects.

mod admit;
mod annotations;
mod autoscalers;
mod builtin;
mod conditions;
mod continuation;
mod create;
mod custom;
mod decode;
mod definition;
mod delete;
mod delete_options;
mod delete_rules;
mod fields;
mod finalizer_rules;
mod form;
mod list;
mod owners;
mod ownership;
mod patch;
mod read;
mod recreate;
mod reject;
mod reviews;
mod shape;
mod strategy;
mod subresources;
mod table;
mod touch;
mod update;
mod view;
mod warnings;
mod watch;

use bytes::Bytes;
use http::{Method, StatusCode};

use crate::access::User;
use crate::api::document;
use crate::api::negotiate::{Encoding, Form, Shape};
use crate::api::query::{self, Query};
use crate::api::reply::Reply;
use crate::api::route::Target;
use crate::api::status::ApiError;
use crate::faults::{Action, Fault};
use crate::kinds::Resource;
use crate::server::Server;
use crate::store::{Draft, EventType, Object, Stored};
use std::sync::Arc;

pub(crate) use admit::{Part, Replacement, finalizers, metadata_mut, replacement};
pub(crate) use conditions::{set_condition, status_mut};
pub(crate) use create::create;
pub(crate) use definition::CLEANUP;
pub(crate) use delete::{delete_as, delete_once, remove};
pub(crate) use delete_rules::{Deletion, FOREGROUND, ORPHAN, Propagation};
pub(crate) use ownership::account_as;
#[cfg(feature = "fuzzing")]
pub(crate) use patch::patched;
pub(crate) use update::replace;
pub(crate) use warnings::Warnings;

/// A request about objects of one resource.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) server: Arc<Server>,
    pub(crate) resource: Arc<Resource>,
    pub(crate) target: Target,
    pub(crate) query: Query,
    pub(crate) shape: Shape,
    /// All that was negotiated about the answer, its shape included.
    pub(crate) form: Form,
    /// What goes wrong on purpose.
    pub(crate) fault: Option<Fault>,
    pub(crate) content_type: String,
    pub(crate) user_agent: String,
    /// Who asks.
    pub(crate) user: User,
    /// What the client is told beside the answer.
    pub(crate) warnings: Warnings,
    pub(crate) body: Bytes,
}

/// A Kubernetes verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// Returns the verb of a request, or `None` where the method has no meaning.
    pub(crate) fn of(method: &Method, target: &Target, watch: bool) -> Option<Self> {
        if *method == Method::POST && target.subresource.is_some() {
            return Some(Self::Create);
        }
        Some(match (method, target.name.is_some()) {
            (&Method::GET, true) => Self::Get,
            (&Method::GET, false) if watch => Self::Watch,
            (&Method::GET, false) => Self::List,
            (&Method::POST, false) => Self::Create,
            (&Method::PUT, true) => Self::Update,
            (&Method::PATCH, true) => Self::Patch,
            (&Method::DELETE, true) => Self::Delete,
            (&Method::DELETE, false) => Self::DeleteCollection,
            _ => return None,
        })
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

impl Call {
    /// Carries the verb out.
    ///
    /// Whatever it answers, the warnings it gave along the way go with it.
    pub(crate) async fn run(self, verb: Verb) -> Reply {
        let warnings = self.warnings.clone();
        if let Some(deprecation) = &self.resource.deprecation {
            warnings.add(deprecation.clone());
        }
        let reply = self.carry_out(verb).await.unwrap_or_else(Reply::from);
        reply.warnings(&warnings.take())
    }

    async fn carry_out(self, verb: Verb) -> Result<Reply, ApiError> {
        if let Some(reply) = reviews::answer(&self, verb) {
            return reply;
        }
        subresources::check(&self, verb)?;
        self.shape
            .check(matches!(verb, Verb::List | Verb::DeleteCollection))?;
        if verb == Verb::Watch && self.form.encoding != Encoding::Json {
            let streams = "application/json, application/vnd.kubernetes.protobuf";
            return Err(ApiError::not_acceptable_for(streams));
        }
        if self.shape == Shape::Table {
            table::check(&self.query)?;
        }
        match self.fault() {
            Some(Action::Conflict) => touch::touch(&self),
            Some(Action::Recreate(name)) => recreate::recreate(&self, name),
            Some(Action::Reject(why)) => return Err(reject::rejected(&self, why)),
            Some(Action::ExceedQuota(quota)) => return Err(reject::over_quota(&self, quota)),
            Some(Action::RefuseWatchList) => return Err(query::initial_events_unknown()),
            _ => {}
        }
        if let Some(reply) = subresources::answer(&self, verb) {
            return reply;
        }
        match verb {
            Verb::Get => read::get(&self).await,
            Verb::List => list::list(&self).await,
            Verb::Watch => watch::watch(self).await,
            Verb::Create | Verb::Update | Verb::Patch if self.is_deep() => {
                document::with_stack(|| self.write(verb))
            }
            Verb::Create | Verb::Update | Verb::Patch => self.write(verb),
            Verb::Delete => delete::delete(&self),
            Verb::DeleteCollection => delete::delete_collection(&self).await,
        }
    }

    /// Returns whether what is sent, or what it changes, nests deep.
    fn is_deep(&self) -> bool {
        let key = self.resource.key(self.namespace(), self.name());
        let present = || self.server.store.get(self.resource.table, &key);
        document::is_deep(&self.body)
            || present().is_some_and(|stored| document::is_deep(stored.content()))
    }

    fn write(&self, verb: Verb) -> Result<Reply, ApiError> {
        match verb {
            Verb::Create => create::create(self),
            Verb::Update => update::update(self),
            _ => patch::patch(self),
        }
    }

    fn fault(&self) -> Option<&Action> {
        self.fault.as_ref().map(|fault| &fault.action)
    }

    /// Returns the revision of the state to read, if that is not the present one on purpose.
    fn stale(&self) -> Option<u64> {
        let fault = self.fault.as_ref()?;
        let is_stale = matches!(fault.action, Action::StaleRead | Action::Freeze);
        is_stale.then_some(fault.added_at)
    }

    /// Returns the revision behind which nothing is shown on purpose.
    fn frozen(&self) -> Option<u64> {
        self.stale()
            .filter(|_| self.fault() == Some(&Action::Freeze))
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.target.namespace.as_deref()
    }

    /// Returns the name in the path, which verbs about one object have.
    pub(crate) fn name(&self) -> &str {
        self.target.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn not_found(&self) -> ApiError {
        ApiError::not_found(&self.resource, self.name())
    }

    /// Returns the type of an object of which only the metadata is shown, in JSON.
    pub(crate) fn metadata_head(&self) -> String {
        let version = self.form.meta.api_version();
        format!(r#""kind":"PartialObjectMetadata","apiVersion":"{version}""#)
    }

    /// Answers an object that is not (or not yet) stored, under a given version.
    pub(crate) fn answer(&self, code: StatusCode, object: &Object, revision: u64) -> Reply {
        let stored = Draft::new(object).stamp(revision, EventType::Added);
        self.answer_stored(code, &stored)
    }

    /// Answers a state, in the version and the shape the client asked for.
    pub(crate) fn answer_stored(&self, code: StatusCode, stored: &Stored) -> Reply {
        let reread = view::reread(&self.resource, stored);
        let stored = reread.as_ref().unwrap_or(stored);
        match self.shape {
            Shape::Whole => {
                let head = self.resource.head();
                Reply::json_of(code, &[b"{", head.as_bytes(), stored.content()])
            }
            Shape::Metadata | Shape::MetadataList => {
                let head = self.metadata_head();
                Reply::json_of(code, &[b"{", head.as_bytes(), stored.metadata(), b"}"])
            }
            Shape::Table => Reply::json(code, table::Table::of(self).single(stored, true)),
        }
    }
}
