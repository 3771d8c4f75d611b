//! What an operator needs to be allowed.

use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lariat_cache::MapperError;
use lariat_core::ObjectKey;

use super::operator::Operator;
use crate::rbac::{self, AccessError, Gathered, Gathering, Manifests, Permission};

/// Whether a start checks what is allowed.
#[derive(Default)]
struct ChecksAtStart(AtomicBool);

impl Operator {
    /// Returns what the operator needs to be allowed, by group and resource, each with who needs it.
    ///
    /// It is gathered from what is registered:
    ///
    /// | what | verbs | on |
    /// |---|---|---|
    /// | a cache: reconcilers, handlers, `owns`, `watches`, [`CachedApi`](crate::CachedApi) | list, watch | the kind |
    /// | a cache without contents ([`Storage::OnDemand`](lariat_cache::Storage::OnDemand)) | get | the kind |
    /// | caches that [are kept](lariat_cache::CacheFactoryBuilder::warm_restart) between runs | get | the namespace `kube-system` |
    /// | [`Operator::installs`] | create, get, patch, by [`Install`](crate::Install) | CRDs, by name |
    /// | [`Rule::finalizer`](crate::Rule::finalizer) | get, patch | the kind |
    /// | [`Rule::status`](crate::Rule::status) | patch | the status of the kind |
    /// | [`Reconciler::writes_status`](crate::Reconciler::writes_status), [`Reconciler::report_errors`](crate::Reconciler::report_errors) | get, and patch | the kind, and its status |
    /// | [`Rule::apply`](crate::Rule::apply), [`Reconciler::applies`](crate::Reconciler::applies) | create, delete, get, list, patch | the kind that is applied |
    /// | [`Rule::owner`](crate::Rule::owner), [`Reconciler::applies`](crate::Reconciler::applies) | update | the finalizers of the owner |
    /// | [`Reconciler::applies`](crate::Reconciler::applies) | get, patch | the owner |
    /// | [`Reconciler::prunes`](crate::Reconciler::prunes) | delete, get, list | the kind that was applied once |
    /// | [`Rule::events`](crate::Rule::events), [`Reconciler::guard`](crate::Reconciler::guard) | create, patch | Events |
    /// | a reconciler whose [identity](lariat_controller::HandlerOptions::identity) acts for others | impersonate | users, groups, service accounts, by name |
    /// | [`Reconciler::needs`](crate::Reconciler::needs), [`Operator::needs`] | any | anything |
    ///
    /// `owns` and `watches` say what is read. What a reconciler writes is in its code, which nobody can see from
    /// outside: it is said by [`Reconciler::applies`](crate::Reconciler::applies) and [`Reconciler::needs`](crate::Reconciler::needs). So is `get`, where single objects are
    /// read from the API server ([`with_fallback`](crate::CachedApi::with_fallback),
    /// [`get_live`](crate::CachedApi::get_live)) or a kind may exceed its memory budget. What was forgotten shows in a
    /// test that runs under the [manifests](Operator::manifests): the embedded cluster evaluates them.
    ///
    /// What a reconciler writes as somebody else, that user has to be allowed, and it is counted here all the same.
    /// Other handlers with an identity, and handles [with one](lariat_controller::SharedController::with_identity), are not looked at.
    ///
    /// If the cache of a kind is restricted to some namespaces, so is everything needed of that kind.
    ///
    /// It is complete once everything is registered. Handlers that are taken away later are still counted. Kinds
    /// that are [followed](lariat_controller::SharedControllerFactory::for_all_kinds) are counted as far as they have
    /// come.
    ///
    /// # Errors
    ///
    /// A kind that was named without its resource is not served, or discovery does not answer.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, if the factory runs.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn rules(&self) -> Result<Vec<Permission>, MapperError> {
        self.gather().await.complete()
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
            rules: Some(rbac::rules(&permissions)),
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
        let checks = self.state().feature::<ChecksAtStart>();
        checks.0.store(true, Ordering::Relaxed);
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
        let gathered = self.gather().await;
        for error in &gathered.unknown {
            tracing::warn!(
                error = lariat_core::describe(error),
                "what is needed of a kind is not checked"
            );
        }
        rbac::check(&self.factory().client(), gathered.permissions).await
    }

    pub(super) async fn check_access_if_asked(&self) -> Result<(), AccessError> {
        let checks = self.state().feature::<ChecksAtStart>();
        if checks.0.load(Ordering::Relaxed) {
            self.check_access().await
        } else {
            Ok(())
        }
    }

    async fn gather(&self) -> Gathered {
        let mut rules = self.state().needs.rules();
        rules.extend(self.crd_rules());
        let gathering = Gathering {
            factory: self.factory(),
            rules,
            events_group: self.events_group(),
        };
        gathering.permissions().await
    }
}
