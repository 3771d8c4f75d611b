//! Dispatches a call by its verb.

use super::answer::Answer;
use super::call::Call;
use super::{create, delete, list, patch, read, reviews, subresources, update, watch};
use crate::conversion;
use crate::status::ApiError;
use crate::wire::document::{self, WithStack};
use crate::wire::verb::Verb;

impl Call {
    /// Returns whether it is a review, rather than about stored objects.
    pub(crate) fn is_review(&self) -> bool {
        reviews::is_review(self)
    }

    /// Refuses subresources that are not served, and verbs they do not have.
    pub(crate) fn check_subresource(&self, verb: Verb) -> Result<(), ApiError> {
        subresources::check(self, verb)
    }

    /// Carries the verb out.
    pub(crate) async fn run(&self, verb: Verb) -> Result<Answer, ApiError> {
        let (server, resource) = (&self.server, &self.resource);
        match self.carry_out(verb).await? {
            Answer::Object { stored, success } if resource.conversion.is_some() => {
                let stored = Box::pin(conversion::shown(server, resource, stored)).await?;
                Ok(Answer::Object { stored, success })
            }
            Answer::List(mut page) if resource.conversion.is_some() => {
                let states = std::mem::take(&mut page.objects);
                page.objects = Box::pin(conversion::all_shown(server, resource, states)).await?;
                Ok(Answer::List(page))
            }
            answer => Ok(answer),
        }
    }

    async fn carry_out(&self, verb: Verb) -> Result<Answer, ApiError> {
        if self.is_review() {
            return Box::pin(reviews::answer(self, verb)).await;
        }
        if let Some(answer) = subresources::answer(self, verb).await {
            return answer;
        }
        match verb {
            Verb::Get => read::get(self).await,
            Verb::List => list::list(self).await,
            Verb::Watch => Box::pin(watch::watch(self)).await,
            // Members are visited by recursion, which for a deep document needs a larger stack.
            Verb::Create | Verb::Update | Verb::Patch if self.is_deep() => {
                WithStack::new(self.write(verb)).await
            }
            // Boxed: these futures are by far the largest, since webhooks are called in them, and reads would carry
            // their size. A future is copied several times until it is polled.
            Verb::Create | Verb::Update | Verb::Patch => Box::pin(self.write(verb)).await,
            Verb::Delete => Box::pin(delete::delete(self)).await,
            Verb::DeleteCollection => Box::pin(delete::delete_collection(self)).await,
        }
    }

    /// Returns whether the body, or the object it changes, nests deep.
    fn is_deep(&self) -> bool {
        let key = self.resource.key(self.namespace(), self.name());
        let present = || self.server.store.get(self.resource.table, &key);
        let is_deep_body = if self.object_type().ends_with("yaml") {
            document::is_deep_yaml(&self.body)
        } else {
            document::is_deep(&self.body)
        };
        is_deep_body || present().is_some_and(|stored| document::is_deep(stored.content()))
    }

    async fn write(&self, verb: Verb) -> Result<Answer, ApiError> {
        match verb {
            Verb::Create => create::create(self).await,
            Verb::Update => update::update(self).await,
            _ => patch::patch(self).await,
        }
    }
}
