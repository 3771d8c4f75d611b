//! What a cache keeps in memory, in four forms.
//!
//! Handlers of the metadata-only form get whole objects, too: one request fetches each.
//!
//! Run: `cargo run --example metadata` (on an embedded cluster, in this process), or with `KUBECONFIG=…` on yours.

use k8s_openapi::api::core::v1::ConfigMap;
use lariat::cache::Transform;
use lariat::cluster::Sandbox;
use lariat::cluster::testing::config_map;
use lariat::prelude::*;
use lariat::{KindOptions, Selection, Storage};

const OBJECTS: usize = 200;

/// Fills a cache with some options, and returns how many bytes it takes.
async fn measure(sandbox: &Sandbox, options: KindOptions) -> anyhow::Result<usize> {
    let selection = Selection::all().in_namespaces([sandbox.namespace()]);
    let options = ControllerOptions::default().cache(options.selection(selection));
    let factory = SharedControllerFactory::builder(sandbox.client())
        .kind_options(Gvk::new("", "v1", "ConfigMap"), options)
        .build();
    let maps = factory.for_object::<ConfigMap>();
    maps.register_handler("read", read)?;
    // Returns when the cache is filled.
    factory.start(5).await?;
    let bytes = maps.cache().status().bytes;
    factory.stop().await?;
    Ok(bytes)
}

/// Reads the metadata first, which is always cached, and the rest of few objects.
async fn read(cx: Context<ConfigMap>) -> HandlerResult {
    // A request in the metadata-only form, otherwise the cached object.
    let is_wanted = cx
        .raw()
        .is_some_and(|object| object.labels().get("read").is_some());
    if is_wanted && let Some(map) = cx.object()? {
        let keys = map.data.as_ref().map_or(0, |data| data.len());
        println!("  {} has {keys} keys", cx.key().name());
    }
    Ok(Outcome::done())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Without a log, to keep the output short.
    tracing_subscriber::fmt().with_writer(std::io::sink).init();
    let sandbox = Sandbox::open().await?;
    println!("▸ {OBJECTS} ConfigMaps of 8 kB are created");
    let line = "server { listen 8080; location / { proxy_pass http://web; } }\n";
    for number in 0..OBJECTS {
        let name = format!("config-{number}");
        let data = [
            ("nginx.conf", &*line.repeat(130)),
            ("number", &*number.to_string()),
        ];
        let map = config_map(&name, &data).namespace(sandbox.namespace());
        let map = if number == 0 {
            map.label("read", "yes")
        } else {
            map
        };
        map.create(&sandbox.client()).await?;
    }

    let plain = KindOptions::default().storage(Storage::Plain);
    for (form, options) in [
        ("as the server sends them", plain.clone()),
        (
            "compressed",
            KindOptions::default().storage(Storage::Compressed),
        ),
        (
            "without the file",
            plain.transform(Transform::drop(["/data/nginx.conf"])),
        ),
        (
            "metadata only",
            KindOptions::default().storage(Storage::OnDemand),
        ),
    ] {
        println!("▸ {form}");
        let bytes = measure(&sandbox, options).await?;
        println!("  {} kB", bytes / 1000);
    }
    Ok(sandbox.close().await?)
}
