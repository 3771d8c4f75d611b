//! The commands on a program that runs: a factory, its console, and the embedded cluster.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use lariat_cluster::Cluster;
use lariat_console::{Console, ConsoleServer, Serve};
use lariat_controller::{Context, HandlerError, HandlerResult, Outcome, SharedControllerFactory};
use serde_json::json;

use crate::scripted::{ended, lariat};
use crate::tmux::Tmux;

/// A program with a controller of ConfigMaps, one of whose handlers fails for one object.
struct Program {
    _cluster: Cluster,
    factory: SharedControllerFactory,
    server: ConsoleServer,
}

impl Program {
    async fn start() -> Self {
        let cluster = Cluster::builder().start().await.expect("a cluster");
        let factory = SharedControllerFactory::builder(cluster.client()).build();
        let console = Console::on("127.0.0.1:0").name("map-operator");
        let server = factory.serve(console).expect("a free port");
        let maps = factory.for_object::<ConfigMap>();
        let copy = |_: Context<ConfigMap>| async { HandlerResult::Ok(Outcome::done()) };
        maps.register_handler("copy", copy).expect("registered");
        let check = |context: Context<ConfigMap>| async move {
            if context.key().name() == "bad" {
                return Err(HandlerError::from("the map has no colour"));
            }
            Ok(Outcome::done())
        };
        maps.register_handler("check", check).expect("registered");
        let api = Api::<ConfigMap>::namespaced(cluster.client(), "default");
        for name in ["good", "bad"] {
            let map = serde_json::from_value(json!({"metadata": {"name": name}}));
            let map: ConfigMap = map.expect("a ConfigMap");
            api.create(&PostParams::default(), &map)
                .await
                .expect("created");
        }
        factory.start(2).await.expect("started");
        Self {
            _cluster: cluster,
            factory,
            server,
        }
    }

    fn url(&self) -> String {
        self.server.address().to_string()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn top_shows_the_handler_that_fails_and_the_key_it_fails_for() {
    let program = Program::start().await;
    let url = program.url();
    let session = tokio::task::spawn_blocking(move || {
        let tmux = Tmux::start(80, 24);
        tmux.type_line(&format!(
            "{} top --url {url}; echo ended $?",
            env!("CARGO_BIN_EXE_lariat")
        ));
        tmux.has("map-operator");
        tmux.has("ConfigMap");
        // The handlers of the controller, the failing one with its count.
        tmux.press("Enter");
        tmux.has("HANDLER");
        // HANDLER, CALLS, CALLS/S, ERRORS/S
        tmux.wait("the failing handler", |screen| {
            let row = screen.lines().find(|line| line.starts_with("check"));
            let errors = row.and_then(|row| row.split_whitespace().nth(3));
            errors.is_some_and(|errors| errors != "0")
        });
        // The key, with its error in the list and in its history.
        tmux.wait("the failing key", |screen| {
            let row = screen.lines().find(|line| line.starts_with("default/bad"));
            row.is_some_and(|row| row.contains("failing") && row.contains("the map has no"))
        });
        tmux.press("Tab");
        tmux.press("/");
        tmux.type_line("bad");
        tmux.has("with “bad”");
        tmux.press("Enter");
        tmux.wait("the history", |screen| {
            screen.contains("because") && screen.contains("the map has no colour")
        });
        tmux.press("q");
        tmux.has("ended 0");
        tmux.check_restored();
    });
    session.await.expect("the session is as expected");
    program.factory.stop().await.expect("stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn why_and_status_read_what_a_program_serves() {
    let program = Program::start().await;
    let url = program.url();
    let read = tokio::task::spawn_blocking(move || {
        let run = |arguments: &[&str]| ended(lariat(&[arguments, &["--url", &url]].concat()));
        // Until both handlers have been called, of which one fails.
        let found = (0..1000).find_map(|_| {
            let (code, stdout, stderr) = run(&["why", "configmap", "default/bad"]);
            assert!(
                code == Some(0) || stderr.contains("no controller"),
                "{stderr}"
            );
            stdout.contains("the map has no colour").then_some(stdout)
        });
        let history = found.expect("the handler fails");
        assert!(
            history.starts_with("ConfigMap default/bad, cached at version "),
            "{history}"
        );
        assert!(history.contains("because  added at"), "{history}");
        let copied = history
            .lines()
            .find(|line| line.trim_start().starts_with("copy"));
        assert!(
            copied.is_some_and(|line| line.contains("done")),
            "{history}"
        );
        let (code, stdout, stderr) = run(&["status"]);
        assert_eq!((code, &stderr[..]), (Some(0), ""), "{stdout}");
        assert!(
            stdout.starts_with("map-operator") && stdout.contains("ConfigMap"),
            "{stdout}"
        );
        let (code, stdout, _) = run(&["top", "--once", "--output", "json"]);
        assert_eq!(code, Some(0));
        let json: serde_json::Value = serde_json::from_str(&stdout).expect("it is JSON");
        assert_eq!(json["controllers"][0]["kind"], "ConfigMap");
    });
    read.await.expect("the answers are as expected");
    program.factory.stop().await.expect("stopped");
}
