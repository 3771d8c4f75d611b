//! The webhooks of a program, until they are served.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use lariat_controller::SharedControllerFactory;
use lariat_operator::{Operator, Rule};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::TcpListener;

use super::names;
use crate::admission::{
    Admission, Handler, Mutation, ReviewResult, Verdict, defaulting, mutating, validating,
};
use crate::certificates::Certificates;
use crate::configuration::{Configurations, Described, needs};
use crate::conversion::{Conversion, Convert};
use crate::error::WebhookError;
use crate::hook::Hook;
use crate::metrics::WebhookMetrics;
use crate::policy::Policy;
use crate::reach::Reach;
use crate::rules::Role;
use crate::server::{Installer, Limits, Routes, Start, Target, WebhookServer, start};

/// The maximum length of an admission review: two objects of the most that etcd takes, and room for escapes.
const ADMISSION: usize = 7 << 20;
/// The maximum length of a conversion review, which has all objects of a list.
const CONVERSION: usize = 64 << 20;

/// The webhooks of a program, on the factory of its controllers.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
/// use lariat_controller::SharedControllerFactory;
/// use lariat_webhook::{Admission, Certificates, Hook, Reach, ReviewResult, Verdict, Webhooks};
///
/// /// Denies Pods in namespaces whose ConfigMap `closed` exists.
/// async fn open(request: Admission<Pod>) -> ReviewResult<Verdict> {
///     let namespace = request.key().namespace().unwrap_or_default();
///     let closed = lariat_core::ObjectKey::namespaced(namespace, "closed");
///     Ok(match request.cache::<ConfigMap>().get(&closed)? {
///         Some(_) => Verdict::deny(format!("the namespace {namespace} is closed")),
///         None => Verdict::allow(),
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
///     .reached_by(Reach::service(&"demo/webhooks".parse()?).selects("app", "webhooks"))
///     .serve("0.0.0.0:9443", Certificates::secret(&"demo/webhooks-tls".parse()?))
///     .await?;
/// factory.run(5, std::future::pending::<()>()).await?;
/// server.shutdown().await;
/// # Ok(()) }
/// ```
#[must_use = "webhooks are called once they are served"]
pub struct Webhooks {
    described: Described,
    factory: SharedControllerFactory,
    handlers: Vec<Arc<Handler>>,
    conversions: Vec<(String, Arc<Convert>)>,
    reach: Option<Reach>,
    limits: Limits,
    metrics: WebhookMetrics,
}

impl Webhooks {
    /// Creates webhooks on a factory; nothing is sent.
    ///
    /// The name is that of the configurations, the field manager that applies them, and the end of the full name of
    /// each webhook: a domain name such as `widgets.demo.dev`.
    pub fn new(name: &str, factory: &SharedControllerFactory) -> Self {
        Self {
            described: Described {
                name: name.to_owned(),
                ..Described::default()
            },
            factory: factory.clone(),
            handlers: Vec::new(),
            conversions: Vec::new(),
            reach: None,
            limits: Limits {
                admission: ADMISSION,
                conversion: CONVERSION,
            },
            metrics: WebhookMetrics::new(),
        }
    }

    /// Adds a webhook that allows or denies, at `/validate/NAME`.
    ///
    /// An error, a panic and a timeout are failed calls: the API server applies the failure policy. For deletions there
    /// is only the [old object](Admission::old).
    pub fn validate<K, F, Fut>(self, hook: Hook<K>, handler: F) -> Self
    where
        K: DeserializeOwned + Send + Sync + 'static,
        F: Fn(Admission<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ReviewResult<Verdict>> + Send + 'static,
    {
        self.add(Role::Validating, hook, validating(handler))
    }

    /// Adds a webhook that changes objects, at `/mutate/NAME`.
    ///
    /// The handler gets the object to change, and returns it in a [`Mutation`]. It is called for creations and updates,
    /// possibly [twice](Hook::reinvoke), so the same change must be made no second time.
    pub fn mutate<K, F, Fut>(self, hook: Hook<K>, handler: F) -> Self
    where
        K: DeserializeOwned + Serialize + Send + Sync + 'static,
        F: Fn(Admission<K>, K) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ReviewResult<Mutation<K>>> + Send + 'static,
    {
        self.add(Role::Mutating, hook, mutating(handler))
    }

    /// Adds a webhook that changes objects by a function, such as one that sets defaults; see [`mutate`](Self::mutate).
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use lariat_webhook::{Hook, Webhooks};
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
    /// The CRD has to be there when the webhooks are served: see
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

    /// Adds a policy, which is applied with the configurations, under the name of its hook and that of the webhooks.
    ///
    /// Two policies of one name are an error.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.described.policies.push(policy);
        self
    }

    /// Says where API servers call the webhooks, and has the configurations applied when they are served.
    ///
    /// What webhooks of the same name have applied before, and is no longer among them, is removed: it has the label
    /// `lariat.dev/webhooks`. The Service and what CRDs have about conversion stay.
    /// Without it nothing is applied, for configurations that are installed by others.
    pub fn reached_by(self, reach: Reach) -> Self {
        let reach = Some(reach);
        Self { reach, ..self }
    }

