//! Every fault a correct server may show, alone and together: the cache ends equal to the server, and
//! every subscriber has seen the last state of every object.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_cache::{Change, Changes, InitialList, KindOptions, SharedCacheFactory, Storage};
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, After, ErrorBody, Refusal, Rule, StatusCode};
use tokio::time;

use crate::bench::{MINUTE, Recorder, Writer, cached, client_as, config_maps, eventually};

/// The faults that concern reads, with how often each may strike.
fn faults() -> Vec<(&'static str, Action)> {
    let refuse = |code: StatusCode, body: ErrorBody| Action::Refuse(Refusal::new(code).body(body));
    let seconds = Duration::from_secs;
    vec![
        ("delay", Action::Delay(seconds(20))),
        (
            "too many requests",
            Action::Refuse(Refusal::too_many_requests().retry_after(seconds(9))),
        ),
        (
            "500",
            refuse(StatusCode::INTERNAL_SERVER_ERROR, ErrorBody::Status),
        ),
        (
            "503 as HTML",
            refuse(StatusCode::SERVICE_UNAVAILABLE, ErrorBody::Html),
        ),
        (
            "504 as text",
            refuse(StatusCode::GATEWAY_TIMEOUT, ErrorBody::Text),
        ),
        ("no answer", Action::NoAnswer),
        ("disconnect", Action::Disconnect),
        ("lost reply", Action::LoseReply),
        ("expiry", Action::Expire),
        ("stale reads", Action::StaleRead),
        ("versions jump", Action::SkipVersions(5_000_000)),
        ("watch ends", Action::EndWatch(After::Events(3))),
        (
            "watch ends in time",
            Action::EndWatch(After::Time(seconds(2))),
        ),
        ("watch cut", Action::CutWatch(After::Events(2))),
        (
            "watch cut in time",
            Action::CutWatch(After::Time(seconds(1))),
        ),
        ("watch hangs", Action::HangWatch(After::Events(4))),
        ("watch hangs at once", Action::HangWatch(After::Events(0))),
        ("no streaming lists", Action::RefuseWatchList),
    ]
}

struct Chaos {
    cluster: Cluster,
    writer: Writer,
    informer: lariat_cache::Informer,
    recorder: Arc<Recorder>,
    /// Reads now and then.
    slow: Changes,
    slow_knows: BTreeMap<String, String>,
    random: fastrand::Rng,
    _factory: SharedCacheFactory,
    _subscription: lariat_cache::Subscription,
}

