//! A whole program, and an account with the permissions it is granted.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, CustomResourceExt};
use lariat_cache::{InitialList, KindOptions};
use lariat_cluster::testing::{TestCluster, namespace};
use lariat_cluster::{Cluster, User};
use lariat_controller::{
    ControllerOptions, HandlerError, HandlerResult, Outcome, SharedControllerFactory,
};
use lariat_operator::{CrdOptions, Desired, Operator, Reconcile, Rule, ensure_crds};
use serde_json::{Value, json};
use tokio::time;

use crate::bench::{SECOND, Widget, WidgetSpec};

/// Returns a client with a token.
pub(crate) fn client_of(cluster: &Cluster, token: &str) -> Client {
    let token = format!("Bearer {token}");
    let token: http::HeaderValue = token.parse().expect("a header");
    let signed = move |mut request: http::Request<kube::client::Body>| {
        let headers = request.headers_mut();
        headers.insert(http::header::AUTHORIZATION, token.clone());
        request
    };
    Client::new(
        tower::util::MapRequest::new(cluster.service(), signed),
        "default",
    )
}

/// Starts a cluster that evaluates roles, with a namespace `demo` and a service account without permissions.
pub(crate) async fn cluster() -> TestCluster {
    let account = User::new("system:serviceaccount:demo:widgeteer").group("system:serviceaccounts");
    let builder = Cluster::builder().rbac().token_of("sesame", account);
    let cluster = builder.for_test().await;
    namespace("demo")
        .create(&cluster.client())
        .await
        .expect("created");
    cluster
}

/// A program that gives each Widget a ConfigMap of its name and a status.
pub(crate) struct Program {
    pub(crate) cluster: TestCluster,
    pub(crate) operator: Operator,
}

impl Program {
    /// Creates the program, with a service account without permissions.
    pub(crate) async fn new(options: KindOptions) -> Self {
        let cluster = cluster().await;
        let factory = SharedControllerFactory::builder(client_of(&cluster, "sesame"))
            .default_options(
                ControllerOptions::default().cache(options.initial_list(InitialList::List)),
            )
            .sync_timeout(5 * SECOND)
            .build();
        let operator = Operator::new("widgeteer", &factory);
        operator.crd_options(CrdOptions::default().timeout(10 * SECOND));
        operator.installs(Widget::crd());
        operator.installs(gadgets(&["g"]));
        register(&operator);
        let program = Self { cluster, operator };
        // One CRD is missing, and one is old.
        let (admin, old) = (program.admin(), [gadgets(&["old"])]);
        let options = CrdOptions::default();
        let old = ensure_crds(&admin, &old, &options).await;
        old.expect("installed");
        let secret = json!({"metadata": {"name": "key"}});
        let secret: Secret = serde_json::from_value(secret).expect("a Secret");
        let secrets: Api<Secret> = Api::namespaced(program.admin(), "default");
        secrets
            .create(&PostParams::default(), &secret)
            .await
            .expect("created");
        program
    }

    fn admin(&self) -> Client {
        self.cluster.client()
    }

    /// Grants the account the permissions of the manifests.
    pub(crate) async fn grant(&self) {
        grant(&self.cluster, &self.operator).await;
    }

    /// Removes a verb on a resource from the role.
    pub(crate) async fn revoke(&self, verb: &str, resource: &str) {
        let roles: Api<ClusterRole> = Api::all(self.admin());
        let mut role = roles.get("widgeteer").await.expect("there");
        let rules = role.rules.take().unwrap_or_default();
        role.rules = Some(
            rules
                .into_iter()
                .flat_map(|rule| without(&rule, verb, resource))
                .collect(),
        );
        let params = PostParams::default();
        let replaced = roles.replace("widgeteer", &params, &role).await;
        replaced.expect("replaced");
    }

