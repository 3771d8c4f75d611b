//! The webhooks of a program, until they are served.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use lariat_controller::SharedControllerFactory;
use lariat_operator::{Operator, Rule};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::admission::{
    Admission, Decision, Handler, Mutation, ReviewResult, defaulting, mutating, validating,
};
use crate::certificates::Certificates;
use crate::configuration::{Configurations, Described, needs};
use crate::conversion::{Conversion, Convert};
use crate::endpoint::Endpoint;
use crate::error::WebhookError;
use crate::hook::Hook;
use crate::metrics::WebhookMetrics;
use crate::policy::Policy;
use crate::rules::Role;
use crate::server::Limits;

/// The default limit of admission reviews.
///
/// They have two objects, each as large as etcd accepts, and JSON escapes make them longer.
const ADMISSION: usize = 7 << 20;
/// The default limit of conversion reviews, which may have all objects of a list.
const CONVERSION: usize = 64 << 20;
/// The default limit of all reviews in progress.
const ALL: usize = 128 << 20;

/// The webhooks of a program, on the factory of its controllers.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
/// use lariat::webhook::{Admission, Certificates, Hook, Endpoint, ReviewResult, Decision, Webhooks};
/// use lariat::SharedControllerFactory;
///
/// /// Denies Pods in namespaces whose ConfigMap `closed` exists.
/// async fn open(request: Admission<Pod>) -> ReviewResult<Decision> {
///     let namespace = request.key().namespace().unwrap_or_default();
///     let closed = lariat::ObjectKey::namespaced(namespace, "closed");
///     Ok(match request.cache::<ConfigMap>().get(&closed)? {
///         Some(_) => Decision::deny(format!("the namespace {namespace} is closed")),
///         None => Decision::allow(),
///     })
/// }
///
/// # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let factory = SharedControllerFactory::builder(client).build();
/// // The Pods that serve the webhook must start also while it is down.
/// let elsewhere = serde_json::from_value(serde_json::json!({"matchExpressions": [
///     {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["demo"]},
/// ]}))?;
/// // Opens the cache before the first request comes.
/// let _closed = factory.for_object::<ConfigMap>().cache();
/// let server = Webhooks::new("pods.demo.dev", &factory)
///     .validate(Hook::new("open").namespace_selector(elsewhere), open)
///     .endpoint(Endpoint::service(&"demo/webhooks".parse()?).selects("app", "webhooks"))
///     .serve("0.0.0.0:9443", Certificates::secret(&"demo/webhooks-tls".parse()?))
///     .await?;
/// factory.run(5, std::future::pending::<()>()).await?;
/// server.shutdown().await;
/// # Ok(()) }
/// ```
#[must_use = "webhooks are called once they are served"]
pub struct Webhooks {
    pub(super) described: Described,
    pub(super) factory: SharedControllerFactory,
    pub(super) handlers: Vec<Arc<Handler>>,
    pub(super) conversions: Vec<(String, Arc<Convert>)>,
    pub(super) endpoint: Option<Endpoint>,
    pub(super) limits: Limits,
    pub(super) metrics: WebhookMetrics,
}

impl Webhooks {
    /// Creates webhooks on a factory; no request is sent.
    ///
    /// The name is a domain name such as `widgets.demo.dev`. It is the name of the configurations, the field manager
    /// that applies them, and the end of the full name of each webhook. Configurations of another name are not removed:
    /// after a change of the name delete the former ones.
    pub fn new(name: &str, factory: &SharedControllerFactory) -> Self {
        Self {
            described: Described {
                name: name.to_owned(),
                ..Described::default()
            },
            factory: factory.clone(),
            handlers: Vec::new(),
            conversions: Vec::new(),
            endpoint: None,
            limits: Limits {
                admission: ADMISSION,
                conversion: CONVERSION,
                all: ALL,
            },
            metrics: WebhookMetrics::new(),
        }
    }

