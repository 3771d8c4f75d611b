//! Tests of permissions: the derived ones suffice, and all of them are needed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::CustomResourceExt;
use kube::api::{Api, PostParams};
use lariat_cache::{InitialList, KindOptions, MissingKind, Selection, Storage};
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, Refusal, Rule as Fault, StatusCode};
use lariat_controller::{ControllerOptions, Outcome, SharedControllerFactory};
use lariat_lease::Lease;
use lariat_operator::{
    AccessError, CrdOptions, Operator, OperatorError, Reconcile, Rule, ensure_crds,
};
use lariat_testing::Logs;
use parking_lot::Mutex;
use tokio::time;

use crate::bench::{SECOND, Widget, WidgetSpec, WidgetStatus, settle};
use crate::program::{Program, client_of, cluster, grant, register};

const REVIEWS: &str = "selfsubjectaccessreviews";

#[tokio::test(start_paused = true)]
async fn the_role_is_said_exactly_and_is_enough() {
    let program = Program::new(KindOptions::default()).await;
    let account = "demo/widgeteer".parse().unwrap();
    let manifests = program
        .operator
        .manifests("widgeteer", &account)
        .await
        .unwrap();
    insta::assert_snapshot!(manifests);
    assert_eq!(manifests.documents().len(), 3);
    program.grant().await;
    program.operator.checks_access();
    assert!(program.works().await);
}

#[tokio::test(start_paused = true)]
async fn a_leader_election_needs_its_lease_and_nothing_else() {
    let cluster = Cluster::builder().start().await.expect("it starts");
    let builder = SharedControllerFactory::builder(cluster.client());
    let lease = Lease::new("shop").namespace("shops");
    let operator = Operator::new("shop", &builder.leader_election(lease).build());
    let rules = operator.rules().await.expect("known");
    let shown: Vec<String> = rules.iter().map(ToString::to_string).collect();
    let expected = [
        "create leases.coordination.k8s.io in shops (for the leader election)",
        "get, update, watch leases.coordination.k8s.io named shop in shops (for the leader election)",
    ];
    assert_eq!(shown, expected);
}

#[tokio::test(start_paused = true)]
async fn a_ring_needs_its_leases_and_works_with_what_the_manifests_say() {
    let cluster = cluster().await;
    let builder = SharedControllerFactory::builder(client_of(&cluster, "sesame"));
    let factory = builder
        .sharding(Lease::new("shop").namespace("demo"))
        .build();
    let operator = Operator::new("shop", &factory);
    let rules = operator.rules().await.expect("known");
    let shown: Vec<String> = rules.iter().map(ToString::to_string).collect();
    let verbs = "create, delete, get, list, update, watch";
    assert_eq!(
        shown,
        [format!(
            "{verbs} leases.coordination.k8s.io in demo (for the sharding)"
        )]
    );
    let logs = Logs::begin();
    operator.start(1).await.expect("started");
    let membership = factory.leadership().expect("it takes part");
    time::sleep(60 * SECOND).await;
    assert!(!membership.leads());
    let refused = "the API server refuses a request about the lease";
    let text = logs.text();
    let said: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("logged once"))
        .collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains(refused) && said[0].contains("forbidden") && !said[0].contains("Status {"),
        "{said:?}"
    );
    grant(&cluster, &operator).await;
    time::sleep(10 * SECOND).await;
    assert!(membership.leads());
    operator.stop().await.expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_not_declared_says_how_to_declare_it() {
    let cluster = cluster().await;
    let (admin, options) = (cluster.client(), CrdOptions::default());
    let installed = ensure_crds(&admin, &[Widget::crd()], &options).await;
    installed.expect("installed");
    let lists = KindOptions::default().initial_list(InitialList::List);
    let factory = SharedControllerFactory::builder(client_of(&cluster, "sesame"))
        .default_options(ControllerOptions::default().cache(lists))
        .build();
    let operator = Operator::new("widgeteer", &factory);
    let errors = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&errors);
    operator
        .reconciler("status", &factory.for_object::<Widget>())
        .register(move |cx: Reconcile<Widget>| {
            let seen = Arc::clone(&seen);
            async move {
                let status = WidgetStatus {
                    size: Some(1),
                    ..WidgetStatus::default()
                };
                let error = cx.set_status(&status).await.expect_err("it is refused");
                seen.lock().push(format!("{error:?}"));
                Ok(Outcome::done())
            }
        })
        .expect("registered");
    grant(&cluster, &operator).await;
    operator.start(1).await.expect("started");
    let widgets: Api<Widget> = Api::namespaced(cluster.client(), "default");
    let widget = Widget::new("a", WidgetSpec { size: 1 });
    let created = widgets.create(&PostParams::default(), &widget).await;
    created.expect("created");
    settle().await;
    let errors = errors.lock();
    let expected = "no permission to write the status of demo.dev/v1 Widget default/a; declare it by \
                    `writes_status()` of the reconciler, and add it to the role of the program: cannot";
    assert!(errors[0].starts_with(expected), "{errors:?}");
    assert!(
        errors[0].contains("cannot patch resource \"widgets/status\""),
        "{errors:?}"
    );
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
            // Only clusters with OwnerReferencesPermissionEnforcement require the first, and a single object is read
            // only if a cache is stale.
            let is_in_reserve = permission.subresource == "finalizers"
                || verb == "get" && permission.resource != "secrets" && permission.group.is_empty()
                || verb == "get" && permission.group == "demo.dev";
            if !is_in_reserve {
                assert!(
                    !program.works().await,
                    "it works without {verb} {}",
                    permission.path()
                );
            }
            tried += 1;
        }
    }
    assert_eq!(tried, 16);
}

#[tokio::test(start_paused = true)]
async fn a_start_says_what_is_missing_and_who_needs_it() {
    let program = Program::new(KindOptions::default()).await;
    program.grant().await;
    program.revoke("watch", "configmaps").await;
    program.operator.checks_access();
    let error = program.operator.start(1).await.unwrap_err();
    assert!(matches!(error, OperatorError::Access(_)));
    let expected = "this program may not watch configmaps (for reconciler sizes of demo.dev/v1 Widget); add to the \
                    rules of its role:\n- apiGroups:\n  - \"\"\n  resources:\n  - configmaps\n  verbs:\n  - watch\n";
    assert_eq!(error.to_string(), expected);
    let journal = program.cluster.journal();
    assert_eq!(
        journal.count("list", "configmaps") + journal.count("watch", "configmaps"),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn access_is_checked_before_crds_are_written() {
    let program = Program::new(KindOptions::default()).await;
    program.grant().await;
    let crds = "customresourcedefinitions";
    program.revoke("watch", "configmaps").await;
    program.operator.checks_access();
    let journal = program.cluster.journal();
    journal.clear();
    program.operator.start(1).await.unwrap_err();
    let writes = journal.count("create", crds) + journal.count("patch", crds);
    assert_eq!(writes, 0);
    program.revoke("get", crds).await;
    let error = program.operator.start(1).await.unwrap_err().to_string();
    for expected in [crds, "configmaps"] {
        assert!(error.contains(expected), "{error}");
    }
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
        // Either no request is answered, or only the first.
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
    assert_eq!(verbs, 16);
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
    // CRDs are cluster-scoped; the namespace of the key was not given.
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
        "create, patch events (for the operator)",
        "list, watch namespaces (for the cache of namespaces)",
        "get, list, watch secrets (for the cache of secrets)",
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
    ensure_crds(&cluster.client(), &[Widget::crd()], &CrdOptions::default())
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
