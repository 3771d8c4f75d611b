//! Reviews: requests to the API server about what a user may do.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, ResourceRule, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
    SelfSubjectRulesReview, SelfSubjectRulesReviewSpec, SubjectAccessReview,
    SubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use kube::api::PostParams;
use kube::{Api, Client, Resource};
use lariat_core::{ResourceKind, Scope};
use lariat_http::User;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::Access;
use super::budget::Budget;
use super::error::AccessError;
use super::rules::Granted;
use super::verb::Verb;

/// The timeout of one review.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The namespace whose rules are read for cluster-scoped objects.
///
/// Such rules are the same in every namespace.
const ANY_NAMESPACE: &str = "default";

/// Whose access is reviewed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Whose {
    /// The access of the program's own credentials.
    Own,
    User(User),
}

/// Asks what may be done with a kind.
pub(super) struct Asker {
    pub(super) client: Client,
    /// Limits the number of pending reviews.
    pub(super) permits: Arc<Semaphore>,
    pub(super) at_a_time: usize,
    pub(super) whose: Whose,
    pub(super) verb: Verb,
    pub(super) kind: ResourceKind,
    pub(super) budget: Budget,
}

impl Asker {
    /// Returns whether the answer depends on namespaces.
    pub(super) fn is_about_namespaces(verb: Verb, kind: &ResourceKind) -> bool {
        kind.scope() == Scope::Namespaced || is_own_namespace(verb, kind)
    }

    /// Returns whether all objects of the kind may be seen.
    ///
    /// For the program itself, these may also be names of cluster-scoped objects.
    pub(super) async fn everywhere(&self) -> Result<Access, AccessError> {
        // One review settles the usual case of a user who may see everything.
        if self.may(None, None).await? {
            return Ok(Access::everything());
        }
        match &self.whose {
            Whose::Own if !Self::is_about_namespaces(self.verb, &self.kind) => {
                self.own_of_cluster().await
            }
            // No review lists names, so nothing else can be found for a cluster-scoped kind.
            _ => Ok(Access::nothing()),
        }
    }

    /// Fails if the budget does not allow so many reviews now.
    pub(super) fn afford(&self, reviews: usize) -> Result<(), AccessError> {
        let Whose::User(user) = &self.whose else {
            return Ok(());
        };
        let after = self.budget.wait(user, reviews);
        if reviews == 0 || after.is_zero() {
            return Ok(());
        }
        Err(AccessError::Budget {
            whose: self.whose(),
            verb: self.verb,
            kind: self.kind.gvk().clone(),
            reviews: self.budget.rate.requests(),
            per: self.budget.rate.per(),
            after,
        })
    }

    /// Returns which objects of the kind may be seen in a namespace.
    pub(super) async fn in_namespace(&self, namespace: &str) -> Result<Access, AccessError> {
        if self.kind.scope() == Scope::Cluster {
            let is_allowed = self.may(Some(namespace), Some(namespace)).await?;
            return Ok(Access::of_names(None, is_allowed.then_some(namespace)));
        }
        // The API server has no rules review for another user.
        if let Whose::User(_) = self.whose {
            let is_allowed = self.may(Some(namespace), None).await?;
            return Ok(Access::of_namespaces(is_allowed.then_some(namespace)));
        }
        let (rules, is_complete) = self.rules(namespace).await?;
        let granted = Granted::new(&rules, self.verb, &self.kind);
        // Only complete and unambiguous rules replace a review.
        let is_all = if is_complete && !granted.is_open {
            granted.is_all
        } else {
            self.may(Some(namespace), None).await?
        };
        if is_all {
            return Ok(Access::of_namespaces([namespace]));
        }
        if is_complete {
            return Ok(Access::of_names(Some(namespace), granted.names));
        }
        self.confirmed(Some(namespace), granted).await
    }

    /// Determines which names of cluster-scoped objects are allowed.
    ///
    /// Rules of a namespace may come from a binding in it, which grants nothing that is cluster-scoped.
    async fn own_of_cluster(&self) -> Result<Access, AccessError> {
        // Whether they are complete does not matter: each name is reviewed below.
        let (rules, _) = self.rules(ANY_NAMESPACE).await?;
        let granted = Granted::new(&rules, self.verb, &self.kind);
        self.confirmed(None, granted).await
    }

