//! Access to the console.

use std::net::IpAddr;

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, PostParams};
use lariat_cluster::{Cluster, ClusterBuilder, User};
use lariat_console::api::{Allowed, Overview};
use lariat_console::{Console, Serve, TokenReviews};
use lariat_controller::SharedControllerFactory;
use lariat_testing::http::Client;
use serde_json::{Value as Json, json};

use crate::bench::{Bench, until};

const OVERVIEW: &str = "/api/v1/overview";
/// All routes with data of the program.
const ROUTES: [&str; 6] = [
    OVERVIEW,
    "/api/v1/health",
    "/api/v1/plan",
    "/metrics",
    "/openapi.json",
    "/nothing",
];

#[tokio::test]
async fn host_of_a_public_site_is_refused_on_an_open_console() {
    for address in ["127.0.0.1:0", "0.0.0.0:0"] {
        let cluster = Cluster::builder().start().await.unwrap();
        let factory = SharedControllerFactory::builder(cluster.client()).build();
        let console = Console::on(address)
            .open_to_everyone()
            .actions(true)
            .host("console.shop.example");
        let server = factory.serve(console).unwrap();
        let mut address = server.address();
        address.set_ip(IpAddr::from([127, 0, 0, 1]));
        check_hosts(&Client::new(address)).await;
    }
}

#[tokio::test]
async fn host_of_a_public_site_is_refused_for_open_metrics() {
    let bench = Bench::with(|console, _| console.token("secret").open_metrics(true)).await;
    let attacker = bench.client.with("host", "attacker.example");
    attacker.get("/metrics").await.refused(403);
    let scraper = bench.client.with("host", "console.shop.svc:9090");
    assert_eq!(scraper.get("/metrics").await.status, 200);
}

async fn check_hosts(client: &Client) {
    let attacker = client.with("host", "attacker.example");
    for route in ROUTES.into_iter().chain(["/", "/assets/main.js"]) {
        let refused = attacker.get(route).await.refused(403);
        assert!(refused.contains("Host"), "{route}: {refused}");
    }
    let filter = json!({"action": "log-filter", "filter": "off"});
    attacker.post("/api/v1/actions", &filter).await.refused(403);
    // A kubelet may be configured to send any host; it needs the status, and nobody else needs the reasons.
    for probe in [
        "/livez",
        "/livez?verbose",
        "/readyz/ping",
        "/readyz?verbose",
    ] {
        let answer = attacker.get(probe).await;
        assert!(["ok", "failed"].contains(&answer.text.as_str()), "{probe}");
        assert_eq!(answer.status, client.get(probe).await.status, "{probe}");
    }
    for host in ["localhost:1234", "console.shop.svc", "console.shop.example"] {
        let named = client.with("host", host);
        let _: Overview = named.get(OVERVIEW).await.good();
    }
}

#[tokio::test]
async fn on_other_addresses_there_are_only_probes_until_it_is_said_who_may_look() {
    let cluster = Cluster::builder().start().await.unwrap();
    let factory = SharedControllerFactory::builder(cluster.client()).build();
    let serve = |configure: fn(Console) -> Console| {
        let server = factory.serve(configure(Console::on("0.0.0.0:0"))).unwrap();
        let mut address = server.address();
        address.set_ip(IpAddr::from([127, 0, 0, 1]));
        Client::new(address)
    };
    let closed = serve(|console| console);
    for route in ROUTES {
        let refused = closed.get(route).await.refused(403);
        assert!(refused.contains("token_reviews"), "{refused}");
    }
    for probe in ["/livez", "/healthz", "/readyz/ping"] {
        assert_eq!(closed.get(probe).await.status, 200);
    }
    let open = serve(Console::open_to_everyone);
    let _: Overview = open.get(OVERVIEW).await.good();
    let metrics = serve(|console| console.open_metrics(true));
    assert_eq!(metrics.get("/metrics").await.status, 200);
    metrics.get(OVERVIEW).await.refused(403);
}

#[tokio::test]
async fn a_token_is_asked_for_wherever_something_is_shown() {
    let bench = Bench::with(|console, _| console.token("open sesame")).await;
    let nobody = &bench.client;
    for route in ROUTES {
        let answer = nobody.get(route).await;
        answer.refused(401);
        assert_eq!(answer.header("www-authenticate"), "Bearer");
        for wrong in ["open", "open sesame!", "sesame"] {
            nobody.token(wrong).get(route).await.refused(401);
        }
    }
    // The page asks for the token; it has no data of the program.
    assert_eq!(nobody.get("/").await.status, 200);
    assert_eq!(nobody.get("/readyz/ping").await.status, 200);
    // Spaces cannot be sent in a bearer token.
    nobody.token("open sesame").get(OVERVIEW).await.refused(401);
    let bench = Bench::with(|console, _| console.token("open-sesame")).await;
    // With a token no page of another site could look, whatever its name.
    let known = bench
        .client
        .token("open-sesame")
        .with("host", "shop.example");
    let overview: Overview = known.get(OVERVIEW).await.good();
    assert_eq!(overview.allowed.user, "token");
    let bench = Bench::with(|console, _| console.token("")).await;
    bench.client.get(OVERVIEW).await.refused(401);
}

