//! Admission policies: rules in CEL that judge and change objects.

use serde_json::{Value, json};

use crate::bench::{Answer, Bench, CONFIG_MAPS, text, with};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

fn config_map() -> Value {
    json!({"metadata": {"generateName": "m-"}, "data": {"a": "1"}})
}

/// Registers a policy for ConfigMaps and its binding, each with some members of its own.
async fn register(bench: &Bench, kind: &str, policy: Value, binding: Value) {
    register_as("p", bench, kind, policy, binding).await;
}

/// As [`register`], under a name.
async fn register_as(name: &str, bench: &Bench, kind: &str, policy: Value, binding: Value) {
    let constraints = json!({"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
        "resources": ["configmaps"], "operations": ["CREATE"]}]});
    let spec = with(json!({"matchConstraints": constraints}), policy);
    let mut bound = json!({"policyName": name});
    if kind == "validating" {
        bound["validationActions"] = json!(["Deny"]);
    }
    for (plural, spec) in [("policies", spec), ("policybindings", with(bound, binding))] {
        let object = json!({"metadata": {"name": name}, "spec": spec});
        let answer = bench
            .post(&format!("{GROUP}/{kind}admission{plural}"), &object)
            .await;
        assert_eq!(answer.code, 201, "{}", answer.text);
    }
}

/// Creates a ConfigMap where one validating policy applies.
async fn judged(policy: Value, binding: Value) -> (Bench, Answer) {
    let bench = Bench::new().await;
    register(&bench, "validating", policy, binding).await;
    let answer = bench.post(CONFIG_MAPS, &config_map()).await;
    (bench, answer)
}

fn rule(expression: &str, more: Value) -> Value {
    let rule = with(json!({"expression": expression}), more);
    json!({"validations": [rule]})
}

/// Policies that deny a ConfigMap, with the code, the reason and the message.
fn denials() -> Vec<(Value, u16, &'static str, &'static str)> {
    let none = || json!({});
    let dynamic = json!({"messageExpression": "'a is ' + object.data.a", "reason": "Forbidden"});
    let variables = json!({"variables": [{"name": "a", "expression": "object.data.a"},
        {"name": "b", "expression": "variables.a + 'x'"}]});
    let broken = json!({"variables": [{"name": "a", "expression": "object.spec.x"}]});
    let condition = json!({"matchConditions": [{"name": "c", "expression": "object.spec.x == 1"}]});
    let of_variable = rule(
        "variables.b == '1'",
        json!({"messageExpression": "variables.b + ''"}),
    );
    let namespace = "namespaceObject.metadata.name == 'x'";
    vec![
        (
            rule("false", none()),
            422,
            "Invalid",
            "failed expression: false",
        ),
        (
            rule("object.data.a == '2'", json!({"message": " no "})),
            422,
            "Invalid",
            "no",
        ),
        (rule("false", dynamic), 403, "Forbidden", "a is 1"),
        (with(of_variable, variables), 422, "Invalid", "1x"),
        (
            rule(namespace, none()),
            422,
            "Invalid",
            "failed expression: namespaceObject.metadata.name == 'x'",
        ),
        (
            rule("object.spec.x == 1", none()),
            422,
            "Invalid",
            "expression 'object.spec.x == 1' resulted in error: no such key: spec",
        ),
        (
            with(rule("variables.a == 1", none()), broken),
            422,
            "Invalid",
            "expression 'variables.a == 1' resulted in error: composited variable \"a\" fails to evaluate: no such \
             key: spec",
        ),
        (
            with(rule("true", none()), condition),
            422,
            "Invalid",
            "expression 'object.spec.x == 1' resulted in error: no such key: spec",
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn what_a_rule_does_not_allow_is_denied_with_its_message() {
    for (policy, code, reason, expected) in denials() {
        let (_bench, answer) = judged(policy, json!({})).await;
        let status = answer.fails(code, reason);
        let denied =
            format!("ValidatingAdmissionPolicy 'p' with binding 'p' denied request: {expected}");
        let name = text(&status, "/details/name");
        assert_eq!(
            status["message"],
            format!("configmaps {name:?} is forbidden: {denied}")
        );
        assert_eq!(status["details"]["causes"], json!([{"message": denied}]));
    }
}

#[tokio::test(start_paused = true)]
async fn what_holds_or_does_not_apply_or_is_to_be_ignored_passes() {
    let none = json!({});
    let denying = || rule("false", json!({}));
    let condition =
        json!({"matchConditions": [{"name": "c", "expression": "object.data.a == '2'"}]});
    let elsewhere = json!({"matchResources": {"namespaceSelector": {"matchLabels": {"x": "y"}}}});
    let excluded = json!({"matchConstraints": {
        "resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}],
        "excludeResourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
            "operations": ["CREATE"]}]}});
    let ignored = json!({"failurePolicy": "Ignore"});
    for (policy, binding) in [
        (
            rule(
                "object.data.a == '1' && oldObject == null && request.operation == 'CREATE'",
                none.clone(),
            ),
            none.clone(),
        ),
        (with(denying(), condition), none.clone()),
        (denying(), elsewhere),
        (denying(), json!({"policyName": "other"})),
        (with(denying(), excluded), none.clone()),
        (
            with(rule("object.spec.x == 1", none.clone()), ignored),
            none.clone(),
        ),
        (rule("params == null", none.clone()), none),
    ] {
        let policy = if policy.to_string().contains("params") {
            with(
                policy,
                json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}),
            )
        } else {
            policy
        };
        let (_bench, answer) = judged(policy, binding).await;
        assert_eq!(answer.code, 201, "{}", answer.text);
    }
}

