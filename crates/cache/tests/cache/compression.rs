//! Compressed lists, and watches that are not.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use lariat_cache::{InitialList, KindOptions, SharedCacheFactory};
use lariat_cluster::Cluster;
use parking_lot::Mutex;
use tower_service::Service;

use crate::bench::{MINUTE, Writer, cached, cluster, config_maps, eventually};

/// For each answer, whether it was a watch and whether it was compressed.
type Answers = Arc<Mutex<Vec<(bool, bool)>>>;

/// A client that records how it is answered.
fn noting(cluster: &Cluster) -> (Client, Answers) {
    let answers = Answers::default();
    let (service, notes) = (cluster.service(), Arc::clone(&answers));
    let noting = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let watch = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch=true"));
        let (mut service, notes) = (service.clone(), Arc::clone(&notes));
        async move {
            let response = service.call(request).await?;
            let compressed = response.headers().get(http::header::CONTENT_ENCODING);
            notes
                .lock()
                .push((watch, compressed.is_some_and(|encoding| encoding == "gzip")));
            Ok::<_, std::io::Error>(response)
        }
    });
    (Client::new(noting, "default"), answers)
}

#[tokio::test(start_paused = true)]
async fn large_lists_come_compressed_unless_that_is_not_wanted() {
    let lists = || KindOptions::default().initial_list(InitialList::List);
    for (options, compressed) in [(lists(), true), (lists().uncompressed(), false)] {
        let cluster = cluster().await;
        let writer = Writer::new(cluster.client());
        for number in 0..150 {
            writer.create(&format!("o{number}")).await;
            writer
                .change(&format!("o{number}"), &"value ".repeat(200))
                .await;
        }
        let (client, answers) = noting(&cluster);
        let factory = SharedCacheFactory::builder(client)
            .kind_options(config_maps(), options)
            .build();
        let informer = factory.for_kind(config_maps());
        informer.need::<ConfigMap>();
        factory.start();
        factory.wait_for_sync(MINUTE).await.unwrap();
        assert_eq!(cached(&informer), writer.truth().await);
        let list = answers
            .lock()
            .iter()
            .find(|(watch, large)| !watch && *large)
            .copied();
        assert_eq!(list.is_some(), compressed);
        writer.change("o1", &"another ".repeat(100_000)).await;
        eventually(async || cached(&informer), writer.truth().await).await;
        assert!(
            !answers.lock().contains(&(true, true)),
            "a watch is never compressed"
        );
    }
}