impl Chaos {
    async fn begin(seed: u64, rules: Vec<Rule>) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let cluster = Cluster::builder()
            .history(12)
            .seed(seed)
            .start()
            .await
            .expect("started");
        let writer = Writer::new(cluster.client());
        writer.create("o0").await;
        for rule in rules {
            cluster.faults().add(rule);
        }
        let options = KindOptions::default()
            .initial_list(if random.bool() {
                InitialList::List
            } else {
                InitialList::WatchList
            })
            .storage(
                random
                    .choice([Storage::Plain, Storage::Compressed, Storage::Decoded])
                    .expect("it does"),
            );
        let factory = SharedCacheFactory::builder(client_as(&cluster, "informer"))
            .default_options(options)
            .build();
        let informer = factory.for_kind(config_maps());
        if random.bool() {
            informer.need::<ConfigMap>();
        }
        let recorder = Arc::new(Recorder::default());
        let subscription = informer.subscribe(Arc::clone(&recorder) as _);
        factory.start();
        Self {
            slow: informer.changes(),
            slow_knows: BTreeMap::new(),
            cluster,
            writer,
            informer,
            recorder,
            random,
            _factory: factory,
            _subscription: subscription,
        }
    }

    async fn step(&mut self, number: usize) {
        let name = format!("o{}", self.random.u8(..8));
        let exists = self.writer.truth().await.contains_key(&name);
        match (exists, self.random.u8(..12)) {
            (_, 0) => self.cluster.cut_watches(),
            (_, 1) => self.cluster.end_watches(),
            (_, 2) => self.cluster.compact(),
            (_, 3 | 4) => {
                let pause = Duration::from_millis(self.random.u64(..5_000));
                time::sleep(pause).await;
            }
            (_, 5) => self.read_some(),
            (false, _) => self.writer.create(&name).await,
            (true, 6) => {
                self.writer.delete(&name).await;
                self.writer.create(&name).await;
            }
            (true, 7 | 8) => self.writer.delete(&name).await,
            (true, _) => self.writer.change(&name, &number.to_string()).await,
        }
    }

    fn read_some(&mut self) {
        while let Some(change) = self.slow.try_next() {
            let name = change.key().name().to_owned();
            let before = match &change {
                Change::Added { object, .. } => {
                    let before = self.slow_knows.insert(name, object.version().to_string());
                    assert_eq!(before, None);
                    continue;
                }
                Change::Updated { new, .. } => {
                    self.slow_knows.insert(name, new.version().to_string())
                }
                Change::Deleted { .. } => self.slow_knows.remove(&name),
                other => panic!("unexpected {other:?}"),
            };
            assert!(before.is_some(), "{change:?} of what was never shown");
        }
    }

    /// Ends the faults; everything recovers.
    async fn end(mut self, what: &str) {
        self.cluster.faults().clear();
        self.cluster.cut_watches();
        let truth = self.writer.truth().await;
        println!("{what}: {:?}", self.informer.status());
        eventually(async || cached(&self.informer), truth.clone()).await;
        assert_eq!(self.recorder.known(), truth, "{what}");
        self.read_some();
        assert_eq!(self.slow_knows, truth, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_legal_fault_alone() {
    for (seed, (name, action)) in faults().into_iter().enumerate() {
        assert!(action.is_legal(), "{name}");
        let rule = || {
            Rule::new(action.clone())
                .client("informer")
                .probability(0.7)
        };
        let rules = vec![rule().verb("list"), rule().verb("watch")];
        let mut chaos = Chaos::begin(seed as u64, rules).await;
        for number in 0..60 {
            chaos.step(number).await;
        }
        chaos.end(name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn legal_faults_together_at_random() {
    for seed in 0..30 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut all = faults();
        random.shuffle(&mut all);
        let chosen = all.into_iter().take(4);
        let rules = chosen.flat_map(|(_, action)| {
            let rule = Rule::new(action).client("informer").probability(0.25);
            [rule.clone().verb("list"), rule.verb("watch")]
        });
        let mut chaos = Chaos::begin(seed, rules.collect()).await;
        for number in 0..120 {
            chaos.step(number).await;
        }
        chaos.end(&format!("seed {seed}")).await;
    }
}

/// Faults of servers that are not correct.
#[tokio::test(start_paused = true)]
async fn illegal_faults_do_no_harm_either() {
    for (seed, action) in [Action::ReplayEvents(5), Action::OmitInitialEnd]
        .into_iter()
        .enumerate()
    {
        assert!(!action.is_legal());
        let rules = vec![Rule::new(action.clone()).verb("watch").client("informer")];
        let mut chaos = Chaos::begin(seed as u64, rules).await;
        for number in 0..60 {
            chaos.step(number).await;
        }
        chaos.end(&format!("{action:?}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_hung_watch_is_noticed_within_minutes_once_bookmarks_were_seen() {
    let mut chaos = Chaos::begin(1, Vec::new()).await;
    time::sleep(3 * MINUTE).await;
    let hang = Rule::new(Action::HangWatch(After::Events(0)))
        .verb("watch")
        .times(1);
    chaos.cluster.faults().add(hang);
    chaos.cluster.cut_watches();
    time::sleep(MINUTE / 2).await;
    chaos.writer.create("unseen").await;
    time::sleep(2 * MINUTE).await;
    assert!(cached(&chaos.informer).contains_key("unseen"));
    chaos.read_some();
    assert!(chaos.slow_knows.contains_key("unseen"));
}