#[tokio::test(start_paused = true)]
async fn a_binding_may_warn_and_note_instead() {
    let policy = with(
        rule("false", json!({"message": "m"})),
        json!({"auditAnnotations": [{"key": "k", "valueExpression": "'v' + request.operation"}]}),
    );
    let (bench, answer) = judged(policy, json!({"validationActions": ["Warn", "Audit"]})).await;
    assert_eq!(answer.code, 201);
    let warning = answer.headers.get("warning").unwrap().to_str().unwrap();
    let expected =
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': m\"";
    assert_eq!(warning, expected);
    let audit = bench.cluster.journal().requests().pop().unwrap().audit;
    assert_eq!(
        audit[0].0,
        "validation.policy.admission.k8s.io/validation_failure"
    );
    let failure: Value = serde_json::from_str(&audit[0].1).unwrap();
    assert_eq!(failure[0]["validationActions"], json!(["Warn", "Audit"]));
    assert_eq!(audit[1], ("p/k".to_owned(), "vCREATE".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn params_are_objects_that_a_binding_names_or_selects() {
    let kind = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}});
    let policy = with(
        rule("params.data.max == object.data.a", json!({})),
        kind.clone(),
    );
    let param = |param: Value| json!({"paramRef": param});
    let named = |action: &str| param(json!({"name": "x", "parameterNotFoundAction": action}));
    let (_, answer) = judged(policy.clone(), named("Deny")).await;
    let status = answer.fails(422, "Invalid");
    let expected = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    assert!(text(&status, "/message").ends_with(expected), "{status:#}");
    let (bench, answer) = judged(policy.clone(), named("Allow")).await;
    assert_eq!(answer.code, 201);
    let make = async |name: &str, max: &str| {
        let labels = json!({"param": "yes"});
        let object =
            json!({"metadata": {"name": name, "labels": labels}, "data": {"max": max, "a": max}});
        bench.post(CONFIG_MAPS, &object).await
    };
    assert_eq!(make("x", "1").await.code, 201);
    assert_eq!(bench.post(CONFIG_MAPS, &config_map()).await.code, 201);
    bench.delete(&format!("{CONFIG_MAPS}/x")).await;
    bench
        .delete(&format!("{GROUP}/validatingadmissionpolicybindings/p"))
        .await;
    let selecting = param(
        json!({"selector": {"matchLabels": {"param": "yes"}}, "parameterNotFoundAction": "Deny"}),
    );
    assert_eq!(make("x", "1").await.code, 201);
    assert_eq!(make("y", "2").await.code, 201);
    let bound = json!({"metadata": {"name": "p"}, "spec": with(json!({"policyName": "p", "validationActions": ["Deny"]}), selecting)});
    bench
        .post(
            &format!("{GROUP}/validatingadmissionpolicybindings"),
            &bound,
        )
        .await;
    bench
        .post(CONFIG_MAPS, &config_map())
        .await
        .fails(422, "Invalid");

    let unknown = json!({"paramKind": {"apiVersion": "x.y/v1", "kind": "Foo"}});
    let (_, answer) = judged(with(rule("true", json!({})), unknown), named("Allow")).await;
    let status = answer.fails(422, "Invalid");
    let expected = "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource \
        referenced by paramKind: 'x.y/v1, Kind=Foo'";
    assert!(text(&status, "/message").ends_with(expected), "{status:#}");
}

#[tokio::test(start_paused = true)]
async fn expressions_may_ask_what_the_user_may_do() {
    let rules = "authorizer.group('').resource('configmaps').namespace('default').check('create').allowed() && \
        authorizer.requestResource.check('create').allowed() && \
        !authorizer.serviceAccount('default', 'x').group('').resource('pods').check('get').allowed()";
    let bench = Bench {
        cluster: lariat_cluster::Cluster::builder()
            .rbac()
            .start()
            .await
            .unwrap(),
    };
    register(&bench, "validating", rule(rules, json!({})), json!({})).await;
    let answer = bench.post(CONFIG_MAPS, &config_map()).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
}