    /// Adds an annotation to configurations and CRDs, such as cert-manager's `cert-manager.io/inject-ca-from`.
    pub fn annotate(mut self, key: &str, value: &str) -> Self {
        let annotations = &mut self.described.annotations;
        annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Sets the maximum length of bodies, in bytes: of admission (default 7 MiB) and conversion reviews (64 MiB).
    pub fn body_limits(self, admission: usize, conversion: usize) -> Self {
        let limits = Limits {
            admission,
            conversion,
        };
        Self { limits, ..self }
    }

    /// Returns the figures, to be registered.
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn metrics(&self) -> WebhookMetrics {
        self.metrics.clone()
    }

    /// Returns the permissions for applying the configurations and keeping certificates.
    ///
    /// Handlers need what they do themselves, and caches what they watch; see [`Operator::rules`].
    #[must_use]
    pub fn needs(&self, certificates: &Certificates) -> Vec<Rule> {
        let secret = certificates.shared_secret();
        needs(&self.described, self.reach.as_ref(), secret)
    }

    /// Declares the [permissions](Self::needs) to an operator, so that its rules have them.
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
    /// A name cannot be used, a webhook has no rule, or there is no [way](Self::reached_by) to the webhooks.
    pub fn configurations(&self, authority: Option<&str>) -> Result<Configurations, WebhookError> {
        self.check()?;
        let reach = self.reach.as_ref();
        let reach = reach.ok_or_else(|| WebhookError::NoReach(self.described.name.clone()))?;
        Ok(self.described.configurations(reach, authority, 443))
    }

    /// Listens on an address, and applies the configurations once it does.
    ///
    /// `/healthz` and `/readyz` answer probes, over TLS too. Connections are HTTP/1.1, at most 1,024 at once.
    ///
    /// # Errors
    ///
    /// The names, the certificates or the address cannot be used, or a configuration is refused. Nothing is served then.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, nothing is served; certificates and configurations may have been written.
    pub async fn serve(
        self,
        address: &str,
        certificates: Certificates,
    ) -> Result<WebhookServer, WebhookError> {
        self.check()?;
        let client = self.factory.client();
        let names = self.reach.as_ref().map(Reach::names).unwrap_or_default();
        let injects = self.reach.is_some();
        let keeper = certificates.load(client.clone(), names, injects).await?;
        let unusable = |source| WebhookError::Listen {
            address: address.to_owned(),
            source,
        };
        let listener = TcpListener::bind(address).await.map_err(unusable)?;
        let bound = listener.local_addr().map_err(unusable)?;
        let targets = self.targets();
        let described = self.described;
        let installer = self.reach.map(|reach| Installer {
            described,
            reach: reach.to(bound),
            client,
            port: bound.port(),
        });
        let routes = Routes {
            targets,
            factory: self.factory,
            limits: self.limits,
            metrics: self.metrics,
        };
        start(Start {
            listener,
            address: bound,
            keeper,
            routes,
            installer,
        })
        .await
    }

    fn targets(&self) -> HashMap<String, Target> {
        let hooks = self.described.hooks.iter().zip(&self.handlers);
        let admission = hooks.map(|((role, hook), handler)| {
            let target =
                Target::Admission(self.described.full_name(&hook.name), Arc::clone(handler));
            (role.path(&hook.name), target)
        });
        let conversions = self.conversions.iter().map(|(definition, convert)| {
            let path = Described::conversion_path(definition);
            (path, Target::Conversion(Arc::clone(convert)))
        });
        admission.chain(conversions).collect()
    }

    fn check(&self) -> Result<(), WebhookError> {
        let reach = self.reach.as_ref();
        if let Some(url) = reach.and_then(Reach::unusable_url) {
            return Err(WebhookError::Url(url.to_owned()));
        }
        for (_, hook) in &self.described.hooks {
            let name = self.described.full_name(&hook.name);
            names::check(&name)?;
            if hook.kinds.is_empty() && hook.rules.is_empty() && self.reach.is_some() {
                return Err(WebhookError::NoRule(name));
            }
        }
        for policy in &self.described.policies {
            let name = self.described.full_name(policy.name());
            names::check(&name)?;
            if !policy.has_rules() {
                return Err(WebhookError::NoRule(name));
            }
        }
        let hooks = self.described.hooks.iter();
        let paths = hooks.map(|(role, hook)| role.path(&hook.name));
        let definitions = self.described.definitions.iter();
        let conversions = definitions.map(|definition| Described::conversion_path(definition));
        if let Some(path) = twice(paths.chain(conversions)) {
            return Err(WebhookError::Duplicate(path));
        }
        match twice(self.described.policy_names()) {
            Some(name) => Err(WebhookError::DuplicatePolicy(name)),
            None => Ok(()),
        }
    }
}

/// Returns a text that is there twice.
fn twice(mut texts: impl Iterator<Item = String>) -> Option<String> {
    let mut seen = HashSet::new();
    texts.find(|text| !seen.insert(text.clone()))
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks")
            .field("name", &self.described.name)
            .finish_non_exhaustive()
    }
}
