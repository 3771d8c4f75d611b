//! Queries that take too long.

use std::time::Duration;

use kube::Client;
use lariat_cache::SharedCacheFactory;
use lariat_core::Gvk;

use super::{SqlCache, SqlError};
use crate::query::Query;
use crate::schema::Schema;

#[tokio::test(start_paused = true)]
async fn a_query_waits_for_other_queries_no_longer_than_it_may_take() {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("no server"))
    });
    let factory = SharedCacheFactory::new(Client::new(service, "default"));
    let gvk = Gvk::new("", "v1", "ConfigMap");
    let sql = SqlCache::builder(&factory)
        .kind(Schema::new(gvk.clone(), []).unwrap())
        .readers(1)
        .query_timeout(Duration::from_secs(3))
        .start()
        .await
        .unwrap();
    let kind = sql.kind(&gvk).unwrap();
    let progress = &kind.inner().progress;
    progress.send_modify(|progress| progress.is_synced = true);
    let slow = kind.inner().reader().await;
    let error = kind.query(&Query::new()).await.unwrap_err();
    assert!(
        matches!(&error, SqlError::Timeout { kind, after } if *kind == gvk && after.as_secs() == 3),
        "{error}"
    );
    drop(slow);
    // It is read now, and there is nothing to read.
    let error = kind.query(&Query::new()).await.unwrap_err();
    assert!(matches!(error, SqlError::NotSynced { .. }), "{error}");
}
