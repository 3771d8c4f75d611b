//! Lariat: a shared controller with handlers, or its cache alone.

use std::ops::Deref;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::Resource;
use kube::api::DynamicObject;
use lariat_cache::{
    CacheFactoryBuilder, CachedObject, Change, Informer, InitialList, KindOptions, Metadata,
    Selection, SharedCacheFactory, Storage, Subscriber, View,
};
use lariat_client::{Http2, from_config};
use lariat_console::{Console, Serve};
use lariat_controller::{Context, Outcome, SharedController, SharedControllerFactory};
use lariat_core::{Gvk, ObjectKey, ResourceKind, Scope};

use super::job::{Job, Live, Reader};
use super::scraper;
use super::tally::{Tally, number};
use crate::pods::stamp;
use crate::target::Target;

/// Workers of a controller: what controllers of Kubernetes itself have.
const WORKERS: usize = 5;

/// How a subject differs from Lariat as it is by default.
#[derive(Debug, Clone)]
pub(crate) struct Variant {
    http2: Http2,
    options: KindOptions,
    /// Whether pods are cached whole although their content is not read.
    content: bool,
    /// Whether its metrics and a console are served, and scraped once a second.
    console: bool,
}

impl Variant {
    pub(crate) fn of(subject: &str) -> Result<Self> {
        let mut variant = Self {
            http2: Http2::default(),
            options: KindOptions::default(),
            content: false,
            console: false,
        };
        let options = KindOptions::default();
        match subject.strip_prefix("lariat").unwrap_or_default() {
            // These differ in what is started, not in the options.
            "" | "-reflector" | "-one-thread" | "-metadata" => {}
            "-content" => variant.content = true,
            "-console" => variant.console = true,
            "-http1" => variant.http2 = Http2::Off,
            "-http2" => variant.http2 = Http2::PriorKnowledge,
            "-lists" => variant.options = options.initial_list(InitialList::List),
            "-lists-plain" => {
                variant.options = options.initial_list(InitialList::List).uncompressed()
            }
            "-plain" => variant.options = options.storage(Storage::Plain),
            "-compressed" => variant.options = options.storage(Storage::Compressed),
            "-decoded" => variant.options = options.storage(Storage::Decoded),
            _ => bail!("no subject {subject:?}; --help lists them"),
        }
        Ok(variant)
    }

    async fn client(&self, target: &Target) -> Result<kube::Client> {
        Ok(from_config(target.config().await?, self.http2).await?)
    }

    /// Makes a factory of caches.
    pub(crate) async fn caches(self, target: &Target) -> Result<SharedCacheFactory> {
        let client = self.client(target).await?;
        let builder = SharedCacheFactory::builder(client);
        Ok(self.configure(builder, target).build())
    }

    fn configure(self, caches: CacheFactoryBuilder, target: &Target) -> CacheFactoryBuilder {
        let selection = Selection::all().in_namespaces(&target.namespace);
        caches.default_options(self.options.selection(selection))
    }
}

/// Starts a controller with handlers.
pub(super) async fn controller(job: &Job<'_>) -> Result<Live> {
    let variant = Variant::of(job.subject)?;
    let (content, console) = (variant.content, variant.console);
    let builder = SharedControllerFactory::builder(variant.client(job.target).await?);
    let factory = builder
        .caches(|caches| variant.configure(caches, job.target))
        .build();
    let pods = factory.for_object::<Pod>();
    for handler in 0..job.tally.handlers() {
        // In the case `mixed`, typed and dynamic handlers take turns.
        let as_typed = job.case == "typed" || (job.case == "mixed" && handler % 2 == 0);
        match job.case {
            "metadata" => register(&pods.view::<Metadata>(), handler, &job.tally, seen(job))?,
            _ if as_typed => register(&pods, handler, &job.tally, state::<Pod>(job))?,
            _ => {
                let pods = pods.view::<DynamicObject>();
                register(&pods, handler, &job.tally, state::<DynamicObject>(job))?;
            }
        }
    }
    let cache = pods.view::<Metadata>().cache();
    // A view of the content makes the informer cache it, although no handler reads it.
    if content {
        drop(pods.cache());
    }
    let server = console.then(|| factory.serve(Console::on("127.0.0.1:0")));
    // Before the start, as a program serves its console from the beginning.
    let server = server.transpose()?;
    factory.start(WORKERS).await?;
    let scraper = server.map(|server| scraper::start(server.address()));
    let scraper = scraper.transpose()?;
    let store = Arc::clone(cache.store());
    let reading = cache.clone();
    Ok(Live {
        bytes: Some(Box::new(move || store.bytes())),
        reader: Box::new(move || reader(reading.clone())),
        _at_work: Box::new((factory, scraper)),
    })
}

