//! Permissions: what the operator needs to be allowed, said exactly, and checked before it starts.

mod check;
mod error;
mod gather;
mod manifests;
mod permission;
mod policy;
mod rule;

use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lariat_cache::{MapperError, View};
use lariat_controller::SharedController;
use lariat_core::ObjectKey;

pub use error::AccessError;
pub(crate) use gather::Needs;
pub use manifests::Manifests;
pub use permission::Permission;
pub use rule::Rule;
pub(crate) use rule::impersonation;

use crate::operator::Operator;
use crate::reconciler::Reconciler;

impl Operator {
    /// Says that something is needed that cannot be seen from what is registered.
    pub fn needs(&self, rule: Rule) {
        self.shared()
            .need(rule.because_of(|| "the operator".to_owned()));
    }

    /// Returns what the operator needs to be allowed, by group and resource, each with who needs it.
    ///
    /// It is gathered from what is registered:
    ///
    /// | what | verbs | on |
    /// |---|---|---|
    /// | a cache: reconcilers, handlers, `owns`, `watches`, [`CachedApi`](crate::CachedApi) | list, watch | the kind |
    /// | a cache without contents ([`Storage::OnDemand`](lariat_cache::Storage::OnDemand)) | get | the kind |
    /// | caches that [are kept](lariat_cache::CacheFactoryBuilder::warm_restart) between runs | get | the namespace `kube-system` |
    /// | [`Operator::installs`] | create, get, patch, by [`Install`](crate::Install) | definitions, by name |
    /// | [`Rule::finalizer`] | get, patch | the kind |
    /// | [`Rule::status`] | patch | the status of the kind |
    /// | [`Reconciler::writes_status`], [`Reconciler::report_errors`] | get, and patch | the kind, and its status |
    /// | [`Rule::apply`], [`Reconciler::applies`] | create, delete, get, list, patch | the kind that is applied |
    /// | [`Rule::owner`], [`Reconciler::applies`] | update | the finalizers of the owner |
    /// | [`Reconciler::applies`] | get, patch | the owner |
    /// | [`Reconciler::prunes`] | delete, get, list | the kind that was applied once |
    /// | [`Rule::events`], [`Reconciler::guard`] | create, patch | Events |
    /// | a reconciler whose [identity](lariat_controller::HandlerOptions::identity) acts for others | impersonate | users, groups, service accounts, by name |
    /// | [`Reconciler::needs`], [`Operator::needs`] | any | anything |
    ///
    /// `owns` and `watches` say what is read. What a reconciler writes is in its code, which nobody can see from
    /// outside: it is told by [`Reconciler::applies`] and [`Reconciler::needs`]. So is `get`, where single objects are
    /// read from the API server ([`with_fallback`](crate::CachedApi::with_fallback),
    /// [`get_live`](crate::CachedApi::get_live)) or a kind may exceed its memory budget. What was forgotten shows in a
    /// test that runs under the [manifests](Operator::manifests): the embedded cluster evaluates them.
    ///
    /// What a reconciler writes as somebody else, that user has to be allowed, and it is counted here all the same.
    /// Other handlers with an identity, and handles [with one](SharedController::with_identity), are not looked at.
    ///
    /// If the cache of a kind is restricted to some namespaces, so is everything needed of that kind.
    ///
    /// It is complete once everything is registered. Handlers that are taken away later are still counted. Kinds
    /// that are [followed](lariat_controller::SharedControllerFactory::for_all_kinds) are counted as far as they have
    /// come.
    ///
    /// # Errors
    ///
    /// A kind that was told without its resource is not served, or discovery does not answer.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, if the factory runs.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn rules(&self) -> Result<Vec<Permission>, MapperError> {
        gather::permissions(self).await.complete()
    }

    /// Returns the ClusterRole with all [rules](Self::rules), in every namespace: the same for the same program.
    ///
    /// [`manifests`](Self::manifests) restricts what can be to namespaces, and writes YAML.
    ///
    /// # Errors
    ///
    /// As for [`rules`](Self::rules).
    ///
    /// # Panics
    ///
    /// As [`rules`](Self::rules).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn cluster_role(&self, name: &str) -> Result<ClusterRole, MapperError> {
        let permissions = self.rules().await?;
        Ok(ClusterRole {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            rules: Some(policy::rules(&permissions)),
            ..ClusterRole::default()
        })
    }

    /// Returns what a service account is to be given, roles and bindings of a name; it prints as YAML.
    ///
    /// What is needed in some namespaces only is in a Role of each. An account without a namespace is one of
    /// `default`.
    ///
    /// ```no_run
    /// # async fn example(operator: lariat_operator::Operator) -> Result<(), Box<dyn std::error::Error>> {
    /// print!("{}", operator.manifests("widgeteer", &"demo/widgeteer".parse()?).await?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`rules`](Self::rules).
    ///
    /// # Panics
    ///
    /// As [`rules`](Self::rules).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn manifests(
        &self,
        name: &str,
        account: &ObjectKey,
    ) -> Result<Manifests, MapperError> {
        Ok(Manifests::new(name, account, &self.rules().await?))
    }

    /// Has [`check_access`](Self::check_access) done by [`start`](Self::start) and [`run`](Self::run) (default: no).
    ///
    /// Without it a permission that is missing shows as a cache that is not filled in time, or as an error of the
    /// reconciler that meets it.
    pub fn checks_access(&self) {
        self.shared().needs.check_at_start();
    }

    /// Asks the API server whether this program may do what its [rules](Self::rules) say, a question for each verb and
    /// at most eight at a time; whoever may do everything is asked about that alone.
    ///
    /// It asks as the factory's client does, without the identities of single handlers. Questions that are not
    /// answered, and kinds that are not served, are warned of and passed over: a check that cannot be done is no
    /// reason not to start.
    ///
    /// # Errors
    ///
    /// Something is not allowed. The error says all of it, who needs it, and the rules to add.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn check_access(&self) -> Result<(), AccessError> {
        let gathered = gather::permissions(self).await;
        for error in &gathered.unknown {
            tracing::warn!(
                error = lariat_core::describe(error),
                "what is needed of a kind is not checked"
            );
        }
        check::check(&self.factory().client(), gathered.permissions).await
    }

    pub(crate) async fn check_access_if_asked(&self) -> Result<(), AccessError> {
        match self.shared().needs.is_checked_at_start() {
            true => self.check_access().await,
            false => Ok(()),
        }
    }
}

