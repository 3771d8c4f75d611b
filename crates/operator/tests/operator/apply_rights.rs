//! Tests of sets under the printed roles: they suffice, and a missing permission stops nothing else.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::CustomResourceExt;
use kube::api::{Api, PostParams};
use lariat_cache::{InitialList, KindOptions, Selection, View};
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_cluster::testing::TestCluster;
use lariat_controller::{ControllerOptions, Outcome, SharedController, SharedControllerFactory};
use lariat_operator::{
    Applied, ApplyError, CrdOptions, Desired, Operator, Reconcile, Reconciler, ensure_crds,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time;

use crate::apply_rig::config;
use crate::bench::{SECOND, Widget, WidgetSpec, settle};
use crate::program::{client_of, cluster, grant};

/// A release of an operator, with the role it prints.
struct Release<K> {
    operator: Operator,
    kind: SharedController<K>,
    wanted: Arc<Mutex<Vec<Value>>>,
    calls: Arc<Mutex<Vec<Result<Applied, ApplyError>>>>,
}

impl<K: View> Release<K> {
    /// Starts a release whose reconciler declares what else it needs.
    async fn start(
        cluster: &TestCluster,
        wanted: Vec<Value>,
        says: impl FnOnce(Reconciler<K>, &SharedControllerFactory) -> Reconciler<K>,
    ) -> Self
    where
        K: kube::Resource<DynamicType = ()>,
    {
        let config_maps: lariat_core::Gvk = "v1/ConfigMap".parse().expect("a kind");
        let lists = || KindOptions::default().initial_list(InitialList::List);
        let restricted = lists().selection(Selection::all().in_namespaces(["default"]));
        let factory = SharedControllerFactory::builder(client_of(cluster, "sesame"))
            .default_options(ControllerOptions::default().cache(lists()))
            .kind_options(config_maps, ControllerOptions::default().cache(restricted))
            .build();
        let release = Self {
            operator: Operator::new("widgeteer", &factory),
            kind: factory.for_object(),
            wanted: Arc::new(Mutex::new(wanted)),
            calls: Arc::default(),
        };
        let reconciler = says(release.operator.reconciler("sets", &release.kind), &factory);
        let (wanted, calls) = (Arc::clone(&release.wanted), Arc::clone(&release.calls));
        let registered = reconciler.register(move |cx: Reconcile<K>| {
            let (wanted, calls) = (wanted.lock().clone(), Arc::clone(&calls));
            async move {
                // There are other Namespaces.
                if matches!(cx.key().name(), "a" | "default") {
                    let desired = wanted.into_iter().fold(Desired::new(), Desired::with_value);
                    let call = cx.apply(desired).await;
                    calls.lock().push(call);
                }
                Ok(Outcome::done())
            }
        });
        registered.expect("registered");
        grant(cluster, &release.operator).await;
        release.operator.start(1).await.expect("started");
        time::sleep(SECOND).await;
        release
    }

    /// Calls the reconciler, and returns the result.
    async fn apply(&self, key: &str, wanted: Vec<Value>) -> Applied {
        *self.wanted.lock() = wanted;
        self.calls.lock().clear();
        self.kind.enqueue(&key.parse().expect("a key"));
        settle().await;
        // The result may call it again.
        self.calls.lock().truncate(1);
        self.last()
    }

    fn last(&self) -> Applied {
        let last = self.calls.lock().pop().expect("a call");
        last.unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Starts a cluster with the Widget `a`.
async fn with_widget() -> (TestCluster, Api<Widget>) {
    let cluster = cluster().await;
    let options = CrdOptions::default();
    let defined = ensure_crds(&cluster.client(), &[Widget::crd()], &options).await;
    defined.expect("defined");
    let widgets: Api<Widget> = Api::namespaced(cluster.client(), "default");
    let widget = Widget::new("a", WidgetSpec { size: 1 });
    let created = widgets.create(&PostParams::default(), &widget).await;
    created.expect("created");
    (cluster, widgets)
}

fn secret() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}})
}

async fn noted(widgets: &Api<Widget>) -> String {
    let metadata = widgets.get("a").await.expect("there").metadata;
    let annotations = metadata.annotations.unwrap_or_default();
    annotations.into_values().collect()
}

