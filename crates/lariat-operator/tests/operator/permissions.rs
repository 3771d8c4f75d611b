//! Permissions: what is said to be needed is enough, and all of it is.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, CustomResourceExt, Resource};
use lariat_cache::{Filling, KindOptions, MissingKind, Selection, Storage};
use lariat_cluster::faults::{Action, Refusal, Rule as Fault, StatusCode};
use lariat_cluster::testing::{TestCluster, namespace};
use lariat_cluster::{Cluster, User};
use lariat_controller::{
    ControllerOptions, HandlerError, HandlerResult, Outcome, SharedControllerFactory,
};
use lariat_operator::{
    AccessError, CachedApi, DefinitionOptions, Operator, OperatorError, Reconcile, Rule,
    ensure_definitions,
};
use serde_json::{Value, json};
use tokio::time;

use crate::bench::{SECOND, Widget, WidgetSpec, settle};

const REVIEWS: &str = "selfsubjectaccessreviews";

/// Returns a client of whoever has a token.
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

/// A cluster that evaluates roles, with a namespace `demo` and a service account that may do nothing yet.
async fn cluster() -> TestCluster {
    let account = User::new("system:serviceaccount:demo:widgeteer").group("system:serviceaccounts");
    let builder = Cluster::builder().rbac().token_of("sesame", account);
    let cluster = builder.for_test().await;
    namespace("demo")
        .create(&cluster.client())
        .await
        .expect("created");
    cluster
}

/// A program: Widgets have a ConfigMap of their name, and a status.
struct Program {
    cluster: TestCluster,
    operator: Operator,
}

#[derive(Clone)]
struct Apis {
    widgets: CachedApi<Widget>,
    config_maps: CachedApi<ConfigMap>,
    secrets: Api<Secret>,
}

