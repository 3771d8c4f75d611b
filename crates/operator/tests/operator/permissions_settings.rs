//! Tests of permissions derived from the settings of a reconciler.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::CustomResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat_cache::{ClientIdentity, KindOptions, Selection};
use lariat_cluster::faults::{Action, Refusal, Rule as Fault, StatusCode};
use lariat_cluster::testing::TestCluster;
use lariat_controller::{
    ControllerOptions, HandlerOptions, HandlerResult, Outcome, SharedControllerFactory,
};
use lariat_operator::{
    Budget, CrdOptions, EventApi, EventOptions, Finalizer, Guard, Operator, Permission, Reconcile,
    Rule, ensure_crds,
};
use serde_json::json;
use tokio::time;

use crate::bench::{SECOND, Widget, WidgetSpec};
use crate::program::{client_of, cluster, grant};

/// Starts a cluster with a Widget `a`, and an operator whose account has no permissions yet.
async fn rig() -> (TestCluster, Operator) {
    let cluster = cluster().await;
    let admin = cluster.client();
    let options = CrdOptions::default();
    let installed = ensure_crds(&admin, &[Widget::crd()], &options).await;
    installed.expect("installed");
    let widgets: Api<Widget> = Api::namespaced(admin, "default");
    let widget = Widget::new("a", WidgetSpec { size: 1 });
    let created = widgets.create(&PostParams::default(), &widget).await;
    created.expect("created");
    let factory = SharedControllerFactory::builder(client_of(&cluster, "sesame")).build();
    let operator = Operator::new("widgeteer", &factory);
    (cluster, operator)
}

async fn reap(cx: Reconcile<Widget>) -> HandlerResult {
    let api: Api<Widget> = Api::namespaced(cx.client(), "default");
    api.delete(cx.key().name(), &DeleteParams::default())
        .await?;
    Ok(Outcome::done())
}