    /// Reviews each name separately.
    async fn confirmed(
        &self,
        namespace: Option<&str>,
        granted: Granted,
    ) -> Result<Access, AccessError> {
        let each = stream::iter(granted.names).map(async |name| {
            let is_allowed = self.may(namespace, Some(&name)).await?;
            Ok(is_allowed.then_some(name))
        });
        let names: Vec<String> = each
            .buffer_unordered(self.at_a_time)
            .try_filter_map(async |name| Ok(name))
            .try_collect()
            .await?;
        Ok(Access::of_names(namespace, names))
    }

    /// Reviews whether the verb is allowed for all objects, a namespace, or one name.
    async fn may(&self, namespace: Option<&str>, name: Option<&str>) -> Result<bool, AccessError> {
        let gvk = self.kind.gvk();
        let attributes = Some(ResourceAttributes {
            group: Some(gvk.group().to_owned()),
            version: Some(gvk.version().to_owned()),
            resource: Some(self.kind.plural().to_owned()),
            verb: Some(self.verb.as_str().to_owned()),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
            ..ResourceAttributes::default()
        });
        let status = match &self.whose {
            Whose::Own => {
                let spec = SelfSubjectAccessReviewSpec {
                    resource_attributes: attributes,
                    ..SelfSubjectAccessReviewSpec::default()
                };
                let review = SelfSubjectAccessReview {
                    spec,
                    ..SelfSubjectAccessReview::default()
                };
                self.create(&review).await?.status
            }
            Whose::User(user) => {
                let spec = SubjectAccessReviewSpec {
                    resource_attributes: attributes,
                    ..user.review_spec()
                };
                let review = SubjectAccessReview {
                    spec,
                    ..SubjectAccessReview::default()
                };
                self.budget.spend(user);
                self.create(&review).await?.status
            }
        };
        Ok(status.as_ref().is_some_and(is_allowed))
    }

    /// Reads the rules of a namespace; also returns whether they are complete.
    async fn rules(&self, namespace: &str) -> Result<(Vec<ResourceRule>, bool), AccessError> {
        let review = SelfSubjectRulesReview {
            spec: SelfSubjectRulesReviewSpec {
                namespace: Some(namespace.to_owned()),
            },
            ..SelfSubjectRulesReview::default()
        };
        let Some(status) = self.create(&review).await?.status else {
            return Ok((Vec::new(), false));
        };
        // RBAC reports an error if a role is missing, and the rules of the others.
        let has_failed = status.evaluation_error.is_some_and(|it| !it.is_empty());
        Ok((status.resource_rules, !status.incomplete && !has_failed))
    }

    /// Sends a review, after waiting for a permit.
    async fn create<R>(&self, review: &R) -> Result<R, AccessError>
    where
        R: Resource<DynamicType = ()> + k8s_openapi::Resource,
        R: Clone + Debug + Serialize + DeserializeOwned,
    {
        // The wait for a permit is not part of the timeout, which is about the API server.
        let _permit = self.permits.acquire().await;
        let api = Api::<R>::all(self.client.clone());
        let params = PostParams::default();
        match timeout(TIMEOUT, api.create(&params, review)).await {
            Ok(Ok(review)) => Ok(review),
            Ok(Err(source)) => Err(AccessError::Review {
                whose: self.whose(),
                verb: self.verb,
                kind: self.kind.gvk().clone(),
                review: R::KIND,
                resource: R::URL_PATH_SEGMENT,
                source: Arc::new(source),
            }),
            Err(_) => Err(AccessError::Timeout {
                whose: self.whose(),
                verb: self.verb,
                kind: self.kind.gvk().clone(),
                review: R::KIND,
                after: TIMEOUT,
            }),
        }
    }

    fn whose(&self) -> String {
        match &self.whose {
            Whose::Own => "this program".to_owned(),
            Whose::User(user) => format!("user {:?}", user.name()),
        }
    }
}

/// Returns whether the question is about reading single namespaces.
///
/// Each is reviewed with itself as the namespace, so that roles in it count.
fn is_own_namespace(verb: Verb, kind: &ResourceKind) -> bool {
    let is_namespace = kind.gvk().group().is_empty() && kind.plural() == "namespaces";
    is_namespace && verb == Verb::Get
}

/// Returns whether a review allows the request.
///
/// An evaluation error alone does not deny it: authorizers report one for every binding to a missing role.
fn is_allowed(status: &SubjectAccessReviewStatus) -> bool {
    status.allowed && status.denied != Some(true)
}