    /// Returns whether the program does everything it should.
    pub(crate) async fn works(&self) -> bool {
        if self.operator.start(1).await.is_err() {
            return false;
        }
        let widgets: Api<Widget> = Api::namespaced(self.admin(), "default");
        let config_maps: Api<ConfigMap> = Api::namespaced(self.admin(), "default");
        let patch = async |patch: Value| {
            let patch = Patch::Merge(patch);
            widgets
                .patch("a", &PatchParams::default(), &patch)
                .await
                .expect("patched");
            time::sleep(SECOND).await;
        };
        let is = async |size: &str| {
            let map = config_maps
                .get_opt("a")
                .await
                .expect("read")
                .and_then(|map| map.data);
            let status = widgets
                .get("a")
                .await
                .expect("read")
                .status
                .and_then(|status| status.size);
            let is_in_map = map.is_some_and(|data| data["size"] == size);
            is_in_map && status.map(|status| status.to_string()).as_deref() == Some(size)
        };
        let widget = Widget::new("a", WidgetSpec { size: 1 });
        widgets
            .create(&PostParams::default(), &widget)
            .await
            .expect("created");
        time::sleep(SECOND).await;
        if !is("1").await {
            return false;
        }
        patch(json!({"spec": {"size": 2}})).await;
        if !is("2").await {
            return false;
        }
        // An object that others delete is restored, if its kind is watched; unwanted ones are deleted.
        config_maps
            .delete("a", &DeleteParams::default())
            .await
            .expect("deleted");
        time::sleep(SECOND).await;
        if !is("2").await {
            return false;
        }
        patch(json!({"spec": {"size": 0}})).await;
        let is_gone = config_maps.get_opt("a").await.expect("read").is_none();
        // Without a watch everything is read again and again.
        let caches = self.operator.factory().caches().status();
        is_gone && caches.iter().all(|kind| kind.loads == 1)
    }
}

/// Grants the account the permissions of an operator's manifests, as `kubectl apply` would.
pub(crate) async fn grant(cluster: &Cluster, operator: &Operator) {
    let account = "demo/widgeteer".parse().expect("a key");
    let manifests = operator
        .manifests("widgeteer", &account)
        .await
        .expect("known")
        .to_string();
    for document in manifests.split("---\n") {
        let line = |start: &str| document.lines().find_map(|line| line.strip_prefix(start));
        let plural = format!("{}s", line("kind: ").expect("a kind").to_lowercase());
        let namespace = line("  namespace: ").filter(|_| !plural.starts_with("cluster"));
        let path = match namespace {
            Some(namespace) => format!("namespaces/{namespace}/{plural}"),
            None => plural.clone(),
        };
        let group = match plural.as_str() {
            "serviceaccounts" => "/api/v1",
            _ => "/apis/rbac.authorization.k8s.io/v1",
        };
        let path = format!("{group}/{path}/widgeteer?fieldManager=kubectl&force=true");
        let request = http::Request::patch(path)
            .header(http::header::CONTENT_TYPE, "application/apply-patch+yaml")
            .body(document.as_bytes().to_vec());
        let client = cluster.client();
        let applied = client.request::<Value>(request.expect("a request"));
        applied
            .await
            .unwrap_or_else(|error| panic!("{error}:\n{document}"));
    }
}

fn gadgets(names: &[&str]) -> CustomResourceDefinition {
    let mut definition = Widget::crd();
    definition.metadata.name = Some("gadgets.demo.dev".to_owned());
    let spec = &mut definition.spec.names;
    (spec.kind, spec.plural) = ("Gadget".to_owned(), "gadgets".to_owned());
    spec.singular = Some("gadget".to_owned());
    spec.short_names = Some(names.iter().map(|name| (*name).to_owned()).collect());
    definition
}

/// Registers the reconciler of Widgets.
pub(crate) fn register(operator: &Operator) {
    let factory = operator.factory();
    let (widgets, config_maps) = (
        factory.for_object::<Widget>(),
        factory.for_object::<ConfigMap>(),
    );
    let secrets: Api<Secret> = Api::namespaced(factory.client(), "default");
    operator
        .reconciler("sizes", &widgets)
        .owns(&config_maps)
        .applies(&config_maps)
        .writes_status()
        .needs(
            Rule::on("", "secrets")
                .verbs(["get"])
                .named(["key"])
                .because("the key"),
        )
        .register(move |cx| reconcile(cx, secrets.clone()))
        .expect("registered");
}

async fn reconcile(cx: Reconcile<Widget>, secrets: Api<Secret>) -> HandlerResult {
    secrets.get("key").await.map_err(HandlerError::from)?;
    let size = cx.object().spec.size;
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": cx.key().name(), "namespace": cx.key().namespace()},
        "data": {"size": size.to_string()},
    });
    let desired = match size {
        0 => Desired::new(),
        _ => Desired::new().with_value(map),
    };
    cx.apply(desired).await?;
    cx.set_status(&json!({"size": size})).await?;
    Ok(Outcome::done())
}

/// Splits a rule into what is left of it without a verb on a resource.
fn without(rule: &PolicyRule, verb: &str, resource: &str) -> Vec<PolicyRule> {
    let resources = rule.resources.clone().unwrap_or_default();
    let split = resources.into_iter().map(|each| {
        let mut rule = rule.clone();
        if each == resource {
            rule.verbs.retain(|each| each != verb);
        }
        rule.resources = Some(vec![each]);
        rule
    });
    split.filter(|rule| !rule.verbs.is_empty()).collect()
}
