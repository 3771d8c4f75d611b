//! Which verb does what.

use super::call::Call;
use super::{
    create, delete, list, patch, read, recreate, reject, reviews, subresources, touch, update,
    watch,
};
use crate::fault::Action;
use crate::printers::Include;
use crate::status::ApiError;
use crate::wire::negotiate::{Encoding, Shape};
use crate::wire::reply::Reply;
use crate::wire::verb::Verb;
use crate::wire::{document, query};

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
            Include::of(&self.query)?;
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
}
