//! Many objects, and a wire that is cut.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use lariat::cache::Phase;
use lariat::kube::Api;
use lariat_integration::{Wire, eventually, in_namespace};
use tokio::time::sleep;

use crate::books::{Books, change, create, delete};

const OBJECTS: usize = 10_000;
const CHANGED: usize = 2_000;
const DELETED: usize = 500;
const CUTS: usize = 10;

/// How many requests are under way at once.
const PARALLEL: usize = 16;

/// Does something for each number, some at a time.
async fn for_each(
    numbers: std::ops::Range<usize>,
    act: impl AsyncFn(usize) -> Result<()>,
) -> Result<()> {
    stream::iter(numbers)
        .map(|number| act(number))
        .buffer_unordered(PARALLEL)
        .try_collect()
        .await
}

fn name(number: usize) -> String {
    format!("object-{number:05}")
}

/// Changes, deletes and creates objects.
async fn write(api: &Api<ConfigMap>) -> Result<()> {
    for_each(0..CHANGED, async |number| {
        change(api, &name(number), "second").await
    })
    .await?;
    for_each(0..DELETED, async |number| delete(api, &name(number)).await).await?;
    let new = OBJECTS..OBJECTS + DELETED;
    for_each(new, async |number| create(api, &name(number), "new").await).await
}

/// Cuts the watch again and again, each time when it is open again.
async fn cut(wire: &Wire) {
    for _ in 0..CUTS {
        let before = wire.watches("configmaps");
        wire.cut();
        eventually(async || {
            let watches = wire.watches("configmaps");
            ensure!(watches > before, "the watch was not opened again");
            Ok(())
        })
        .await;
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_objects_reach_three_handlers_though_the_watch_is_cut_ten_times() {
    in_namespace("scale", async |env| {
        let api = env.api();
        for_each(0..OBJECTS, async |number| {
            create(&api, &name(number), "first").await
        })
        .await?;
        let mut truth: BTreeMap<String, String> = (0..OBJECTS)
            .map(|number| (name(number), "first".to_owned()))
            .collect();

        let factory = env.factory().build();
        let config_maps = factory.for_object::<ConfigMap>();
        let books: [Books; 3] = std::array::from_fn(|_| Books::new(&env.namespace));
        for (number, books) in books.iter().enumerate() {
            config_maps.register_handler(&format!("handler-{number}"), books.keeper())?;
        }
        factory.start(5).await?;
        let status = config_maps.status().expect("it is in use");
        assert_eq!(status.cache.phase, Phase::Synced);
        assert!(status.cache.objects >= OBJECTS);
        eventually(async || books.iter().try_for_each(|books| books.agree_with(&truth))).await;

        let (written, ()) = tokio::join!(write(&api), cut(&env.wire));
        written?;
        for number in 0..CHANGED {
            truth.insert(name(number), "second".to_owned());
        }
        for number in 0..DELETED {
            truth.remove(&name(number));
            truth.insert(name(OBJECTS + number), "new".to_owned());
        }
        eventually(async || books.iter().try_for_each(|books| books.agree_with(&truth))).await;
        for books in &books {
            assert_eq!(
                books.deleted().len(),
                DELETED,
                "each deletion came with its last state"
            );
        }
        assert!(env.wire.watches("configmaps") > CUTS);
        factory.stop().await?;
        Ok(())
    })
    .await;
}