impl Program {
    /// Makes the program, as a service account that may do nothing yet.
    async fn new(options: KindOptions) -> Self {
        let cluster = cluster().await;
        let factory = SharedControllerFactory::builder(client_of(&cluster, "sesame"))
            .default_options(ControllerOptions::default().cache(options.filling(Filling::Lists)))
            .sync_timeout(5 * SECOND)
            .build();
        let operator = Operator::new("widgeteer", &factory);
        operator.definition_options(DefinitionOptions::default().timeout(10 * SECOND));
        operator.installs(Widget::crd());
        operator.installs(gadgets(&["g"]));
        register(&operator);
        let program = Self { cluster, operator };
        // One definition is missing, and one is old.
        let (admin, old) = (program.admin(), [gadgets(&["old"])]);
        let options = DefinitionOptions::default();
        let old = ensure_definitions(&admin, &old, &options).await;
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

    /// Gives the account what the manifests say, as kubectl would.
    async fn grant(&self) {
        let account = "demo/widgeteer".parse().expect("a key");
        let manifests = self
            .operator
            .manifests("widgeteer", &account)
            .await
            .expect("known");
        for document in manifests.to_string().split("---\n") {
            let kind = document
                .lines()
                .find_map(|line| line.strip_prefix("kind: "));
            let namespace = document
                .lines()
                .find_map(|line| line.strip_prefix("  namespace: "));
            let plural = format!("{}s", kind.expect("a kind").to_lowercase());
            let path = match namespace.filter(|_| !plural.starts_with("cluster")) {
                Some(namespace) => format!("namespaces/{namespace}/{plural}"),
                None => plural.clone(),
            };
            let group = match plural.as_str() {
                "serviceaccounts" => "/api/v1",
                _ => "/apis/rbac.authorization.k8s.io/v1",
            };
            let request = http::Request::post(format!("{group}/{path}"))
                .header(http::header::CONTENT_TYPE, "application/yaml")
                .body(document.as_bytes().to_vec());
            let created = self
                .admin()
                .request::<Value>(request.expect("a request"))
                .await;
            created.unwrap_or_else(|error| panic!("{error}:\n{document}"));
        }
    }

    /// Takes a verb on a resource out of the role.
    async fn revoke(&self, verb: &str, resource: &str) {
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

    /// Returns whether the program does all it has to.
    async fn works(&self) -> bool {
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
        // What others delete comes back, if it is watched; what is not wanted goes.
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
        // Without a watch everything is read again and again, which is no way to work.
        let caches = self.operator.factory().caches().status();
        is_gone && caches.iter().all(|kind| kind.loads == 1)
    }
}

fn gadgets(
    names: &[&str],
) -> k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition {
    let mut definition = Widget::crd();
    definition.metadata.name = Some("gadgets.demo.dev".to_owned());
    let spec = &mut definition.spec.names;
    (spec.kind, spec.plural) = ("Gadget".to_owned(), "gadgets".to_owned());
    spec.singular = Some("gadget".to_owned());
    spec.short_names = Some(names.iter().map(|name| (*name).to_owned()).collect());
    definition
}

fn register(operator: &Operator) {
    let factory = operator.factory();
    let (widgets, config_maps) = (
        factory.for_object::<Widget>(),
        factory.for_object::<ConfigMap>(),
    );
    let apis = Apis {
        widgets: CachedApi::new(&widgets),
        config_maps: CachedApi::new(&config_maps),
        secrets: Api::namespaced(factory.client(), "default"),
    };
    operator
        .reconciler("sizes", &widgets)
        .owns(&config_maps)
        .applies(&config_maps)
        .needs(Rule::status(&widgets))
        .needs(
            Rule::on("", "secrets")
                .verbs(["get"])
                .named(["key"])
                .because("the key"),
        )
        .register(move |cx| reconcile(cx, apis.clone()))
        .expect("registered");
}

async fn reconcile(cx: Reconcile<Widget>, apis: Apis) -> HandlerResult {
    apis.secrets.get("key").await.map_err(HandlerError::from)?;
    let (key, size) = (cx.key(), cx.object().spec.size);
    if size == 0 {
        match apis.config_maps.delete(key, &DeleteParams::default()).await {
            Err(error) if !error.is_not_found() => return Err(error.into()),
            _ => return Ok(Outcome::done()),
        }
    }
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": key.name(), "namespace": key.namespace(), "ownerReferences": [cx.object().controller_owner_ref(&())]},
        "data": {"size": size.to_string()},
    });
    if apis.config_maps.get_opt(key).await?.is_none() {
        let map: ConfigMap = serde_json::from_value(map)?;
        apis.config_maps.create(&map).await?;
    } else {
        let params = PatchParams::apply("widgeteer").force();
        apis.config_maps
            .patch(key, &params, &Patch::Apply(map))
            .await?;
    }
    let status = Patch::Merge(json!({"status": {"size": size}}));
    apis.widgets
        .patch_status(key, &PatchParams::default(), &status)
        .await?;
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

const CLUSTER_ROLE: &str = r#"apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: widgeteer
rules:
- apiGroups:
  - ""
  resources:
  - configmaps
  verbs:
  - create
  - delete
  - list
  - patch
  - watch
- apiGroups:
  - ""
  resourceNames:
  - key
  resources:
  - secrets
  verbs:
  - get
- apiGroups:
  - apiextensions.k8s.io
  resources:
  - customresourcedefinitions
  verbs:
  - create
- apiGroups:
  - apiextensions.k8s.io
  resourceNames:
  - gadgets.demo.dev
  - widgets.demo.dev
  resources:
  - customresourcedefinitions
  verbs:
  - get
  - patch
- apiGroups:
  - demo.dev
  resources:
  - widgets
  verbs:
  - list
  - watch
- apiGroups:
  - demo.dev
  resources:
  - widgets/finalizers
  verbs:
  - update
- apiGroups:
  - demo.dev
  resources:
  - widgets/status
  verbs:
  - patch
"#;

#[tokio::test(start_paused = true)]
async fn the_role_is_said_exactly_and_is_enough() {
    let program = Program::new(KindOptions::default()).await;
    let account = "demo/widgeteer".parse().unwrap();
    let manifests = program
        .operator
        .manifests("widgeteer", &account)
        .await
        .unwrap();
    let text = manifests.to_string();
    assert_eq!(text.split("---\n").nth(1).unwrap(), CLUSTER_ROLE);
    assert_eq!(manifests.documents().len(), 3);
    program.grant().await;
    program.operator.checks_access();
    assert!(program.works().await);
}

#[tokio::test(start_paused = true)]
async fn without_any_of_the_rules_the_check_says_so_and_the_program_does_not_work() {
    let bench = Program::new(KindOptions::default()).await;
    let mut tried = 0;
    for permission in bench.operator.rules().await.unwrap() {
        for verb in permission.verbs.keys() {
            let program = Program::new(KindOptions::default()).await;
            program.grant().await;
            program.revoke(verb, &permission.path()).await;
            let error = program.operator.check_access().await.unwrap_err();
            let missing: Vec<String> = error.missing().iter().map(|each| each.path()).collect();
            assert_eq!(missing, [permission.path()], "{error}");
            assert!(error.missing()[0].verbs.keys().eq([verb]), "{error}");
            // Only clusters with OwnerReferencesPermissionEnforcement ask for it.
            if permission.subresource != "finalizers" {
                assert!(
                    !program.works().await,
                    "it works without {verb} {}",
                    permission.path()
                );
            }
            tried += 1;
        }
    }
    assert_eq!(tried, 13);
}

#[tokio::test(start_paused = true)]
async fn a_start_says_what_is_missing_and_who_needs_it() {
    let program = Program::new(KindOptions::default()).await;
    program.grant().await;
    program.revoke("watch", "configmaps").await;
    program.operator.checks_access();
    let error = program.operator.start(1).await.unwrap_err();
    assert!(matches!(error, OperatorError::Access(_)));
    let expected = "this program may not watch configmaps (for reconciler sizes of demo.dev/v1 Widget); add to the rules \
                    of its role:\n- apiGroups:\n  - \"\"\n  resources:\n  - configmaps\n  verbs:\n  - watch\n";
    assert_eq!(error.to_string(), expected);
    let journal = program.cluster.journal();
    assert_eq!(
        journal.count("list", "configmaps") + journal.count("watch", "configmaps"),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn an_administrator_is_asked_about_once() {
    let cluster = Cluster::for_test().await;
    let factory = SharedControllerFactory::builder(cluster.client()).build();
    let operator = Operator::new("widgeteer", &factory);
    operator.installs(Widget::crd());
    operator.checks_access();
    register(&operator);
    operator.start(1).await.unwrap();
    assert_eq!(cluster.journal().count("create", REVIEWS), 1);
}

#[tokio::test(start_paused = true)]
async fn a_check_that_cannot_be_done_is_no_reason_not_to_start() {
    let refuse = |code| Action::Refuse(Refusal::new(code));
    let faults = [
        refuse(StatusCode::NOT_FOUND),
        refuse(StatusCode::FORBIDDEN),
        Action::NoAnswer,
        Action::Garble,
    ];
    for action in faults {
        // Either nothing is answered, or only the first question.
        for skip in [0, 1] {
            let program = Program::new(KindOptions::default()).await;
            program.grant().await;
            let fault = Fault::new(action.clone()).resource(REVIEWS).skip(skip);
            let fault = program.cluster.faults().add(fault);
            program.operator.checks_access();
            assert!(program.works().await, "{action:?}");
            assert!(program.cluster.faults().hits(fault) > 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn questions_that_fail_for_a_moment_are_asked_again() {
    let program = Program::new(KindOptions::default()).await;
    let overloaded = Action::Refuse(Refusal::too_many_requests());
    program
        .cluster
        .faults()
        .add(Fault::new(overloaded).resource(REVIEWS).times(2));
    let error = program.operator.check_access().await.unwrap_err();
    let verbs: usize = error.missing().iter().map(|each| each.verbs.len()).sum();
    assert_eq!(verbs, 13);
}

#[tokio::test(start_paused = true)]
async fn what_is_restricted_to_a_namespace_needs_a_role_there() {
    let options = || KindOptions::default().selection(Selection::all().in_namespaces(["default"]));
    let program = Program::new(options()).await;
    program.grant().await;
    program.operator.checks_access();
    assert!(program.works().await);
    let account = "demo/widgeteer".parse().unwrap();
    let manifests = program
        .operator
        .manifests("widgeteer", &account)
        .await
        .unwrap();
    let kinds: Vec<&str> = manifests
        .documents()
        .iter()
        .filter_map(|each| each["kind"].as_str())
        .collect();
    let expected = [
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
    ];
    assert_eq!(kinds, expected);
    // Definitions are in no namespace; where the key is nobody said.
    let everywhere = manifests.documents()[1]["rules"].to_string();
    assert!(
        !everywhere.contains("widgets\"") && everywhere.contains("secrets"),
        "{everywhere}"
    );
    let wide = program
        .operator
        .cluster_role("wide")
        .await
        .unwrap()
        .rules
        .unwrap();
    assert_eq!(wide.len(), 7);
}

#[tokio::test(start_paused = true)]
async fn caches_need_what_they_do() {
    let cluster = Cluster::for_test().await;
    let on_demand =
        ControllerOptions::default().cache(KindOptions::default().storage(Storage::OnDemand));
    let factory = SharedControllerFactory::builder(cluster.client())
        .kind_options("v1/Secret".parse::<lariat_core::Gvk>().unwrap(), on_demand)
        .build();
    let operator = Operator::new("reader", &factory);
    let _namespaces = operator.api::<Namespace>();
    let _secrets = operator.api::<Secret>();
    operator.needs(Rule::events());
    operator.needs(Rule::of(&factory.for_object::<ConfigMap>()));
    let rules = operator.rules().await.unwrap();
    let texts: Vec<String> = rules.iter().map(ToString::to_string).collect();
    let expected = [
        "list, watch namespaces (for the cache of namespaces)",
        "get, list, watch secrets (for the cache of secrets)",
        "create, patch events.events.k8s.io (for the operator)",
    ];
    assert_eq!(texts, expected);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_yet_is_not_checked() {
    let cluster = cluster().await;
    let factory = SharedControllerFactory::builder(client_of(&cluster, "sesame"))
        .missing_kind(MissingKind::Wait)
        .build();
    let operator = Operator::new("widgeteer", &factory);
    let widgets = factory.for_kind("demo.dev/v1/Widget".parse::<lariat_core::Gvk>().unwrap());
    let register = |name: &str| {
        let done = |_| async { Ok(Outcome::done()) };
        operator.reconciler(name, &widgets).register(done).unwrap();
    };
    register("one");
    assert!(operator.rules().await.unwrap_err().is_unknown());
    operator.check_access().await.unwrap();
    ensure_definitions(
        &cluster.client(),
        &[Widget::crd()],
        &DefinitionOptions::default(),
    )
    .await
    .unwrap();
    register("two");
    time::sleep(Duration::from_secs(2)).await;
    let error: AccessError = operator.check_access().await.unwrap_err();
    let who: BTreeMap<_, _> = error.missing()[0].verbs.clone();
    let one_and_two = ["one", "two"].map(|name| format!("reconciler {name} of demo.dev/v1 Widget"));
    assert!(
        who.values().all(|who| who.iter().eq(&one_and_two)),
        "{error}"
    );
    settle().await;
}
