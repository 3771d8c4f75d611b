//! Who may do what: tokens, reviews and RBAC.

use crate::bench::{Answer, Bench, CONFIG_MAPS, text};
use http::{Method, StatusCode};
use lariat_cluster::{Cluster, ClusterBuilder, User};
use serde_json::{Value, json};
use tokio::time::{Duration, advance};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const SELF_REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

pub(crate) async fn bench(builder: ClusterBuilder) -> Bench {
    Bench {
        cluster: builder.start().await.expect("it does not listen"),
    }
}

pub(crate) fn builder() -> ClusterBuilder {
    let jane = User::new("jane").group("devs");
    let builder = Cluster::builder().token("sesame");
    builder.token_of("janes", jane)
}

pub(crate) async fn get_as(bench: &Bench, token: &str, path: &str) -> Answer {
    let authorization = format!("Bearer {token}");
    let headers = [("authorization", authorization.as_str())];
    bench.ask(Method::GET, path, &headers, "").await
}

pub(crate) async fn post_as(bench: &Bench, token: &str, path: &str, object: Value) -> Answer {
    let authorization = format!("Bearer {token}");
    let json = ("content-type", "application/json");
    let headers = [("authorization", authorization.as_str()), json];
    bench
        .ask(Method::POST, path, &headers, object.to_string())
        .await
}

/// Asks without credentials, as a client of another process would.
async fn get_anonymously(bench: &Bench, path: &str) -> Answer {
    bench
        .ask(Method::GET, path, &[("authorization", "none")], "")
        .await
}

async fn account_token(bench: &Bench, name: &str) -> String {
    bench
        .post(ACCOUNTS, &json!({"metadata": {"name": name}}))
        .await;
    let request = json!({"spec": {"expirationSeconds": 600}});
    let answer = bench
        .post(&format!("{ACCOUNTS}/{name}/token"), &request)
        .await;
    assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
    text(&answer.json(), "/status/token").to_owned()
}

#[tokio::test(start_paused = true)]
async fn an_open_cluster_lets_everybody_do_everything() {
    let bench = Bench::new().await;
    assert_eq!(
        get_anonymously(&bench, CONFIG_MAPS).await.code,
        StatusCode::OK
    );
    assert_eq!(
        get_as(&bench, "any", CONFIG_MAPS).await.code,
        StatusCode::OK
    );
    let review = bench.post(SELF_REVIEWS, &json!({})).await;
    assert_eq!(review.code, StatusCode::CREATED, "{}", review.text);
    assert_eq!(
        text(&review.json(), "/status/userInfo/username"),
        "kubernetes-admin"
    );
}

#[tokio::test(start_paused = true)]
async fn who_does_not_say_who_they_are_is_turned_away() {
    let bench = bench(builder().require_authentication()).await;
    let status = get_anonymously(&bench, CONFIG_MAPS)
        .await
        .fails(403, "Forbidden");
    let expected = "configmaps is forbidden: User \"system:anonymous\" cannot list resource \
        \"configmaps\" in API group \"\" in the namespace \"default\"";
    assert_eq!(text(&status, "/message"), expected);
    let status = get_anonymously(&bench, "/apis")
        .await
        .fails(403, "Forbidden");
    let expected = "forbidden: User \"system:anonymous\" cannot get path \"/apis\"";
    assert_eq!(text(&status, "/message"), expected);
    assert_eq!(get_anonymously(&bench, "/healthz").await.text, "ok");
    assert_eq!(
        get_anonymously(&bench, "/version").await.code,
        StatusCode::OK
    );

    let status = get_as(&bench, "wrong", CONFIG_MAPS)
        .await
        .fails(401, "Unauthorized");
    assert_eq!(text(&status, "/message"), "Unauthorized");
    assert_eq!(
        get_as(&bench, "sesame", CONFIG_MAPS).await.code,
        StatusCode::OK
    );
    assert_eq!(
        bench.get(CONFIG_MAPS).await.code,
        StatusCode::OK,
        "the cluster is in hand"
    );
    let logged = format!("{:?} {:?}", builder(), bench.cluster.journal().requests());
    assert!(
        !logged.contains("sesame") && !logged.contains("janes"),
        "{logged}"
    );
}