/// A cluster where `looker` may look, `actor` may also act, `scraper` may read metrics, and `other` nothing.
async fn with_roles(actions: bool) -> Bench {
    let users = |cluster: ClusterBuilder| {
        let names = ["looker", "actor", "scraper", "other"];
        let with_token = |cluster: ClusterBuilder, name: &str| {
            let user = User::new(name).group("system:authenticated");
            cluster.token_of(format!("{name}-token"), user)
        };
        names.into_iter().fold(cluster, with_token).rbac()
    };
    let bench = Bench::on(users, |console, cluster| {
        console
            .actions(actions)
            .token_reviews(TokenReviews::new(cluster.client()))
    })
    .await;
    let look = json!({"nonResourceURLs": ["/console"], "verbs": ["get"]});
    let act = json!({"nonResourceURLs": ["/console/actions"], "verbs": ["post"]});
    let metrics = json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]});
    role(&bench, "looker", &[&look]).await;
    role(&bench, "actor", &[&look, &act]).await;
    role(&bench, "scraper", &[&metrics]).await;
    bench
}

async fn role(bench: &Bench, name: &str, rules: &[&Json]) {
    let client = bench.cluster.client();
    let role = json!({"metadata": {"name": name}, "rules": rules});
    let roles = Api::<ClusterRole>::all(client.clone());
    roles
        .create(
            &PostParams::default(),
            &serde_json::from_value(role).expect("it is created"),
        )
        .await
        .expect("it is created");
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
    });
    let bindings = Api::<ClusterRoleBinding>::all(client);
    bindings
        .create(
            &PostParams::default(),
            &serde_json::from_value(binding).expect("it is created"),
        )
        .await
        .expect("it is created");
}

#[tokio::test]
async fn users_may_do_what_roles_allow() {
    let bench = with_roles(true).await;
    let of = |name: &str| bench.client.token(&format!("{name}-token"));
    let allowed = async |name: &str| -> Allowed {
        let overview: Overview = of(name).get(OVERVIEW).await.good();
        overview.allowed
    };
    let looker = Allowed {
        user: "looker".to_owned(),
        actions: false,
    };
    assert_eq!(allowed("looker").await, looker);
    let actor = Allowed {
        user: "actor".to_owned(),
        actions: true,
    };
    assert_eq!(allowed("actor").await, actor);
    // Everyone who is authenticated may get `/api/*` of the API server. That does not count here.
    for name in ["other", "scraper"] {
        let refused = of(name).get(OVERVIEW).await.refused(403);
        assert!(
            refused.contains(name) && refused.contains("get /console"),
            "{refused}"
        );
    }
    for (name, status) in [("scraper", 200), ("looker", 403), ("other", 403)] {
        assert_eq!(of(name).get("/metrics").await.status, status, "{name}");
    }
    let enqueue = json!({
        "action": "enqueue", "context": "", "group": "", "version": "v1", "kind": "ConfigMap", "key": "default/a",
    });
    bench.idle("log");
    let refused = of("looker")
        .post("/api/v1/actions", &enqueue)
        .await
        .refused(403);
    assert!(refused.contains("post /console/actions"), "{refused}");
    assert_eq!(
        of("actor").post("/api/v1/actions", &enqueue).await.status,
        200
    );
    of("unknown").get(OVERVIEW).await.refused(401);
    bench.client.get(OVERVIEW).await.refused(401);
}

#[tokio::test]
async fn without_the_api_server_users_are_unknown_and_known_ones_stay() {
    let bench = with_roles(true).await;
    let looker = bench.client.token("looker-token");
    let _: Overview = looker.get(OVERVIEW).await.good();
    let partition = bench.cluster.faults().partition("");
    let actor = bench.client.token("actor-token");
    let answer = actor.get(OVERVIEW).await;
    let refused = answer.refused(503);
    assert!(refused.contains("try again"), "{refused}");
    assert_eq!(answer.header("retry-after"), "1");
    assert!(!answer.text.contains("actor-token"));
    // Positive reviews are cached for a minute.
    let overview: Overview = looker.get(OVERVIEW).await.good();
    assert!(!overview.allowed.actions);
    assert_eq!(bench.client.get("/livez").await.status, 200);
    bench.cluster.faults().remove(partition);
    let _: Overview = until(async || {
        let answer = actor.get(OVERVIEW).await;
        (answer.status == 200).then(|| answer.good())
    })
    .await;
}

#[tokio::test]
async fn a_taken_port_is_named_in_the_error() {
    let bench = Bench::new().await;
    let address = bench.server.address().to_string();
    let error = bench.factory.serve(Console::on(&*address)).unwrap_err();
    let text = lariat_core::describe(&error);
    assert!(text.contains(&address) && text.contains("in use"), "{text}");
    let error = bench.factory.serve(Console::on("nonsense")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the console cannot listen on nonsense: expected ADDRESS:PORT, such as 127.0.0.1:9090"
    );
    let factory = bench.factory.clone();
    let outside = std::thread::spawn(move || factory.serve(Console::on("127.0.0.1:0")).map(drop));
    let error = outside.join().unwrap().unwrap_err();
    assert!(error.to_string().contains("runtime"), "{error}");
}