impl<K: View> Reconciler<K> {
    /// Says that the reconciler needs to be allowed something, for [`Operator::rules`]; reading what it watches is
    /// known.
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat_controller::{Outcome, SharedControllerFactory};
    /// use lariat_operator::{Operator, Rule};
    ///
    /// # fn example(factory: SharedControllerFactory) -> Result<(), Box<dyn std::error::Error>> {
    /// let operator = Operator::new("evictor", &factory);
    /// let pods = factory.for_object::<Pod>();
    /// operator
    ///     .reconciler("deployments", &factory.for_object::<Deployment>())
    ///     .needs(Rule::of(&pods).verbs(["delete"]))
    ///     .needs(Rule::of(&pods).subresource("eviction").verbs(["create"]))
    ///     .register(|_| async { Ok(Outcome::done()) })?;
    /// # Ok(()) }
    /// ```
    pub fn needs(mut self, rule: Rule) -> Self {
        self.setup.needs.push(rule);
        self
    }

    /// Says that the reconciler writes the status of its objects, for [`Operator::rules`].
    /// [`report_errors`](Self::report_errors) says so too.
    pub fn writes_status(self) -> Self {
        // They are read when they changed meanwhile.
        let get = Rule::of(self.kind()).verbs(["get"]);
        let status = Rule::status(self.kind());
        self.needs(get).needs(status)
    }

    /// Says that the reconciler applies objects of a kind, as their owner; see [`Rule::apply`] and [`Rule::owner`].
    /// On the owner it is noted which kinds those are, for which it is read when it changed meanwhile.
    ///
    /// A release that does not apply a kind any more says [`prunes`](Self::prunes) instead.
    pub fn applies<B: View>(self, other: &SharedController<B>) -> Self {
        let owner = Rule::owner(self.kind());
        let note = Rule::of(self.kind()).verbs(["get", "patch"]);
        self.needs(Rule::apply(other)).needs(owner).needs(note)
    }

    /// Says that the reconciler applied objects of a kind once, in an earlier release, and deletes what is left of
    /// them: it needs to be allowed to delete, get and list the kind.
    ///
    /// In a program that says nothing of the kind, and has no right to read it, they stay, and the kind stays noted on
    /// the owner; a warning says so, and [`Applied::forbidden`](crate::Applied::forbidden) tells.
    pub fn prunes<B: View>(self, other: &SharedController<B>) -> Self {
        self.needs(Rule::of(other).verbs(["delete", "get", "list"]))
    }
}