#[tokio::test(start_paused = true)]
async fn a_release_that_drops_a_kind_goes_on_without_the_right_and_prunes_with_it() {
    for watches in [false, true] {
        let (cluster, widgets) = with_widget().await;
        let secrets: Api<Secret> = Api::namespaced(cluster.client(), "default");
        let both = vec![config("web", "1"), secret()];
        let first = Release::<Widget>::start(&cluster, both, |reconciler, factory| {
            let secrets = factory.for_object::<Secret>();
            let config_maps = factory.for_object::<ConfigMap>();
            reconciler.applies(&config_maps).applies(&secrets)
        })
        .await;
        assert_eq!(first.last().objects().len(), 2);
        first.operator.stop().await.expect("stopped");

        let one = || vec![config("web", "1")];
        let second = Release::<Widget>::start(&cluster, one(), |reconciler, factory| {
            let reconciler = reconciler.applies(&factory.for_object::<ConfigMap>());
            if watches {
                reconciler.owns(&factory.for_object::<Secret>())
            } else {
                reconciler
            }
        })
        .await;
        let applied = second.last();
        assert_eq!(applied.forbidden(), ["v1/Secret".parse().unwrap()]);
        let applied = second.apply("default/a", one()).await;
        let text = "1 unchanged, v1 Secret not searched";
        assert_eq!(applied.to_string(), text);
        second.apply("default/a", Vec::new()).await;
        let applied = second.apply("default/a", Vec::new()).await;
        assert_eq!(applied.objects(), []);
        assert!(!applied.is_gone(), "the Secret is left");
        assert!(secrets.get_opt("key").await.unwrap().is_some());
        assert!(noted(&widgets).await.contains("v1/Secret"));
        second.operator.stop().await.expect("stopped");

        let third = Release::<Widget>::start(&cluster, one(), |reconciler, factory| {
            let reconciler = reconciler.applies(&factory.for_object::<ConfigMap>());
            reconciler.prunes(&factory.for_object::<Secret>())
        })
        .await;
        assert!(secrets.get_opt("key").await.unwrap().is_none());
        let applied = third.apply("default/a", one()).await;
        assert_eq!(applied.forbidden(), []);
        assert_eq!(noted(&widgets).await, "v1/ConfigMap");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_the_set_has_may_not_be_forbidden() {
    let (cluster, _widgets) = with_widget().await;
    let one = vec![config("web", "1")];
    let release = Release::<Widget>::start(&cluster, one, |reconciler, factory| {
        let config_maps = factory.for_object::<ConfigMap>();
        let rule = lariat_operator::Rule::of(&config_maps).verbs(["get", "patch", "create"]);
        let note = lariat_operator::Rule::of(&factory.for_object::<Widget>()).verbs(["patch"]);
        reconciler.needs(rule).needs(note)
    });
    let error = release.await.calls.lock().pop().unwrap().unwrap_err();
    assert!(
        error
            .to_string()
            .contains("all v1 ConfigMap: cannot list it"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_kind_the_program_applies_may_not_be_forbidden_while_a_set_lacks_it() {
    let one = || vec![config("web", "1")];
    for is_named in [false, true] {
        let (cluster, _widgets) = with_widget().await;
        let start = async |wanted| {
            let release = Release::<Widget>::start(&cluster, wanted, |reconciler, factory| {
                let secrets = factory.for_object::<Secret>();
                let reconciler = reconciler.applies(&factory.for_object::<ConfigMap>());
                let writes = lariat_operator::Rule::of(&secrets).verbs(["create", "get", "patch"]);
                if is_named {
                    reconciler.applies(&secrets)
                } else {
                    reconciler.needs(writes)
                }
            });
            release.await
        };
        let refuse = || {
            let refused = Action::Refuse(Refusal::new(StatusCode::FORBIDDEN));
            let rule = Rule::new(refused).resource("secrets").verb("list");
            cluster.faults().add(rule)
        };
        let mut both = one();
        both.push(secret());
        let mut release = start(both).await;
        release.calls.lock().clear();
        if is_named {
            // By another process then.
            release.operator.stop().await.expect("stopped");
            refuse();
            release = start(one()).await;
        } else {
            refuse();
            *release.wanted.lock() = one();
            release.kind.enqueue(&"default/a".parse().expect("a key"));
            settle().await;
        }
        let error = release.calls.lock().remove(0).unwrap_err();
        let text = "all v1 Secret: cannot list it";
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_note_on_an_owner_that_changed_meanwhile_needs_no_more_than_is_asked_for() {
    let (cluster, widgets) = with_widget().await;
    let conflict = Action::Refuse(Refusal::new(StatusCode::CONFLICT));
    let rule = Rule::new(conflict).resource("widgets").verb("patch");
    let rule = cluster.faults().add(rule.times(1));
    let one = vec![config("web", "1")];
    let release = Release::<Widget>::start(&cluster, one, |reconciler, factory| {
        reconciler.applies(&factory.for_object::<ConfigMap>())
    })
    .await;
    assert_eq!(cluster.faults().hits(rule), 1);
    for call in release.calls.lock().iter() {
        assert!(call.is_ok(), "{call:?}");
    }
    assert_eq!(noted(&widgets).await, "v1/ConfigMap");
}

#[tokio::test(start_paused = true)]
async fn an_owner_without_a_namespace_looks_where_the_cache_does() {
    for owns in [true, false] {
        let cluster = cluster().await;
        let there = |name: &str| {
            let mut map = config(name, "1");
            map["metadata"]["namespace"] = json!("default");
            map
        };
        let both = vec![there("one"), there("two")];
        let release = Release::<Namespace>::start(&cluster, both.clone(), |reconciler, factory| {
            let config_maps = factory.for_object::<ConfigMap>();
            let reconciler = reconciler.applies(&config_maps);
            if owns {
                reconciler.owns(&config_maps)
            } else {
                reconciler
            }
        })
        .await;
        release.last();
        cluster.journal().clear();
        let applied = release.apply("default", both).await;
        assert_eq!(applied.to_string(), "2 unchanged");
        if owns {
            let journal = cluster.journal();
            assert_eq!(journal.select().resource("configmaps").count(), 0);
        }
        let applied = release.apply("default", vec![there("one")]).await;
        assert_eq!(applied.to_string(), "1 unchanged, 1 pruned");
        let applied = release.apply("default", Vec::new()).await;
        assert_eq!(applied.to_string(), "1 pruned");
        assert!(release.apply("default", Vec::new()).await.is_gone());
        let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
        assert!(maps.get_opt("two").await.unwrap().is_none());
    }
}
