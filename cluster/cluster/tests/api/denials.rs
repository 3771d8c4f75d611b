//! What is said of who may not do something, or may.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::access::{bench, builder, get_as, post_as};
use crate::bench::{CONFIG_MAPS, text};

const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// A request of jane for a certificate.
pub(crate) const REQUEST: &str = concat!(
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIV01IOENBUUF3SFRFTU1Bb0dBMVVFQ2d3RFpHVj",
    "JNUTB3Q3dZRFZRUUREQVJxWVc1bE1Ga3dFd1lIS29aSXpqMENBUVlJS29aSQp6ajBEQVFjRFFnQUVabm9FZDBWSjBF",
    "YVZDbjZkOEhpcW9jQUl4UHEzL1lBWWdkb3hLbWhHbXJld2hNYUlVZENMMVZCMnJXbXk0N3l6Cm0raCtoU1pPYWF6YV",
    "VIZVJBZHUzNEtBQU1Bb0dDQ3FHU000OUJBTUNBMGNBTUVRQ0lCeUJQMDdMeUFjRUdwbWdrZTVLdzdTSTBvLy8KWUpM",
    "MFk1ZmhVNWlkWkkvaUFpQituUHlOa0ltR1hhRFB6aTFmTmo2K0ZHNEt1amlVMmllYzk1R1BqS1RMK3c9PQotLS0tLU",
    "VORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K",
);

#[tokio::test(start_paused = true)]
async fn roles_that_are_missing_are_named() {
    let bench = bench(builder().rbac()).await;
    let bind = |name: &str, kind: &str, role: &str, subject: Value| {
        let binding = json!({
            "metadata": {"name": name}, "subjects": [subject],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        });
        let path = format!("{RBAC}/namespaces/default/rolebindings");
        let bench = &bench;
        async move {
            let answer = bench.post(&path, &binding).await;
            assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
        }
    };
    let jane = || json!({"kind": "User", "name": "jane"});
    bind("a", "Role", "none", jane()).await;
    bind("b", "ClusterRole", "other", jane()).await;
    bind("c", "Role", "none", jane()).await;
    let missing = "[role.rbac.authorization.k8s.io \"none\" not found, \
        clusterrole.rbac.authorization.k8s.io \"other\" not found]";
    let status = get_as(&bench, "janes", CONFIG_MAPS)
        .await
        .fails(403, "Forbidden");
    let expected = format!(
        "configmaps is forbidden: User \"jane\" cannot list resource \"configmaps\" in API group \"\" in the namespace \
         \"default\": RBAC: {missing}"
    );
    assert_eq!(text(&status, "/message"), expected);
    let resource = json!({"verb": "get", "resource": "pods", "namespace": "default"});
    let review = json!({"spec": {"resourceAttributes": resource}});
    let answer = post_as(&bench, "janes", ACCESS_REVIEWS, review)
        .await
        .json();
    let expected = json!({"allowed": false, "reason": format!("RBAC: {missing}")});
    assert_eq!(answer["status"], expected);
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let review = json!({"spec": {"namespace": "default"}});
    let answer = post_as(&bench, "janes", path, review).await.json();
    assert_eq!(text(&answer, "/status/evaluationError"), missing);
    let role = json!({
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    });
    bench
        .post(&format!("{RBAC}/namespaces/default/roles"), &role)
        .await;
    let account = json!({"kind": "ServiceAccount", "name": "bot"});
    bind("d", "Role", "reader", account).await;
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let review = json!({"spec": {
        "user": "system:serviceaccount:default:bot", "resourceAttributes": resource,
    }});
    let answer = bench.post(path, &review).await.json();
    let expected = "RBAC: allowed by RoleBinding \"d/default\" of Role \"reader\" to ServiceAccount \
        \"bot/default\"";
    assert_eq!(text(&answer, "/status/reason"), expected);
}

#[tokio::test(start_paused = true)]
async fn requests_for_certificates_are_approved_by_who_may_do_so_for_the_signer() {
    const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let bench = bench(builder().rbac()).await;
    let object = json!({
        "metadata": {"name": "a"},
        "spec": {"request": REQUEST, "signerName": "a.b/c", "usages": ["client auth"]},
    });
    let answer = bench.post(REQUESTS, &object).await;
    assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
    let allow = |name: &str, rule: Value| {
        let role = json!({"metadata": {"name": name}, "rules": [rule]});
        let binding = json!({
            "metadata": {"name": name}, "subjects": [{"kind": "User", "name": "jane"}],
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name,
            },
        });
        let bench = &bench;
        async move {
            bench.post(&format!("{RBAC}/clusterroles"), &role).await;
            let path = format!("{RBAC}/clusterrolebindings");
            let answer = bench.post(&path, &binding).await;
            assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
        }
    };
    let group = ["certificates.k8s.io"];
    let parts = [
        "certificatesigningrequests/approval",
        "certificatesigningrequests/status",
    ];
    let rule = json!({"apiGroups": group, "resources": parts, "verbs": ["*"]});
    allow("parts", rule).await;
    let write = |part: &str, kind: &str| {
        let path = format!("{REQUESTS}/a/{part}");
        let patch = json!({"status": {"conditions": [{"type": kind, "status": "True"}]}});
        let bench = &bench;
        async move {
            let headers = [
                ("authorization", "Bearer janes"),
                ("content-type", "application/merge-patch+json"),
            ];
            bench
                .ask(Method::PATCH, &path, &headers, patch.to_string())
                .await
        }
    };
    for (part, kind, verb) in [
        ("approval", "Approved", "approve"),
        ("status", "Failed", "sign"),
    ] {
        let status = write(part, kind).await.fails(403, "Forbidden");
        let expected = format!(
            "certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: user not permitted to {verb} requests \
             with signerName \"a.b/c\""
        );
        assert_eq!(text(&status, "/message"), expected);
    }
    let rule = json!({
        "apiGroups": group, "resources": ["signers"], "resourceNames": ["a.b/*"],
        "verbs": ["approve"],
    });
    allow("signers", rule).await;
    let answer = write("approval", "Approved").await;
    assert_eq!(answer.code, StatusCode::OK, "{}", answer.text);
}