    /// Adds a webhook that allows or denies requests, at `/validate/NAME`.
    ///
    /// An error, a panic and a timeout are failed calls: the API server applies the failure policy. For deletions there
    /// is only the [old object](Admission::old).
    pub fn validate<K, F, Fut>(self, hook: Hook<K>, handler: F) -> Self
    where
        K: DeserializeOwned + Send + Sync + 'static,
        F: Fn(Admission<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ReviewResult<Decision>> + Send + 'static,
    {
        self.add(Role::Validating, hook, validating(handler))
    }

    /// Adds a webhook that changes objects, at `/mutate/NAME`.
    ///
    /// The handler gets the object to change, and returns it in a [`Mutation`]. It is called for creations and updates,
    /// perhaps [twice](Hook::reinvoke), so it must be idempotent. See [`Mutation`] for an example.
    pub fn mutate<K, F, Fut>(self, hook: Hook<K>, handler: F) -> Self
    where
        K: DeserializeOwned + Serialize + Send + Sync + 'static,
        F: Fn(Admission<K>, K) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ReviewResult<Mutation<K>>> + Send + 'static,
    {
        self.add(Role::Mutating, hook, mutating(handler))
    }

    /// Adds a webhook that changes objects by a plain function, such as defaults.
    ///
    /// Otherwise like [`mutate`](Self::mutate).
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use lariat::webhook::{Hook, Webhooks};
    /// # fn example(webhooks: Webhooks) -> Webhooks {
    /// webhooks.defaults(Hook::new("team"), |config: &mut ConfigMap| {
    ///     let labels = config.metadata.labels.get_or_insert_default();
    ///     labels.entry("team".to_owned()).or_insert_with(|| "none".to_owned());
    /// })
    /// # }
    /// ```
    pub fn defaults<K, F>(self, hook: Hook<K>, function: F) -> Self
    where
        K: DeserializeOwned + Serialize + Send + Sync + 'static,
        F: Fn(&mut K) + Send + Sync + 'static,
    {
        self.add(Role::Mutating, hook, defaulting(function))
    }

    fn add<K>(mut self, role: Role, hook: Hook<K>, handler: Arc<Handler>) -> Self {
        self.described.hooks.push((role, hook.settings));
        self.handlers.push(handler);
        self
    }

    /// Adds the conversion of a kind, at `/convert/CRD`.
    ///
    /// The CRD must exist when the webhooks are served; see
    /// [`Operator::ensure_crds`](lariat_operator::Operator::ensure_crds).
    pub fn convert<H>(mut self, conversion: Conversion<H>) -> Self
    where
        H: kube::Resource<DynamicType = ()> + DeserializeOwned + Serialize + Send + Sync + 'static,
    {
        let definition = conversion.definition();
        let convert = move |object: &Value, to: &str| conversion.convert(object, to);
        self.described.definitions.push(definition.clone());
        self.conversions.push((definition, Arc::new(convert)));
        self
    }

    /// Adds an admission policy, which is applied with the configurations.
    ///
    /// Its name is that of its hook, followed by that of the webhooks. Two policies of the same name are an error.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::webhook::{Hook, Policy, Webhooks};
    ///
    /// # fn example(webhooks: Webhooks) -> Webhooks {
    /// let labels = Policy::of(Hook::<Pod>::new("labels")).rule("has(object.metadata.labels)", "a Pod has labels");
    /// webhooks.policy(labels)
    /// # }
    /// ```
    pub fn policy(mut self, policy: Policy) -> Self {
        self.described.policies.push(policy);
        self
    }

    /// Removes a policy of this name that an earlier release has applied.
    ///
    /// The permissions to do so are among [`needs`](Self::needs). Policies of earlier releases are recorded in an
    /// annotation, and removed without this call too if the program may do so; otherwise an
    /// [alert](crate::WebhookHealth::alerts) names them.
    ///
    /// ```no_run
    /// # use lariat::webhook::Webhooks;
    /// # fn example(webhooks: Webhooks) -> Webhooks {
    /// // Until the release before had no policy "labels" either.
    /// webhooks.remove_policy("labels")
    /// # }
    /// ```
    pub fn remove_policy(mut self, hook: &str) -> Self {
        self.described.removed.push(hook.to_owned());
        self
    }

    /// Sets where API servers call the webhooks, and applies the configurations.
    ///
    /// They are applied once the webhooks are served, and kept up to date. A configuration that webhooks of the same
    /// name applied earlier is removed if it is no longer wanted; for policies see
    /// [`remove_policy`](Self::remove_policy). The Service and the conversion of CRDs are kept. Without this call
    /// nothing is applied, for configurations that another program installs.
    ///
    /// Nothing is applied while API servers would refuse the certificate: while it does not cover the name of the
    /// endpoint, is not valid, or is not of the authority that is injected.
    pub fn endpoint(self, endpoint: Endpoint) -> Self {
        let endpoint = Some(endpoint);
        Self { endpoint, ..self }
    }

    /// Adds an annotation to the configurations and CRDs.
    ///
    /// Such as cert-manager's `cert-manager.io/inject-ca-from`.
    pub fn annotate(mut self, key: &str, value: &str) -> Self {
        let annotations = &mut self.described.annotations;
        annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Sets the maximum lengths of bodies in bytes.
    ///
    /// The defaults are 7 MiB for admission reviews, and 64 MiB for conversion reviews.
    pub fn body_limits(self, admission: usize, conversion: usize) -> Self {
        let limits = Limits {
            admission,
            conversion,
            ..self.limits
        };
        Self { limits, ..self }
    }

    /// Sets the maximum length of all bodies in progress (default 128 MiB).
    ///
    /// The first 64 KiB of each body do not count, so small reviews do not wait for large ones. A body that finds no
    /// room within a second is refused with 429, for which the API server applies the failure policy. It is at least
    /// the larger one of [`body_limits`](Self::body_limits). Probes need no room.
    pub fn body_budget(self, bytes: usize) -> Self {
        let limits = Limits {
            all: bytes,
            ..self.limits
        };
        Self { limits, ..self }
    }

    /// Returns the metrics, to register them.
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn metrics(&self) -> WebhookMetrics {
        self.metrics.clone()
    }

    /// Returns the permissions to apply the configurations and store certificates.
    ///
    /// The permissions of the handlers' own requests are not included, nor those of the caches that they read; see
    /// [`Operator::rules`].
    #[must_use]
    pub fn needs(&self, certificates: &Certificates) -> Vec<Rule> {
        let secret = certificates.shared_secret();
        needs(&self.described, self.endpoint.as_ref(), secret)
    }

    /// Declares the [permissions](Self::needs) on an operator, for its RBAC rules.
    ///
    /// ```no_run
    /// use lariat::Operator;
    /// use lariat::webhook::{Certificates, WebhookError, Webhooks};
    ///
    /// # async fn example(webhooks: Webhooks, operator: Operator) -> Result<(), WebhookError> {
    /// let certificates = Certificates::directory("/etc/webhooks");
    /// let server = webhooks.declare(&operator, &certificates).serve("0.0.0.0:9443", certificates).await?;
    /// # server.shutdown().await;
    /// # Ok(()) }
    /// ```
    pub fn declare(self, operator: &Operator, certificates: &Certificates) -> Self {
        for rule in self.needs(certificates) {
            operator.needs(rule);
        }
        self
    }

    /// Returns the configurations as they would be applied, with authorities in PEM.
    ///
    /// # Errors
    ///
    /// A name is invalid, a webhook has no rule, or [`endpoint`](Self::endpoint) was not called.
    pub fn configurations(&self, authority: Option<&str>) -> Result<Configurations, WebhookError> {
        self.check()?;
        let endpoint = self.endpoint.as_ref();
        let endpoint =
            endpoint.ok_or_else(|| WebhookError::NoReach(self.described.name.clone()))?;
        Ok(self.described.configurations(endpoint, authority, 443))
    }
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks")
            .field("name", &self.described.name)
            .finish_non_exhaustive()
    }
}
