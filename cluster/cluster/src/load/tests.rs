use std::collections::BTreeMap;

use serde_json::Value;

use super::plan::{App, Instance};
use super::{Load, pod, workload};
use crate::Cluster;
use crate::store::{Draft, EventType, Range};

async fn loaded(load: Load) -> (Cluster, BTreeMap<String, Vec<Value>>) {
    let cluster = Cluster::builder().start().await.unwrap();
    let before = objects(&cluster);
    assert!(before["pods"].is_empty());
    cluster.load(load).await;
    let after = objects(&cluster);
    (cluster, after)
}

fn objects(cluster: &Cluster) -> BTreeMap<String, Vec<Value>> {
    let server = &cluster.server;
    let catalog = server.kinds.catalog();
    let each = catalog.each_table().map(|resource| {
        let page = server.store.range(resource.table, &Range::default());
        let stored = page.unwrap().objects;
        let objects = stored.iter().map(|each| Value::Object(each.object()));
        (resource.plural.clone(), objects.collect())
    });
    each.filter(|(plural, objects): &(String, Vec<Value>)| plural == "pods" || !objects.is_empty())
        .collect()
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

#[tokio::test]
async fn the_same_load_is_the_same_objects_and_another_seed_is_others() {
    let (_, first) = loaded(Load::pods(20).config_maps(3)).await;
    let (_, again) = loaded(Load::pods(20).config_maps(3)).await;
    let (_, other) = loaded(Load::pods(20).config_maps(3).seed(1)).await;
    for plural in ["pods", "deployments", "replicasets", "configmaps", "nodes"] {
        assert_eq!(first[plural], again[plural], "{plural}");
        assert_ne!(first[plural], other[plural], "{plural}");
    }
}

#[tokio::test]
async fn loading_twice_is_loading_once() {
    let (cluster, first) = loaded(Load::pods(20)).await;
    let again = cluster.load(Load::pods(20)).await;
    assert_eq!(again.created(), 0);
    // 20 pods, 3 Deployments and ReplicaSets, a node and a namespace.
    assert_eq!(again.skipped(), 20 + 2 * 3 + 1 + 1);
    assert_eq!(objects(&cluster), first);
}

#[tokio::test]
async fn owners_nodes_and_namespaces_are_there() {
    let (_, objects) = loaded(Load::pods(50).nodes(4).namespaces(2)).await;
    assert_eq!(objects["nodes"].len(), 4);
    assert_eq!(objects["pods"].len(), 50);
    let of = |plural: &str, uid: &str| {
        let mut each = objects[plural].iter();
        each.find(|object| text(object, "/metadata/uid") == uid)
            .cloned()
    };
    for pod in &objects["pods"] {
        let set = of("replicasets", text(pod, "/metadata/ownerReferences/0/uid")).unwrap();
        assert_eq!(
            set["metadata"]["name"],
            pod["metadata"]["ownerReferences"][0]["name"]
        );
        let selector = set["spec"]["selector"]["matchLabels"].as_object().unwrap();
        for (name, value) in selector {
            assert_eq!(&pod["metadata"]["labels"][name], value);
        }
        of("deployments", text(&set, "/metadata/ownerReferences/0/uid")).unwrap();
        let node = text(pod, "/spec/nodeName");
        assert!(
            objects["nodes"]
                .iter()
                .any(|each| text(each, "/metadata/name") == node)
        );
    }
    let replicas = objects["replicasets"]
        .iter()
        .map(|set| set["spec"]["replicas"].as_u64().unwrap());
    assert_eq!(replicas.sum::<u64>(), 50);
}

#[test]
fn pods_have_five_to_six_kilobytes_and_templates_agree() {
    let load = Load::pods(800);
    let mut sizes = Vec::new();
    for (number, app) in App::all(&load).enumerate() {
        let instance = app.instance(&load, number * 8);
        let pod = pod::pod(&app, &instance);
        sizes.push(pod.to_string().len());
        let template = Draft::new(
            pod::pod(&app, &Instance::placeholders())
                .as_object()
                .unwrap(),
        );
        let filled = template.fill(&instance.values()).stamp(1, EventType::Added);
        let plain = Draft::new(pod.as_object().unwrap()).stamp(1, EventType::Added);
        assert_eq!(filled.json(), plain.json(), "a filled pod is a pod");
        assert_eq!(filled.metadata(), plain.metadata());
        assert_eq!((filled.key(), filled.uid()), (plain.key(), plain.uid()));
        let mut of_set = workload::replica_set(&app)["spec"]["template"].take();
        let labels = of_set["metadata"]["labels"].as_object_mut().unwrap();
        labels.remove("pod-template-hash").unwrap();
        assert_eq!(of_set, workload::deployment(&app)["spec"]["template"]);
    }
    let mean = sizes.iter().sum::<usize>() / sizes.len();
    assert!((5000..6000).contains(&mean), "{mean}");
}

#[test]
fn a_load_reads_from_text_and_says_what_is_wrong() {
    let load: Load = "pods=20000, configmaps=5,nodes=7,namespaces=2,seed=9"
        .parse()
        .unwrap();
    assert_eq!(
        load,
        Load::pods(20_000)
            .config_maps(5)
            .nodes(7)
            .namespaces(2)
            .seed(9)
    );
    for (text, error) in [
        (
            "",
            r#""" is not of the form name=number, such as pods=20000"#,
        ),
        (
            "pods",
            r#""pods" is not of the form name=number, such as pods=20000"#,
        ),
        ("pods=many", r#""many" is no number of pods"#),
        ("pods=-1", r#""-1" is no number of pods"#),
        ("pods=99999999999", r#""99999999999" is no number of pods"#),
        (
            "dogs=1",
            r#""dogs" cannot be loaded; there are pods, configmaps, nodes, namespaces and seed"#,
        ),
    ] {
        assert_eq!(text.parse::<Load>().unwrap_err().to_string(), error);
    }
}