#[tokio::test(start_paused = true)]
async fn rbac_allows_what_a_binding_grants() {
    let bench = bench(builder().rbac()).await;
    get_as(&bench, "janes", CONFIG_MAPS)
        .await
        .fails(403, "Forbidden");
    assert_eq!(get_as(&bench, "janes", "/apis").await.code, StatusCode::OK);
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]);
    let role = json!({"metadata": {"name": "reader"}, "rules": rules});
    bench
        .post(&format!("{RBAC}/namespaces/default/roles"), &role)
        .await;
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": {"name": "readers"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": "devs"}],
    });
    bench
        .post(&format!("{RBAC}/namespaces/default/rolebindings"), &binding)
        .await;
    assert_eq!(
        get_as(&bench, "janes", CONFIG_MAPS).await.code,
        StatusCode::OK
    );
    let other = CONFIG_MAPS.replace("default", "kube-system");
    get_as(&bench, "janes", &other)
        .await
        .fails(403, "Forbidden");
    get_as(&bench, "janes", &format!("{CONFIG_MAPS}?watch=1"))
        .await
        .fails(403, "Forbidden");

    let review = |verb: &str| {
        json!({"spec": {"resourceAttributes": {
            "verb": verb, "resource": "configmaps", "namespace": "default",
        }}})
    };
    let answer = post_as(&bench, "janes", ACCESS_REVIEWS, review("list"))
        .await
        .json();
    assert_eq!(answer["status"]["allowed"], true);
    let expected = "RBAC: allowed by RoleBinding \"readers/default\" of Role \"reader\" to Group \
        \"devs\"";
    assert_eq!(text(&answer, "/status/reason"), expected);
    let answer = post_as(&bench, "janes", ACCESS_REVIEWS, review("delete"))
        .await
        .json();
    assert_eq!(answer["status"], json!({"allowed": false}));
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let asked = json!({"spec": {"namespace": "default"}});
    let answer = post_as(&bench, "janes", path, asked).await.json();
    assert_eq!(answer["status"]["incomplete"], false);
    let rules = answer["status"]["resourceRules"].as_array().map(Vec::len);
    assert_eq!(rules, Some(3), "{answer:#}");
}

#[tokio::test(start_paused = true)]
async fn a_token_of_a_service_account_is_good_until_it_expires_or_the_account_goes() {
    let bench = bench(builder().require_authentication()).await;
    let token = account_token(&bench, "bot").await;
    assert_eq!(token.split('.').count(), 3);
    let whoami = post_as(&bench, &token, SELF_REVIEWS, json!({}))
        .await
        .json();
    let name = "system:serviceaccount:default:bot";
    assert_eq!(text(&whoami, "/status/userInfo/username"), name);
    let review = json!({"spec": {"token": token}});
    let answer = bench.post(TOKEN_REVIEWS, &review).await.json();
    assert_eq!(answer["status"]["authenticated"], true);
    let groups = json!([
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ]);
    assert_eq!(answer["status"]["user"]["groups"], groups);
    let unknown = json!({"spec": {"token": "none"}});
    let answer = bench.post(TOKEN_REVIEWS, &unknown).await.json();
    assert_eq!(answer["status"]["authenticated"], Value::Null);

    let other = account_token(&bench, "other").await;
    bench.delete(&format!("{ACCOUNTS}/other")).await;
    get_as(&bench, &other, CONFIG_MAPS)
        .await
        .fails(401, "Unauthorized");
    // A minute more, because clocks may differ.
    advance(Duration::from_secs(661)).await;
    get_as(&bench, &token, CONFIG_MAPS)
        .await
        .fails(401, "Unauthorized");
}

#[tokio::test(start_paused = true)]
async fn reviews_are_checked_and_not_kept() {
    let bench = Bench::new().await;
    let status = bench.post(ACCESS_REVIEWS, &json!({"spec": {}})).await;
    let status = status.fails(422, "Invalid");
    assert_eq!(
        text(&status, "/details/causes/0/field"),
        "spec.resourceAttributes"
    );
    bench
        .get(ACCESS_REVIEWS)
        .await
        .fails(405, "MethodNotAllowed");
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let no_user = json!({"spec": {"nonResourceAttributes": {"verb": "get", "path": "/"}}});
    let status = bench.post(path, &no_user).await.fails(422, "Invalid");
    assert_eq!(text(&status, "/details/causes/0/field"), "spec.user");
    let path = format!("{ACCOUNTS}/none/token");
    bench.post(&path, &json!({})).await.fails(404, "NotFound");
    bench
        .post(ACCOUNTS, &json!({"metadata": {"name": "bot"}}))
        .await;
    let short = json!({"spec": {"expirationSeconds": 10}});
    let answer = bench.post(&format!("{ACCOUNTS}/bot/token"), &short).await;
    let status = answer.fails(422, "Invalid");
    assert_eq!(text(&status, "/details/kind"), "TokenRequest");
}

#[tokio::test(start_paused = true)]
async fn an_administrator_can_impersonate_others() {
    let bench = bench(builder().rbac()).await;
    let jane = [
        ("impersonate-user", "jane"),
        ("content-type", "application/json"),
    ];
    let answer = bench
        .ask(Method::POST, SELF_REVIEWS, &jane, "{}")
        .await
        .json();
    assert_eq!(text(&answer, "/status/userInfo/username"), "jane");
    let headers = [
        ("authorization", "Bearer janes"),
        ("impersonate-user", "admin"),
    ];
    let answer = bench.ask(Method::GET, "/apis", &headers, "").await;
    let status = answer.fails(403, "Forbidden");
    let expected = "users \"admin\" is forbidden: User \"jane\" cannot impersonate resource \
        \"users\" in API group \"\" at the cluster scope";
    assert_eq!(text(&status, "/message"), expected);
}