#[tokio::test(start_paused = true)]
async fn a_guard_may_report_that_it_has_tripped() {
    for (api, group) in [(EventApi::Core, ""), (EventApi::Events, "events.k8s.io")] {
        let (cluster, operator) = rig().await;
        let guard = Guard::new().deletes(Budget::rate(0, SECOND));
        let widgets = operator.factory().for_object::<Widget>();
        let reconciler = operator.reconciler("reaper", &widgets);
        reconciler.guard(guard.clone()).register(reap).unwrap();
        // In any order.
        operator
            .events()
            .configure(EventOptions::default().api(api));
        let rules = operator.rules().await.unwrap();
        let events = rules.iter().find(|rule| rule.resource == "events");
        assert_eq!(events.map(|rule| &*rule.group), Some(group), "{api:?}");
        grant(&cluster, &operator).await;
        operator.start(1).await.unwrap();
        time::sleep(SECOND).await;
        assert!(guard.state().is_tripped());
        let status = operator.events().status();
        assert_eq!((status.sent, status.failed), (1, 0), "{api:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_that_impersonates_a_user_may_do_so() {
    let (cluster, operator) = rig().await;
    let widgets = operator.factory().for_object::<Widget>();
    let identity = ClientIdentity::default()
        .impersonate("jane")
        .impersonate_group("system:masters");
    let writes = |cx: Reconcile<Widget>| async move {
        let api: Api<Widget> = Api::namespaced(cx.client(), "default");
        let patch = Patch::Merge(json!({"metadata": {"labels": {"was": "here"}}}));
        api.patch("a", &PatchParams::default(), &patch).await?;
        Ok(Outcome::done())
    };
    let reconciler = operator.reconciler("jane's", &widgets);
    let options = HandlerOptions::default().identity(identity);
    reconciler.options(options).register(writes).unwrap();
    grant(&cluster, &operator).await;
    operator.start(1).await.unwrap();
    time::sleep(SECOND).await;
    let api: Api<Widget> = Api::namespaced(cluster.client(), "default");
    assert!(api.get("a").await.unwrap().metadata.labels.is_some());
}

#[tokio::test(start_paused = true)]
async fn who_a_reconciler_acts_for_is_named() {
    let (_cluster, operator) = rig().await;
    let widgets = operator.factory().for_object::<Widget>();
    let account = ClientIdentity::default().impersonate("system:serviceaccount:demo:writer");
    // Through the handle instead of the options.
    let widgets = widgets.with_identity(account).unwrap();
    let done = |_| async { Ok(Outcome::done()) };
    operator.reconciler("own", &widgets).register(done).unwrap();
    let user = ClientIdentity::default()
        .impersonate("jane")
        .impersonate_group("a")
        .impersonate_group("b");
    let options = HandlerOptions::default().identity(user);
    let registered = operator
        .reconciler("jane's", &widgets)
        .options(options)
        .register(done)
        .unwrap();
    let seen = async || {
        let rules = operator.rules().await.unwrap();
        let acts = rules
            .iter()
            .filter(|rule| rule.verbs.contains_key("impersonate"));
        let seen = |rule: &Permission| {
            (
                rule.resource.clone(),
                rule.names.clone(),
                rule.namespaces.clone(),
            )
        };
        acts.map(seen).collect::<Vec<_>>()
    };
    let rule = |plural: &str, names: &[&str], namespaces: &[&str]| {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        (plural.to_owned(), texts(names), texts(namespaces))
    };
    let of_own = rule("serviceaccounts", &["writer"], &["demo"]);
    let of_jane = [
        rule("groups", &["a", "b"], &[]),
        rule("users", &["jane"], &[]),
    ];
    assert_eq!(
        seen().await,
        [of_jane[0].clone(), of_own.clone(), of_jane[1].clone()]
    );
    registered.deregister().await;
    assert_eq!(seen().await, [of_own]);
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_is_stripped_by_who_may_list_and_patch() {
    let (cluster, operator) = rig().await;
    let widgets = operator.factory().for_object::<Widget>();
    operator.needs(Rule::of(&widgets).verbs(["list", "patch"]));
    let admin: Api<Widget> = Api::namespaced(cluster.client(), "default");
    for name in ["b", "gone", "changed", "hidden"] {
        let mut widget = Widget::new(name, WidgetSpec { size: 1 });
        widget.metadata.finalizers = Some(vec!["demo.dev/ours".to_owned()]);
        admin.create(&PostParams::default(), &widget).await.unwrap();
    }
    grant(&cluster, &operator).await;
    let on_patch = |action, name| Fault::new(action).verb("patch").name(name);
    // It is deleted between the list and the patch.
    let late = Action::Delay(2 * SECOND);
    cluster.faults().add(on_patch(late, "gone").times(1));
    let goes = async {
        time::sleep(SECOND).await;
        let (params, none) = (
            PatchParams::default(),
            json!({"metadata": {"finalizers": null}}),
        );
        let patched = admin.patch("gone", &params, &Patch::Merge(&none)).await;
        patched.expect("patched");
        let deleted = admin.delete("gone", &DeleteParams::default()).await;
        deleted.expect("deleted");
    };
    // Like an API server that does not serve the kind yet.
    let hidden = Action::Refuse(Refusal::new(StatusCode::NOT_FOUND));
    cluster.faults().add(on_patch(hidden, "hidden"));
    cluster
        .faults()
        .add(on_patch(Action::Conflict, "changed").times(1));
    let finalizer = Finalizer::<Widget>::new("demo.dev/ours");
    let (removal, ()) = tokio::join!(finalizer.remove_from_all(&widgets), goes);
    let removal = removal.unwrap();
    // A changed object must be read, which is forbidden.
    let failed = removal.failed().iter().map(|(key, _)| key.name());
    let expected = ["changed", "hidden"];
    assert_eq!(failed.collect::<Vec<_>>(), expected, "{removal:?}");
    assert_eq!(removal.removed(), 1);
}

#[tokio::test(start_paused = true)]
async fn events_are_allowed_in_the_group_they_are_written_in() {
    for (api, group) in [(EventApi::Core, ""), (EventApi::Events, "events.k8s.io")] {
        let (_cluster, operator) = rig().await;
        // In any order.
        operator.needs(Rule::events());
        operator
            .events()
            .configure(EventOptions::default().api(api));
        let rules = operator.rules().await.unwrap();
        let groups: Vec<&str> = rules.iter().map(|rule| &*rule.group).collect();
        assert_eq!(groups, [group], "{api:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_are_restricted_to_namespaces_of_restricted_caches() {
    let cluster = cluster().await;
    let only = |namespaces: &[&str]| {
        let selection = Selection::all().in_namespaces(namespaces);
        ControllerOptions::default().cache(KindOptions::default().selection(selection))
    };
    let map: lariat_core::Gvk = "v1/ConfigMap".parse().unwrap();
    let secret: lariat_core::Gvk = "v1/Secret".parse().unwrap();
    let factory = SharedControllerFactory::builder(client_of(&cluster, "sesame"))
        .kind_options(map, only(&["b", "a"]))
        .kind_options(secret, only(&["a", "c"]))
        .build();
    let operator = Operator::new("widgeteer", &factory);
    operator.needs(Rule::events());
    let events = async || {
        let rules = operator.rules().await.unwrap().into_iter();
        let mut events = rules.filter(|rule| rule.resource == "events");
        events.next().unwrap().namespaces
    };
    assert_eq!(events().await, [""; 0]);
    let _maps = operator.api::<ConfigMap>();
    assert_eq!(events().await, ["a", "b"]);
    let _secrets = operator.api::<Secret>();
    assert_eq!(events().await, ["a", "b", "c"]);
    // An Event about an object without a namespace may follow.
    let _namespaces = operator.api::<Namespace>();
    assert_eq!(events().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn caches_that_are_kept_may_ask_which_cluster_they_are_of() {
    let cluster = cluster().await;
    let folder = std::env::temp_dir().join(format!("lariat-operator-{:016x}", fastrand::u64(..)));
    let builder = SharedControllerFactory::builder(client_of(&cluster, "sesame"));
    let factory = builder
        .caches(|caches| caches.warm_restart(&folder))
        .build();
    let operator = Operator::new("widgeteer", &factory);
    let done = |_| async { Ok(Outcome::done()) };
    let maps = factory.for_object::<ConfigMap>();
    operator.reconciler("maps", &maps).register(done).unwrap();
    let rules = operator.rules().await.unwrap();
    let texts: Vec<String> = rules.iter().map(ToString::to_string).collect();
    let expected = "get namespaces named kube-system (for warm restarts)";
    assert!(texts.iter().any(|text| text == expected), "{texts:?}");
    grant(&cluster, &operator).await;
    operator.start(1).await.unwrap();
    operator.stop().await.unwrap();
    let left = std::fs::read_dir(&folder).map(Iterator::count);
    let _ = std::fs::remove_dir_all(&folder);
    assert_eq!(left.unwrap(), 1, "the cache is kept");
}

#[tokio::test(start_paused = true)]
async fn who_applies_roles_is_reminded_of_what_that_takes() {
    let (_cluster, operator) = rig().await;
    let factory = operator.factory();
    let widgets = factory.for_object::<Widget>();
    let done = |_| async { Ok(Outcome::done()) };
    let (roles, bindings) = (
        factory.for_object::<Role>(),
        factory.for_object::<RoleBinding>(),
    );
    let reconciler = operator
        .reconciler("grants", &widgets)
        .applies(&roles)
        .applies(&bindings);
    let registered = reconciler.register(done).unwrap();
    let account = "demo/widgeteer".parse().unwrap();
    let printed = async || {
        let manifests = operator.manifests("widgeteer", &account).await;
        manifests.unwrap().to_string()
    };
    let text = printed().await;
    let expected = "# It writes roles: the API server lets it grant only permissions that it has itself,\n\
                    # or requires the verb \"escalate\" on them, which must be added by hand.\n\
                    # It writes rolebindings: the API server lets it grant only permissions that it has itself,\n\
                    # or requires the verb \"bind\" on the roles they bind, which must be added by hand.\n\
                    apiVersion: v1\nkind: ServiceAccount\n";
    assert!(text.starts_with(expected), "{text}");
    operator.needs(Rule::of(&roles).verbs(["escalate", "bind"]));
    assert!(printed().await.starts_with("apiVersion: v1\n"));
    registered.deregister().await;
    assert!(printed().await.starts_with("apiVersion: v1\n"));
}