fn mutation(kind: &str, expression: &str) -> Value {
    let member = if kind == "JSONPatch" {
        "jsonPatch"
    } else {
        "applyConfiguration"
    };
    json!({"reinvocationPolicy": "Never", "mutations": [{"patchType": kind, member: {"expression": expression}}]})
}

/// Creates a ConfigMap where one mutating policy applies.
async fn changed(policy: Value) -> Answer {
    let bench = Bench::new().await;
    register(&bench, "mutating", policy, json!({})).await;
    bench
        .post(&format!("{CONFIG_MAPS}?fieldManager=me"), &config_map())
        .await
}

#[tokio::test(start_paused = true)]
async fn policies_change_objects_by_patches_and_by_what_is_applied() {
    let apply = "Object{metadata: Object.metadata{labels: {'x': object.data.a}}}";
    let created = changed(mutation("ApplyConfiguration", apply)).await.json();
    assert_eq!(
        created["metadata"]["labels"],
        json!({"x": "1"}),
        "{created:#}"
    );
    let managers = created["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(
        (managers.len(), &managers[0]["manager"]),
        (1, &json!("me")),
        "{created:#}"
    );
    assert!(!managers[0].to_string().contains("labels"));

    let patch = "[JSONPatch{op: 'add', path: '/metadata/labels', value: {}}, JSONPatch{op: 'add', \
        path: '/metadata/labels/' + jsonpatch.escapeKey('b/c'), value: object.data.a + 'x'}]";
    let created = changed(mutation("JSONPatch", patch)).await.json();
    assert_eq!(
        created["metadata"]["labels"],
        json!({"b/c": "1x"}),
        "{created:#}"
    );

    let tested = "[JSONPatch{op: 'test', path: '/data/a', value: '2'}, JSONPatch{op: 'add', path: '/data/b', value: '2'}]";
    let created = changed(mutation("JSONPatch", tested)).await.json();
    assert_eq!(created["data"], json!({"a": "1"}), "{created:#}");
}

#[tokio::test(start_paused = true)]
async fn a_mutation_that_fails_is_denied() {
    for (kind, expression, expected) in [
        (
            "JSONPatch",
            "[JSONPatch{op: 'remove', path: '/data/none'}]",
            "JSON Patch: error in remove for path: \
            '/data/none': Unable to remove nonexistent key: none: missing value",
        ),
        (
            "ApplyConfiguration",
            "Object{data: {'b': object.spec.x}}",
            "expression 'Object{data: {'b': \
            object.spec.x}}' resulted in error: no such key: spec",
        ),
        (
            "ApplyConfiguration",
            "Object{foo: 'x'}",
            "error applying patch: .foo: field not declared in schema",
        ),
    ] {
        let answer = changed(mutation(kind, expression)).await;
        let status = answer.fails(403, "Invalid");
        let message = format!("policy 'p' with binding 'p' denied request: {expected}");
        assert_eq!(status["message"], message);
        assert_eq!(status["details"]["causes"], json!([{"message": message}]));
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_changed_before_a_mutation_failed_or_no_longer_applied_has_others_run_again() {
    let apply = |expression: &str| json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}});
    let first = apply("Object{data: {'b': '1'}}");
    let fails = json!({"failurePolicy": "Ignore", "mutations": [first, apply("Object{data: object.spec}")]});
    let once = json!([{"name": "once", "expression": "!has(object.data.b)"}]);
    let ends =
        json!({"matchConditions": once, "mutations": [first, apply("Object{data: {'c': '1'}}")]});
    for changing in [fails, ends] {
        let bench = Bench::new().await;
        let saw = apply("has(object.data.b) ? Object{data: {'saw': '1'}} : Object{}");
        let seeing = json!({"reinvocationPolicy": "IfNeeded", "mutations": [saw]});
        let changing = with(json!({"reinvocationPolicy": "Never"}), changing);
        register_as("a", &bench, "mutating", seeing, json!({})).await;
        register_as("b", &bench, "mutating", changing, json!({})).await;
        let created = bench.post(CONFIG_MAPS, &config_map()).await.json();
        assert_eq!(
            created["data"],
            json!({"a": "1", "b": "1", "saw": "1"}),
            "{created:#}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn policies_are_exempt_from_policies() {
    let everything = json!({"matchConstraints": {"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"],
        "resources": ["*"], "operations": ["*"]}]}});
    let (bench, answer) = judged(with(rule("false", json!({})), everything), json!({})).await;
    answer.fails(422, "Invalid");
    assert_eq!(
        bench
            .delete(&format!("{GROUP}/validatingadmissionpolicybindings/p"))
            .await
            .code,
        200
    );
    assert_eq!(bench.post(CONFIG_MAPS, &config_map()).await.code, 201);
}