#[tokio::test(start_paused = true)]
async fn a_token_for_another_audience_is_refused() {
    let bench = bench(builder().rbac()).await;
    bench
        .post(ACCOUNTS, &json!({"metadata": {"name": "bot"}}))
        .await;
    let path = format!("{ACCOUNTS}/bot/token");
    let request = json!({"spec": {"audiences": ["vault"]}});
    let answer = bench.post(&path, &request).await.json();
    let token = text(&answer, "/status/token");
    get_as(&bench, token, "/version")
        .await
        .fails(401, "Unauthorized");
}

#[tokio::test(start_paused = true)]
async fn groups_without_a_user_cannot_be_impersonated() {
    let bench = bench(builder().rbac()).await;
    for (header, parts) in [
        (
            "impersonate-group",
            r#"UID:"", Groups:[]string{"x"}, Extra:map[string][]string(nil)"#,
        ),
        (
            "impersonate-uid",
            r#"UID:"x", Groups:[]string(nil), Extra:map[string][]string(nil)"#,
        ),
        (
            "impersonate-extra-scopes",
            r#"UID:"", Groups:[]string(nil), Extra:map[string][]string{"scopes":[]string{"x"}}"#,
        ),
    ] {
        let answer = bench.ask(Method::GET, "/apis", &[(header, "x")], "").await;
        let status = answer.fails(400, "BadRequest");
        let wanted = format!(r#"&user.DefaultInfo{{Name:"", {parts}}}"#);
        let expected = format!("requested {wanted} without impersonating a user name");
        assert_eq!(text(&status, "/message"), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_selected_name_counts_for_lists_only() {
    let bench = bench(builder().rbac()).await;
    let rules = json!([{
        "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"],
        "verbs": ["get", "list", "create"],
    }]);
    let role = json!({"metadata": {"name": "a"}, "rules": rules});
    bench
        .post(&format!("{RBAC}/namespaces/default/roles"), &role)
        .await;
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": {"name": "a"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "a"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "jane"}],
    });
    bench
        .post(&format!("{RBAC}/namespaces/default/rolebindings"), &binding)
        .await;
    let selected = format!("{CONFIG_MAPS}?fieldSelector=metadata.name=a");
    assert_eq!(
        get_as(&bench, "janes", &selected).await.code,
        StatusCode::OK
    );
    let object = json!({"metadata": {"name": "b"}});
    post_as(&bench, "janes", &selected, object)
        .await
        .fails(403, "Forbidden");
}

#[tokio::test(start_paused = true)]
async fn an_apply_that_creates_needs_to_be_allowed_to_create() {
    let bench = bench(builder().rbac()).await;
    let subject = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"});
    let binding = json!({
        "metadata": {"name": "jane"}, "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "patcher"},
    });
    let role = |verbs: &[&str]| {
        json!({
            "metadata": {"name": "patcher"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}],
        })
    };
    bench
        .post(&format!("{RBAC}/clusterrolebindings"), &binding)
        .await;
    bench
        .post(&format!("{RBAC}/clusterroles"), &role(&["patch"]))
        .await;
    let apply = async || {
        let headers = [
            ("authorization", "Bearer janes"),
            ("content-type", "application/apply-patch+yaml"),
        ];
        let path = format!("{CONFIG_MAPS}/a?fieldManager=jane");
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        bench
            .ask(Method::PATCH, &path, &headers, object.to_string())
            .await
    };
    let refused = apply().await;
    assert_eq!(refused.code, StatusCode::FORBIDDEN, "{}", refused.text);
    assert!(
        refused.text.contains("cannot create resource"),
        "{}",
        refused.text
    );
    let both = role(&["create", "patch"]);
    bench
        .put(&format!("{RBAC}/clusterroles/patcher"), &both)
        .await;
    assert_eq!(apply().await.code, StatusCode::CREATED);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_the_word_behind_one_blank() {
    let bench = bench(builder().rbac()).await;
    let warning = "299 - \"the provided Authorization header contains extra space before the bearer token, \
                   and is ignored\"";
    for (authorization, code, warns) in [
        ("Bearer sesame", 200, false),
        ("bearer sesame  ", 200, false),
        ("Bearer sesame x", 200, false),
        ("Bearer  sesame", 403, true),
        ("Bearer   ", 403, false),
    ] {
        let headers = [("authorization", authorization)];
        let answer = bench.ask(Method::GET, CONFIG_MAPS, &headers, "").await;
        assert_eq!(answer.code, code, "{authorization}");
        let given = answer
            .headers
            .get("warning")
            .map(http::HeaderValue::as_bytes);
        assert_eq!(
            given,
            warns.then_some(warning.as_bytes()),
            "{authorization}"
        );
    }
}