/// Registers a handler that records the object and version of each call.
fn register<K: View>(
    pods: &SharedController<K>,
    handler: usize,
    tally: &Arc<Tally>,
    state: fn(&K) -> u64,
) -> Result<()> {
    let tally = Arc::clone(tally);
    pods.register_handler(&format!("handler-{handler}"), move |cx: Context<K>| {
        let tally = Arc::clone(&tally);
        async move {
            if let Some(pod) = cx.object()? {
                let key = cx.key();
                tally.saw(handler, key.namespace(), key.name(), state(&pod));
            }
            Ok(Outcome::done())
        }
    })?;
    Ok(())
}

/// Returns what handlers of objects look at.
fn state<K: Resource>(job: &Job<'_>) -> fn(&K) -> u64 {
    if job.is_stamped {
        |object| stamp::read(object.meta())
    } else {
        |object| {
            let version = object.meta().resource_version.as_deref();
            version
                .and_then(|version| version.parse().ok())
                .unwrap_or(0)
        }
    }
}

/// Returns what handlers of metadata look at.
fn seen<M: Deref<Target = CachedObject>>(job: &Job<'_>) -> fn(&M) -> u64 {
    if job.is_stamped {
        |object| object.labels().get(stamp::LABEL).map_or(0, stamp::parse)
    } else {
        |object| number(object.version())
    }
}

/// Starts a cache whose only subscriber looks at the metadata of what changes.
pub(super) async fn reflector(job: &Job<'_>) -> Result<Live> {
    let factory = Variant::of(job.subject)?.caches(job.target).await?;
    let informer = pods(&factory);
    match job.case {
        "metadata" => {}
        "typed" | "dynamic" => informer.need::<Pod>(),
        _ => bail!("a cache alone has no handlers to mix"),
    }
    let subscription = informer.subscribe(Arc::new(Counter(Arc::clone(&job.tally), seen(job))));
    factory.start();
    let cache = informer.cache::<Metadata>();
    let store = Arc::clone(cache.store());
    Ok(Live {
        bytes: Some(Box::new(move || store.bytes())),
        reader: Box::new(move || reader(cache.clone())),
        _at_work: Box::new((factory, subscription)),
    })
}

/// Returns the informer of pods.
pub(crate) fn pods(factory: &SharedCacheFactory) -> Informer {
    factory.for_resource_kind(&resource())
}

/// Returns what pods are.
pub(super) fn resource() -> ResourceKind {
    ResourceKind::new(Gvk::new("", "v1", "Pod"), "pods", Scope::Namespaced)
}

struct Counter(Arc<Tally>, fn(&Arc<CachedObject>) -> u64);

impl Subscriber for Counter {
    fn changed(&self, changes: &[Change]) {
        for change in changes {
            if let Change::Added { object, .. } | Change::Updated { new: object, .. } = change {
                let key = object.key();
                self.0.saw(0, key.namespace(), key.name(), (self.1)(object));
            }
        }
    }
}

/// Reads what no decoding has to be waited for: how long a reader waits for the cache is measured.
fn reader(cache: lariat_cache::Cache<Metadata>) -> Reader {
    let keys: Vec<ObjectKey> = cache
        .snapshot()
        .iter()
        .map(|pod| pod.key().clone())
        .collect();
    let mut endless = keys.into_iter().cycle();
    let store = Arc::clone(cache.store());
    Reader {
        get: Box::new(move || {
            let key = endless.next().context("there are objects");
            drop(key.map(|key| store.get(&key)));
        }),
        list: Box::new(move || drop(cache.snapshot())),
    }
}
